# compiler.mk - the compiler, what it compiles for, and how it is called.
#
# CPPFLAGS, CFLAGS and LDFLAGS are the user's and are added to ours.  CROSS=aarch64-linux-gnu- builds for
# another machine, as CC=aarch64-linux-gnu-gcc does.
ifneq (,$(filter default,$(origin CC))$(if $(strip $(CC)),,none))
override CC := $(CROSS)gcc
endif
HASH     := \#
EMPTY    :=
COMMA    := ,
SPACE    := $(EMPTY) $(EMPTY)

# Each compiler has a build folder of its own, so that trying another one costs the first nothing.
COMPILER := $(subst $(SPACE),_,$(notdir $(filter-out ccache %/ccache,$(CC))))
B        ?= build$(if $(filter-out gcc,$(COMPILER)),/$(COMPILER))

# Which machine, which compiler and which C library: the compiler knows.
KNOWN    := $(shell printf '%s\n' '$(HASH)include <stdlib.h>' | $(CC) $(CPPFLAGS) $(CFLAGS) -dM -E -x c - | \
              sed -n 's/^$(HASH)define __\(x86_64__\|clang__\|GLIBC_MINOR__\) \(.*\)/\1\2/p')
X86_64   := $(filter x86_64__%,$(KNOWN))
CLANG    := $(filter clang__%,$(KNOWN))
# glibc takes relocations packed from 2.36 on: the library is 6 % smaller.
GLIBC    := $(patsubst GLIBC_MINOR__%,%,$(filter GLIBC_MINOR__%,$(KNOWN)))
RELR     := $(if $(GLIBC),$(shell [ $(GLIBC) -lt 36 ] || ! $(CC) $(LDFLAGS) -Wl,--help 2>/dev/null | \
              grep -q pack-relative-relocs || echo -Wl,-z,pack-relative-relocs))
OBJCOPY  := $(or $(OBJCOPY),$(shell $(CC) -print-prog-name=objcopy))
STRIP    := $(or $(STRIP),$(shell $(CC) -print-prog-name=strip))
ifeq ($(origin AR),default)
AR       := $(shell $(CC) -print-prog-name=ar)
endif

# Errors and profiles need lines, no types: -g1 compiles in three quarters of the time that -g takes.
OPT      ?= -O2 -g1
FAST     ?= -O3
SAN      ?=
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings \
            -Wno-missing-field-initializers
WARN     += $(if $(CLANG),-Wno-initializer-overrides -Wno-gnu-folding-constant -Wno-missing-braces \
            -Wno-pass-failed,-Wno-override-init)
# No -ffast-math: NaN and infinity behave.  -ffp-contract=off: the same bits in the body and the tail of a
# vector loop.
MUST     := -std=gnu11 -fPIC -fopenmp-simd -fvisibility=hidden -ffp-contract=off -fno-math-errno \
            -fno-trapping-math -fno-function-sections -fno-lto
# Errors find the user's frame by unwinding.  Kernels are leaves, which never fail: their tables, 90 KB, would
# serve nobody.
UNWIND    = -fasynchronous-unwind-tables
LIBS     := $(if $(WITHOUT_BLIS),,-lblis) -lpng -lz -ldl -lm -lpthread

# FLAGS: all but those of one file, which stand before the user's.
FLAGS     = -Iinclude -Isrc $(DEFINES) $(CPPFLAGS) $(OPT) $(WARN) $(if $(WERROR),-Werror)
# AHEAD: the headers that most files include, compiled once where PRECOMPILE=1, as under checkers; the
# other builds show a file that includes too little.
COMPILE   = @mkdir -p $(@D) && echo "  CC   $@" && \
            $(CC) $(FLAGS) $(FILE) $(CFLAGS) $(MUST) $(UNWIND) $(SAN) \
            $(if $(PRECOMPILE),$(AHEAD:%=-include $(B)/ahead/%.h))
PRECOMPILED = $(COMPILE) -MMD -MP -x c-header -c $< -o $@
LINK      = $(CC) $(CFLAGS) $(SAN) $(LINKER) $(LDFLAGS)

# stamp NAME,TEXT - the file $(B)/NAME holds TEXT.  A rule writes it where it holds another, so that what was
# compiled with other flags is compiled again, and "make -n" changes nothing.
same      = $(if $(subst x$(1),,x$(2))$(subst x$(2),,x$(1)),,yes)
define stamp
$(B)/$(1): export STAMP = $(2)
$(B)/$(1): $(if $(call same,$(strip $(file <$(B)/$(1))),$(strip $(2))),,FORCE) ; \
    @mkdir -p $$(@D) && printf '%s\n' "$$$$STAMP" > $$@
endef
FORCE:
.PHONY: FORCE
