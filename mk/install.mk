# install.mk - make install, install-strip, uninstall: DESTDIR, PREFIX, LIBDIR ...

DESTDIR    ?=
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
BINDIR     ?= $(PREFIX)/bin
DATADIR    ?= $(PREFIX)/share
TO_LIB     := $(DESTDIR)$(LIBDIR)
TO_INCLUDE := $(DESTDIR)$(INCLUDEDIR)
TO_BIN     := $(DESTDIR)$(BINDIR)
TO_DATA    := $(DESTDIR)$(DATADIR)
TO_CMAKE   := $(TO_LIB)/cmake/tapegrad
FILES      := libtapegrad.a libtapegrad.so $(SONAME) libtapegrad.so.$(VERSION) libtapegrad_cuda.so \
              pkgconfig/tapegrad.pc cmake/tapegrad
# The archive of a BLIS that was built for OpenMP needs its runtime.
BLIS_MACROS  = printf '$(HASH)include <%s>\n' stdio.h blis.h | $(CC) -E -dM - 2>/dev/null
BLIS_OPENMP  = $(shell $(BLIS_MACROS) | grep -q 'define BLIS_ENABLE_OPENMP' && echo -lgomp)
PRIVATE_LIBS = $(LIBS) $(if $(WITHOUT_BLIS),,$(BLIS_OPENMP))
fill = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
    -e 's|@VERSION@|$(VERSION)|' -e 's|@SONAME@|$(SONAME)|' -e 's|@LIBS@|$(PRIVATE_LIBS)|' \
    tools/$(1).in > $(2)/$(1)

# Editors show what stands before a name: the installed headers repeat the contract there, where python3 is.
CONTRACT = $(if $(shell command -v python3),python3 ../docs/contract.py,cat)

install: all
	install -d $(TO_LIB)/pkgconfig $(TO_CMAKE) $(TO_BIN) $(TO_DATA)/man/man1 $(TO_DATA)/tapegrad
	set -e; cd include; for h in tapegrad.h tapegrad.hpp $$(find tapegrad -type f); do \
	    install -m 644 -D $$h $(TO_INCLUDE)/$$h; \
	    case $$h in *.h) $(CONTRACT) $$h > $(TO_INCLUDE)/$$h ;; esac; done
	install -m 644 $(B)/libtapegrad.a $(TO_LIB)/
	install -m 755 $(B)/$(SONAME) $(TO_LIB)/libtapegrad.so.$(VERSION)
	ln -sf libtapegrad.so.$(VERSION) $(TO_LIB)/$(SONAME)
	ln -sf $(SONAME) $(TO_LIB)/libtapegrad.so
	[ ! -f $(B)/libtapegrad_cuda.so ] || install -m 755 $(B)/libtapegrad_cuda.so $(TO_LIB)/
	install -m 755 $(B)/tapegrad $(TO_BIN)/
	install -m 644 docs/tapegrad.1 $(TO_DATA)/man/man1/
	install -m 644 tools/tapegrad.supp $(TO_DATA)/tapegrad/
	$(call fill,tapegrad.pc,$(TO_LIB)/pkgconfig)
	$(call fill,tapegradConfig.cmake,$(TO_CMAKE))
	$(call fill,tapegradConfigVersion.cmake,$(TO_CMAKE))
install-strip: install
	$(STRIP) -g $(TO_LIB)/libtapegrad.a
	$(STRIP) $(TO_LIB)/libtapegrad.so.$(VERSION) $(TO_BIN)/tapegrad
	[ ! -f $(TO_LIB)/libtapegrad_cuda.so ] || $(STRIP) $(TO_LIB)/libtapegrad_cuda.so
uninstall:
	rm -rf $(addprefix $(TO_INCLUDE)/tapegrad,/ .h .hpp) $(addprefix $(TO_LIB)/,$(FILES))
	rm -rf $(TO_BIN)/tapegrad $(TO_DATA)/man/man1/tapegrad.1 $(TO_DATA)/tapegrad
print-libs: ; @echo $(LIBS)
.PHONY: install install-strip uninstall print-libs
