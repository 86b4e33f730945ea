/*
 * The table of cards, and cards that a user describes.  Owns what is common to a capability: the
 * published figures of one data-centre or desktop card of each generation.  Must never print.
 */
#include "sim_card.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define KIB            1024
#define FILE_BYTES_MAX 16384
#define NO_TITLE       "GPU" /* of a description without a name */

/* Of cuDNN's workspaces for convolutions, where no profile tells: assumptions (cudnn_sizes.c). */
static const struct sim_card unmeasured = {
	.context_bytes = 300 * SIM_MIB,
	.conv_forward = 125,
	.conv_backward_data = 250,
	.conv_backward_filter = 4000,
	.conv_limit_bytes = 32 * SIM_MIB,
};

/* Oldest first: capability, multiprocessors, threads of one, shared memory for a block and of a
 * multiprocessor, bus width, L2, clocks. */
static const struct sim_card generations[] = {
#define GENERATION(cc, sms, threads, block_kib, sm_kib, bus, l2_kib, clock, memory_clock)           \
	{.capability = (cc), .multiprocessor_count = (sms), .threads_per_multiprocessor = (threads), \
	 .shared_per_block_bytes = (block_kib) * KIB,                                                \
	 .shared_per_multiprocessor_bytes = (sm_kib) * KIB, .bus_width_bits = (bus),                 \
	 .l2_bytes = (l2_kib) * KIB, .clock_khz = (clock), .memory_clock_khz = (memory_clock)},
	GENERATION(60, 56, 2048, 48, 64, 4096, 4096, 1328500, 715000)
	GENERATION(61, 28, 2048, 48, 96, 352, 2816, 1582000, 5505000)
	GENERATION(70, 80, 2048, 96, 96, 4096, 6144, 1530000, 877000)
	GENERATION(75, 40, 1024, 64, 64, 256, 4096, 1590000, 5001000)
	GENERATION(80, 108, 2048, 163, 164, 5120, 40960, 1410000, 1593000)
	GENERATION(86, 84, 1536, 99, 100, 384, 6144, 1800000, 8001000)
	GENERATION(89, 128, 1536, 99, 100, 384, 73728, 2520000, 10501000)
	GENERATION(90, 132, 2048, 227, 228, 5120, 51200, 1980000, 2619000)
	GENERATION(100, 148, 2048, 227, 228, 8192, 129536, 1965000, 3996000)
	GENERATION(120, 170, 1536, 99, 100, 512, 98304, 2407000, 14001000)
#undef GENERATION
};
#define GENERATION_COUNT (sizeof(generations) / sizeof(generations[0]))

static const struct sim_card cards[] = {
#define CARD(id, model, others, memory_mib, cc, sms, l2_kib, context_mib, spread_mib, source)     \
	{.name = (id), .title = (model), .aliases = (others), .memory_bytes = (memory_mib) * SIM_MIB, \
	 .capability = (cc), .multiprocessor_count = (sms), .l2_bytes = (l2_kib) * KIB,               \
	 .context_bytes = (context_mib) * SIM_MIB, .context_spread_bytes = (spread_mib) * SIM_MIB,    \
	 .context_source = (source)},
#include "cards.def"
#undef CARD
};
#define CARD_COUNT (sizeof(cards) / sizeof(cards[0]))

void sim_card_of_capability(struct sim_card *card, int capability)
{
	size_t i = GENERATION_COUNT - 1;

	while (i > 0 && generations[i].capability > capability)
		i--;
	*card = generations[i];
	card->capability = capability;
	card->context_bytes = unmeasured.context_bytes;
	card->conv_forward = unmeasured.conv_forward;
	card->conv_backward_data = unmeasured.conv_backward_data;
	card->conv_backward_filter = unmeasured.conv_backward_filter;
	card->conv_limit_bytes = unmeasured.conv_limit_bytes;
}

bool sim_card_at(struct sim_card *card, size_t index)
{
	if (index >= CARD_COUNT)
		return false;
	const struct sim_card *row = &cards[index];
	sim_card_of_capability(card, row->capability);
	memcpy(card->name, row->name, sizeof(card->name));
	memcpy(card->title, row->title, sizeof(card->title));
	memcpy(card->aliases, row->aliases, sizeof(card->aliases));
	memcpy(card->context_source, row->context_source, sizeof(card->context_source));
	card->memory_bytes = row->memory_bytes;
	card->multiprocessor_count = row->multiprocessor_count;
	card->l2_bytes = row->l2_bytes;
	card->context_bytes = row->context_bytes;
	card->context_spread_bytes = row->context_spread_bytes;
	return true;
}

/* ---- names ---- */

/* Lower case, letters and digits only, without words that say nothing. */
static void simplify(const char *name, size_t length, char *simple, size_t room)
{
	static const char *const empty_words[] = {"nvidia", "geforce", "tesla", "quadro", "rtx"};
	size_t used = 0;

	for (size_t i = 0; i < length && used + 1 < room; i++)
		if (isalnum((unsigned char)name[i]))
			simple[used++] = (char)tolower((unsigned char)name[i]);
	simple[used] = '\0';
	for (size_t i = 0; i < sizeof(empty_words) / sizeof(empty_words[0]); i++) {
		size_t word = strlen(empty_words[i]);
		if (strncmp(simple, empty_words[i], word) == 0)
			memmove(simple, simple + word, strlen(simple + word) + 1);
	}
}

