/* Settings of PyTorch's caching allocator. Owns the table of keys, with the versions that know
 * them, and the arithmetic of sizes. Must never accept a key that PyTorch would refuse. */
#include "model/allocator_conf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#define MIB		     (1ull << 20)
#define MIB_MAX		     (UINT64_MAX / MIB)
#define SMALL_SEGMENT_BYTES  (2 * MIB)
#define LARGE_SEGMENT_BYTES  (20 * MIB)
#define LARGE_REQUEST_BYTES  (10 * MIB) /* from here on a segment is the request, rounded up */
#define SEGMENT_UNIT_BYTES   (2 * MIB)
#define NEWEST		     ((struct allocator_version){999, 0})

static bool is_before(struct allocator_version a, unsigned major, unsigned minor)
{
	return a.major < major || (a.major == major && a.minor < minor);
}

struct allocator_version allocator_version_of(const char *framework)
{
	struct allocator_version version = {0, 0};
	char *end;
	if (!framework || strncmp(framework, "torch ", 6))
		return version;
	version.major = (unsigned)strtoul(framework + 6, &end, 10);
	if (*end == '.')
		version.minor = (unsigned)strtoul(end + 1, NULL, 10);
	return version;
}

void allocator_conf_init(struct allocator_conf *conf, struct allocator_version version)
{
	if (!version.major)
		version = NEWEST;
	*conf = (struct allocator_conf){
		.version = version,
		.breaks_ties_by_age = !is_before(version, 2, 13),
		.full_fraction_is_no_limit = !is_before(version, 2, 15),
		.max_split_bytes = ALLOCATOR_NO_LIMIT,
		.max_non_split_rounding_bytes = LARGE_SEGMENT_BYTES,
		.large_segment_bytes = LARGE_SEGMENT_BYTES,
	};
}

/* ---------- values ---------- */

static int whole_number(const char *value, uint64_t *number)
{
	size_t digits = strspn(value, "0123456789");
	if (!digits || value[digits] || digits > 18)
		return -EINVAL;
	*number = strtoull(value, NULL, 10);
	return 0;
}

/* Digits and a point: no locale, no sign, no exponent. */
static int fraction(const char *value, double *number)
{
	double unit = 1;
	const char *at = value;
	for (*number = 0; *at >= '0' && *at <= '9'; at++)
		*number = *number * 10 + (*at - '0');
	if (*at == '.')
		for (at++; *at >= '0' && *at <= '9'; at++)
			*number += (unit /= 10) * (*at - '0');
	return *at || at == value || !strcmp(value, ".") ? -EINVAL : 0;
}

static int truth(const char *value, bool *is_true)
{
	*is_true = !strcmp(value, "True");
	return *is_true || !strcmp(value, "False") ? 0 : -EINVAL;
}

static int mebibytes(const char *value, uint64_t least, uint64_t *bytes)
{
	uint64_t number;
	if (whole_number(value, &number) || number < least)
		return -EINVAL;
	*bytes = (number < MIB_MAX ? number : MIB_MAX) * MIB;
	return 0;
}

/* ---------- keys ---------- */

static int set_backend(struct allocator_conf *conf, const char *value)
{
	conf->is_async = !strcmp(value, "cudaMallocAsync");
	return conf->is_async || !strcmp(value, "native") ? 0 : -EINVAL;
}

static int set_expandable(struct allocator_conf *conf, const char *value)
{
	return truth(value, &conf->is_expandable);
}

static int set_max_split(struct allocator_conf *conf, const char *value)
{
	return mebibytes(value, 21, &conf->max_split_bytes);
}

static int set_non_split_rounding(struct allocator_conf *conf, const char *value)
{
	return mebibytes(value, 20, &conf->max_non_split_rounding_bytes);
}

static int set_large_segment(struct allocator_conf *conf, const char *value)
{
	if (mebibytes(value, 11, &conf->large_segment_bytes))
		return -EINVAL;
	conf->max_non_split_rounding_bytes = conf->large_segment_bytes;
	return 0;
}

static int set_gc_threshold(struct allocator_conf *conf, const char *value)
{
	if (fraction(value, &conf->gc_threshold))
		return -EINVAL;
	return conf->gc_threshold > 0 && conf->gc_threshold < 1 ? 0 : -EINVAL;
}

static int set_memory_fraction(struct allocator_conf *conf, const char *value)
{
	if (fraction(value, &conf->memory_fraction))
		return -EINVAL;
	return conf->memory_fraction >= 0 && conf->memory_fraction <= 1 ? 0 : -EINVAL;
}

static bool is_division(uint64_t number)
{
	return !(number & (number - 1)); /* 0: no rounding */
}

static unsigned interval_of(uint64_t number)
{
	unsigned log2 = number ? 63 - (unsigned)__builtin_clzll(number) : 0;
	return log2 < ALLOCATOR_DIVISIONS ? log2 : ALLOCATOR_DIVISIONS - 1;
}

static void fill(uint64_t *divisions, unsigned from, unsigned to, uint64_t value)
{
	for (unsigned i = from; i < to; i++)
		divisions[i] = value;
}

