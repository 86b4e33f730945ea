/* Owns the reading of texts that others wrote: PyTorch's version.py and the arguments of the command line.
 * It never opens a file and never trusts that a text is whole. */
#include "recorder/texts.h"

#include <string.h>
#include <strings.h>

#define VERSION_BEFORE "__version__ = '"
#define HIDDEN_VALUE "***"

bool texts_torch_version(const char *content, struct text *version)
{
	const char *at = strstr(content, VERSION_BEFORE);
	const char *value = at ? at + strlen(VERSION_BEFORE) : "";
	size_t length = strcspn(value, "'\n");
	text_printf(version, "torch %.*s", (int)length, value);
	return length > 0;
}

static bool option_is_secret(const char *option)
{
	static const char *const words[] = { "token", "key", "secret", "password" };
	const char *equals = strchr(option, '=');
	size_t length = equals ? (size_t)(equals - option) : strlen(option);
	for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
		for (size_t at = 0; at + strlen(words[i]) <= length; at++)
			if (!strncasecmp(option + at, words[i], strlen(words[i])))
				return true;
	return false;
}

/* Values after --*token*, --*key*, --*secret*, --*password* are not kept. A value may begin with one "-": random
 * texts do. */
const char *texts_argument(const char *argument, bool *hide_next, struct text *kept)
{
	bool is_option = argument[0] == '-';
	if (*hide_next && strncmp(argument, "--", 2)) {
		*hide_next = false;
		return HIDDEN_VALUE;
	}
	bool is_secret = is_option && option_is_secret(argument);
	const char *equals = is_secret ? strchr(argument, '=') : NULL;
	*hide_next = is_secret && !equals;
	if (!equals)
		return argument;
	text_printf(kept, "%.*s" HIDDEN_VALUE, (int)(equals - argument + 1), argument);
	return text_string(kept);
}
