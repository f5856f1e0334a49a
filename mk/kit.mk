# kit.mk - make gpu-kit: what tools/gpu_check.sh needs on a machine with a GPU, built here, in build/gpu-kit:
# the plugin, the suites as one program, the benchmark, tapegrad, PyTorch's side of the benchmark and the
# files that suites read.  There it needs no BLIS, cmocka, compiler or network.
#   KIT_ARCHS="80 90"   the chips that the plugin has machine code for
#   make kit-folder     all but the plugin, in KIT

KIT        ?= build/gpu-kit
KIT_ARCHS  ?= 80 90
KIT_SUITES := $(filter-out test_emu% test_cuda,$(DEVICE_SUITES)) test_golden \
              test_ops test_ops_grad test_ops_layout test_ops_memory
KIT_FILES  := $(wildcard test/oracle/golden/* test/cuda/*.txt bench/*.py) test/oracle/kinds/optim.golden \
              bench/run.sh tools/gpu_check.sh
# libpng and zlib in it, the rest of the C library there.
KIT_LIBS   := -Wl,-Bstatic -lpng -lz -Wl,-Bdynamic $(filter-out -lblis -lpng -lz,$(LIBS))
KIT_WHOLE  := $(subst $(B)/,$(B)/noblis/,$(WHOLE))
KIT_SHARED := $(SHARED_TEST:test/%.c=$(B)/kit/%.o)
KIT_OWN    := $(B)/kit/suites.o $(B)/kit/kit.o $(B)/kit/runner.o

# Compiled with the runner of test/kit in the place of cmocka.  One program has one main: each suite's gets
# the suite's name.
KIT_COMPILE = $(COMPILE) -MMD -MP -c $< -o $@
$(B)/kit/%.o: MUST += $(SEE)
$(B)/kit/%.o: FILE = -Itest/kit/runner -Itest -Itest/kit -O0
$(B)/kit/test_%.o: test_%.c $(B)/flags mk/kit.mk
	$(KIT_COMPILE) && $(OBJCOPY) --redefine-sym main=test_$* $@
$(KIT_SHARED): $(B)/kit/%.o: test/%.c $(B)/flags mk/kit.mk ; $(KIT_COMPILE)
$(B)/kit/kit.o: test/kit/kit.c $(B)/flags mk/kit.mk ; $(KIT_COMPILE)
$(B)/kit/runner.o: test/kit/runner/runner.c $(B)/flags mk/kit.mk ; $(KIT_COMPILE)
$(B)/kit/suites.o: $(B)/kit/suites.c $(B)/flags ; $(KIT_COMPILE)
$(B)/kit/suites.c: mk/kit.mk
	@mkdir -p $(@D); (echo '#include "kit.h"'; \
	    printf 'int %s(int argc, char **argv);\n' $(KIT_SUITES); echo 'const KitSuite kit_suites[] = {'; \
	    printf '    { "%s", %s },\n' $(foreach s,$(KIT_SUITES),$(s) $(s)); echo '    { 0 },'; echo '};') > $@
$(B)/kit/suites: $(KIT_SUITES:%=$(B)/kit/%.o) $(KIT_SHARED) $(KIT_OWN) $(B)/noblis/libtapegrad.a \
                 $(B)/flags.link | $(BAD_PLUGINS)
	@echo "  LD   $@"; $(LINK) $(filter %.o,$^) $(KIT_WHOLE) $(KIT_LIBS) -o $@
$(B)/kit/bench: $(BENCH) bench/cases.h bench/nets.h $(B)/noblis/libtapegrad.a $(B)/flags.link
	$(COMPILE) $(BENCH) $(KIT_WHOLE) $(LDFLAGS) $(KIT_LIBS) -o $@
$(B)/kit/tapegrad: tools/tapegrad.c $(B)/noblis/libtapegrad.a $(B)/flags.link
	$(COMPILE) $< $(KIT_WHOLE) $(LDFLAGS) $(KIT_LIBS) -o $@

# Programs lie in a folder below that of the plugin, as the suites do in $(B)/test (test/plugin_folder.h).
kit-folder: $(addprefix $(B)/kit/,suites bench tapegrad)
	@rm -rf $(KIT) && mkdir -p $(KIT)/bin $(KIT)/test/plugins && cp --parents $(KIT_FILES) $(KIT)
	@cp $^ $(KIT)/bin && cp $(BAD_PLUGINS) $(KIT)/test/plugins
gpu-kit: kit-folder
	@$(MAKE) --no-print-directory B=$(B) CUDA_ARCHS="$(KIT_ARCHS)" cuda
	@cp $(B)/libtapegrad_cuda.so $(KIT) && strip -g $(KIT)/libtapegrad_cuda.so && du -sm $(KIT)
	@[ $$(du -sm $(KIT) | cut -f1) -le 50 ] || { echo "gpu-kit: over 50 MiB" >&2; exit 1; }
.PHONY: kit-folder gpu-kit
