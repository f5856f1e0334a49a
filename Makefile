# make            the library, static and shared, and the command build/tapegrad
# make demo       installs what is missing, builds, trains on MNIST, shows the result
# make test       every suite
# make help       the rest

.DEFAULT_GOAL := all
PREFIX   ?= /usr/local
VERSION  := 0.1.0
SONAME   := libtapegrad.so.0.1
include mk/compiler.mk

# ---- sources ---------------------------------------------------------------------------------
# ISA_SOURCES are compiled once an instruction set (src/cpu/isa.h).
ALL_SOURCES := $(shell find src nn optim train -name '*.c')
ISA_SOURCES := $(filter %_kernel.c %_kernels.c,$(ALL_SOURCES))
SOURCES     := $(filter-out $(ISA_SOURCES),$(ALL_SOURCES))
# Compiled for size: rooms whose time does not count, files that drive loops elsewhere, and gemm_amx.c, whose
# loops are vectors as they stand.
COLD_ROOMS  := $(addprefix src/,check trace io data graph \
               $(addprefix op/,image index linalg loss norm order reduce sequence shape)) nn train
COLD_FILES  := $(addprefix src/op/product/,contract.c einsum.c linear.c matmul.c matrix_chain.c \
                 matrix_product.c small_products.c) \
               $(addprefix src/op/elementwise/,activations.c dropout.c formula.c glu.c gumbel_softmax.c \
                 log_prob.c normal_tensor.c rows.c special_pairs.c ternary.c where.c) \
               $(addprefix src/op/,apply_text.c core_ops.c) \
               $(addprefix src/autograd/,anomaly.c autocast.c cast_ahead.c checkpoint.c commit.c host.c \
                 inplace.c leaf.c memory_report.c options.c saved.c) \
               $(addprefix src/tensor/,create.c error.c numbers.c print.c registry.c values.c) \
               $(addprefix src/device/,device.c event.c memory.c) \
               $(addprefix src/random/,draw.c generator.c random.c sample.c trunc.c) \
               $(addprefix src/cpu/,device.c machine.c elementwise/map_rare.c reduce/reduce_position.c \
                 reduce/softmax.c sequence/rnn.c shape/host_tables.c product/blis.c product/gemm.c \
                 product/gemm_amx.c product/gemm_device.c) \
               $(addprefix src/cpu/image/,adaptive_pool.c random_windows.c resample_table.c) \
               $(filter-out %/pair_distances.c,$(wildcard src/cpu/linalg/*.c)) \
               $(filter-out %_kernel.c src/cpu/conv/conv_integer.c,$(wildcard src/cpu/conv/*.c))
COLD_OPTIM  := $(addprefix optim/,captured.c foreach.c foreach_norm.c fused.c rule.c optim.c state.c \
               scheduler.c scheduler_state.c schedules.c swa.c grad_scaler.c groups.c unless.c \
               $(addprefix kind/,adafactor.c lamb.c lbfgs.c muon.c rprop.c wolfe.c))
COLD        := $(filter $(COLD_ROOMS:%=%/%) $(COLD_OPTIM) $(COLD_FILES),$(SOURCES))
HOT         := $(filter src/cpu/% src/random/%,$(SOURCES))
LEAN        := $(filter src/cpu/conv/conv_integer.c %/map.c %/select.c %/gemm_bf16.c \
               %/copy.c %/gemm_integer.c %/scan.c %/sort_lines.c %/sampling.c %/pool_integer.c \
               src/random/philox.c %/elementwise/random.c %/reduce_exact.c %/attention.c \
               %/cross_entropy.c %/bags.c %/map_rare.c %/special_pairs.c %/ctc.c src/cpu/linalg/%.c \
               src/cpu/index/gather.c src/cpu/reduce/reduce.c src/cpu/reduce/products.c \
               src/cpu/image/pool.c src/cpu/shape/host_tables.c src/cpu/image/resample.c \
               %/fold_into.c %/host_lists.c %/search.c %/host_index.c src/random/normal.c \
               src/random/mt19937.c %/norm.c,$(SOURCES)) \
               $(filter-out $(COLD),$(filter optim/%,$(SOURCES)))
ISAS        ?= $(if $(X86_64),base avx2 avx512,base)
ONE_ISA     := $(if $(word 2,$(ISAS)),,$(ISAS))
UP_TO_AVX2  := $(if $(ONE_ISA),,conv/conv_kernel elementwise/special_pairs_kernel linalg/lines_kernel)
ISA_OBJECTS := $(filter-out $(UP_TO_AVX2:%=$(B)/src/cpu/%.avx512.o),\
               $(foreach i,$(ISAS),$(ISA_SOURCES:%.c=$(B)/%.$(i).o)))
OBJECTS     := $(SOURCES:%.c=$(B)/%.o) $(ISA_OBJECTS)

all: $(B)/libtapegrad.a $(B)/$(SONAME) $(B)/tapegrad

# ---- objects ---------------------------------------------------------------------------------
# The long lists of simple loops, and files that mostly drive others, get no unrolling and scalar tails: the
# library stays small.
SMALL       := -O2 $(if $(CLANG),,-ftree-vectorize -fvect-cost-model=dynamic --param=vect-epilogues-nomask=0)
# Frame pointers are a byte or two of code a function, and save three times that in tables for unwinding.
SMALLEST    := -Os -fno-omit-frame-pointer
SMALL_LOOPS := bags_% cast_% conv_% pool_% special_% direct_% gemm_kernel.avx512.o map_% rnn_% softmax_% \
               winograd_%
# On x86-64 the base is for CPUs from before 2013: small code.  Elsewhere it is all there is.
MARCH_base   := $(if $(X86_64),-Os $(if $(CLANG),,-fno-tree-vectorize),$(FAST))
MARCH_avx2   := -march=x86-64-v3
MARCH_avx512 := -march=x86-64-v4 -mprefer-vector-width=512
ifneq ($(FAST),-O3)
SMALL := $(FAST)
MARCH_base := $(FAST)
endif

# FILE: the flags of one file; DEFINES: those of all files that a build cuts down.
DEFINES := $(if $(ONE_ISA),-DONE_ISA=$(ONE_ISA)) $(if $(PRECOMPILE),-D_GNU_SOURCE=)
STAMPED := $(filter-out ccache %/ccache,$(CC)) $(DEFINES) $(CPPFLAGS) $(OPT) $(FAST) $(WARN) \
           $(CFLAGS) $(MUST) $(UNWIND) $(SAN) $(SMALL) $(SMALLEST) $(foreach i,$(ISAS),$(MARCH_$(i)))
$(eval $(call stamp,flags,$(STAMPED)))
$(eval $(call stamp,flags.link,$(LINKER) $(LDFLAGS) $(LIBS)))
$(HOT:%.c=$(B)/%.o): FILE = $(FAST)
$(LEAN:%.c=$(B)/%.o): FILE = $(SMALL)
$(COLD:%.c=$(B)/%.o): FILE = $(if $(filter -O3,$(FAST)),$(SMALLEST),$(UNCHECKED))
# Where FAST is less, as for checkers and qemu, -O0 compiles in half the time; what every call, failing
# allocations and gradchecks run stays fast.
ALWAYS_RUN := $(addprefix %/,dict.c error.c formula.c gemm.c gemm_device.c matrix_product.c optim.c \
              registry.c rnn_layer.c run.c shape_op.c)
$(patsubst %.c,$(B)/%.o,$(filter-out src/trace/% src/check/% $(ALWAYS_RUN),$(COLD))): UNCHECKED = -O0
$(B)/%.o: %.c $(B)/flags ; $(COMPILE) -MMD -MP -c $< -o $@ && $(RENAME)
define isa_rule
$(B)/%.$(1).o: FILE = $(FAST) $$(if $$(filter $(SMALL_LOOPS),$$(@F)),$(SMALL)) $(MARCH_$(1)) \
                      -fwrapv -DISA=$(1)
# Under sanitizers the tiles of products take the time of many suites: -O2 earns its compilation.
$(B)/%/gemm_kernel.$(1).o: FILE += $$(if $$(SAN),-O2)
$(B)/%.$(1).o: UNWIND = -fno-asynchronous-unwind-tables -fno-unwind-tables
$(B)/%.$(1).o: %.c $(B)/flags ; $$(COMPILE) -MMD -MP -c $$< -o $$@ && $$(RENAME)
endef
$(foreach i,$(ISAS),$(eval $(call isa_rule,$(i))))
$(B)/%/direct_bf16_kernel.avx512.o: FILE += -mavx512bf16
# Its loops are vectors as they stand.
$(B)/%/lines_kernel.avx2.o: FILE += $(if $(filter -O3,$(FAST)),-O2 -fno-tree-vectorize)

# What is compiled ahead where PRECOMPILE=1: the headers of the core, or those of a user.
IN_CORE := $(filter-out src/check/%,$(filter src/%,$(SOURCES)))
$(IN_CORE:%.c=$(B)/%.o): private AHEAD = $(if $(filter -O0,$(FILE)),core_debug,core)
$(patsubst %.c,$(B)/%.o,$(filter-out $(IN_CORE),$(SOURCES))): private AHEAD = \
  $(if $(filter -O0,$(FILE)),user)
AHEAD_OF := $(if $(PRECOMPILE),$(addprefix $(B)/ahead/,core.h.gch core_debug.h.gch user.h.gch))
$(SOURCES:%.c=$(B)/%.o): $(AHEAD_OF)
$(B)/ahead/core%: FILE = $(if $(findstring debug,$@),-O0)
$(B)/ahead/user%: FILE = -O0
$(B)/ahead/core.h.gch $(B)/ahead/core_debug.h.gch: src/op/shape/shape_op.h $(B)/flags ; $(PRECOMPILED)
$(B)/ahead/user.h.gch: include/tapegrad.h $(B)/flags ; $(PRECOMPILED)

# What stands in which list above, a word each: where that changed, the object is compiled again, and only
# then is it written down.
class   = $(foreach f,$(filter $(2),$(SOURCES)),$(f:.c=.o)=$(1))
CLASSES := $(foreach c,HOT LEAN COLD,$(call class,$(c),$($(c)))) \
           $(foreach o,$(ISA_OBJECTS:$(B)/%=%),$(if $(filter $(SMALL_LOOPS),$(notdir $(o))),$(o)=SMALL))
WERE    := $(strip $(file <$(B)/flags.classes))
MOVED   := $(foreach w,$(filter-out $(WERE),$(CLASSES)) $(filter-out $(CLASSES),$(WERE)),\
             $(B)/$(firstword $(subst =,$(SPACE),$(w))))
$(eval $(call stamp,flags.classes,$(CLASSES)))
MOVED   := $(filter $(MOVED),$(OBJECTS))
$(MOVED): FORCE
$(B)/flags.classes: $(MOVED)
$(B)/libtapegrad.a: | $(B)/flags.classes

# The code of the library lies in a section of its own, so that errors can tell its frames from the user's
# (src/trace/callsite.c).
TEXTS   := .text $(foreach s,unlikely hot startup exit,.text.$(s) .text.$(s).)
RENAME  = $(OBJCOPY) $(foreach s,$(TEXTS),--rename-section $(s)=tapegrad_text) $@

# BLIS is one file's; blis.h asks for an omp.h that it does not need, which not every compiler has.
BLIS_FILE := $(B)/src/cpu/product/blis.o
$(BLIS_FILE): FILE = $(FAST) $(if $(WITHOUT_BLIS),-DWITHOUT_BLIS,-idirafter src/cpu/product/blis_omp)
$(BLIS_FILE): $(B)/flags.blis
$(eval $(call stamp,flags.blis,WITHOUT_BLIS=$(WITHOUT_BLIS)))

# ---- the digest of what the library and the plugins of devices both compile -------------------
DIGEST_OF := $(addprefix include/tapegrad/,autograd.h ops.def op_row.h tensor.h) $(wildcard src/device/*.h) \
             src/random/philox.h $(wildcard src/cpu/math/special*.h) src/cpu/loss/ctc_steps.h \
             src/cpu/image/resample_taps.h $(wildcard optim/rules/*.h)
OPS_DIGEST := $(B)/include/ops_digest.h
$(OPS_DIGEST): $(DIGEST_OF)
	@mkdir -p $(@D) && digest=$$(cat $^ | cksum | cut -d' ' -f1) && \
	    printf '#define TAPEGRAD_OPS_DIGEST "%s"\n' "$$digest" > $@
print-digest: ; @echo $(DIGEST_OF)
DIGEST_USERS := $(B)/src/device/device.o $(B)/src/cpu/device.o
$(DIGEST_USERS): FILE += -I$(B)/include
$(DIGEST_USERS): $(OPS_DIGEST)

# ---- library and command ---------------------------------------------------------------------
$(B)/libtapegrad.a: $(OBJECTS)
	@echo "  AR   $@"; rm -f $@; $(AR) rcs $@ $^
$(B)/$(SONAME): $(OBJECTS) src/export.map $(B)/flags.link
	@echo "  LD   $@"; $(LINK) -shared -Wl,-soname,$(SONAME) -Wl,-z,defs -Wl,-Bsymbolic $(RELR) \
	    -Wl,--version-script=src/export.map $(OBJECTS) $(LIBS) -o $@
	@ln -sf $(SONAME) $(B)/libtapegrad.so
$(B)/tapegrad: tools/tapegrad.c $(B)/libtapegrad.a $(B)/flags.link
	$(COMPILE) $< $(B)/libtapegrad.a $(LDFLAGS) $(LIBS) -o $@

include mk/tests.mk mk/cuda.mk mk/ci.mk mk/examples.mk mk/docs.mk mk/install.mk mk/kit.mk
-include $(shell find $(addprefix $(B)/,ahead src nn optim train test kit cuda units emu hot) -name '*.d' \
           2>/dev/null)

clean: ; rm -rf build
help: ; @sed -n 's/^# |//p' Makefile
# |make             the library (static, shared) and the command, in build/
# |make demo        sets up, builds, trains a CNN on MNIST (EPOCHS=1, ARGS=... as mnist --help says)
# |make test        all that CI checks (ONLY="asan gcc/test_tape": these groups or steps; make ci-steps)
# |make check       the suites alone       make asan ubsan tsan valgrind faults   under checkers
# |make kills       KILLS=200: a run killed so often, at random instants, ends in the same bits
# |make interop     safetensors, TensorBoard and PyTorch read what is written (installed from PyPI, PYTHON=)
# |make fuzz        TIME=60 seconds for each reader of files
# |make compilers   COMPILERS="gcc-14 clang-19": all builds with each, without a warning
# |make mutants     N=200 SEED=1: what of random mistakes in the sources the suites find
# |make oracle      N=200 fresh random cases an op against PyTorch (PYTHON=, SEED=, OP=pattern)
# |make bench       steps, kernels beside PyTorch (CASES=regex FORMS= JSON=)   make bench-ops  op by op
# |make gpu-kit     what tools/gpu_check.sh needs on a machine with a GPU, in build/gpu-kit
# |make bench-conv  passes of convolutions (PATTERN=, SHAPES=random SEED=)
# |make bench-counts  launches and bytes of a GPT-2 step on CUDA, counted without a GPU
# |make bench-train nn_fit beside the loop written out   make bench-scaling  cost by how many (LARGEST=)
# |make examples    the course, in build/examples
# |make docs        reference by doxygen     make compile_commands.json   for editors
# |make install uninstall install-strip      DESTDIR= PREFIX= LIBDIR=          make clean
# |variables: CC, CROSS (aarch64-linux-gnu-), B (build folder), OPT, SAN, WERROR=1, WITHOUT_BLIS=1,
# |           CUDA_ARCHS; CPPFLAGS, CFLAGS and LDFLAGS are added to ours
.PHONY: all clean help print-digest
.DELETE_ON_ERROR:
