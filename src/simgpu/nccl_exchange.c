/*
 * One work with other ranks: reads what it sends, says it in the communicator's room, hears what
 * the others said there, and finds out who will never say anything. Owns no state. A room is failed
 * here: for a call that does not match, for a rank that is gone, and after SIMGPU_NCCL_TIMEOUT
 * seconds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim.h"
#include "sim_nccl.h"

#define EAGER_BYTES (512 * SIM_KIB) /* a send up to this size needs no receiver to end */
#define TIMEOUT_S   1800

uint64_t nccl_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static void describe(const struct nccl_message *message, char *text, size_t bytes)
{
	static const char *const kinds[] = {"all_reduce",     "reduce", "broadcast", "all_gather",
					    "reduce_scatter", "gather", "scatter",   "all_to_all",
					    "split",          "send",   "receive"};
	static const char *const types[] = {"int8",    "uint8",    "int32",   "uint32",
					    "int64",   "uint64",   "float16", "float32",
					    "float64", "bfloat16", "float8",  "float8"};

	snprintf(text, bytes, "%s of %llu %s", kinds[message->kind],
		 (unsigned long long)message->count, types[message->type]);
}

/* ---- saying ---- */

static bool is_zeros(const char *contents, size_t bytes)
{
	return contents[0] == 0 && memcmp(contents, contents + 1, bytes - 1) == 0;
}

static size_t most_bytes(const struct nccl_message *message)
{
	return nccl_type_bytes(message->type) == 1 ? NCCL_CONTENTS_BYTES : NCCL_NUMBERS_BYTES;
}

void nccl_read(struct nccl_work *work)
{
	const struct sim_gate_table *gates = nccl_gates();
	struct nccl_message *message = &work->message;
	size_t bytes = work->send_bytes;

	work->is_read = true;
	if (gates == NULL || bytes == 0 || bytes > most_bytes(message))
		return;
	work->contents = malloc(bytes);
	if (work->contents == NULL || !gates->read((uintptr_t)work->send, work->contents, bytes) ||
	    is_zeros(work->contents, bytes))
		return;
	message->contents_bytes = bytes;
	if (work->factor != 1)
		nccl_scale(work->contents, bytes / nccl_type_bytes(message->type), message->type,
			   work->factor);
}

bool nccl_say(struct nccl_work *work)
{
	if (work->message.kind == NCCL_RECEIVE)
		return true;
	if (!work->is_read || !nccl_room_say(work->comm->room, work->lane, work->number,
					     &work->message, work->contents))
		return false;
	free(work->contents);
	work->contents = NULL;
	return true;
}

/* ---- hearing ---- */

static bool is_between_two(const struct nccl_work *work)
{
	return work->message.kind >= NCCL_SEND;
}

static int lane_of(const struct nccl_work *work, int rank)
{
	return is_between_two(work) ? work->lane : rank;
}

/* Ranks whose messages it needs: `first` to `end`. */
static void needed(const struct nccl_work *work, int *first, int *end)
{
	*first = is_between_two(work) ? work->message.peer : 0;
	*end = is_between_two(work) ? *first + 1 : work->comm->rank_count;
}

static bool is_alike(const struct nccl_work *work, const struct nccl_message *other)
{
	const struct nccl_message *own = &work->message;

	if (is_between_two(work)) /* sizes alone must be the same */
		return own->count * nccl_type_bytes(own->type) ==
		       other->count * nccl_type_bytes(other->type);
	return own->kind == other->kind && own->type == other->type &&
	       own->operation == other->operation && own->peer == other->peer &&
	       own->count == other->count;
}

static void complain(const struct nccl_work *work, int rank, const struct nccl_message *other)
{
	char own_text[64], other_text[64];

	describe(&work->message, own_text, sizeof(own_text));
	describe(other, other_text, sizeof(other_text));
	nccl_room_fail(work->comm->room, NCCL_INVALID_USAGE,
		       "NCCL: call %llu of a communicator of %d is %s on rank %d, but %s on rank %d%s",
		       (unsigned long long)work->number + 1, work->comm->rank_count, own_text,
		       work->comm->rank, other_text, rank,
		       is_between_two(work) ? "" : " (or another root or operation)");
}

/* All that it needs was said: parts of it. */
static bool hear(const struct nccl_work *work, const void **parts)
{
	struct nccl_room *room = work->comm->room;
	int first, end;

	needed(work, &first, &end);
	for (int rank = first; rank < end; rank++) {
		const struct nccl_message *other = nccl_room_hear(
			room, lane_of(work, rank), work->number, &parts[rank - first]);
		if (other == NULL)
			return false;
		if (is_alike(work, other))
			continue;
		complain(work, rank, other);
		return false;
	}
	return true;
}

static void take(const struct nccl_work *work)
{
	struct nccl_room *room = work->comm->room;

	if (is_between_two(work))
		nccl_room_take(room, work->lane, work->number + 1);
	else
		nccl_room_take_all(room, work->comm->rank, work->number + 1);
}

static bool end_send(const struct nccl_work *work)
{
	return work->send_bytes <= EAGER_BYTES ||
	       nccl_room_is_taken(work->comm->room, work->lane, work->number + 1);
}

bool nccl_end(const struct nccl_work *work)
{
	const void *parts[work->comm->rank_count];

	if (work->message.kind == NCCL_SEND)
		return end_send(work);
	if (!hear(work, parts))
		return false;
	nccl_deliver(work, parts);
	take(work);
	return true;
}

/* ---- those who do not come ---- */

static bool has_said(const struct nccl_work *work, int rank)
{
	const void *contents;
	struct nccl_room *room = work->comm->room;

	if (work->message.kind == NCCL_SEND)
		return nccl_room_is_taken(room, work->lane, work->number + 1);
	return nccl_room_hear(room, lane_of(work, rank), work->number, &contents) != NULL;
}

static void fail_for(const struct nccl_work *work, int rank, bool is_gone, long waited_s)
{
	char text[64];
	const char *format =
		is_gone ? "NCCL: rank %d of %d is gone and never came to call %llu, %s, in "
			  "which rank %d waits for it"
			: "NCCL: rank %d of %d did not come to call %llu, %s, in which rank %d "
			  "waited for it %ld s (SIMGPU_NCCL_TIMEOUT)";

	describe(&work->message, text, sizeof(text));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	nccl_room_fail(work->comm->room, NCCL_REMOTE_ERROR, format, rank, work->comm->rank_count,
		       (unsigned long long)work->number + 1, text, work->comm->rank, waited_s);
#pragma GCC diagnostic pop
}

long nccl_timeout_s(void)
{
	return sim_env_number("SIMGPU_NCCL_TIMEOUT", TIMEOUT_S);
}

void nccl_check(const struct nccl_work *work)
{
	long waited_s = (long)((nccl_clock_ns() - work->began_ns) / 1000000000U);
	bool is_late = waited_s >= nccl_timeout_s();
	int first, end;

	needed(work, &first, &end);
	for (int rank = first; rank < end; rank++) {
		/* looked at in this order: who says his last word and goes is not missed */
		bool is_gone = nccl_room_is_gone(work->comm->room, rank);
		if ((is_gone || is_late) && !has_said(work, rank)) {
			fail_for(work, rank, is_gone, waited_s);
			return;
		}
	}
}
