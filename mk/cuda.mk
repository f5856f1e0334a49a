# cuda.mk - the CUDA device as plugins of one set of sources:
#   make cuda          $(B)/libtapegrad_cuda.so, by nvcc, for the chips of CUDA_ARCHS; it links no library of
#                      CUDA's but the runtime's archive, and opens others when it needs them
#   make emu           $(B)/libtapegrad_emu.so: the same kernels on the CPU, by clang++ and test/cuemu
#   make check-cuda    both tests; that of cuda:0 also says what a machine without a GPU must answer

CUDA_ARCHS ?= 75 80 86 89 90
NVCC       ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
CLANGXX    ?= clang++
CUDA_HOME  := $(patsubst %/bin/nvcc,%,$(NVCC))
CU_SOURCES := $(shell find src/cuda -name "*.cu" | LC_ALL=C sort)
CU_OBJECTS := $(CU_SOURCES:src/cuda/%.cu=$(B)/cuda/%.o)
CU_FLAGS   := -std=c++20 -Iinclude -Isrc -I. -I$(B)/include

# Machine code for each chip, and PTX of the newest, from which drivers make code for later ones; compressed,
# a fifteenth of its size (CUDA_SQUEEZE=none where that is not wanted).
# CUDA_OPT=-O1 on the host and -Xptxas -O1 for the chip do where it need only compile.
CUDA_OPT   ?= -O3
GENCODE    := $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
              -gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS))
CUDA_SQUEEZE ?= size
SQUEEZE    := $(if $(NVCC),$(shell $(NVCC) --help | grep -q compress-mode && \
                echo --compress-mode=$(CUDA_SQUEEZE)))
# Line numbers, which sanitizers and profilers want, are two thirds of what is left: CUDA_LINES=-lineinfo.
NVFLAGS    := $(CU_FLAGS) $(CUDA_LINES) $(SQUEEZE) -Werror all-warnings \
              -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra

# Files of hot kernels, and those of rows, which are many small ones, have flags of their own: test/nvcc.sh.
CUDA_HOT   ?= $(CUDA_OPT)
CUDA_ROWS  ?= $(GENCODE)
CUDA_HOT_CODE ?= $(GENCODE)
$(eval $(call stamp,flags.cuda,$(NVCC) $(NVFLAGS) $(GENCODE) $(CUDA_OPT) $(CUDA_HOT) $(CUDA_HOT_CODE) \
  $(CUDA_ROWS)))
HOT_FILES  := conv/conv_halves copy list norm/norm reduce/cross_entropy reduce/reduce reduce/softmax \
              sequence/attention sequence/attention_f32 sequence/attention_halves
ROW_FILES  := $(foreach t,f32 f64 int,elementwise/map_$t)

# CUDA_UNITS=1 and EMU_UNITS=1, for CI: the hot files but three are compiled as one, those of rows, and all
# others.  To read the headers takes longer than to compile most of the files.  So their names must differ.
NOT_IN_UNITS := conv/conv_halves sequence/attention_f32 sequence/attention_halves
UNIT_hot   := $(filter-out $(NOT_IN_UNITS),$(HOT_FILES))
UNIT_rows  := $(ROW_FILES)
UNIT_other := $(filter-out $(HOT_FILES) $(ROW_FILES),$(CU_SOURCES:src/cuda/%.cu=%))
UNITS      := other rows hot
ifdef CUDA_UNITS
CU_OBJECTS := $(UNITS:%=$(B)/units/%.o) $(NOT_IN_UNITS:%=$(B)/cuda/%.o)
endif

