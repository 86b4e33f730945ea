# memtrace: build, tests and demo. `make help` lists the targets.
#
# Sources are found by wildcard: a new .c file in a folder of src/ needs no line here. What each
# folder is for stands in README.md; `libmemtrace.so` may need no shared library but libc.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
.DEFAULT_GOAL := all

ifeq ($(filter -j%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 1)
endif

# ---- what may be set on the command line ------------------------------------------------------

ifeq ($(origin CC),default)
CC := gcc
endif
O ?= build
V ?= 0
SAN ?=
PREFIX ?= /usr/local
DESTDIR ?=
PYTHON ?= python3
CFLAGS ?= -O2 -g
CPPFLAGS ?=
LDFLAGS ?=
WERROR ?= $(if $(filter true,$(CI)),1,0)
FUZZ_SECONDS ?= 20
STRESS_SECONDS ?= 600
TESTS ?=

ifeq ($(V),0)
Q := @
say = @printf '  %-7s %s\n' '$(1)' '$(2)'
else
Q :=
say = @:
endif

# ---- where things go --------------------------------------------------------------------------

comma := ,
gen := $(O)/gen
# A sanitized build has objects of its own; generated files and headers are shared.
B := $(O)$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))
no_config_goals := clean help setup
want_config := $(if $(MAKECMDGOALS),$(filter-out $(no_config_goals),$(MAKECMDGOALS)),all)

ifneq ($(want_config),)
# Sets CUDA_INCLUDE and CUDA12_INCLUDE; made by the rule below, then make starts again.
include $(gen)/config.mk
endif

$(gen)/config.mk: scripts/check-platform.sh scripts/setup.sh scripts/fetch-cuda-headers.sh
	$(Q)scripts/check-platform.sh $(CC)
	$(Q)CC='$(CC)' PYTHON='$(PYTHON)' scripts/setup.sh build
	$(Q)PYTHON='$(PYTHON)' scripts/fetch-cuda-headers.sh '$(O)/cuda-headers' $@

# Another toolkit asked for, or the headers gone: configure again.
ifneq ($(want_config),)
ifneq ($(configured_for) $(notdir $(wildcard $(CUDA_INCLUDE)/cuda.h)),$(CUDA_HOME) cuda.h)
$(gen)/config.mk: FORCE
endif
endif
FORCE:

# ---- flags ------------------------------------------------------------------------------------

warnings := -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes
ifeq ($(WERROR),1)
warnings += -Werror
endif
cflags = -std=gnu11 $(CFLAGS) $(warnings) -fvisibility=hidden -fexceptions -fno-strict-aliasing \
         -fPIC -ftls-model=initial-exec -ffunction-sections -fdata-sections -pthread
# Defined empty, so that a source may say `#define _GNU_SOURCE` itself.
cppflags = -D_GNU_SOURCE= -Iinclude -Isrc -I$(gen) -isystem $(CUDA_INCLUDE) $(CPPFLAGS)
ldflags = -pthread -Wl,--gc-sections -Wl,--as-needed $(LDFLAGS)
depflags = -MMD -MP

ifneq ($(SAN),)
cflags += -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all -O1
ifeq ($(SAN) $(findstring clang,$(CC)),thread )
cflags += -Wno-tsan # of fences, which it does not know: what stands around ours is atomic by itself
endif
ldflags += -fsanitize=$(SAN)
endif

# Linked in, and hidden in the library (src/trace/zstd_trace.c says what else that takes).
zstd := -l:libzstd.a

# ---- sources ----------------------------------------------------------------------------------

