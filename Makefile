# make            the library, static and shared, and the command build/tapegrad
# make demo       installs what is missing, builds, trains on MNIST, shows the result
# make test       every suite
# make help       the rest

.DEFAULT_GOAL := all
B        ?= build
PREFIX   ?= /usr/local
DESTDIR  ?=
CC       ?= gcc
OBJCOPY  ?= objcopy
VERSION  := 0.1.0
SONAME   := libtapegrad.so.0

OPT      ?= -O2 -g
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Werror
SAN      ?=
IS_CLANG := $(shell $(CC) --version 2>/dev/null | grep -c clang)
ifeq ($(IS_CLANG),0)
WARN     += -Wno-override-init -Wno-missing-field-initializers
else
WARN     += -Wno-initializer-overrides -Wno-missing-field-initializers -Wno-gnu-folding-constant -Wno-missing-braces -Wno-pass-failed
endif
DIGEST   := $(shell cat include/tapegrad/ops.def src/device/device.h | cksum | cut -d' ' -f1)
CPPFLAGS += -Iinclude -Isrc -DTAPEGRAD_OPS_DIGEST='"$(DIGEST)"'
LIBS     := -lpng -lz -ldl -lm -lpthread
ifdef WITHOUT_BLIS
CPPFLAGS += -DWITHOUT_BLIS
else
LIBS     := -lblis $(LIBS)
endif
# No -ffast-math: NaN and infinity behave.  -ffp-contract=off: the same bits in the body and the tail of a vector loop.
FLAGS    := -std=gnu11 $(OPT) -fPIC -fopenmp-simd -fvisibility=hidden -ffp-contract=off -fno-math-errno -fno-trapping-math -fasynchronous-unwind-tables -fno-function-sections -fno-lto $(WARN) $(SAN)

# ---- sources ------------------------------------------------------------------------------------------------
# ISA_SOURCES are compiled once an instruction set (src/cpu/isa.h).
ALL_SOURCES := $(shell find src nn optim -name '*.c')
ISA_SOURCES := $(filter %_kernel.c %_kernels.c,$(ALL_SOURCES))
SOURCES     := $(filter-out $(ISA_SOURCES),$(ALL_SOURCES))
HOT         := $(filter src/cpu/% src/random/%,$(SOURCES))
LEAN        := $(filter %/map.c %/select.c %/gemm.c %/copy.c src/cpu/reduce/reduce.c %/gemm_device.c,$(SOURCES))
ifeq ($(shell uname -m),x86_64)
ISAS        := base avx2 avx512
else
ISAS        := base
endif
# The long lists of simple loops, and files that mostly drive others, get no unrolling and scalar tails: the library stays under 3 MB.
ifeq ($(IS_CLANG),0)
SMALL       := -O2 -ftree-vectorize -fvect-cost-model=dynamic --param=vect-epilogues-nomask=0
else
SMALL       := -O2
endif
# On x86-64 the base is for CPUs from before 2013: small code.  Elsewhere it is all there is.
ifeq ($(shell uname -m),x86_64)
MARCH_base  := -Os $(if $(filter 0,$(IS_CLANG)),-fno-tree-vectorize)
else
MARCH_base  := -O3
endif
MARCH_avx2  := -march=x86-64-v3
MARCH_avx512 := -march=x86-64-v4 -mprefer-vector-width=512
UP_TO_AVX2  := elementwise/map_rare_kernel
OBJECTS     := $(SOURCES:%.c=$(B)/%.o) $(filter-out $(UP_TO_AVX2:%=$(B)/src/cpu/%.avx512.o),$(foreach i,$(ISAS),$(ISA_SOURCES:%.c=$(B)/%.$(i).o)))

# Other flags, another build: what was compiled with others is compiled again.
STAMP := $(CC) $(CPPFLAGS) $(CFLAGS) $(FLAGS) $(SMALL) $(MARCH_base) $(LIBS)
$(shell mkdir -p $(B))
ifneq ($(file <$(B)/flags),$(STAMP))
$(file >$(B)/flags,$(STAMP))
endif
$(OBJECTS): $(B)/flags

all: $(B)/libtapegrad.a $(B)/$(SONAME) $(B)/tapegrad

# The code of the library lies in a section of its own, so that errors can tell its frames from the user's (src/trace/callsite.c).
COMPILE = @mkdir -p $(@D) && echo "  CC   $@" && $(CC) $(CPPFLAGS) $(CFLAGS) $(FLAGS)
TEXTS   := .text .text.unlikely .text.unlikely. .text.hot .text.hot. .text.startup .text.startup. .text.exit .text.exit.
RENAME  = $(OBJCOPY) $(foreach s,$(TEXTS),--rename-section $(s)=tapegrad_text) $@
$(filter $(HOT:%.c=$(B)/%.o),$(OBJECTS)): FLAGS += -O3
$(LEAN:%.c=$(B)/%.o): FLAGS += $(SMALL)
$(B)/%.o: %.c ; $(COMPILE) -MMD -MP -c $< -o $@ && $(RENAME)
define isa_rule
$(B)/%.$(1).o: %.c ; $$(COMPILE) -O3 $$(if $$(filter cast_% map_% rnn_% softmax_%,$$(@F)),$(SMALL)) $(MARCH_$(1)) -fwrapv -DISA=$(1) -MMD -MP -c $$< -o $$@ && $$(RENAME)
endef
$(foreach i,$(ISAS),$(eval $(call isa_rule,$(i))))