cuda: $(B)/libtapegrad_cuda.so
$(addprefix $(B)/,cuda/device.o units/other.o emu/device.o emu/units/other.o): $(OPS_DIGEST)
$(CU_OBJECTS): SPEED = $(CUDA_OPT)
$(CU_OBJECTS): CODE = $(GENCODE)
$(ROW_FILES:%=$(B)/cuda/%.o) $(B)/units/rows.o: CODE = $(CUDA_ROWS)
$(HOT_FILES:%=$(B)/cuda/%.o) $(B)/units/hot.o: SPEED = $(CUDA_HOT)
$(HOT_FILES:%=$(B)/cuda/%.o) $(B)/units/hot.o: CODE = $(CUDA_HOT_CODE)
COMPILE_CU  = @[ -n "$(NVCC)" ] || \
    { echo "the CUDA plugin needs nvcc: put it on the PATH, or make NVCC=..."; exit 1; }; \
    mkdir -p $(@D) && echo "  NVCC $@" && \
    $(NVCC) $(NVFLAGS) $(CODE) $(SPEED) -MMD -MP -MF $(@:.o=.d) -c $< -o $@
$(B)/cuda/%.o: src/cuda/%.cu $(B)/flags.cuda ; $(COMPILE_CU)
$(B)/units/%.o: $(B)/units/%.cu $(B)/flags.cuda ; $(COMPILE_CU)
$(foreach u,$(UNITS),$(eval $(call stamp,flags.unit_$u,$(UNIT_$u))))
$(UNITS:%=$(B)/units/%.cu): $(B)/units/%.cu: $(B)/flags.unit_%
	@mkdir -p $(@D) && printf '#include "src/cuda/%s.cu"\n' $(UNIT_$*) > $@
$(B)/libtapegrad_cuda.so: $(CU_OBJECTS) src/cuda/export.map
	@echo "  LD   $@"; $(NVCC) -shared -cudart static $(CU_OBJECTS) -o $@ \
	    -Xlinker -rpath='$$ORIGIN':$(CUDA_HOME)/lib64,-z,defs,--version-script=src/cuda/export.map

# Rows' kernels for one chip as NVRTC makes them, in a file of the tests.
$(B)/hot/hot_rows.ptx: test/cuda/hot_rows.cu $(B)/flags.cuda
	@mkdir -p $(@D) && echo "  NVCC $@" && $(NVCC) $(CU_FLAGS) -arch=compute_90 -ptx -Werror all-warnings \
	    $(CUDA_HOT) $< -o $@
	@$(NVCC) $(CU_FLAGS) -MM -MP -MT $@ -MF $(@:.ptx=.d) $<
hot: $(B)/hot/hot_rows.ptx