/* "256:1,512:2,>:8": by sizes in MiB. What is below the first is as the first, what lies between two
 * keeps what it had; before 2.9 the rest began with the last one named. `list` is cut into pieces. */
static int set_division_list(struct allocator_conf *conf, char *list)
{
	char *save = NULL;
	unsigned last = 0;
	bool is_first = true, takes_last = is_before(conf->version, 2, 9);
	for (char *pair = strtok_r(list, ",", &save); pair; pair = strtok_r(NULL, ",", &save)) {
		uint64_t boundary = 0, value;
		char *colon = strchr(pair, ':');
		bool is_rest = *pair == '>';
		if (!colon || whole_number(colon + 1, &value) || !is_division(value))
			return -EINVAL;
		*colon = 0;
		if (is_rest ? colon != pair + 1
			    : whole_number(pair, &boundary) || !is_division(boundary))
			return -EINVAL;
		if (is_rest) {
			fill(conf->divisions, last + !takes_last, ALLOCATOR_DIVISIONS, value);
			continue;
		}
		last = interval_of(boundary);
		fill(conf->divisions, is_first ? 0 : last, last + 1, value);
		is_first = false;
	}
	return 0;
}

static int set_divisions(struct allocator_conf *conf, const char *value)
{
	char list[512];
	size_t length = strlen(value);
	uint64_t number;
	if (*value != '[') {
		if (whole_number(value, &number) || !is_division(number))
			return -EINVAL;
		fill(conf->divisions, 0, ALLOCATOR_DIVISIONS, number);
		return 0;
	}
	if (length < 2 || length - 2 >= sizeof list || value[length - 1] != ']')
		return -EINVAL;
	memcpy(list, value + 1, length - 2);
	list[length - 2] = 0;
	return set_division_list(conf, list);
}

/* What has no influence on device memory. */
static int set_nothing(struct allocator_conf *conf, const char *value)
{
	(void)conf;
	return *value ? 0 : -EINVAL;
}

static const struct key {
	const char *name;
	unsigned since_minor; /* of 2.x; 0: all that are modelled */
	int (*set)(struct allocator_conf *, const char *value);
	const char *wants;
} keys[] = {
	{"backend", 0, set_backend, "native or cudaMallocAsync"},
	{"expandable_segments", 0, set_expandable, "True or False"},
	{"max_split_size_mb", 0, set_max_split, "a whole number above 20"},
	{"max_non_split_rounding_mb", 0, set_non_split_rounding, "a whole number from 20 on"},
	{"roundup_power2_divisions", 0, set_divisions,
	 "a power of two, or [256:1,512:2,>:4] by sizes in MiB"},
	{"garbage_collection_threshold", 0, set_gc_threshold, "a number between 0 and 1"},
	{"per_process_memory_fraction", 0, set_memory_fraction, "a number from 0 to 1"},
	{"large_segment_size_mb", 12, set_large_segment, "a whole number above 10"},
	{"expandable_segments_reserve", 15, set_nothing, "a value"},
	{"expandable_segments_reserve_by_class", 15, set_nothing, "a value"},
	{"throw_on_cudamalloc_oom", 12, set_nothing, "a value"},
	{"graph_capture_record_stream_reuse", 9, set_nothing, "a value"},
	{"release_lock_on_cudamalloc", 0, set_nothing, "a value"},
	{"release_lock_on_hipmalloc", 0, set_nothing, "a value"},
	{"roundup_bypass_threshold_mb", 0, set_nothing, "a value"},
	{"pinned_use_cuda_host_register", 0, set_nothing, "a value"},
	{"pinned_use_hip_host_register", 0, set_nothing, "a value"},
	{"pinned_num_register_threads", 0, set_nothing, "a value"},
	{"pinned_use_background_threads", 0, set_nothing, "a value"},
	{"pinned_reserve_segment_size_mb", 0, set_nothing, "a value"},
	{"pinned_max_round_threshold_mb", 0, set_nothing, "a value"},
	{"pinned_max_cached_size_mb", 0, set_nothing, "a value"},
	{0},
};

static const struct key *find_key(const char *name)
{
	for (const struct key *key = keys; key->name; key++)
		if (!strcmp(key->name, name))
			return key;
	return NULL;
}

static int set_pair(struct allocator_conf *conf, const char *name, const char *value,
		    struct text *reason)
{
	const struct key *key = find_key(name);
	if (!key) {
		text_printf(reason, "there is no allocator setting \"%s\"", name);
		return -EINVAL;
	}
	if (is_before(conf->version, 2, key->since_minor)) {
		text_printf(reason, "PyTorch %u.%u does not know %s: it came with 2.%u",
			    conf->version.major, conf->version.minor, name, key->since_minor);
		return -EINVAL;
	}
	if (!value || key->set(conf, value)) {
		text_printf(reason, "%s wants %s, not \"%s\"", name, key->wants,
			    value ? value : "");
		return -EINVAL;
	}
	return 0;
}