static bool is_called(const char *name, size_t length, const char *wanted)
{
	char simple[64];

	simplify(name, length, simple, sizeof(simple));
	return simple[0] != '\0' && strcmp(simple, wanted) == 0;
}

static bool has_name(const struct sim_card *card, const char *wanted)
{
	if (is_called(card->name, strlen(card->name), wanted) ||
	    is_called(card->title, strlen(card->title), wanted))
		return true;
	for (const char *at = card->aliases; *at != '\0'; at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");
		if (is_called(at, length, wanted))
			return true;
		at += length;
	}
	return false;
}

bool sim_card_find(struct sim_card *card, const char *name)
{
	char wanted[64];

	simplify(name, strlen(name), wanted, sizeof(wanted));
	for (size_t i = 0; sim_card_at(card, i); i++)
		if (has_name(card, wanted))
			return true;
	return false;
}

/* ---- descriptions ---- */

static const struct key {
	const char *name;
	size_t offset;
	enum { KEY_SIZE, KEY_NUMBER, KEY_INT_SIZE, KEY_SHARE } kind; /* a size_t; int: > 0, a size, >= 0 */
} keys[] = {
#define KEY(name, member, kind)  {name, offsetof(struct sim_card, member), KEY_##kind},
#define X(code) {"first_" #code, offsetof(struct sim_card, first_use_bytes[SIM_CODE_##code]), KEY_SIZE},
	KEY("memory", memory_bytes, SIZE)
	KEY("multiprocessors", multiprocessor_count, NUMBER)
	KEY("threads_per_multiprocessor", threads_per_multiprocessor, NUMBER)
	KEY("shared_per_block", shared_per_block_bytes, INT_SIZE)
	KEY("shared_per_multiprocessor", shared_per_multiprocessor_bytes, INT_SIZE)
	KEY("l2", l2_bytes, INT_SIZE)
	KEY("context", context_bytes, SIZE)
	KEY("context_spread", context_spread_bytes, SIZE)
	SIM_CODES(X)
	KEY("conv_forward", conv_forward, SHARE)
	KEY("conv_backward_data", conv_backward_data, SHARE)
	KEY("conv_backward_filter", conv_backward_filter, SHARE)
	KEY("conv_limit", conv_limit_bytes, SIZE)
#undef X
#undef KEY
};
#define KEY_COUNT (sizeof(keys) / sizeof(keys[0]))

static int parse_capability(const char *value)
{
	unsigned major, minor;
	char rest;

	return sscanf(value, "%2u.%1u%c", &major, &minor, &rest) == 2 ? (int)(10 * major + minor) : -1;
}

static int set_number(struct sim_card *card, const struct key *key, const char *value)
{
	char *member = (char *)card + key->offset;
	size_t number;

	if (sim_parse_bytes(value, &number) != 0)
		return -1;
	bool is_plain = value[strspn(value, "0123456789")] == '\0';
	if (key->kind != KEY_SIZE && (number > 0x7fffffff || (number == 0 && key->kind != KEY_SHARE) ||
				      (!is_plain && key->kind != KEY_INT_SIZE)))
		return -1;
	if (key->kind == KEY_SIZE)
		memcpy(member, &number, sizeof(number));
	else
		memcpy(member, &(int){(int)number}, sizeof(int));
	return 0;
}

/* -1: a wrong value, -2: there is no such key. */
static int set(struct sim_card *card, const char *key, const char *value)
{
	if (strcmp(key, "name") == 0) {
		snprintf(card->name, sizeof(card->name), "%s", value);
		snprintf(card->title, sizeof(card->title), "%s", value);
		return *value != '\0' ? 0 : -1;
	}
	if (strcmp(key, "context_source") == 0) {
		snprintf(card->context_source, sizeof(card->context_source), "%s", value);
		return 0;
	}
	if (strcmp(key, "capability") == 0)
		return parse_capability(value) < 0 ? -1 : 0;
	for (size_t i = 0; i < KEY_COUNT; i++)
		if (strcmp(key, keys[i].name) == 0)
			return set_number(card, &keys[i], value);
	return -2;
}

static char *trim(char *text)
{
	text += strspn(text, " \t\r");
	for (size_t end = strlen(text); end > 0 && strchr(" \t\r", text[end - 1]) != NULL; end--)
		text[end - 1] = '\0';
	return text;
}

/* A comment goes to the end of its line, commas or not. */
static char *without_comments(const char *text)
{
	char *copy = strdup(text);

	for (char *at = copy; at != NULL && (at = strchr(at, '#')) != NULL; at++)
		if (at == copy || !isalnum((unsigned char)at[-1]))
			memset(at, ' ', strcspn(at, "\n"));
	return copy;
}