$(B)/libtapegrad.a: $(OBJECTS)
	@echo "  AR   $@"; rm -f $@; ar rcs $@ $^
$(B)/$(SONAME): $(OBJECTS) src/export.map
	@echo "  LD   $@"; $(CC) -shared -Wl,-soname,$(SONAME) -Wl,-z,defs -Wl,--version-script=src/export.map $(SAN) $(OBJECTS) $(LIBS) -o $@
	@ln -sf $(SONAME) $(B)/libtapegrad.so
$(B)/tapegrad: tools/tapegrad.c $(B)/libtapegrad.a
	@$(CC) $(CPPFLAGS) $(CFLAGS) $(FLAGS) $< $(B)/libtapegrad.a $(LIBS) -o $@

# ---- tests ------------------------------------------------------------------------------------------------------
# Each suite is one program; those of PARTS link only the files they test.
WHOLE   := -Wl,--whole-archive $(B)/libtapegrad.a -Wl,--no-whole-archive
CMOCKA  ?= -lcmocka
SUITE_SOURCES := $(wildcard test/*/test_*.c)
SUITES  := $(filter-out test_emu test_cuda,$(notdir $(SUITE_SOURCES:.c=)))
TESTS   := $(SUITES:%=$(B)/test/%)
SHARED_TEST := $(wildcard test/*.c)
vpath test_%.c $(sort $(dir $(SUITE_SOURCES)))
$(B)/test/%.o: test/%.c ; $(COMPILE) -Itest -MMD -MP -c $< -o $@
$(B)/test/test_%.o: test_%.c ; $(COMPILE) -Itest -MMD -MP -c $< -o $@
$(B)/test/test_gemm: $(B)/test/test_gemm.o $(B)/src/cpu/product/gemm.o $(B)/src/cpu/product/blis.o $(B)/src/device/parallel.o $(ISAS:%=$(B)/src/cpu/product/gemm_kernel.%.o)
	@echo "  LD   $@"; $(CC) $(FLAGS) $^ $(LIBS) $(CMOCKA) -o $@
$(B)/test/test_%: $(B)/test/test_%.o $(SHARED_TEST:%.c=$(B)/%.o) $(B)/libtapegrad.a
	@echo "  LD   $@"; $(CC) $(FLAGS) $< $(SHARED_TEST:%.c=$(B)/%.o) $(WHOLE) $(LIBS) $(CMOCKA) -o $@
.PRECIOUS: $(B)/test/%.o

check: $(TESTS) ; @test/run.sh $(TESTS)
test: ; @test/all.sh

# The same suites under checkers, each in a build folder of its own.
# test_nn_memory stands in for malloc, as AddressSanitizer does.
asan:  ; $(MAKE) B=build/asan OPT="-O1 -g" SAN="-fsanitize=address,undefined -fno-sanitize-recover=all" SUITES="$(filter-out test_nn_memory,$(SUITES))" check
ubsan: ; $(MAKE) B=build/ubsan OPT="-O1 -g" SAN="-fsanitize=undefined -fno-sanitize-recover=all" check
tsan:  ; $(MAKE) B=build/tsan CC=clang OPT="-O1 -g" SAN=-fsanitize=thread SUITES="test_threads test_data" check
valgrind: $(B)/test/test_tape $(B)/test/test_nn
	@for t in $^; do TAPEGRAD_NO_CACHE=1 OMP_NUM_THREADS=1 valgrind -q --error-exitcode=1 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite $$t || exit 1; done
faults: $(B)/test/test_faults ; $<

# ---- examples, demo, bench ------------------------------------------------------------------------------------------
EXAMPLES := $(patsubst examples/%.c,$(B)/examples/%,$(filter-out examples/example.c,$(wildcard examples/*.c)))
$(B)/examples/%: examples/%.c examples/example.c examples/example.h $(B)/libtapegrad.a
	@mkdir -p $(@D) && echo "  CC   $@" && $(CC) $(CPPFLAGS) $(CFLAGS) $(FLAGS) $< examples/example.c $(B)/libtapegrad.a $(LIBS) -o $@
examples: $(EXAMPLES)
EPOCHS ?= 1
demo: ; @tools/setup.sh && $(MAKE) -s -j2 $(B)/examples/mnist && $(B)/examples/mnist --epochs $(EPOCHS) $(ARGS)
oracle: $(B)/test/test_golden ; @test/oracle/run.sh $(B)
bench: $(B)/bench/bench ; @bench/run.sh $(B)/bench/bench
$(B)/bench/bench: bench/bench.c $(B)/libtapegrad.a
	@mkdir -p $(@D) && echo "  CC   $@" && $(CC) $(CPPFLAGS) $(CFLAGS) $(FLAGS) $< $(B)/libtapegrad.a $(LIBS) -o $@

# ---- documents, installation --------------------------------------------------------------------------------------------
docs/ops.md: $(B)/tools/ops_table test/oracle/torch_names.txt test/composed.txt ; @$< test/oracle/torch_names.txt test/composed.txt $(wildcard include/tapegrad/*.h include/tapegrad/*/*.h) > $@.new && mv $@.new $@
$(B)/tools/ops_table: tools/ops_table.c $(SHARED_TEST:%.c=$(B)/%.o) $(B)/libtapegrad.a
	@mkdir -p $(@D) && echo "  CC   $@" && $(CC) $(CPPFLAGS) $(CFLAGS) $(FLAGS) -Itest $< $(SHARED_TEST:%.c=$(B)/%.o) $(WHOLE) $(LIBS) $(CMOCKA) -o $@