/* The end of a pair: the next comma outside brackets. */
static char *pair_end(char *pair)
{
	bool is_in_list = false;
	for (; *pair && (is_in_list || *pair != ','); pair++)
		is_in_list = *pair == '[' || (is_in_list && *pair != ']');
	return pair;
}

static void copy_without_spaces(char *to, const char *from)
{
	for (; *from; from++)
		if (*from != ' ')
			*to++ = *from;
	*to = 0;
}

/* Before 2.9 these three began anew with every text. */
static void forget_what_was_set(struct allocator_conf *conf)
{
	conf->max_split_bytes = ALLOCATOR_NO_LIMIT;
	conf->gc_threshold = 0;
	fill(conf->divisions, 0, ALLOCATOR_DIVISIONS, 0);
}

int allocator_conf_parse(struct allocator_conf *conf, const char *text, struct text *reason)
{
	char pairs[2048];
	struct allocator_conf changed = *conf;
	if (strlen(text) >= sizeof pairs) {
		text_add(reason, "the setting is too long");
		return -EINVAL;
	}
	copy_without_spaces(pairs, text);
	if (is_before(conf->version, 2, 9))
		forget_what_was_set(&changed);
	for (char *pair = pairs, *end; *pair; pair = end) {
		end = pair_end(pair);
		end += *end ? (*end = 0, 1) : 0;
		char *colon = strchr(pair, ':');
		if (colon)
			*colon = 0;
		if (*pair && set_pair(&changed, pair, colon ? colon + 1 : NULL, reason))
			return -EINVAL;
	}
	*conf = changed;
	return 0;
}

/* ---------- sizes ---------- */

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

/* Up to the next of `divisions` equal parts of the interval between two powers of two. */
static uint64_t round_to_division(uint64_t bytes, uint64_t divisions)
{
	uint64_t power = 1ull << (63 - __builtin_clzll(bytes));
	uint64_t part = power / divisions;
	if (bytes == power)
		return bytes;
	return part ? round_up(bytes, part) : power << 1;
}

uint64_t allocator_round(const struct allocator_conf *conf, uint64_t asked_bytes)
{
	uint64_t divisions = conf->divisions[interval_of(asked_bytes / MIB)];
	if (asked_bytes < ALLOCATOR_UNIT_BYTES)
		return ALLOCATOR_UNIT_BYTES;
	if (divisions > 1 && asked_bytes > ALLOCATOR_UNIT_BYTES * divisions)
		return round_to_division(asked_bytes, divisions);
	return round_up(asked_bytes, ALLOCATOR_UNIT_BYTES);
}

uint64_t allocator_segment_bytes(const struct allocator_conf *conf, uint64_t block_bytes)
{
	if (block_bytes <= ALLOCATOR_SMALL_BYTES)
		return SMALL_SEGMENT_BYTES;
	if (block_bytes < LARGE_REQUEST_BYTES)
		return conf->large_segment_bytes;
	return round_up(block_bytes, SEGMENT_UNIT_BYTES);
}

bool allocator_refuses_piece(const struct allocator_conf *conf, uint64_t block_bytes, uint64_t piece_bytes)
{
	return block_bytes >= conf->max_split_bytes
		       ? piece_bytes - block_bytes >= conf->max_non_split_rounding_bytes
		       : piece_bytes >= conf->max_split_bytes;
}

/* ---------- comparison ---------- */

bool allocator_conf_has_fraction(const struct allocator_conf *conf)
{
	return conf->memory_fraction > 0 &&
	       !(conf->full_fraction_is_no_limit && conf->memory_fraction >= 1);
}

void allocator_conf_simplify(struct allocator_conf *conf, uint64_t largest_bytes)
{
	uint64_t block_bytes = allocator_round(conf, largest_bytes);
	uint64_t segment_bytes =
		bytes_larger(conf->large_segment_bytes, allocator_segment_bytes(conf, block_bytes));
	if (!conf->is_expandable && segment_bytes < conf->max_split_bytes)
		conf->max_split_bytes = ALLOCATOR_NO_LIMIT;
	if (conf->max_split_bytes == ALLOCATOR_NO_LIMIT)
		conf->max_non_split_rounding_bytes = LARGE_SEGMENT_BYTES;
	if (allocator_conf_has_fraction(conf))
		return;
	conf->gc_threshold = 0;
	conf->memory_fraction = 0;
}

bool allocator_conf_is_same(const struct allocator_conf *a, const struct allocator_conf *b)
{
	return a->is_expandable == b->is_expandable && a->max_split_bytes == b->max_split_bytes &&
	       a->max_non_split_rounding_bytes == b->max_non_split_rounding_bytes &&
	       a->large_segment_bytes == b->large_segment_bytes &&
	       a->breaks_ties_by_age == b->breaks_ties_by_age &&
	       a->full_fraction_is_no_limit == b->full_fraction_is_no_limit &&
	       !(a->gc_threshold < b->gc_threshold) && !(a->gc_threshold > b->gc_threshold) &&
	       !(a->memory_fraction < b->memory_fraction) &&
	       !(a->memory_fraction > b->memory_fraction) &&
	       !memcmp(a->divisions, b->divisions, sizeof a->divisions);
}
