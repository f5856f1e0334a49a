# examples.mk - examples, demo, benchmark, and the values of PyTorch.

EXAMPLES := $(patsubst examples/%.c,$(B)/examples/%,$(filter-out examples/example.c,$(wildcard examples/*.c)))
$(B)/examples/%: examples/%.c examples/example.c examples/example.h $(B)/libtapegrad.a $(B)/flags.link
	$(COMPILE) $< examples/example.c $(B)/libtapegrad.a $(LDFLAGS) $(LIBS) -o $@
examples: $(EXAMPLES)
EPOCHS ?= 1
demo:
	@tools/setup.sh && $(MAKE) -s -j2 $(B)/examples/mnist
	@$(B)/examples/mnist --epochs $(EPOCHS) $(ARGS)

# An op with a CUDA kernel of its own; without nvcc, without that.
SWISH := examples/cuda/swish.c examples/cuda/swish.h
$(B)/examples/cuda/swish.o: examples/cuda/swish.cu examples/cuda/swish.h $(B)/flags.cuda
	@mkdir -p $(@D) && echo "  NVCC $@" && $(NVCC) -std=c++17 -O2 $(GENCODE) -c $< -o $@
$(B)/examples/cuda/swish: $(SWISH) $(if $(NVCC),$(B)/examples/cuda/swish.o) $(B)/libtapegrad.a $(B)/flags.link
	$(COMPILE) examples/cuda/swish.c $(filter %.o,$^) $(B)/libtapegrad.a $(LDFLAGS) $(LIBS) \
	    $(if $(NVCC),-L$(CUDA_HOME)/lib64 -lcudart_static -lrt -lstdc++) -o $@
# The same on the emulated device, whose runtime is in its plugin.
$(B)/examples/cuda/swish_emu.o: examples/cuda/swish.cu examples/cuda/swish.h test/cuemu/cuemu.h
	@mkdir -p $(@D) && echo "  EMU  $@" && \
	    $(CLANGXX) -std=c++20 -Itest -Itest/cuemu/shim -O1 -Wall -Wextra -Werror -x c++ -c $< -o $@
$(B)/examples/cuda/swish_emu: $(SWISH) $(B)/examples/cuda/swish_emu.o $(B)/libtapegrad_emu.so \
                              $(B)/libtapegrad.a $(B)/flags.link
	$(COMPILE) examples/cuda/swish.c $(B)/examples/cuda/swish_emu.o $(B)/libtapegrad.a $(LDFLAGS) $(LIBS) \
	    $(abspath $(B))/libtapegrad_emu.so -lstdc++ -o $@

BENCH := $(patsubst %,bench/%.c,bench steps kernels small nets ceiling)
$(B)/bench/bench: $(BENCH) bench/cases.h bench/nets.h $(B)/libtapegrad.a $(B)/flags.link
	$(COMPILE) $(BENCH) $(B)/libtapegrad.a $(LDFLAGS) $(LIBS) -o $@
bench: $(B)/bench/bench ; @bench/run.sh $(B)/bench/bench
$(B)/bench/ops $(B)/bench/train $(B)/bench/scaling: $(B)/bench/%: bench/%.c $(B)/libtapegrad.a $(B)/flags.link
	$(COMPILE) $< $(WHOLE) $(LDFLAGS) $(LIBS) -o $@
bench-train: $(B)/bench/train ; @OMP_NUM_THREADS=1 $<
bench-ops: $(B)/bench/ops ; @$${PYTHON:-python3} bench/ops.py $<
bench-scaling: $(B)/bench/scaling ; @OMP_NUM_THREADS=1 $< $(B)/scaling.png $(LARGEST)
# Each pass of convolutions in turn with PyTorch: make bench-conv (PATTERN="resnet", SHAPES=random SEED=2).
$(B)/bench/conv_passes.so: bench/conv_passes.c $(B)/libtapegrad.a $(B)/flags.link
	$(COMPILE) -shared $< $(B)/libtapegrad.a $(LDFLAGS) $(LIBS) -o $@
bench-conv: $(B)/bench/conv_passes.so
	@OMP_NUM_THREADS=1 "$${PYTHON:-python3}" bench/conv_passes.py $< "$(PATTERN)"
# Launches and bytes of a step of GPT-2 124M, counted without a GPU.
$(B)/bench/counts: bench/counts.c bench/nets.c bench/nets.h $(B)/libtapegrad.a $(B)/libtapegrad_emu.so \
                   $(B)/flags.link
	$(COMPILE) bench/counts.c bench/nets.c $(B)/libtapegrad.a $(LDFLAGS) $(LIBS) -o $@
bench-counts: $(B)/bench/counts ; @TAPEGRAD_PLUGIN_DIR=$(abspath $(B)) $< $(LIMITS)
oracle: $(B)/test/test_golden ; @test/oracle/run.sh $(B)
.PHONY: examples demo bench bench-ops bench-conv bench-train bench-scaling bench-counts oracle
