/* The row code of events windows and chunks ("Event rows" in <memtrace/trace.h>): encoder and decoder. Both
 * hold the state of one window or chunk and are reset with it. No I/O, no allocation. Not thread-safe. */
#ifndef MT_TRACE_ROWS_H
#define MT_TRACE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"

#define ROWS_HEADS_MAX 1024     /* a window with more distinct heads is closed early */
#define ROWS_ROW_BYTES_MAX 112  /* no row is longer */
#define ROWS_TIME_BYTES_MAX 10

/* What rows of a kind share: it recurs, so it is written once and then named by its index. */
struct row_head {
	uint64_t stream;
	uint32_t thread;
	int32_t status;
	uint8_t what, space, device, flags;
};

struct rows_encoder {
	uint64_t previous_address;
	uint64_t previous_time; /* shifted */
	uint64_t next_sequence; /* of the row to come, when nothing is skipped */
	uint32_t head_count;
	struct row_head heads[ROWS_HEADS_MAX];
	uint16_t buckets[2 * ROWS_HEADS_MAX]; /* head index + 1 */
};

void rows_encoder_reset(struct rows_encoder *, uint64_t first_sequence, uint64_t base_time_ns);
/* True when one more event may not fit the heads table. */
bool rows_encoder_is_full(const struct rows_encoder *);
/* Appends one event; *row needs ROWS_ROW_BYTES_MAX, *time ROWS_TIME_BYTES_MAX bytes of room; both are moved. */
void rows_encode(struct rows_encoder *, const struct event *, uint8_t **row, uint8_t **time);

struct rows_decoder {
	const uint8_t *row, *rows_end;
	const uint8_t *time, *times_end;
	uint64_t previous_address;
	uint64_t previous_time;
	uint64_t next_sequence;
	uint32_t head_count;
	struct row_head heads[ROWS_HEADS_MAX];
};

void rows_decoder_init(struct rows_decoder *, const uint8_t *rows, size_t rows_bytes, const uint8_t *times,
		       size_t times_bytes, uint64_t first_sequence, uint64_t base_time_ns);
/* 1 and *ev, 0 at the end of the rows, -EINVAL when the code is broken. */
int rows_decode(struct rows_decoder *, struct event *ev);

#endif
