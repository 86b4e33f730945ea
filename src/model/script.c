/* From a sequence to the acts of a replay. Owns what of the recorded run is repeated (blocks, the
 * program's empty_cache(), memory of others) and what is not (retries). Must never depend on the
 * settings that a replay tries. */
#include "model/script.h"

#include <string.h>

#include "base/bytes.h"

struct compiler {
	const struct sequence *sequence;
	struct script *script;
	uint32_t *slots;      /* by life */
	uint32_t *free_slots; /* a stack */
	uint32_t free_count;
	bool is_refused; /* the driver refused: the release that follows is PyTorch's retry */
	bool failed;
};

static struct act *add_act(struct compiler *compiler, enum act_kind kind, const struct op *op)
{
	struct script *script = compiler->script;
	struct act *act = &script->acts[script->act_count];
	*act = (struct act){
		.bytes = op->bytes, .class_index = op->class_index, .kind = (uint8_t)kind};
	script->sequences[script->act_count++] = op->sequence;
	return act;
}

/* ---------- blocks ---------- */

static struct act *add_request(struct compiler *compiler, enum act_kind kind, const struct op *op)
{
	struct act *act = add_act(compiler, kind, op);
	act->bytes = op->asked_bytes ? op->asked_bytes : op->bytes;
	if (act->bytes > compiler->script->largest_bytes)
		compiler->script->largest_bytes = act->bytes;
	compiler->is_refused = false;
	return act;
}

static void alloc_block(struct compiler *compiler, const struct op *op)
{
	struct act *act = add_request(compiler, ACT_ALLOC, op);
	act->slot = compiler->free_count ? compiler->free_slots[--compiler->free_count]
					 : compiler->script->slot_count++;
	compiler->slots[op->index] = act->slot;
}

static void free_block(struct compiler *compiler, const struct op *op)
{
	uint32_t slot = compiler->slots[op->index];
	struct act *act = add_act(compiler, ACT_FREE, op);
	act->slot = slot;
	if (act > compiler->script->acts && act[-1].kind == ACT_ALLOC && act[-1].slot == slot)
		act[-1].kind = ACT_BRIEF;
	compiler->free_slots[compiler->free_count++] = slot;
}

/* ---------- releases ---------- */

static bool *add_release(struct compiler *compiler)
{
	struct script *script = compiler->script;
	size_t row = sizeof *script->releases;
	uint32_t wanted = script->release_capacity ? script->release_capacity * 2 : 8;
	if (script->release_count == script->release_capacity) {
		void *grown = arena_resize(script->arena, script->releases,
					   script->release_capacity * row, wanted * row);
		if (!grown)
			return NULL;
		script->releases = grown;
		script->release_capacity = wanted;
	}
	return script->releases[script->release_count++];
}

/* A run of releases that no refusal explains is the program's empty_cache(), or the end of a pool: then the
 * classes that it touched give back what they have. */
static void release_as_recorded(struct compiler *compiler, size_t at)
{
	const struct sequence *sequence = compiler->sequence;
	const struct op *ops = sequence->ops;
	if (ops[at].kind == OP_UNMAP || ops[at].is_emptied) {
		add_act(compiler, ACT_EMPTY, &ops[at]);
		return;
	}
	struct act *act = add_act(compiler, ACT_RELEASE, &ops[at]);
	bool *classes = add_release(compiler);
	compiler->failed |= !classes;
	if (!classes)
		return;
	act->slot = compiler->script->release_count - 1;
	for (; at < sequence->op_count && ops[at].kind == OP_GIVE_BACK; at++)
		if (ops[at].class_index < CLASSES_MAX)
			classes[ops[at].class_index] = true;
}

static bool continues_release(const struct sequence *sequence, size_t at)
{
	return at && (sequence->ops[at - 1].kind == OP_GIVE_BACK ||
		      sequence->ops[at - 1].kind == OP_UNMAP);
}

