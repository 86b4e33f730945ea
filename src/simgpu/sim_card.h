/*
 * Cards: which there are, and one described in a text.  Needs nothing but the C library, so that a
 * tool can show the same table.
 */
#ifndef SIMGPU_SIM_CARD_H
#define SIMGPU_SIM_CARD_H

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

/*
 * Code that a context takes when it is first used (kernels are loaded lazily since CUDA 11.7): the
 * program's own, and libraries'.  A new one is a line here and a sim_first_use() in the library.
 * NCCL's is in its buffers (nccl_sizes.c).
 */
#define SIM_CODES(X) \
	X(kernels)   \
	X(cublas)    \
	X(cublaslt)  \
	X(cudnn)     \
	X(cufft)     \
	X(cusolver)  \
	X(cusparse)

enum sim_code {
#define X(name) SIM_CODE_##name,
	SIM_CODES(X)
#undef X
		SIM_CODE_COUNT
};

struct sim_card {
	char name[32];  /* "a100-40" */
	char title[48]; /* "A100-SXM4-40GB" */
	char aliases[64];
	size_t memory_bytes; /* as CUDA reports it */
	int capability;      /* 90 for 9.0 */
	int multiprocessor_count;
	int threads_per_multiprocessor;
	int shared_per_block_bytes; /* with opt-in */
	int shared_per_multiprocessor_bytes;
	int bus_width_bits;
	int l2_bytes;
	int clock_khz;
	int memory_clock_khz;
	size_t context_bytes, context_spread_bytes;
	char context_source[48]; /* who measured it; "" nobody: an estimate */
	/* A profile: what is measured on a real card. */
	size_t first_use_bytes[SIM_CODE_COUNT]; /* beyond the context; 0: not known, so in its spread */
	int conv_forward, conv_backward_data;   /* cuDNN's workspace, thousandths of the image */
	int conv_backward_filter;               /* thousandths of the filter */
	size_t conv_limit_bytes;                /* and never more than this */
};

/* What cards of a capability are like (that of the nearest older one that is known): one of them,
 * without memory, context and names. */
void sim_card_of_capability(struct sim_card *card, int capability);

/* Card number `index` of the table; false past the last. */
bool sim_card_at(struct sim_card *card, size_t index);

/* By name or alias; case, spaces, dashes and the words NVIDIA, GeForce, Tesla, RTX do not count.
 * False: unknown. */
bool sim_card_find(struct sim_card *card, const char *name);

/*
 * A description: "key = value", by lines or commas; '#' begins a comment, but not behind a letter or
 * digit.  Keys: name, memory, capability (these two must be there), multiprocessors,
 * threads_per_multiprocessor, shared_per_block, shared_per_multiprocessor, l2, context,
 * context_spread, context_source; of the profile first_NAME (SIM_CODES), conv_forward,
 * conv_backward_data, conv_backward_filter, conv_limit.  What is not given is as in other cards of
 * the capability.  0, or -1 and a reason of one line in `why`.
 */
int sim_card_parse(struct sim_card *card, const char *text, char *why, size_t why_bytes);

/* A name, a description ('=' is in it) or the path of a file with one, whose name it has if no other
 * is given.  Likewise. */
int sim_card_get(struct sim_card *card, const char *setting, char *why, size_t why_bytes);

/* What a context takes more where CUDA_MODULE_LOADING=EAGER: all code at once; else 0, PyTorch has it loaded when used. */
size_t sim_card_eager_bytes(void);
/* The card's, and that. */
size_t sim_card_context_bytes(const struct sim_card *card);

/* Room for a description. */
#define SIM_CARD_TEXT_BYTES 1536

/* The description of a card, as sim_card_parse() reads it, its pairs parted by `separator`. */
void sim_card_describe(const struct sim_card *card, const char *separator, char *text, size_t bytes);

#pragma GCC visibility pop

#endif
