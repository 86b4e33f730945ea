/*
 * Communicators made of a part of another's ranks: each rank says its colour and its key, and knows
 * its place when it has heard all. Owns nothing beyond the split. A split waits for all ranks, at
 * once or at the end of the thread's group.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim_nccl.h"

/* What each rank says: its colour and its key. */
struct choice {
	int32_t color, key;
};

struct nccl_split {
	struct nccl_split *next;
	struct nccl_comm *comm, **made;
	const struct nccl_config *config;
	uint64_t gate;
	struct choice own;
	struct choice choices[];
};

static struct nccl_split *split_new(struct nccl_comm *comm, struct choice own)
{
	struct nccl_split *split =
		calloc(1, sizeof(*split) + (size_t)comm->rank_count * sizeof(struct choice));
	struct nccl_work *work = calloc(1, sizeof(*work));

	if (!split || !work) {
		free(split);
		free(work);
		return NULL;
	}
	split->comm = comm;
	split->own = own;
	*work = (struct nccl_work){
		.comm = comm,
		.message = {.kind = NCCL_SPLIT, .type = NCCL_INT64, .count = 1},
		.send = &split->own,
		.receive = split->choices,
		.send_bytes = sizeof(struct choice),
		.receive_bytes = (size_t)comm->rank_count * sizeof(struct choice),
		.factor = 1,
	};
	nccl_work_submit(work, &split->gate);
	return split;
}

/* Ranks of the same colour, by key and then by old rank. */
static struct nccl_comm place_in(const struct nccl_split *split)
{
	struct nccl_comm like = *split->comm;
	const struct choice *own = &split->own, *each = split->choices;

	like.rank_count = like.rank = 0;
	for (int i = 0; i < split->comm->rank_count; i++) {
		if (each[i].color != own->color)
			continue;
		like.rank_count++;
		like.rank += each[i].key < own->key ||
			     (each[i].key == own->key && i < split->comm->rank);
	}
	return like;
}

static void name_split(const struct nccl_split *split, struct nccl_unique_id *id)
{
	uint64_t hash = 0xcbf29ce484222325U;

	snprintf(id->text, sizeof(id->text), "%s/%u/%d", split->comm->name,
		 split->comm->split_count, split->own.color);
	for (const char *at = id->text; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 0x100000001b3U;
	snprintf(id->text, sizeof(id->text), "nccl-%016llx", (unsigned long long)hash);
}

int nccl_split_finish(struct nccl_split *split)
{
	struct nccl_unique_id id;
	int result = nccl_work_wait(split->comm, split->gate);

	split->comm->split_count++;
	if (result == NCCL_SUCCESS && split->own.color >= 0) {
		const struct nccl_comm like = place_in(split);
		name_split(split, &id);
		result = nccl_comm_new(split->made, &like, id.text, split->config);
	}
	free(split);
	return result;
}

SIM_API(int, ncclCommSplit, struct nccl_comm *comm, int color, int key, struct nccl_comm **made,
	struct nccl_config *config)
{
	struct nccl_split *split;
	int result = nccl_comm_check(comm);

	*made = NULL; /* it stays so for a rank that takes no part */
	if (result != NCCL_SUCCESS)
		return result;
	split = split_new(comm, (struct choice){color, key});
	if (!split)
		return NCCL_SYSTEM_ERROR;
	split->made = made;
	split->config = config;
	return nccl_group_add_split(split) ? NCCL_SUCCESS : nccl_split_finish(split);
}
