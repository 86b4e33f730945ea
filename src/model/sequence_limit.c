/* A limit that the program set itself, inferred: nothing tells its size. PyTorch gives up without asking the driver
 * when a request would take it above its memory fraction. Owns that inference, and which releases are retries
 * under the limit. Must never take an OOM of the driver for one. */
#include "model/allocator_conf.h"
#include "model/sequence_private.h"

static bool is_of_torch(const struct sequence *sequence, const struct op *op)
{
	return sequence->regions[op->region].kind != REGION_RANGE &&
	       sequence_is_torch(sequence, op->region);
}

/* The least that is above the limit: what was reserved when PyTorch gave up, with the segment that it wanted. */
static void note_oom(struct sequence *sequence, const struct op *op, uint64_t reserved_bytes)
{
	struct allocator_conf conf;
	struct sequence_counts *counts = &sequence->counts;
	allocator_conf_init(&conf, (struct allocator_version){0, 0});
	uint64_t above = reserved_bytes + allocator_segment_bytes(&conf, op->bytes);
	if (above <= counts->peak_reserved_bytes)
		return; /* more was had once: the limit has changed since */
	if (!counts->limit_below_bytes || above < counts->limit_below_bytes)
		counts->limit_below_bytes = above;
	counts->limit_least_bytes = counts->peak_reserved_bytes;
}

static bool is_release(const struct op *op)
{
	return op->kind == OP_GIVE_BACK || op->kind == OP_UNMAP;
}

/* A release behind which PyTorch asks again, or gives up. */
static void mark_retries(struct sequence *sequence)
{
	bool is_retry = false;
	for (size_t at = sequence->op_count; at--;) {
		struct op *op = &sequence->ops[at];
		if (is_release(op))
			op->is_retry = is_retry && !op->is_emptied;
		else
			is_retry = op->kind == OP_OBTAIN || op->kind == OP_MAP || op->kind == OP_OOM;
	}
}

void sequence_find_limit(struct sequence *sequence)
{
	uint64_t reserved_bytes = 0;
	bool is_refused = false;
	for (size_t i = 0; i < sequence->op_count; i++) {
		const struct op *op = &sequence->ops[i];
		if (op->kind == OP_OBTAIN && is_of_torch(sequence, op))
			reserved_bytes += sequence->regions[op->region].bytes;
		else if (op->kind == OP_GIVE_BACK && is_of_torch(sequence, op))
			reserved_bytes -= sequence->regions[op->region].bytes;
		else if (op->kind == OP_OOM && !is_refused)
			note_oom(sequence, op, reserved_bytes);
		is_refused = op->kind == OP_REFUSED ||
			     (is_refused && op->kind != OP_ALLOC && op->kind != OP_OOM);
	}
	if (sequence->counts.limit_below_bytes)
		mark_retries(sequence);
}