sources = $(foreach d,$(1),$(wildcard src/$(d)/*.c src/$(d)/*.S))
objects_of = $(patsubst %,$(B)/obj/%.o,$(basename $(1)))
objects = $(call objects_of,$(call sources,$(1)))

lib_parts := base hooks recorder trace model report
tool_parts := cli base trace model report
# What a unit test may call: everything but the hooks, which would interpose the test itself.
test_parts := base recorder trace model report cli

# The table of cards is the simulated GPU's; the tool shows it.
card_objects := $(patsubst %,$(B)/obj/src/simgpu/%.o,sim_card sim_bytes)

lib := $(B)/libmemtrace.so
# The sanitized library is linked into the programs that are traced, before CUDA's. It leaves the loader's functions
# alone: the start of a sanitizer calls them when neither is ready.
lib_without := $(if $(SAN),src/hooks/loader.c)
linked_programs := counted flood leave family threads stress
tool := $(B)/memtrace
testlib := $(B)/obj/libparts.a

unit_tests := $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(wildcard tests/unit/test_*.c))
unit_shared := $(patsubst %.c,$(B)/obj/%.o,\
                 $(filter-out tests/unit/test_%,$(wildcard tests/unit/*.c)))
programs := $(patsubst tests/programs/%.c,$(B)/tests/programs/%,$(wildcard tests/programs/*.c))
benches := $(patsubst tests/bench/%.c,$(B)/tests/bench/%,$(wildcard tests/bench/*.c))
fuzzers := $(patsubst tests/fuzz/%.c,$(O)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

# Files that change when the flags or the set of sources do, so that what depends on them is remade.
remember = $(shell mkdir -p $(dir $(1)) && echo '$(2)' | cmp -s - $(1) || echo '$(2)' >$(1))
flags_file := $(B)/obj/flags
parts_file := $(B)/obj/parts
ifneq ($(want_config),)
# Without the build folder's own name: `make O=$$PWD/build install` is to rebuild nothing.
$(call remember,$(flags_file),$(CC) $(filter-out -Werror,$(cflags)) $(filter-out -I$(gen),$(cppflags)))
$(call remember,$(parts_file),$(call sources,hooks $(test_parts)))
endif

have_lib := $(call sources,hooks)
have_tool := $(call sources,cli)

.PHONY: all lib tool simgpu programs unit-tests setup demo check check-full bench fuzz stress install \
        uninstall clean help format
all: $(if $(SAN),tool unit-tests programs,lib tool simgpu) ## Build the library, the tool and the simulated GPU (default)
lib: $(if $(have_lib),$(lib))
tool: $(if $(have_tool),$(tool))
programs: $(if $(SAN),$(linked_programs:%=$(B)/tests/programs/%),$(programs))
unit-tests: $(unit_tests)
simgpu:

# The simulated GPU stands alone and brings its own rules for the target `simgpu`.
ifneq ($(want_config),)
-include src/simgpu/simgpu.mk
endif
-include $(wildcard tests/unit/unit.mk)

# ---- the library and the tool -----------------------------------------------------------------

# One version script and one table of exports, both expanded from src/hooks/hooks.def.
map := $(gen)/memtrace.map

$(lib): $(call objects_of,$(filter-out $(lib_without),$(call sources,$(lib_parts)))) $(parts_file) $(if $(wildcard src/hooks/exports.map.in),$(map))
	$(call say,LINK,$@)
	$(Q)$(CC) -shared -o $@.tmp $(filter %.o,$^) -Wl,-soname,libmemtrace.so $(if $(SAN),,-Wl$(comma)-z$(comma)defs) \
	    -Wl,-z,nodelete $(if $(filter $(map),$^),-Wl$(comma)--version-script=$(map)) \
	    $(ldflags) $(zstd) -Wl,--exclude-libs,ALL -ldl -lpthread
	$(Q)mv $@.tmp $@ # never in place: running programs have it mapped

$(map): src/hooks/exports.map.in | $(gen)/
	$(call say,GEN,$@)
	$(Q)$(CC) -E -P -undef -x c $(cppflags) -MD -MP -MT $@ -MF $@.d $< -o $@.tmp
	$(Q)mv $@.tmp $@
-include $(map).d

$(tool): $(call objects,$(tool_parts)) $(card_objects) $(parts_file)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@.tmp $(filter %.o,$^) $(ldflags) $(zstd) -ldw -lelf -lm -ldl -lpthread
	$(Q)mv $@.tmp $@ # never in place: it may be running

$(testlib): $(call objects,$(test_parts)) $(card_objects) $(parts_file)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

$(B)/obj/%.o: %.c $(flags_file)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(depflags) $(cppflags) $(cflags) -c -o $@ $<

$(B)/obj/%.o: %.S $(flags_file)
	$(call say,AS,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(depflags) $(cppflags) -fPIC -c -o $@ $<

# They are the texts of these files.
$(B)/obj/src/cli/sparse_checkpoint_script.o: src/cli/sparse_checkpoint.py
$(B)/obj/src/cli/profile_card_script.o: src/cli/profile_card.py

$(gen)/:
	$(Q)mkdir -p $@

# Pages and scripts that a part embeds: src/PART/part.mk adds objects or generated headers.
-include $(wildcard src/viewer/viewer.mk)

# ---- tests ------------------------------------------------------------------------------------

$(B)/tests/unit/%: $(B)/obj/tests/unit/%.o $(unit_shared) $(testlib)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -o $@ $^ $(ldflags) $(zstd) $(unit_libs_$*) -lcmocka -ldw -lelf -lm -ldl -lpthread

$(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/unit/*.c)): | setup-unit
.PHONY: setup-unit
setup-unit:
	$(Q)PYTHON='$(PYTHON)' scripts/setup.sh unit

# Small programs to trace. NAME_cu12.c is built against CUDA 12 and its runtime. They find the
# stand-in libraries by LD_LIBRARY_PATH only, so that one can be started on a real GPU too.
linked = $(if $(SAN),-fsanitize=$(SAN) -Wl$(comma)-rpath$(comma)'$$ORIGIN/../..' -Wl$(comma)--no-as-needed $(lib)) \
    $(or $(program_libs_$*),$(if $(SAN),-L$(O)/libmemtrace-sim -l:libcuda.so.1))
cuda_of = $(if $(filter %_cu12,$(1)),$(CUDA12_INCLUDE),$(CUDA_INCLUDE))
$(B)/tests/programs/%: tests/programs/%.c $(if $(SAN),$(lib)) | simgpu
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O1 -g $(warnings) $(depflags) -D_GNU_SOURCE= -Iinclude -Isrc \
	    -isystem $(call cuda_of,$*) -o $@ $< $(linked) -L$(O)/libmemtrace-sim \
	    -Wl,--as-needed -Wl,--allow-shlib-undefined -l:libcuda.so.1 \
	    -l:libcudart.so.$(if $(filter %_cu12,$*),12,13) -ldl -lpthread -lm

# Libraries for them: FOLDER/NAME.c becomes FOLDER/NAME.so and what library_end_NAME says after it.
library_end_fastcuda/libcuda := .1
library_end_throwing/libcuda := .1
library_end_stressful/libcuda := .1
library_end_witness/libcuda := .1
library_flags_runpath/libouter := -Wl,-rpath,'$$ORIGIN/inner',--enable-new-dtags
program_libs_runtime_calls_cu11 := -Wl,--no-as-needed $(O)/libmemtrace-sim/libcudart.so.11.0 -Wl,--as-needed
library_of = $(B)/tests/programs/$(1).so$(library_end_$(1))
define program_library
$(call library_of,$(1)): tests/programs/$(1).c
	$$(call say,CC,$$<)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) -std=gnu11 -O2 -g -fPIC -shared $$(warnings) $$(depflags) -D_GNU_SOURCE= -Iinclude -Isrc \
	    -isystem $$(CUDA_INCLUDE) -o $$@ $$< -Wl,-soname,$$(@F) $$(library_flags_$(1)) -ldl -lpthread
endef
library_names := $(filter-out missing/note,\
    $(patsubst tests/programs/%.c,%,$(wildcard tests/programs/*/*.c tests/programs/*/*/*.c)))
$(foreach name,$(library_names),$(eval $(call program_library,$(name))))
linked_libraries := fastcuda/libcuda stressful/libcuda plugin/libplugin
programs: $(foreach name,$(if $(SAN),$(linked_libraries),$(library_names)),$(call library_of,$(name)))
program_libs_stress := $(B)/tests/programs/stressful/libcuda.so.1
$(B)/tests/programs/stress: $(B)/tests/programs/stressful/libcuda.so.1

# The library with one meaning left out, as if its rows were not in the table: its note does nothing.
missing_note := cuMemAllocAsync
missing_lib := $(B)/tests/programs/missing/libmemtrace.so
programs: $(if $(SAN),,$(missing_lib))
$(missing_lib): $(call objects,$(lib_parts)) $(B)/obj/tests/programs/missing/note.o $(parts_file) $(map)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -o $@.tmp $(filter %.o,$^) -Wl,-soname,libmemtrace.so -Wl,-z,defs -Wl,-z,nodelete \
	    -Wl,--version-script=$(map) -Wl,--wrap=note_$(missing_note) \
	    $(ldflags) $(zstd) -Wl,--exclude-libs,ALL -ldl -lpthread
	$(Q)mv $@.tmp $@

setup: ## Install what tests and demo need (make check and make demo do it by themselves)
	$(Q)PYTHON='$(PYTHON)' scripts/setup.sh check

check: all programs unit-tests ## Unit and integration tests, a fixed tenth of the long matrices (TESTS="pytest arguments")
	$(Q)PYTHON='$(PYTHON)' scripts/setup.sh check
	$(Q)scripts/run-tests.py --build '$(B)' -- $(TESTS)

check-full: all programs unit-tests ## All tests, every combination
	$(Q)PYTHON='$(PYTHON)' scripts/setup.sh full
	$(Q)scripts/fetch-clients.sh triton jax ggml nvidia # 2.6 GB
	$(Q)scripts/fetch-torches.sh # 3.5 GB
	$(Q)scripts/fetch-pythons.sh || true # the Pythons of other Debian suites; without them those tests skip
	$(Q)scripts/fetch-memory-viz.sh || true # PyTorch's viewer in JavaScript, likewise
	$(Q)MEMTRACE_FULL=1 scripts/run-tests.py --build '$(B)' -- $(TESTS)

demo: all ## Train a small GPT under memtrace, then run out of memory, on a GPU or a simulated one
	$(Q)PYTHON='$(PYTHON)' scripts/setup.sh demo
	$(Q)scripts/run-demo.sh '$(O)'

bench: all $(benches) $(B)/tests/programs/training ## Measure the costs that README.md promises
	$(Q)PYTHON='$(PYTHON)' scripts/setup.sh demo
	$(Q)scripts/run-bench.sh '$(O)'

$(B)/tests/bench/%: $(B)/obj/tests/bench/%.o $(testlib)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -o $@ $^ $(ldflags) $(zstd) -ldw -lelf -lm -ldl -lpthread

fuzz: $(fuzzers) ## Feed broken input to all that reads some, FUZZ_SECONDS each (needs clang)
	$(Q)scripts/run-fuzz.sh '$(O)' $(FUZZ_SECONDS)

# What a fuzzer needs beyond the parts that all are linked with.
fuzz_more_fuzz_settings := src/recorder/config.c src/recorder/say.c
fuzz_more_fuzz_options := src/cli/options.c
fuzz_more_fuzz_fit := src/cli/options.c src/cli/fit_options.c
fuzz_more_fuzz_texts := src/recorder/texts.c src/cli/fit_texts.c
fuzz_more_fuzz_card := src/simgpu/sim_card.c src/simgpu/sim_bytes.c
fuzz_more_fuzz_reader := tests/fuzz/trace_steps.c tests/fuzz/trace_seeds.c
fuzz_more_fuzz_repair := $(fuzz_more_fuzz_reader)
fuzz_more_fuzz_files := src/recorder/config.c src/recorder/say.c src/recorder/texts.c
fuzz_link_fuzz_files := -Wl,--wrap=open
fuzz_flags := -fsanitize=address,undefined -fno-sanitize-recover=all
fuzz_objects = $(patsubst %.c,$(O)/fuzz/obj/%.o,$(filter %.c,$(1)))

$(O)/fuzz/obj/%.o: %.c
	$(call say,FUZZ,$<)
	$(Q)mkdir -p $(@D)
	$(Q)command -v clang >/dev/null || { echo 'memtrace: fuzzing needs clang' >&2; exit 1; }
	$(Q)clang -std=gnu11 -g -O1 $(depflags) $(cppflags) -fsanitize=fuzzer-no-link $(fuzz_flags) -c -o $@ $<

define fuzzer
$(O)/fuzz/$(1): $(call fuzz_objects,tests/fuzz/$(1).c $(fuzz_more_$(1)) $(call sources,base trace model report))
	$$(call say,LINK,$$@)
	$$(Q)clang -fsanitize=fuzzer $$(fuzz_flags) $$(fuzz_link_$(1)) -o $$@ $$^ $$(zstd) -lm -ldl -lpthread
endef
$(foreach name,$(notdir $(fuzzers)),$(eval $(call fuzzer,$(name))))

stress: lib tool programs ## Everything at once for STRESS_SECONDS (600): threads, fork, dlopen, exceptions, OOM
	$(Q)MEMTRACE_STRESS=$(STRESS_SECONDS) scripts/run-tests.py --build '$(B)' -- integration/test_stress.py -s

# ---- install, clean, help ---------------------------------------------------------------------

bindir = $(DESTDIR)$(PREFIX)/bin
libdir = $(DESTDIR)$(PREFIX)/lib/memtrace
incdir = $(DESTDIR)$(PREFIX)/include/memtrace

install: all ## Install under PREFIX (default /usr/local), DESTDIR in front
	$(Q)install -d '$(bindir)' '$(libdir)/libmemtrace-sim' '$(incdir)'
	$(Q)$(if $(have_tool),install -m 755 $(tool) '$(bindir)/memtrace')
	$(Q)$(if $(have_lib),install -m 755 $(lib) '$(libdir)/libmemtrace.so')
	$(Q)shopt -s nullglob; for f in $(O)/libmemtrace-sim/*.so*; do \
	    cp -P --no-preserve=ownership "$$f" '$(libdir)/libmemtrace-sim/'; done
	$(Q)install -D -m 644 $(O)/libmemtrace-sim/python/sitecustomize.py '$(libdir)/libmemtrace-sim/python/sitecustomize.py'
	$(Q)install -m 644 $(wildcard include/memtrace/*.h) '$(incdir)/'
	@printf 'installed: %s\n' '$(bindir)/memtrace' '$(libdir)/libmemtrace.so' '$(libdir)/libmemtrace-sim' '$(incdir)'

uninstall: ## Remove what install put under PREFIX
	$(Q)rm -rf '$(bindir)/memtrace' '$(libdir)' '$(incdir)'

clean: ## Remove the build folder (downloads in .cache and .venv stay)
	$(Q)rm -rf '$(O)'

format: ## Lay out the C files by .clang-format
	$(Q)git ls-files '*.c' '*.h' | xargs -r clang-format -i

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\n'; printf '%s\n' \
	  '  V=1 shows commands, O=dir builds elsewhere, CC=gcc|clang, CI=true or WERROR=1 adds -Werror,' \
	  '  SAN=address,undefined or SAN=thread: tool, unit tests and library with sanitizers, linked into programs,' \
	  '  CUDA_HOME=dir uses the headers of that toolkit (none: download the header wheels),' \
	  '  MEMTRACE_CACHE=dir keeps downloads there.'

-include $(shell find $(B)/obj $(B)/tests $(O)/fuzz -name '*.d' 2>/dev/null)
