/* Definitions of a trace, from its chunks and from the two halves of the window. Owns: that they
 * are added in the order of their making, each once, and bounded in sum. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "trace/reader_private.h"

struct half {
	struct memtrace_definitions_window head;
	unsigned char *records;
};

/* ---------- chunks ---------- */

static void add(struct trace *trace, const unsigned char *records, size_t bytes, const char *where)
{
	size_t consumed;
	int error = defs_add(trace->defs, records, bytes, &consumed);
	if (error)
		reader_is_torn(trace, "%s: %s after %zu bytes", where,
			       error == -ENOMEM ? "out of memory" : "a definition is damaged",
			       consumed);
}

void definitions_add_chunk(struct trace *trace, const struct chunk_ref *chunk,
			   const unsigned char *raw)
{
	char where[64];
	struct text text;
	text_init_fixed(&text, where, sizeof where);
	text_printf(&text, "definitions at %llu", (unsigned long long)chunk->offset);
	trace->definitions_left_bytes -= chunk->head.raw_bytes;
	trace->known[trace->known_count++ % BLOCKS_KNOWN] = (struct known_block){
		.bytes = chunk->head.raw_bytes,
		.checksum = memtrace_checksum(0, raw, chunk->head.raw_bytes),
	};
	add(trace, raw, chunk->head.raw_bytes, text_string(&text));
}

/* ---------- window ---------- */

static uint64_t half_bytes(const struct trace *trace)
{
	return trace->header.definitions_bytes / 2;
}

static void read_head(const struct trace *trace, unsigned which,
		      struct memtrace_definitions_window *head)
{
	file_read(trace, head, sizeof *head,
		  trace->header.definitions_offset + which * half_bytes(trace));
}

static bool is_in_use(const struct trace *trace, const struct half *half)
{
	return (half->head.state == 1 || half->head.state == 2) &&
	       half->head.used_bytes <= half_bytes(trace) - sizeof half->head;
}

static void copy_half(const struct trace *trace, unsigned which, struct half *half)
{
	read_head(trace, which, &half->head);
	uint64_t offset =
		trace->header.definitions_offset + which * half_bytes(trace) + sizeof half->head;
	if (is_in_use(trace, half))
		file_read(trace, half->records, half->head.used_bytes, offset);
}

/* The process fills the newer half and re-opens the older one. If the older one is still the same
 * afterwards and the newer one has only grown, nothing is missing between them. */
static bool copy_halves_once(const struct trace *trace, struct half halves[2])
{
	struct memtrace_definitions_window after;
	copy_half(trace, 0, &halves[0]);
	copy_half(trace, 1, &halves[1]);
	unsigned newer = halves[1].head.order > halves[0].head.order;
	read_head(trace, newer, &after);
	bool has_grown = after.order == halves[newer].head.order &&
			 after.used_bytes >= halves[newer].head.used_bytes;
	read_head(trace, !newer, &after);
	return has_grown && after.order == halves[!newer].head.order &&
	       after.used_bytes == halves[!newer].head.used_bytes;
}

/* How many bytes of a half have been read in a chunk already. Ids would tell for most kinds, but a
 * fact that is read twice would be there twice. */
static size_t known_bytes(const struct trace *trace, const struct half *half)
{
	size_t count = trace->known_count < BLOCKS_KNOWN ? trace->known_count : BLOCKS_KNOWN;
	for (size_t i = 0; i < count; i++) {
		const struct known_block *known = &trace->known[i];
		if (known->bytes && known->bytes <= half->head.used_bytes &&
		    memtrace_checksum(0, half->records, known->bytes) == known->checksum)
			return known->bytes;
	}
	return 0;
}

static void add_half(struct trace *trace, const struct half *half)
{
	if (half->head.state != 0 && !is_in_use(trace, half))
		reader_is_torn(trace, "the definitions window is damaged (its state or length)");
	if (!is_in_use(trace, half))
		return;
	size_t known = known_bytes(trace, half);
	add(trace, half->records + known, half->head.used_bytes - known, "definitions window");
}

int definitions_add_window(struct trace *trace)
{
	struct half halves[2] = {{.records = malloc(half_bytes(trace))},
				 {.records = malloc(half_bytes(trace))}};
	bool has_memory = halves[0].records && halves[1].records;
	bool is_good = false;
	for (int i = 0; has_memory && i < COPY_ATTEMPTS && !is_good; i++)
		is_good = copy_halves_once(trace, halves);
	chunks_scan(trace, false); /* a half that was emptied just before is there now */
	if (is_good) {
		unsigned older = halves[0].head.order > halves[1].head.order;
		add_half(trace, &halves[older]);
		add_half(trace, &halves[!older]);
	} else if (has_memory) {
		reader_is_torn(trace,
			       "the definitions window changed faster than it could be read");
	}
	free(halves[0].records);
	free(halves[1].records);
	return has_memory ? 0 : -ENOMEM;
}
