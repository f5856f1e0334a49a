# examples.mk - examples, demo, benchmark, and the values of PyTorch.

EXAMPLES := $(patsubst examples/%.c,$(B)/examples/%,$(filter-out examples/example.c,$(wildcard examples/*.c)))
$(B)/examples/%: examples/%.c examples/example.c examples/example.h $(B)/libtapegrad.a $(B)/flags.link
	$(COMPILE) $< examples/example.c $(B)/libtapegrad.a $(LDFLAGS) $(LIBS) -o $@
examples: $(EXAMPLES)
EPOCHS ?= 1
demo:
	@tools/setup.sh && $(MAKE) -s -j2 $(B)/examples/mnist
	@$(B)/examples/mnist --epochs $(EPOCHS) $(ARGS)

$(B)/bench/bench: bench/bench.c $(B)/libtapegrad.a $(B)/flags.link
	$(COMPILE) $< $(B)/libtapegrad.a $(LDFLAGS) $(LIBS) -o $@
bench: $(B)/bench/bench ; @bench/run.sh $(B)/bench/bench
oracle: $(B)/test/test_golden ; @test/oracle/run.sh $(B)
.PHONY: examples demo bench oracle