docs: ; @command -v doxygen >/dev/null || { echo "make docs needs doxygen (apt install doxygen)"; exit 1; }; doxygen docs/Doxyfile
install: all
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include/tapegrad/ops $(DESTDIR)$(PREFIX)/include/tapegrad/nn $(DESTDIR)$(PREFIX)/bin
	install -m 644 include/tapegrad.h $(DESTDIR)$(PREFIX)/include/
	install -m 644 include/tapegrad/*.h include/tapegrad/*.def $(DESTDIR)$(PREFIX)/include/tapegrad/
	install -m 644 include/tapegrad/ops/*.h $(DESTDIR)$(PREFIX)/include/tapegrad/ops/
	install -m 644 include/tapegrad/nn/*.h $(DESTDIR)$(PREFIX)/include/tapegrad/nn/
	install -m 644 $(B)/libtapegrad.a $(DESTDIR)$(PREFIX)/lib/
	install -m 755 $(B)/$(SONAME) $(DESTDIR)$(PREFIX)/lib/$(SONAME).$(VERSION)
	ln -sf $(SONAME).$(VERSION) $(DESTDIR)$(PREFIX)/lib/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(PREFIX)/lib/libtapegrad.so
	[ ! -f $(B)/libtapegrad_cuda.so ] || install -m 755 $(B)/libtapegrad_cuda.so $(DESTDIR)$(PREFIX)/lib/
	install -m 755 $(B)/tapegrad $(DESTDIR)$(PREFIX)/bin/
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@LIBS@|$(LIBS)|' tools/tapegrad.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/tapegrad.pc
uninstall:
	rm -rf $(DESTDIR)$(PREFIX)/include/tapegrad $(DESTDIR)$(PREFIX)/include/tapegrad.h $(DESTDIR)$(PREFIX)/lib/libtapegrad.a
	rm -f $(DESTDIR)$(PREFIX)/lib/libtapegrad.so $(DESTDIR)$(PREFIX)/lib/$(SONAME) $(DESTDIR)$(PREFIX)/lib/$(SONAME).$(VERSION)
	rm -f $(DESTDIR)$(PREFIX)/lib/libtapegrad_cuda.so $(DESTDIR)$(PREFIX)/lib/pkgconfig/tapegrad.pc $(DESTDIR)$(PREFIX)/bin/tapegrad

clean: ; rm -rf build
print-libs: ; @echo $(LIBS)
help:
	@echo "make             the library (static, shared) and the command, in build/"
	@echo "make demo        sets up, builds, trains a CNN on MNIST (EPOCHS=1, ARGS=... as mnist --help says)"
	@echo "make test        everything that CI checks: suites by gcc and clang, sanitizers, failing memory, CUDA sources, examples"
	@echo "make check       the suites alone       make asan ubsan tsan valgrind faults   the suites under checkers"
	@echo "make oracle      N=200 fresh random cases an op against PyTorch (PYTHON=, SEED=, OP=pattern)"
	@echo "make bench       side by side with PyTorch (needs it)     make examples   the course, in build/examples"
	@echo "make docs        reference by doxygen   make install uninstall DESTDIR= PREFIX=   make clean"
	@echo "variables: CC, CFLAGS, B (build folder), WITHOUT_BLIS=1, CUDA_ARCHS"

-include $(wildcard mk/*.mk)
-include $(shell find $(B) -name '*.d' 2>/dev/null)
.PHONY: print-libs all check oracle test asan ubsan tsan valgrind faults examples demo bench docs install uninstall clean help
.DELETE_ON_ERROR:
