/* The settings of PyTorch's allocator, changed while the program runs (torch.cuda.memory._set_allocator_settings).
 * A change is kept until the next block event and told before it: most are made before the first allocation, when
 * there is no trace yet. Nothing here raises the guard: the functions are C++ and throw at a wrong text, which is
 * then not told. */
#include "hooks/settings.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "recorder/elf.h"
#include "recorder/record.h"

#define EXPORT	   __attribute__((visibility("default")))
#define TEXT_BYTES 1024

#define SET_FUNCTION \
	_ZN3c104cuda20CUDACachingAllocator20setAllocatorSettingsERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
#define PARSE_FUNCTION \
	_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig9parseArgsERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
#define NAME_OF(symbol) NAME_AS_IT_IS(symbol)
#define NAME_AS_IT_IS(symbol) #symbol

struct cxx_string { /* std::string of libstdc++, C++11 */
	const char *data;
	size_t bytes;
};

typedef void set_function(const struct cxx_string *);
typedef void parse_function(void *config, const struct cxx_string *);

bool settings_changed;
static char changed_text[TEXT_BYTES]; /* of the last change; the caller holds the GIL */

/* PyTorch reads the environment by the same function: that is known already. */
static bool is_of_environment(const struct cxx_string *text)
{
	static const char *const names[] = { "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF" };
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		const char *value = getenv(names[i]);
		if (value && strlen(value) == text->bytes && !memcmp(value, text->data, text->bytes))
			return true;
	}
	return !text->bytes;
}

static void keep(const struct cxx_string *text)
{
	static bool has_changed;
	size_t bytes = text->bytes < TEXT_BYTES ? text->bytes : TEXT_BYTES - 1;
	if (!has_changed && is_of_environment(text))
		return;
	has_changed = true;
	memcpy(changed_text, text->data, bytes);
	changed_text[bytes] = 0;
	__atomic_store_n(&settings_changed, true, __ATOMIC_RELEASE);
}

void settings_tell_changed(const void *frame)
{
	uint32_t text = record_text(changed_text);
	struct record record = { .what = MEMTRACE_SETTINGS,
				 .device = MEMTRACE_DEVICE_UNKNOWN,
				 .extra = text,
				 .frame = frame };
	if (!record_has_started()) /* the block's own event starts it; the next one tells */
		return;
	__atomic_store_n(&settings_changed, false, __ATOMIC_RELAXED);
	record_event(&record);
}

static void *real(const char *symbol)
{
	return elf_find_anywhere(symbol, NULL);
}

EXPORT set_function SET_FUNCTION;
EXPORT parse_function PARSE_FUNCTION;

EXPORT void SET_FUNCTION(const struct cxx_string *text)
{
	set_function *function = (set_function *)real(NAME_OF(SET_FUNCTION));
	if (function)
		function(text);
	keep(text);
}

EXPORT void PARSE_FUNCTION(void *config, const struct cxx_string *text)
{
	parse_function *function = (parse_function *)real(NAME_OF(PARSE_FUNCTION));
	if (function)
		function(config, text);
	keep(text);
}
