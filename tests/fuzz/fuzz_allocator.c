/* Feeds the settings of PyTorch's allocator anything: a line of versions, then lines that are applied one after another,
 * as at run time. What is refused must say why and change nothing; whatever is set, a request becomes a block that holds
 * it, and a segment that holds the block. */
#include "replay.h"

#include "model/allocator_conf.h"

#define LINES_MAX 8

static const uint64_t requests[] = {1, 512, 4097, 1 << 20, (1 << 20) + 1, 10 << 20, 77 << 20, UINT64_C(3) << 30, UINT64_C(1) << 46};

static void check_sizes(const struct allocator_conf *conf)
{
	if (conf->gc_threshold < 0 || conf->memory_fraction < 0)
		abort();
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
		uint64_t block = allocator_round(conf, requests[i]);
		if (block < requests[i] || block % ALLOCATOR_UNIT_BYTES || allocator_segment_bytes(conf, block) < block)
			abort();
	}
}

static void apply(struct allocator_conf *conf, const char *line)
{
	struct allocator_conf before = *conf;
	char words[256];
	struct text reason;
	text_init_fixed(&reason, words, sizeof words);
	if (allocator_conf_parse(conf, line, &reason)) {
		if (!*text_string(&reason) || memcmp(&before, conf, sizeof before))
			abort();
	}
	check_sizes(conf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct allocator_conf conf;
	char *line = line_of(data, bytes, 0);
	allocator_conf_init(&conf, allocator_version_of(line));
	for (unsigned n = 1; line && n <= LINES_MAX; n++) {
		free(line);
		line = line_of(data, bytes, n);
		if (line)
			apply(&conf, line);
	}
	free(line);
	return 0;
}