# ---- on the CPU -------------------------------------------------------------------------------
EMU_OBJECTS := $(if $(EMU_UNITS),$(UNITS:%=$(B)/emu/units/%.o) $(NOT_IN_UNITS:%=$(B)/emu/%.o),\
                 $(CU_SOURCES:src/cuda/%.cu=$(B)/emu/%.o)) \
               $(patsubst test/cuemu/%.cpp,$(B)/emu/%.o,$(wildcard test/cuemu/*.cpp test/cuemu/library/*.cpp))
EMU_DEBUG   ?= -g1
EMU_FLAGS   := $(CU_FLAGS) -DDEVICE_NAME='"emu"' -Itest -Itest/cuemu/shim $(EMU_DEBUG) -fPIC \
               -fvisibility=hidden -ffp-contract=off -Wall -Wextra -Werror
EMU_OPT     ?= -O1
$(eval $(call stamp,flags.emu,$(CLANGXX) $(EMU_OPT) $(EMU_SAN)))

emu: $(B)/libtapegrad_emu.so
# What instantiates most kernels, of which a test runs few, takes a fifth of the time to compile so.
SELDOM_RUN := $(ROW_FILES) list sequence/attention_halves
$(SELDOM_RUN:%=$(B)/emu/%.o): EMU_OPT = -O0
# nvcc reads cuda_runtime.h before each file, unasked; here it is read once for each way to compile.
EMU_CHECKED := $(if $(EMU_SAN),.checked)
EMU_RUNTIME := $(patsubst %,$(B)/emu/runtime%.pch,$(sort -O2 -O2$(EMU_CHECKED) -O0$(EMU_CHECKED) \
                 $(filter -O%,$(EMU_OPT))$(EMU_CHECKED)))
.SECONDARY: $(EMU_RUNTIME)
$(B)/emu/runtime%.pch: test/cuemu/shim/cuda_runtime.h $(B)/flags.emu
	@mkdir -p $(@D) && $(CLANGXX) $(EMU_FLAGS) $(basename $*) $(if $(suffix $*),$(EMU_SAN)) \
	    -MMD -MP -MF $(@:.pch=.d) -x c++-header $< -o $@
EMU_COMPILE = @mkdir -p $(@D) && echo "  EMU  $@" && $(CLANGXX) $(EMU_FLAGS) -MMD -MP -x c++ -c $< -o $@ \
                -include-pch $(B)/emu/runtime
EMU_CU      = $(EMU_COMPILE)$(filter -O%,$(EMU_OPT))$(EMU_CHECKED).pch $(EMU_OPT) $(EMU_SAN)
$(B)/emu/%.o: src/cuda/%.cu $(EMU_RUNTIME) $(B)/flags.emu ; $(EMU_CU)
$(B)/emu/units/%.o: $(B)/units/%.cu $(EMU_RUNTIME) $(B)/flags.emu ; $(EMU_CU)
# What the libraries do is checked as what kernels do.
$(B)/emu/library/%.o: EMU_CHECK = $(EMU_CHECKED).pch $(EMU_SAN)
$(B)/emu/library/%.o: EMU_LEVEL = $(if $(EMU_SAN),$(filter -O%,$(EMU_OPT)),-O2)
$(B)/emu/library/nvrtc.o: EMU_CHECK += -DCUEMU_CXX='"$(CLANGXX)"'
$(B)/emu/%.o: EMU_CHECK = .pch
$(B)/emu/%.o: EMU_LEVEL = -O2
$(B)/emu/%.o: test/cuemu/%.cpp $(EMU_RUNTIME) $(B)/flags.emu
	$(EMU_COMPILE)$(EMU_LEVEL)$(EMU_CHECK) $(EMU_LEVEL)
$(B)/libtapegrad_emu.so: $(EMU_OBJECTS) test/cuemu/export.map
	@echo "  LD   $@"; $(CLANGXX) -shared $(EMU_OBJECTS) $(EMU_SAN) -lpthread -ldl -o $@ \
	    -Wl,--version-script=test/cuemu/export.map $(if $(EMU_SAN),,-Wl,-z,defs) \
	    $(if $(NVCC),-Wl$(COMMA)-rpath=$(CUDA_HOME)/lib64)

# ---- tests ------------------------------------------------------------------------------------
# Plugins that must be refused, each for a reason of its own.
BAD_PLUGINS := $(foreach p,oldabi olddigest misnamed empty bare,$(B)/test/plugins/libtapegrad_$(p).so)
$(B)/test/plugins/libtapegrad_%.so: test/bad_plugin/plugin.c $(OPS_DIGEST) $(B)/flags
	$(COMPILE) -I$(B)/include -DBAD_$* -shared $< -o $@
$(B)/test/test_device: $(BAD_PLUGINS)
TEST_PLUGIN := $(if $(filter cuda%,$(TAPEGRAD_TEST_DEVICE)),cuda,emu)
$(addprefix $(B)/test/,$(filter-out test_cuda,$(DEVICE_SUITES))): $(B)/libtapegrad_$(TEST_PLUGIN).so
CUDA_TESTS := $(DEVICE_SUITES:%=$(B)/test/%)
check-cuda: $(CUDA_TESTS) $(if $(NVCC),$(B)/libtapegrad_cuda.so) ; @test/run.sh $(CUDA_TESTS)
.PHONY: cuda hot emu check-cuda
