/*
 * Every workspace and reserve size that the stand-in for cuDNN states, in one place.
 *
 * cuDNN's real sizes depend on the engine, the version and the card and are not published. None of
 * these figures is a measurement: they are assumptions, made to be plausible and stable, and a peak
 * that contains one is not the peak of a real card. PyTorch allocates what is stated here through
 * its own allocator, so the sizes show up in its counters.
 *
 *   what                          size                           assumption
 *   convolution forward           image / 8                      tiles of the lowered image
 *   convolution backward data     image / 4                      the same, with fp32 partials
 *   convolution backward filter   4 × filter                     a few partial sums
 *   … with a 1×1 window           0, but filter as above         a plain matrix product
 *   … never more than             SIMGPU_CUDNN_WORKSPACE         32 MiB, a usual limit
 *   (these four as the card's profile says, if it has one: sim_card.h)
 *   batch norm workspace          64 bytes a channel             partial sums
 *   batch norm reserve            a bit an element               mask of a fused activation
 *   RNN workspace                 gates × cells                  the gates of one layer
 *   RNN reserve                   (gates + 2) × layers × cells   gates, cell and hidden state
 *   CTC loss workspace            2 × probabilities              alpha and beta
 *   dropout state                 132 × 2048 × 16 bytes          16 bytes a resident thread
 */
#include "sim_cudnn.h"

#include <pthread.h>
#include <stdlib.h>

#include "sim.h"
#include "sim_card.h"

#define ALIGNMENT_BYTES 512 /* of a workspace */

static size_t round_up(size_t bytes)
{
	return sim_round_up(bytes, ALIGNMENT_BYTES);
}

static struct sim_card card;

/* Once, so that a setting that cannot be read is complained of once; of the card the driver does. */
static void read_settings(void)
{
	const char *setting = getenv("SIMGPU_CARD");
	char why[160];

	if (setting == NULL || *setting == '\0' || sim_card_get(&card, setting, why, sizeof(why)) != 0)
		sim_card_of_capability(&card, 0);
	card.conv_limit_bytes = sim_env_bytes("SIMGPU_CUDNN_WORKSPACE", card.conv_limit_bytes);
}

static const struct sim_card *profile(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_settings);
	return &card;
}

size_t cudnn_type_bytes(int data_type)
{
	switch (data_type) {
	case CUDNN_COMPLEX_FP64:
		return 16;
	case CUDNN_DOUBLE:
	case CUDNN_INT64:
	case CUDNN_COMPLEX_FP32:
		return 8;
	case CUDNN_HALF:
	case CUDNN_BFLOAT16:
		return 2;
	case CUDNN_INT8:
	case CUDNN_UINT8:
	case CUDNN_BOOLEAN:
	case CUDNN_FP8_E4M3:
	case CUDNN_FP8_E5M2:
	case CUDNN_FP8_E8M0:
	case CUDNN_FP4_E2M1:
	case CUDNN_INT4:
	case CUDNN_UINT4:
		return 1;
	default:
		return 4;
	}
}

static size_t thousandths(size_t bytes, int share)
{
	return bytes / 1000 * (size_t)share + bytes % 1000 * (size_t)share / 1000;
}

static size_t conv_bytes(enum cudnn_conv_direction direction, size_t image_bytes,
			 size_t filter_bytes)
{
	switch (direction) {
	case CONV_BACKWARD_FILTER:
		return thousandths(filter_bytes, profile()->conv_backward_filter);
	case CONV_BACKWARD_DATA:
		return thousandths(image_bytes, profile()->conv_backward_data);
	default:
		return thousandths(image_bytes, profile()->conv_forward);
	}
}

size_t cudnn_conv_workspace_bytes(enum cudnn_conv_direction direction, size_t image_bytes,
				  size_t filter_bytes, size_t window)
{
	size_t limit = profile()->conv_limit_bytes;
	size_t bytes;

	if (window <= 1 && direction != CONV_BACKWARD_FILTER)
		return 0;
	bytes = round_up(conv_bytes(direction, image_bytes, filter_bytes));
	return bytes < limit ? bytes : limit;
}

size_t cudnn_batch_norm_workspace_bytes(int channel_count)
{
	return round_up((size_t)channel_count * 64);
}

size_t cudnn_batch_norm_reserve_bytes(size_t element_count)
{
	return round_up(element_count / 8);
}

size_t cudnn_rnn_workspace_bytes(size_t cell_bytes, int gate_count)
{
	return round_up(cell_bytes * (size_t)gate_count);
}

size_t cudnn_rnn_reserve_bytes(size_t cell_bytes, int gate_count, int layer_count)
{
	return round_up(cell_bytes * (size_t)(gate_count + 2) * (size_t)layer_count);
}

size_t cudnn_ctc_workspace_bytes(size_t probability_bytes)
{
	return round_up(2 * probability_bytes);
}

size_t cudnn_dropout_state_bytes(void)
{
	return (size_t)132 * 2048 * 16;
}