static void give_back(struct compiler *compiler, size_t at)
{
	const struct sequence *sequence = compiler->sequence;
	const struct op *op = &sequence->ops[at];
	uint8_t kind = sequence->regions[op->region].kind;
	bool is_torch = sequence_is_torch(sequence, op->region);
	if (kind != REGION_RANGE && !is_torch)
		add_act(compiler, ACT_GIVE, op);
	else if ((kind == REGION_SEGMENT || op->kind == OP_UNMAP) && is_torch &&
		 !compiler->is_refused && !op->is_retry && !continues_release(sequence, at))
		release_as_recorded(compiler, at);
}

static void obtain(struct compiler *compiler, const struct op *op)
{
	bool is_range = compiler->sequence->regions[op->region].kind == REGION_RANGE;
	if (!is_range && !sequence_is_torch(compiler->sequence, op->region))
		add_act(compiler, ACT_TAKE, op);
}

/* ---------- all ---------- */

static void compile_op(struct compiler *compiler, size_t at)
{
	const struct op *op = &compiler->sequence->ops[at];
	switch (op->kind) {
	case OP_ALLOC:
		alloc_block(compiler, op);
		break;
	case OP_FREE:
		free_block(compiler, op);
		break;
	case OP_OOM:
		add_request(compiler, ACT_TRY, op);
		break;
	case OP_OBTAIN:
		obtain(compiler, op);
		break;
	case OP_GIVE_BACK:
	case OP_UNMAP:
		give_back(compiler, at);
		break;
	case OP_REFUSED:
		compiler->is_refused = true;
		break;
	case OP_STEP:
		add_act(compiler, ACT_STEP, op);
		break;
	case OP_SETTINGS:
		add_act(compiler, ACT_SETTINGS, op)->slot = op->index;
		compiler->script->has_changes = true;
		break;
	default:
		break;
	}
}

static bool compile(struct compiler *compiler)
{
	const struct sequence *sequence = compiler->sequence;
	struct script *script = compiler->script;
	size_t table_bytes = ((size_t)sequence->life_count + 1) * sizeof *compiler->slots;
	script->acts = arena_alloc(script->arena, (sequence->op_count + 1) * sizeof *script->acts);
	script->sequences =
		arena_alloc(script->arena, (sequence->op_count + 1) * sizeof *script->sequences);
	compiler->slots = arena_alloc(script->arena, table_bytes);
	compiler->free_slots = arena_alloc(script->arena, table_bytes);
	if (!script->acts || !script->sequences || !compiler->slots || !compiler->free_slots)
		return false;
	for (size_t i = 0; i < sequence->op_count; i++)
		compile_op(compiler, i);
	arena_free(script->arena, compiler->slots, table_bytes);
	arena_free(script->arena, compiler->free_slots, table_bytes);
	return !compiler->failed;
}

static bool find_least(struct script *script)
{
	size_t table_bytes = ((size_t)script->slot_count + 1) * sizeof(uint64_t);
	uint64_t *bytes_of = arena_alloc(script->arena, table_bytes), live = 0;
	for (size_t i = 0; bytes_of && i < script->act_count; i++) {
		const struct act *act = &script->acts[i];
		bool is_kept = act->kind == ACT_ALLOC || act->kind == ACT_BRIEF;
		if (is_kept || act->kind == ACT_TRY)
			script->least_bytes = bytes_larger(script->least_bytes, live + act->bytes);
		if (is_kept)
			live += bytes_of[act->slot] = act->bytes;
		else if (act->kind == ACT_FREE)
			live -= bytes_of[act->slot];
	}
	arena_free(script->arena, bytes_of, table_bytes);
	return bytes_of;
}

struct script *script_create(const struct sequence *sequence, const struct classes *classes)
{
	struct arena *arena = arena_create();
	struct script *script = arena ? arena_alloc(arena, sizeof *script) : NULL;
	if (script) {
		struct compiler compiler = {.sequence = sequence, .script = script};
		*script = (struct script){.arena = arena, .classes = classes};
		if (compile(&compiler) && find_least(script))
			return script;
	}
	if (arena)
		arena_release(arena);
	return NULL;
}

void script_release(struct script *script)
{
	if (script)
		arena_release(script->arena);
}
