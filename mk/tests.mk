# tests.mk - the suites, one program each, and the suites under checkers.
#   make check       builds and runs all of them; build/test/test_tape alone is one
#   make asan ubsan tsan valgrind faults       under checkers, each in a build folder of its own

WHOLE   := -Wl,--whole-archive $(B)/libtapegrad.a -Wl,--no-whole-archive
# What suites link: all of the library, shared, and nothing hidden (src/hidden.h).  A change of the library
# costs one link, not 160, and an error looks for its line among those of the suite alone.
SEEN    ?= $(B)/test/libtapegrad_seen.so
SEE     := -DSEE_HIDDEN -fvisibility=default
CMOCKA  ?= -lcmocka
SUITE_SOURCES := $(wildcard test/*/test_*.c)
DEVICE_SUITES := $(patsubst test/cuda/%.c,%,$(wildcard test/cuda/test_*.c))
SUITES  := $(filter-out $(DEVICE_SUITES),$(notdir $(SUITE_SOURCES:.c=)))
TESTS   := $(SUITES:%=$(B)/test/%)
SHARED_TEST := $(wildcard test/*.c)
SHARED_OBJECTS := $(SHARED_TEST:%.c=$(B)/%.o)
# 160 programs: the quickest linker.
TEST_LINK := $(if $(X86_64),$(if $(shell command -v ld.lld),-fuse-ld=lld -Wl$(COMMA)--threads=1$(COMMA)-O0))
vpath test_%.c $(sort $(dir $(SUITE_SOURCES)))

# -O0 compiles a suite in half the time; those with loops of their own are optimized.  Some of these look at
# numbers of one type as another.
LOOPS   := test_accuracy test_gemm test_gemm_amx test_vecmath test_copy test_conv test_conv_blocks
$(B)/test/%.o: MUST += $(SEE)
$(B)/test/%.o: FILE = -Itest $(if $(filter $(LOOPS:%=%.o),$(@F)),-fno-strict-aliasing,-O0)
$(B)/test/%.o: private AHEAD = $(if $(filter -O0,$(FILE)),test)
$(B)/ahead/test.h.gch: MUST += $(SEE)
$(B)/ahead/test.h.gch: FILE = -Itest -O0
$(B)/ahead/test.h.gch: include/tapegrad.h $(B)/flags ; $(PRECOMPILED)
ifneq (,$(PRECOMPILE))
$(TESTS:=.o) $(DEVICE_SUITES:%=$(B)/test/%.o) $(SHARED_OBJECTS): $(B)/ahead/test.h.gch
endif
$(B)/test/%.o: test/%.c $(B)/flags ; $(COMPILE) -MMD -MP -c $< -o $@
$(B)/test/test_%.o: test_%.c $(B)/flags ; $(COMPILE) -MMD -MP -c $< -o $@
ifeq ($(SEEN),$(B)/test/libtapegrad_seen.so)
$(SEEN): $(B)/libtapegrad.a test/see_hidden.py $(B)/flags.link
	@echo "  LD   $@"; mkdir -p $(@D); cp $< $@.a && python3 test/see_hidden.py $@.a && \
	    $(LINK) $(TEST_LINK) -shared -Wl,-soname,$(@F) -Wl,-Bsymbolic $(subst $<,$@.a,$(WHOLE)) $(LIBS) -o $@ \
	    && rm $@.a
endif
$(B)/test/test_%: $(B)/test/test_%.o $(SHARED_OBJECTS) $(B)/flags.link | $(SEEN)
	@echo "  LD   $@"; $(LINK) $(TEST_LINK) $< $(SHARED_OBJECTS) $(SEEN) -Wl,-rpath,'$$ORIGIN' $(LIBS) \
	    $(CMOCKA) -o $@
.PRECIOUS: $(B)/test/%.o $(B)/test/test_%.o

# This one links only the files that it tests.
GEMM_OBJECTS := $(addprefix $(B)/src/,cpu/product/gemm.o cpu/product/blis.o device/parallel.o) \
                $(ISAS:%=$(B)/src/cpu/product/gemm_kernel.%.o)
$(B)/test/test_gemm: $(B)/test/test_gemm.o $(GEMM_OBJECTS) $(B)/flags.link
	@echo "  LD   $@"; $(LINK) $(filter %.o,$^) $(LIBS) $(CMOCKA) -o $@

tests: $(TESTS)
check: $(TESTS) ; @test/run.sh $(TESTS)

# ---- under checkers ---------------------------------------------------------------------------
# One instruction set: the sources of the kernels are the same for all.  test_nn_memory stands in for malloc,
# as AddressSanitizer does.
CHECKED   := PRECOMPILE=1 OPT="-O1 -g1" FAST=-O1 ISAS=$(if $(X86_64),avx2,base) \
             CC=clang LINKER=-fuse-ld=lld
# Programs are linked with the library that they run: its thread-local variables need no call.
TLS       := -ftls-model=initial-exec
UNDEFINED := undefined -fno-sanitize-recover=all
# What is undefined ends the program where it stands, and AddressSanitizer says where: to compile what reports
# it takes a fifth longer.
TRAPPING  := undefined -fsanitize-trap=undefined
ASAN      := $(CHECKED) B=build/asan SAN="-fsanitize=address,$(TRAPPING) -DNO_UNROLL $(TLS)" \
             EMU_SAN=-fsanitize=address EMU_OPT=-O0 EMU_UNITS=1
UBSAN     := $(CHECKED) B=build/ubsan SAN="-fsanitize=$(UNDEFINED) -DNO_UNROLL"
TSAN      := $(CHECKED) B=build/tsan SAN="-fsanitize=thread -DNO_UNROLL $(TLS)" EMU_SAN=-fsanitize=thread \
             EMU_OPT=-O0 EMU_UNITS=1
# What was freed stays in the cache, not in 256 MB: suites take two thirds of the time.
export ASAN_OPTIONS ?= handle_sigill=1:quarantine_size_mb=2:thread_local_quarantine_size_kb=256
ASAN_SUITES  := $(filter-out test_nn_memory,$(SUITES))
# BLIS's barriers are in code that is not instrumented: a race within it says nothing.
export TSAN_OPTIONS ?= ignore_noninstrumented_modules=1
TSAN_SUITES  := test_threads test_data test_loader_state test_gemm test_matmul test_conv test_conv_blocks \
                test_reduce test_attention test_rnn test_autocast test_profile test_nn_threads
ARM64_SUITES := test_tape test_nn test_matmul test_conv test_rnn test_io test_optim test_random
asan:  ; $(MAKE) $(ASAN) SUITES="$(ASAN_SUITES)" check
ubsan: ; $(MAKE) $(UBSAN) check
tsan:  ; $(MAKE) $(TSAN) SUITES="$(TSAN_SUITES)" check
# Without BLIS: one file is compiled otherwise, and takes the place of its object.
NOBLIS := test_gemm test_matmul
NOBLIS_LIBS := $(filter-out -lblis,$(LIBS))
$(B)/noblis/blis.o: FILE = -DWITHOUT_BLIS
$(B)/noblis/blis.o: src/cpu/product/blis.c $(B)/flags ; $(COMPILE) -c $< -o $@
$(B)/noblis/libtapegrad.a: $(B)/libtapegrad.a $(B)/noblis/blis.o
	@cp $< $@ && $(AR) d $@ blis.o && $(AR) rs $@ $(B)/noblis/blis.o
$(B)/noblis/test_gemm: $(B)/test/test_gemm.o $(B)/noblis/blis.o $(filter-out $(BLIS_FILE),$(GEMM_OBJECTS))
	@$(LINK) $^ $(NOBLIS_LIBS) $(CMOCKA) -o $@
$(B)/noblis/test_%: $(B)/test/test_%.o $(SHARED_OBJECTS) $(B)/noblis/libtapegrad.a
	@$(LINK) $< $(SHARED_OBJECTS) $(subst $(B)/,$(B)/noblis/,$(WHOLE)) $(NOBLIS_LIBS) $(CMOCKA) -o $@
check-noblis: $(NOBLIS:%=$(B)/noblis/%) ; @test/run.sh $^

valgrind: $(B)/test/test_tape $(B)/test/test_nn ; @test/valgrind.sh $^
TIME ?= 60
fuzz: $(B)/libtapegrad.a ; @test/fuzz/run.sh $(B) -max_total_time=$(TIME)
interop: $(B)/libtapegrad.a ; @test/interop/run.sh $(B)
KILLS ?= 200
kills: $(B)/test/test_resume ; TAPEGRAD_KILLS=$(KILLS) $<
faults: $(B)/test/test_faults ; $<
N    ?= 200
SEED ?= 1
mutants: ; @python3 test/mutants.py $(N) $(SEED)
compilers: ; @test/compilers.sh $(COMPILERS)
.PHONY: tests check check-noblis asan ubsan tsan valgrind faults fuzz kills interop mutants compilers
