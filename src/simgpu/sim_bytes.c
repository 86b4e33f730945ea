/*
 * Sizes as people write them.  Owns no state; apart from sim.c, so that a tool can use it too.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static int unit_shift(const char *unit)
{
	static const char letters[] = "KMGT";

	if (*unit == '\0')
		return 0;
	const char *letter = strchr(letters, toupper((unsigned char)*unit));
	if (letter == NULL)
		return -1;
	bool is_whole = unit[1] == '\0' || strcmp(unit + 1, "iB") == 0;
	return is_whole ? 10 * (int)(letter - letters + 1) : -1;
}

int sim_parse_bytes(const char *text, size_t *bytes)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return -1;
	errno = 0;
	double number = strtod(text, &end);
	while (*end == ' ')
		end++;
	int shift = unit_shift(end);
	double wanted = shift < 0 ? -1 : number * (double)((size_t)1 << shift);
	if (errno != 0 || wanted < 0 || wanted >= 9e18)
		return -1;
	*bytes = (size_t)wanted;
	return 0;
}
