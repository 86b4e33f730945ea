/*
 * CUDA_VISIBLE_DEVICES: which of the machine's devices a program sees, and in which order.  Must never
 * show a device that the machine lacks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define WORD_BYTES 64

/* A number, or the beginning of a UUID that no other device shares.  -1: no device of the machine. */
static int place_of(const char *word, int count)
{
	char uuid[WORD_BYTES], *end;
	long number = strtol(word, &end, 10);
	int found = -1;

	if (end != word && *end == '\0')
		return number >= 0 && number < count ? (int)number : -1;
	if (strncmp(word, "GPU-", 4) != 0)
		return -1;
	for (int i = 0; i < count; i++) {
		snprintf(uuid, sizeof(uuid), SIM_UUID_FORMAT, (unsigned)i + 1);
		if (strncmp(uuid, word, strlen(word)) == 0)
			found = found < 0 ? i : count;
	}
	return found < count ? found : -1;
}

static bool is_listed(const int *places, int count, int place)
{
	for (int i = 0; i < count; i++) {
		if (places[i] == place)
			return true;
	}
	return false;
}

/* As CUDA reads it: what follows a device that is not there is not seen, and one that is named twice
 * hides them all. */
static int list_read(const char *list, int count, int *places)
{
	int seen_count = 0;

	for (const char *at = list; *at != '\0'; at += *at == ',') {
		char word[WORD_BYTES];
		size_t bytes = strcspn(at += strspn(at, " "), ", ");
		snprintf(word, sizeof(word), "%.*s", (int)bytes, at);
		at += strcspn(at, ",");
		int place = place_of(word, count);
		if (place < 0)
			break;
		if (is_listed(places, seen_count, place))
			return 0;
		places[seen_count++] = place;
	}
	return seen_count;
}

/* "" and "-1" hide them on purpose; a number is one of another machine. */
static void tell_hidden(const char *list, int count)
{
	if (list[0] >= '0' && list[0] <= '9' && count > 0)
		sim_warn("CUDA_VISIBLE_DEVICES=%.60s shows none of the simulated devices, 0 to %d: more of "
			 "them are simulated with --devices (SIMGPU_DEVICES)",
			 list, count - 1);
}

int visible_read(int count, int places[DRIVER_DEVICES_MAX])
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");

	if (list != NULL) {
		int seen_count = list_read(list, count, places);
		if (seen_count == 0)
			tell_hidden(list, count);
		return seen_count;
	}
	for (int i = 0; i < count; i++)
		places[i] = i;
	return count;
}
