/* A model as bytes, in memory: for tests that cut a run in two. */
#ifndef TEST_MODEL_STATE_H
#define TEST_MODEL_STATE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/save.h"

struct state {
	uint8_t *bytes;
	size_t used_bytes, taken_bytes, piece_bytes;
	uint8_t piece[512]; /* small, so that every number is once cut in two */
};

static inline int state_take(struct archive *archive)
{
	struct state *state = archive->context;
	size_t bytes = (size_t)(archive->at - state->piece);
	uint8_t *grown = realloc(state->bytes, state->used_bytes + bytes + 1);
	if (!grown)
		return -ENOMEM;
	state->bytes = grown;
	memcpy(state->bytes + state->used_bytes, state->piece, bytes);
	state->used_bytes += bytes;
	archive->at = state->piece;
	return 0;
}

static inline int state_bring(struct archive *archive)
{
	struct state *state = archive->context;
	size_t left = state->used_bytes - state->taken_bytes;
	size_t bytes = left < state->piece_bytes ? left : state->piece_bytes;
	if (!bytes)
		return -ENODATA;
	memcpy(state->piece, state->bytes + state->taken_bytes, bytes);
	state->taken_bytes += bytes;
	archive->at = state->piece;
	archive->end = state->piece + bytes;
	return 0;
}

/* state->bytes is the caller's to free. */
static inline int state_save(struct state *state, struct model *m)
{
	*state = (struct state){.bytes = NULL};
	struct archive archive = {.turn = state_take, .context = state};
	archive.at = state->piece;
	archive.end = state->piece + sizeof state->piece;
	int error = model_save(m, &archive);
	return error ? error : state_take(&archive);
}

/* In pieces of `piece_bytes`, at most 512. A new model, or NULL and *error. */
static inline struct model *state_load(struct state *state, const struct defs *defs, size_t piece_bytes,
				       int *error)
{
	struct archive archive = {.turn = state_bring, .context = state};
	struct model *m = model_create(defs);
	state->taken_bytes = 0;
	state->piece_bytes = piece_bytes;
	*error = m ? model_load(m, &archive) : -ENOMEM;
	if (!*error)
		return m;
	model_release(m);
	return NULL;
}

#endif
