/* Definitions of a trace, from its chunks and from the two halves of the window. Owns: that they
 * are added in the order of their making, and bounded in sum. What stands in a chunk and in a half
 * is added twice, which does no harm. */
#include <errno.h>
#include <stdlib.h>

#include "trace/reader_private.h"

struct half {
	struct memtrace_definitions_window head;
	unsigned char *records;
};

/* ---------- chunks ---------- */

/* After a failed write, the definitions that it should have stored are missing: no damage of the
 * file. */
static const char *reason(const struct trace *trace, int error)
{
	if (error == -ENOMEM)
		return "out of memory";
	return trace->live.write_errno ? "definitions before are missing, they could not be written"
				       : "a definition is damaged";
}

static void add(struct trace *trace, const unsigned char *records, size_t bytes, const char *where)
{
	size_t consumed;
	int error = defs_add(trace->defs, records, bytes, &consumed);
	if (error)
		reader_is_torn(trace, "%s, byte %zu: %s", where, consumed, reason(trace, error));
}

void definitions_add_chunk(struct trace *trace, const struct chunk_ref *chunk,
			   const unsigned char *raw)
{
	char where[64];
	struct text text;
	text_init_fixed(&text, where, sizeof where);
	text_printf(&text, "definitions at %llu", (unsigned long long)chunk->offset);
	trace->definitions_left_bytes -= chunk->head.raw_bytes;
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

static void add_half(struct trace *trace, const struct half *half)
{
	if (half->head.state != 0 && !is_in_use(trace, half))
		reader_is_torn(trace, "the definitions window is damaged (its state or length)");
	if (!is_in_use(trace, half))
		return;
	add(trace, half->records, half->head.used_bytes, "definitions window");
}

int definitions_add_window(struct trace *trace)
{
	struct half halves[2] = {{.records = malloc(half_bytes(trace))},
				 {.records = malloc(half_bytes(trace))}};
	bool has_memory = halves[0].records && halves[1].records;
	bool is_good = false;
	for (int i = 0; has_memory && i < COPY_ATTEMPTS && !is_good; i++)
		is_good = copy_halves_once(trace, halves);
	chunks_scan_again(trace); /* a half that was emptied just before is there now */
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
