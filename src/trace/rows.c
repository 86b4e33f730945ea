/* Owns the compact code of events: nothing here knows of files, windows or chunks. The point of the shape is
 * what zstd makes of it: in a training loop the rows of one step repeat to the byte, because addresses are
 * differences and everything rare is in the head; only the times differ, so they have a column of their own. */
#include "trace/rows.h"

#include <errno.h>
#include <string.h>

#include "base/varint.h"

#define GRAIN 512 /* what GPU addresses and sizes are nearly always a multiple of */

void rows_encoder_reset(struct rows_encoder *encoder, uint64_t first_sequence, uint64_t base_time_ns)
{
	encoder->previous_address = 0;
	encoder->previous_time = base_time_ns >> MEMTRACE_TIME_SHIFT;
	encoder->next_sequence = first_sequence;
	encoder->head_count = 0;
	memset(encoder->buckets, 0, sizeof encoder->buckets);
}

bool rows_encoder_is_full(const struct rows_encoder *encoder)
{
	return encoder->head_count == ROWS_HEADS_MAX;
}

static struct row_head head_of(const struct event *ev, bool skipped)
{
	return (struct row_head){ .stream = ev->stream,
				  .thread = ev->thread,
				  .status = ev->status,
				  .what = (uint8_t)ev->what,
				  .space = (uint8_t)ev->space,
				  .device = ev->device,
				  .flags = (uint8_t)(ev->flags | (skipped ? MEMTRACE_SKIPPED : 0)) };
}

static bool head_equals(const struct row_head *a, const struct row_head *b)
{
	return a->stream == b->stream && a->thread == b->thread && a->status == b->status && a->what == b->what &&
	       a->space == b->space && a->device == b->device && a->flags == b->flags;
}

static uint32_t head_hash(const struct row_head *head)
{
	uint64_t h = head->stream ^ (uint64_t)head->thread << 32 ^ (uint32_t)head->status;
	h = (h ^ head->what ^ (uint64_t)head->space << 8 ^ (uint64_t)head->device << 16 ^ (uint64_t)head->flags << 24) *
	    0x9E3779B97F4A7C15u;
	return (uint32_t)(h >> 40);
}

static uint8_t *head_put(uint8_t *at, const struct row_head *head)
{
	*at++ = head->what;
	*at++ = head->space;
	*at++ = head->device;
	*at++ = head->flags;
	at = varint_put(at, head->thread);
	at = varint_put(at, head->stream);
	return varint_put(at, zigzag(head->status));
}

/* The index of the head; a new one is written out after its index. */
static uint8_t *encode_head(struct rows_encoder *encoder, const struct row_head *head, uint8_t *at)
{
	uint32_t mask = 2 * ROWS_HEADS_MAX - 1;
	uint32_t i = head_hash(head) & mask;
	for (; encoder->buckets[i]; i = (i + 1) & mask) {
		uint32_t index = encoder->buckets[i] - 1u;
		if (head_equals(&encoder->heads[index], head))
			return varint_put(at, index);
	}
	at = varint_put(at, encoder->head_count);
	encoder->heads[encoder->head_count++] = *head;
	encoder->buckets[i] = (uint16_t)encoder->head_count;
	return head_put(at, head);
}

static uint8_t *encode_address(struct rows_encoder *encoder, uint64_t address, uint8_t *at)
{
	int64_t distance = (int64_t)(address - encoder->previous_address);
	encoder->previous_address = address;
	if (distance % GRAIN == 0)
		return varint_put(at, zigzag(distance / GRAIN) << 1);
	if (zigzag(distance) >> 63)
		return varint_put(varint_put(at, 1), address);
	return varint_put(at, zigzag(distance) << 1 | 1);
}

static uint8_t *encode_bytes(uint64_t bytes, uint8_t *at)
{
	if (bytes % GRAIN == 0)
		return varint_put(at, bytes / GRAIN << 1);
	if (bytes >> 63)
		return varint_put(varint_put(at, 1), bytes);
	return varint_put(at, bytes << 1 | 1);
}

static uint8_t *encode_extra(const struct event *ev, uint8_t *at)
{
	if (ev->what == MEMTRACE_BLOCK_FREE)
		return at;
	return varint_put(at, ev->extra ? zigzag((int64_t)(ev->bytes - ev->extra)) + 1 : 0);
}

