/* What the levers are computed from: the peak and the steps of one device, by what could be done
 * about each part. Private to levers*.c. */
#ifndef MT_REPORT_LEVERS_FACTS_H
#define MT_REPORT_LEVERS_FACTS_H

#include "base/arena.h"
#include "model/model.h"
#include "trace/defs.h"

struct lever_facts {
	uint64_t peak_bytes;
	uint64_t category[MODEL_CATEGORY_COUNT]; /* at the peak */
	bool is_backward_peak, is_optimizer_peak;
	uint64_t internal_bytes; /* of its blocks more than was asked for: another layout may do without */

	/* Parts of the peak, from its stacks; they overlap. */
	uint64_t batch_bytes;	  /* activations, input and temporaries that grow with the batch */
	uint64_t halvable_bytes;  /* activations and temporaries that autocast would make half as large … */
	uint64_t single_bytes, unsized_bytes; /* … of these known to have elements of four bytes, and of no known size */
	uint64_t half_bytes;	  /* that would be such, but are known to have elements of two bytes now */
	uint64_t norm_bytes, gate_bytes; /* of these what norms made that autocast leaves alone, and what followed them */
	uint64_t unfused_bytes;   /* what attention without a fused kernel keeps, as for some sizes of a head in fp32 */
	uint64_t loss_bytes;	  /* logits and what the loss made of them */
	uint64_t loss_count, loss_largest_bytes;
	uint64_t loss_each_bytes; /* of the largest logarithms of logits */
	uint64_t score_bytes;	  /* attention scores, and dropout of them */
	uint64_t cast_kept_bytes; /* copies of weights that autocast kept through the backward pass */
	uint64_t kernel_bytes;	  /* that kernels of the backward pass work in: no batch, no block is in it */
	uint64_t dropped_bytes;	  /* a graph that no backward used */
	uint64_t dropped_largest_bytes; /* of its tensors */
	bool has_fused_attention, has_checkpoints, has_autocast;
	bool has_sequence; /* there is a length */
	bool has_shards;   /* FSDP, ZeRO */
	bool has_leak;	   /* what grows from step to step, the batch does not bound */
	uint64_t leak_bytes, copy_bytes, kept_graph_bytes, unused_graph_bytes; /* what mending the findings would save */
	uint64_t no_grad_bytes; /* the same, of what was told as memory ran out, which was the peak */
	uint64_t reserved_bytes; /* the most, by PyTorch; 0: not known … */
	uint64_t unused_bytes;	 /* … and what that is above the most that was allocated */

	/* Steps; all figures of whole steps. */
	uint64_t steps;
	bool is_peak_in_steps; /* false: its step is not among those that are kept */
	uint64_t backwards_a_step;
	uint64_t static_bytes;	  /* the least that any number of samples needs: the highest of what is
				     live after a backward and in an optimizer's step, less activations */
	uint64_t backward_floor_bytes; /* the most that was left after a backward, less the same */
	uint64_t training_bytes;  /* the highest of backward and optimizer */
	uint64_t without_state_bytes; /* the highest outside optimizers' steps, less their state */
	uint64_t outside_optimizer_bytes; /* the same with it */
	uint64_t optimizer_bytes; /* the highest in an optimizer's step */
	unsigned parameter_element_bytes, state_element_bytes; /* of nearly all of them, 0 unknown */
	uint64_t parameter_bytes, state_bytes, gradient_bytes; /* the most at a border */
	uint64_t kept_gradient_bytes; /* gradients that were there during the forward pass */
	uint64_t fresh_peak_bytes; /* of the first step, whose gradients were not there yet, with the state of later ones; 0: it was unlike the others … */
	uint64_t fresh_most_bytes; /* … and what it was at most */
	uint64_t world_size;	  /* 1: one process, or not known */

	/* What an evaluation keeps of all its batches: it does not grow with one of them. */
	struct {
		bool is_possible, is_of_trainer;
		uint64_t bytes, each_bytes; /* of one batch; 0: not known */
		const struct def_python_frame *line; /* that makes most of it; NULL: not known */
		uint32_t list_stack; /* of results that are in a list; 0: none */
		uint32_t join_stack, second_stack; /* of what results are joined to; 0: none */
	} kept;

	/* The repeated module that holds most activations. */
	struct {
		const struct def_python_frame *frame; /* NULL: none */
		uint64_t bytes, count, boundary_bytes; /* boundary: what its calls pass to each other */
		bool is_counted; /* else `count` may be of what it has in it */
		uint64_t call_bytes, largest_bytes; /* of its largest call, as far as that is known; of a tensor */
	} block;
};

void lever_facts_find(struct lever_facts *, const struct model *, const struct defs *,
		      const struct model_device *);

/* levers_steps.c: the facts of steps. */
void lever_steps_find(struct lever_facts *, const struct model *, unsigned ordinal);

/* levers_kept.c: facts->kept from the shares of the peak; is this one of them? */
void lever_kept_find(struct lever_facts *, const struct defs *, const struct model_share *, size_t count,
		     uint32_t peak_stack);
bool lever_is_kept(const struct lever_facts *, const struct model_share *);

/* levers_block.c: facts->block from the shares of the peak. */
void lever_block_find(struct lever_facts *, struct arena *, const struct defs *, const struct model_share *,
		      size_t count);

#endif