/* Calls `visit` for every "key = value" of a text that is cut up in place. */
static int each_pair(char *text, struct sim_card *card,
		     int (*visit)(struct sim_card *, const char *key, const char *value),
		     char *why, size_t why_bytes)
{
	for (char *next = text, *line; (line = strsep(&next, "\n,")) != NULL;) {
		char *value = strchr(line, '='), *key = trim(line);
		if (*key == '\0')
			continue;
		if (value == NULL) {
			snprintf(why, why_bytes, "'%.60s' is not 'key = value'", key);
			return -1;
		}
		*value = '\0';
		key = trim(key);
		value = trim(value + 1);
		int result = visit(card, key, value);
		if (result == 0)
			continue;
		if (result == -1)
			snprintf(why, why_bytes, "%.40s = %.60s is not a value for it", key, value);
		else
			snprintf(why, why_bytes, "there is no key '%.60s'", key);
		return -1;
	}
	return 0;
}

static int visit_capability(struct sim_card *card, const char *key, const char *value)
{
	if (strcmp(key, "capability") != 0)
		return 0;
	card->capability = parse_capability(value);
	return card->capability < 0 ? -1 : 0;
}

int sim_card_parse(struct sim_card *card, const char *text, char *why, size_t why_bytes)
{
	char *first = without_comments(text), *second = without_comments(text);
	int result = -1;

	card->capability = 0;
	snprintf(why, why_bytes, "there is no memory for it");
	if (first != NULL && second != NULL)
		result = each_pair(first, card, visit_capability, why, why_bytes);
	if (result == 0) {
		int capability = card->capability;
		sim_card_of_capability(card, capability);
		snprintf(card->name, sizeof(card->name), "card");
		snprintf(card->title, sizeof(card->title), NO_TITLE);
		result = each_pair(second, card, set, why, why_bytes);
		if (result == 0 && (capability == 0 || card->memory_bytes == 0)) {
			snprintf(why, why_bytes, "'%s' must be given",
				 capability == 0 ? "capability" : "memory");
			result = -1;
		}
	}
	free(first);
	free(second);
	return result;
}

/* A card whose description has no name is called after its file. */
static void name_after(struct sim_card *card, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash != NULL ? slash + 1 : path;

	if (strcmp(card->title, NO_TITLE) != 0)
		return;
	snprintf(card->title, sizeof(card->title), "%.*s", (int)sizeof(card->title) - 1, name);
	for (char *at = card->title; (at = strpbrk(at, ",#=\r\n")) != NULL;)
		*at = '_'; /* it becomes part of a description */
	snprintf(card->name, sizeof(card->name), "%.*s", (int)sizeof(card->name) - 1, card->title);
}

static int read_file(struct sim_card *card, const char *path, char *why, size_t why_bytes)
{
	char text[FILE_BYTES_MAX + 1];
	FILE *file = fopen(path, "re");

	if (file == NULL) {
		snprintf(why, why_bytes, "it is no card that is known, and no file (%s)", strerror(errno));
		return -1;
	}
	size_t bytes = fread(text, 1, FILE_BYTES_MAX, file);
	text[bytes] = '\0';
	if (ferror(file)) {
		snprintf(why, why_bytes, "it cannot be read: %s", strerror(errno));
		fclose(file);
		return -1;
	}
	fclose(file);
	int result = sim_card_parse(card, text, why, why_bytes);
	if (result == 0)
		name_after(card, path);
	return result;
}

int sim_card_get(struct sim_card *card, const char *setting, char *why, size_t why_bytes)
{
	if (strchr(setting, '=') != NULL)
		return sim_card_parse(card, setting, why, why_bytes);
	if (sim_card_find(card, setting))
		return 0;
	return read_file(card, setting, why, why_bytes);
}

void sim_card_describe(const struct sim_card *card, const char *separator, char *text, size_t bytes)
{
	int used = snprintf(text, bytes, "name = %s%scapability = %d.%d%scontext_source = %s", card->title,
			    separator, card->capability / 10, card->capability % 10, separator,
			    card->context_source);

	for (size_t i = 0; i < KEY_COUNT && used > 0 && (size_t)used < bytes; i++) {
		const char *member = (const char *)card + keys[i].offset;
		size_t number = keys[i].kind == KEY_SIZE ? *(const size_t *)(const void *)member
						: (size_t)*(const int *)(const void *)member;
		used += snprintf(text + used, bytes - (size_t)used, "%s%s = %zu", separator,
				 keys[i].name, number);
	}
}

/* PyTorch 1.13: 666,632,192 bytes against 287,047,680 (pytorch#86509, which does not tell the card). */
size_t sim_card_eager_bytes(void)
{
	const char *loading = getenv("CUDA_MODULE_LOADING");

	return loading != NULL && strcmp(loading, "EAGER") == 0 ? 666632192 - 287047680 : 0;
}

size_t sim_card_context_bytes(const struct sim_card *card)
{
	return card->context_bytes + sim_card_eager_bytes();
}
