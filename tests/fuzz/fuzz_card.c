/* Feeds what describes a card of the simulated GPU anything. What is taken must have a name, memory and a capability, and
 * be the same card again when it is described and read once more; what is refused must say why in one line. */
#include "replay.h"

#include "simgpu/sim.h"
#include "simgpu/sim_card.h"

static bool are_same(const struct sim_card *a, const struct sim_card *b)
{
	return a->memory_bytes == b->memory_bytes && a->capability == b->capability &&
	       a->multiprocessor_count == b->multiprocessor_count && a->context_bytes == b->context_bytes &&
	       a->context_spread_bytes == b->context_spread_bytes && a->l2_bytes == b->l2_bytes &&
	       a->shared_per_block_bytes == b->shared_per_block_bytes &&
	       a->shared_per_multiprocessor_bytes == b->shared_per_multiprocessor_bytes &&
	       a->threads_per_multiprocessor == b->threads_per_multiprocessor &&
	       !memcmp(a->first_use_bytes, b->first_use_bytes, sizeof a->first_use_bytes) &&
	       a->conv_forward == b->conv_forward && a->conv_backward_data == b->conv_backward_data &&
	       a->conv_backward_filter == b->conv_backward_filter &&
	       a->conv_limit_bytes == b->conv_limit_bytes && !strcmp(a->context_source, b->context_source);
}

static void check_card(const struct sim_card *card)
{
	char text[2 * SIM_CARD_TEXT_BYTES], why[256];
	struct sim_card again;
	if (!memchr(card->name, 0, sizeof card->name) || !*card->name || !card->memory_bytes || !card->capability)
		abort();
	sim_card_describe(card, "\n", text, sizeof text);
	/* Sizes go through a floating-point number: only so far are they exact. */
	size_t highest = card->memory_bytes | card->context_bytes | card->context_spread_bytes |
			 card->conv_limit_bytes;
	for (int i = 0; i < SIM_CODE_COUNT; i++)
		highest |= card->first_use_bytes[i];
	if (highest >> 50)
		return;
	if (sim_card_parse(&again, text, why, sizeof why) || !are_same(card, &again))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char why[256] = "", *text = malloc(bytes + 1); /* of its exact size: what reads beyond is seen */
	struct sim_card card;
	size_t size;
	memcpy(text, data, bytes);
	text[bytes] = 0;
	if (!sim_card_parse(&card, text, why, sizeof why))
		check_card(&card);
	else if (!*why || !memchr(why, 0, sizeof why))
		abort();
	sim_card_find(&card, text);
	if (!sim_parse_bytes(text, &size) && !strpbrk(text, "0123456789"))
		abort();
	free(text);
	return 0;
}
