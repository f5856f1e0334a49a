# ci.mk - `make test`: all that is proven, as a graph of steps that make runs beside each other.
#
#   make test ONLY="asan fuzz/idx"   these groups or steps, and what they need
#   make ci-steps                    lists them
#
# A step is GROUP/NAME; test/step.sh runs its command and keeps what came of it; test/all.sh starts them and
# prints the table.  Make starts steps in the order of CI_STEPS, each as soon as what it needs is there.

RESULTS := build/results
BUILD   := $(MAKE) -s --no-print-directory WERROR=1 
CI_STEPS :=

# step: GROUP/NAME, steps that it needs, command
define step
CI_STEPS += $(1)
ci/$(1): $(addprefix ci/,$(2))
	+@test/step.sh $(RESULTS) $(1) $(3)
endef
add_step = $(eval $(call step,$(1),$(2),$(3)))

# suites: GROUP, the step that builds them, the command up to the suite's name, SUITE or SUITE:PARTS ...
# A suite that goes over the registry of ops is cut into parts, so that no core waits for one long suite.
name_of  = $(firstword $(subst :, ,$(1)))
parts_of = $(wordlist 1,$(word 2,$(subst :, ,$(1))),1 2 3 4 5 6 7 8 9)
part_of  = $(call add_step,$(1)/$(4).$(5)of$(6),$(2),env TAPEGRAD_SHARD=$(5)/$(6) $(3)$(4))
in_parts = $(foreach k,$(call parts_of,$(4)),\
             $(call part_of,$(1),$(2),$(3),$(call name_of,$(4)),$(k),$(lastword $(subst :, ,$(4)))))
whole    = $(call add_step,$(1)/$(4),$(2),$(3)$(4))
suites   = $(foreach s,$(4),$(call $(if $(findstring :,$(s)),in_parts,whole),$(1),$(2),$(3),$(s)))
without  = $(filter-out $(foreach s,$(1),$(call name_of,$(s))),$(2))

# ---- what is built, the longest first ---------------------------------------------------------
$(call add_step,gcc/library,,$(BUILD) B=build all)
$(call add_step,cuda/nvcc,gcc/library,test/nvcc.sh build)
$(call add_step,asan/build,,$(BUILD) $(ASAN) SUITES="$(ASAN_SUITES) test_device" tests)
$(call add_step,gcc/build,gcc/library,$(BUILD) B=build tests)
$(call add_step,tsan/build,,$(BUILD) $(TSAN) SUITES="$(TSAN_SUITES) test_ops_threads test_device" tests)
$(call add_step,cuda/emu,gcc/build,$(BUILD) B=build \
  $(addprefix build/test/,$(notdir $(CUDA_TESTS))))
$(call add_step,arm64/build,,test/arm64.sh build/arm64 build "$(ARM64_SUITES) test_ops test_ops_grad")

# Under qemu: a part of the ops, about a minute in all.
ARM64_RUN := test/arm64.sh build/arm64 run build/arm64/test/

# ---- suites -----------------------------------------------------------------------------------
# Of the suites of SHARED_ASAN, which meet each allocation or each op, a part; of random convolutions, too.
LONG_ASAN := test_ops_memory:6 test_gemm test_ops_grad:3 test_golden:4 test_ops_layout:3 test_ops:2
SHARED_ASAN := test_lbfgs test_optimizers test_gradcheck
$(call suites,asan,asan/build,build/asan/test/,$(LONG_ASAN) \
  $(call without,$(LONG_ASAN) $(SHARED_ASAN) test_conv_blocks test_ops_threads test_resume \
  test_gpt_autocast,$(ASAN_SUITES)))
$(call suites,asan,asan/build,env TAPEGRAD_SHARD=2/4 build/asan/test/,$(SHARED_ASAN))
# Freed memory is held back for long, as nowhere else.
$(call add_step,asan/test_tape.held,asan/build,env ASAN_OPTIONS=handle_sigill=1 build/asan/test/test_tape)
$(call add_step,asan/test_conv_blocks,asan/build,env TAPEGRAD_SHARD=3/16 build/asan/test/test_conv_blocks)
$(call add_step,asan/test_resume,asan/build,env TAPEGRAD_KILLS=20 build/asan/test/test_resume)
$(call add_step,asan/test_gpt_autocast,asan/build,env TAPEGRAD_STEPS=20 build/asan/test/test_gpt_autocast)
$(call add_step,asan/test_ops_threads,asan/build,env TAPEGRAD_SHARD=1/16 build/asan/test/test_ops_threads)
LONG_GCC  := test_ops_memory:6 test_ops_threads:4 test_golden:2 test_accuracy test_ops_layout:2 test_faults
$(call suites,gcc,gcc/build,build/test/,$(LONG_GCC) $(call without,$(LONG_GCC),$(SUITES)))
$(call suites,tsan,tsan/build,build/tsan/test/,$(filter-out test_conv_blocks,$(TSAN_SUITES)))
$(call add_step,tsan/test_conv_blocks,tsan/build,env TAPEGRAD_SHARD=6/16 build/tsan/test/test_conv_blocks)
$(call add_step,tsan/test_ops_threads,tsan/build,env TAPEGRAD_SHARD=1/16 build/tsan/test/test_ops_threads)
FORWARD := CUEMU_ORDER=fwd CUEMU_GUARD=8
$(call add_step,asan/test_device,asan/build,env TAPEGRAD_SHARD=3/16 $(FORWARD) build/asan/test/test_device)
$(call add_step,tsan/test_device,tsan/build,env TAPEGRAD_SHARD=2/16 $(FORWARD) build/tsan/test/test_device)
$(call suites,arm64,arm64/build,$(ARM64_RUN),$(ARM64_SUITES))
$(call add_step,arm64/test_ops,arm64/build,env TAPEGRAD_SHARD=1/4 $(ARM64_RUN)test_ops)
$(call add_step,arm64/test_ops_grad,arm64/build,env TAPEGRAD_SHARD=1/8 $(ARM64_RUN)test_ops_grad)

