# docs.mk - documents, and what editors read.

HEADERS := $(wildcard include/tapegrad/*.h include/tapegrad/*/*.h)
OPS_TABLE := $(B)/tools/ops_table test/oracle/torch_names.txt test/composed.txt
$(B)/ops.md: $(OPS_TABLE) ; @$^ $(HEADERS) > $@.new && mv $@.new $@
docs/ops.md: $(B)/ops.md ; @cp $< $@
$(B)/tools/ops_table: FILE = -Itest
$(B)/tools/ops_table: tools/ops_table.c $(SHARED_OBJECTS) $(B)/libtapegrad.a $(B)/flags.link
	$(COMPILE) $< $(SHARED_OBJECTS) $(WHOLE) $(LDFLAGS) $(LIBS) $(CMOCKA) -o $@
docs:
	@command -v doxygen >/dev/null || { echo "make docs needs doxygen (apt install doxygen)"; exit 1; }
	doxygen docs/Doxyfile

# Made of what make would run: each line that compiles one file is one entry.
compile_commands.json: FORCE
	@$(MAKE) -Bn --no-print-directory all tests B=$(B) | tools/compile_commands.sh > $@.new && mv $@.new $@
.PHONY: docs
