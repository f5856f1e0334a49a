# kit.mk - make gpu-kit: what tools/gpu_check.sh needs on a machine with a GPU, built here, in build/gpu-kit:
# the plugin, the suites as one program, the benchmark, tapegrad, cmocka's library, PyTorch's side of the
# benchmark and the files that suites read.  It needs no BLIS, no compiler and no network there.
#   KIT_ARCHS="80 90"   the chips that the plugin has machine code for

KIT        := build/gpu-kit
KIT_ARCHS  ?= 80 90
KIT_SUITES := $(filter-out test_emu% test_cuda,$(DEVICE_SUITES)) test_golden \
              test_ops test_ops_grad test_ops_layout test_ops_memory
KIT_FILES  := $(wildcard test/oracle/golden/* test/cuda/*.txt bench/*.py bench/run.sh) tools/gpu_check.sh
# libpng and zlib in it, the rest of the C library there.
KIT_LIBS   := -Wl,-Bstatic -lpng -lz -Wl,-Bdynamic $(filter-out -lblis -lpng -lz,$(LIBS)) -Wl,-S
KIT_WHOLE  := $(subst $(B)/,$(B)/noblis/,$(WHOLE))
KIT_LINK    = $(LINK) $(filter %.o %.c,$^) $(KIT_WHOLE) $(KIT_LIBS)

# One program has one main: each suite's gets the suite's name.
$(B)/kit/%.o: $(B)/test/%.o ; @mkdir -p $(@D) && objcopy --redefine-sym main=$* $< $@
$(B)/kit/suites.c: mk/kit.mk
	@mkdir -p $(@D); (echo '#include "kit.h"'; \
	    printf 'int %s(int argc, char **argv);\n' $(KIT_SUITES); echo 'const KitSuite kit_suites[] = {'; \
	    printf '    { "%s", %s },\n' $(foreach s,$(KIT_SUITES),$(s) $(s)); echo '    { 0 },'; echo '};') > $@
$(B)/kit/suites: $(KIT_SUITES:%=$(B)/kit/%.o) $(B)/kit/suites.c test/kit/kit.c $(SHARED_OBJECTS) \
                 $(B)/noblis/libtapegrad.a
	@echo "  LD   $@"; $(KIT_LINK) -Itest/kit $(CMOCKA) -Wl,-rpath,'$$ORIGIN' -o $@
$(B)/kit/bench: $(BENCH) $(B)/noblis/libtapegrad.a
	@echo "  LD   $@"; $(KIT_LINK) -Iinclude -I$(B)/include -o $@
$(B)/kit/tapegrad: tools/tapegrad.c $(B)/noblis/libtapegrad.a
	@echo "  LD   $@"; $(KIT_LINK) -Iinclude -I$(B)/include -o $@

gpu-kit: $(addprefix $(B)/kit/,suites bench tapegrad)
	@$(MAKE) --no-print-directory B=$(B) CUDA_ARCHS="$(KIT_ARCHS)" cuda
	@rm -rf $(KIT) && mkdir -p $(KIT) && cp --parents $(KIT_FILES) $(KIT)
	@mkdir $(KIT)/bin && cp $^ $(B)/libtapegrad_cuda.so $(KIT)/bin
	@cp $$(ldd $(B)/kit/suites | sed -n 's/.*=> \(.*libcmocka[^ ]*\) .*/\1/p') $(KIT)
	@strip -g $(KIT)/bin/libtapegrad_cuda.so && du -sm $(KIT)
	@[ $$(du -sm $(KIT) | cut -f1) -le 50 ] || { echo "gpu-kit: over 50 MiB" >&2; exit 1; }
.PHONY: gpu-kit