# The kernels of the instruction sets below the machine's best, and what of the best no suite compiles.
$(call add_step,isa/base,gcc/build,test/isa.sh build base)
$(call add_step,isa/avx2,gcc/build,test/isa.sh build avx2)
$(call add_step,isa/avx512,gcc/build,test/isa.sh build avx512)

# ---- the CUDA sources -------------------------------------------------------------------------
$(call add_step,cuda/gpu_check,cuda/emu,tools/gpu_check.sh --dry build)
$(call add_step,cuda/kit,cuda/gpu_check,test/kit/suites.sh build)
# One order of threads in full, the others over a part of the ops.
$(call suites,cuda,cuda/emu,env $(FORWARD) build/test/,test_device:3 $(filter-out test_cuda test_device \
  test_own_rows,$(DEVICE_SUITES)))
# The suites that any device must pass, on the emulated one, as tools/gpu_check.sh runs them on cuda:0.
ON_EMU := env TAPEGRAD_TEST_DEVICE=emu:0 $(FORWARD)
$(call add_step,cuda/test_golden,cuda/emu,$(ON_EMU) build/test/test_golden)
$(call add_step,cuda/test_ops,cuda/emu,$(ON_EMU) build/test/test_ops)
$(call add_step,cuda/test_ops_grad,cuda/emu,$(ON_EMU) TAPEGRAD_SHARD=1/16 build/test/test_ops_grad)
$(call add_step,cuda/test_ops_layout,cuda/emu,$(ON_EMU) TAPEGRAD_SHARD=3/64 build/test/test_ops_layout)
$(call add_step,cuda/test_ops_memory,cuda/emu,$(ON_EMU) TAPEGRAD_SHARD=1/12 build/test/test_ops_memory)
QUARTER := env TAPEGRAD_SHARD=1/4
$(call add_step,cuda/test_device.rev,cuda/emu,$(QUARTER) CUEMU_ORDER=rev build/test/test_device)
$(call add_step,cuda/test_device.rand1,cuda/emu,$(QUARTER) CUEMU_ORDER=rand:1 build/test/test_device)
$(call add_step,cuda/test_device.rand2,cuda/emu,$(QUARTER) CUEMU_ORDER=rand:2 build/test/test_device)
$(call add_step,cuda/planted,cuda/emu,test/planted.sh build)
$(call add_step,cuda/test_cuda,cuda/emu cuda/nvcc,build/test/test_cuda)

# ---- everything else --------------------------------------------------------------------------
$(call add_step,examples/run,gcc/library,test/examples.sh build)
$(call add_step,examples/cuda,cuda/emu,test/cuda_example.sh build)
$(call add_step,bench/run,gcc/library,test/bench.sh build)
# At most so many launches and GB; the target was 400 and 150.
$(call add_step,bench/counts,cuda/emu,$(BUILD) B=build bench-counts LIMITS="370 100")
$(call add_step,fuzz/run,gcc/library,test/fuzz/run.sh build -runs=20000)
$(call add_step,interop/run,gcc/library,test/interop/run.sh build --if-reachable)
$(call add_step,valgrind/run,gcc/build,$(BUILD) B=build valgrind)
$(call add_step,noblis/run,gcc/build,$(BUILD) B=build check-noblis)
$(call add_step,callsite/run,,test/callsite_variants.sh build/callsite)
$(call add_step,tree/headers,,test/headers.sh)
$(call add_step,tree/foreign,gcc/library,test/foreign.sh build)
$(call add_step,tree/snippets,gcc/library,test/snippets.sh build)
$(call add_step,tree/docs,gcc/build,test/docs.sh build)
$(call add_step,tree/reference,,$(BUILD) docs)
$(call add_step,tree/style,,test/style.sh)
$(call add_step,tree/inplace,,test/inplace.sh)
$(call add_step,tree/rebuild,cuda/emu,test/rebuild.sh build)
$(call add_step,tree/exports,gcc/library,test/exports.sh build)
$(call add_step,tree/install,gcc/library,test/install.sh build)
$(call add_step,tree/portable,,test/portable.sh)

# ---- running them -----------------------------------------------------------------------------
CHOSEN := $(if $(ONLY),$(foreach o,$(ONLY),$(filter $(o) $(o)/%,$(CI_STEPS))),$(CI_STEPS))
test: ; @test/all.sh
ci: $(CHOSEN:%=ci/%)
ci-steps: ; @printf '%s\n' $(CHOSEN)
.PHONY: test ci ci-steps $(CI_STEPS:%=ci/%)