void rows_encode(struct rows_encoder *encoder, const struct event *ev, uint8_t **row, uint8_t **time)
{
	bool skipped = ev->sequence != encoder->next_sequence;
	struct row_head head = head_of(ev, skipped);
	uint8_t *at = encode_head(encoder, &head, *row);
	if (skipped)
		at = varint_put(at, ev->sequence - encoder->next_sequence);
	at = varint_put(at, ev->stack);
	at = encode_address(encoder, ev->address, at);
	at = encode_bytes(ev->bytes, at);
	*row = encode_extra(ev, at);
	uint64_t now = ev->time_ns >> MEMTRACE_TIME_SHIFT;
	*time = varint_put(*time, zigzag((int64_t)(now - encoder->previous_time)));
	encoder->previous_time = now;
	encoder->next_sequence = ev->sequence + 1;
}

void rows_decoder_init(struct rows_decoder *decoder, const uint8_t *rows, size_t rows_bytes, const uint8_t *times,
		       size_t times_bytes, uint64_t first_sequence, uint64_t base_time_ns)
{
	decoder->row = rows;
	decoder->rows_end = rows + rows_bytes;
	decoder->time = times;
	decoder->times_end = times + times_bytes;
	decoder->previous_address = 0;
	decoder->previous_time = base_time_ns >> MEMTRACE_TIME_SHIFT;
	decoder->next_sequence = first_sequence;
	decoder->head_count = 0;
}

/* Takes the next number of a column; on a broken one *at becomes NULL and stays so. */
static uint64_t take(const uint8_t **at, const uint8_t *end)
{
	uint64_t n = 0;
	if (*at)
		*at = varint_get(*at, end, &n);
	return n;
}

static const uint8_t *decode_new_head(struct rows_decoder *decoder, const uint8_t *at)
{
	const uint8_t *end = decoder->rows_end;
	if (decoder->head_count == ROWS_HEADS_MAX || end - at < 4)
		return NULL;
	struct row_head *head = &decoder->heads[decoder->head_count++];
	head->what = at[0];
	head->space = at[1];
	head->device = at[2];
	head->flags = at[3];
	at += 4;
	head->thread = (uint32_t)take(&at, end);
	head->stream = take(&at, end);
	head->status = (int32_t)unzigzag(take(&at, end));
	return at;
}

static const uint8_t *decode_head(struct rows_decoder *decoder, struct event *ev, const uint8_t *at)
{
	uint64_t index = take(&at, decoder->rows_end);
	if (!at || index > decoder->head_count)
		return NULL;
	if (index == decoder->head_count && !(at = decode_new_head(decoder, at)))
		return NULL;
	const struct row_head *head = &decoder->heads[index];
	ev->what = (enum memtrace_what)head->what;
	ev->space = (enum memtrace_space)head->space;
	ev->device = head->device;
	ev->flags = head->flags & (uint8_t)~MEMTRACE_SKIPPED;
	ev->thread = head->thread;
	ev->stream = head->stream;
	ev->status = head->status;
	ev->sequence = decoder->next_sequence;
	if (head->flags & MEMTRACE_SKIPPED)
		ev->sequence += take(&at, decoder->rows_end);
	return at;
}

static uint64_t decode_address(struct rows_decoder *decoder, const uint8_t **at)
{
	uint64_t code = take(at, decoder->rows_end);
	if (code == 1)
		return take(at, decoder->rows_end);
	int64_t distance = unzigzag(code >> 1);
	uint64_t step = code & 1 ? (uint64_t)distance : (uint64_t)distance * GRAIN;
	return decoder->previous_address + step;
}

static uint64_t decode_bytes(struct rows_decoder *decoder, const uint8_t **at)
{
	uint64_t code = take(at, decoder->rows_end);
	if (code == 1)
		return take(at, decoder->rows_end);
	return code & 1 ? code >> 1 : (code >> 1) * GRAIN;
}

static uint64_t decode_extra(struct rows_decoder *decoder, const struct event *ev, const uint8_t **at)
{
	if (ev->what == MEMTRACE_BLOCK_FREE)
		return 0;
	uint64_t code = take(at, decoder->rows_end);
	return code ? ev->bytes - (uint64_t)unzigzag(code - 1) : 0;
}

int rows_decode(struct rows_decoder *decoder, struct event *ev)
{
	if (decoder->row == decoder->rows_end)
		return 0;
	const uint8_t *at = decode_head(decoder, ev, decoder->row);
	if (!at)
		return -EINVAL;
	ev->stack = (uint32_t)take(&at, decoder->rows_end);
	ev->address = decode_address(decoder, &at);
	ev->bytes = decode_bytes(decoder, &at);
	ev->extra = decode_extra(decoder, ev, &at);
	uint64_t time = decoder->previous_time + (uint64_t)unzigzag(take(&decoder->time, decoder->times_end));
	if (!at || !decoder->time)
		return -EINVAL;
	ev->time_ns = time << MEMTRACE_TIME_SHIFT;
	decoder->row = at;
	decoder->previous_address = ev->address;
	decoder->previous_time = time;
	decoder->next_sequence = ev->sequence + 1;
	return 1;
}
