/* `memtrace cards`: the cards that a dry run can simulate. Owns how they are shown. Must never
 * measure or start anything; --like-here asks the driver, without a context. */
#include "cli/card.h"

#include "base/units.h"
#include "base/version.h"
#include "cli/options.h"
#include "cli/output.h"
#include "report/json_text.h"

enum { OPTION_JSON, OPTION_LIKE_HERE };

static const struct option_row options[] = {
	[OPTION_JSON] = {"json", NULL, "one JSON object"},
	[OPTION_LIKE_HERE] = {CARD_LIKE_HERE, NULL,
			      "describe the card in this machine: a file for --simulate"},
	{0},
};

static void add_row(struct text *out, const struct sim_card *card)
{
	text_add_escaped(out, card->name);
	text_pad_to(out, 12);
	text_add_escaped(out, card->title);
	text_pad_to(out, 37);
	text_add_mib(out, card->memory_bytes, 7);
	text_printf(out, "   %2d.%d %5d %6d %6d %6d", card->capability / 10, card->capability % 10,
		    card->multiprocessor_count, card->threads_per_multiprocessor,
		    card->shared_per_block_bytes / 1024, card->l2_bytes / 1024 / 1024);
	text_add_mib(out, card->context_bytes, 8);
	text_add(out, output_is_ascii() ? " +- " : " ± ");
	text_add_mib(out, card->context_spread_bytes, 4);
	text_add(out, "  ");
	text_add_escaped(out, *card->context_source ? card->context_source : "estimated");
	text_add_char(out, '\n');
}

static void print(struct text *out)
{
	struct sim_card card;
	text_add(out, "card        title                         memory  cap.   SMs threads shared"
		      "     L2 context and who\n"
		      "                                             MiB           of SM  KiB/bl    MiB"
		      "     MiB    measured it\n");
	for (size_t i = 0; sim_card_at(&card, i); i++)
		add_row(out, &card);
	text_add(out,
		 "\nmemory: as CUDA reports it, the lowest value that recent drivers give.\n"
		 "context: what a process takes beside its allocations, libraries' code included, and\n"
		 "how far drivers and programs differ. How much of it each library brings is known only\n"
		 "of a card that was measured: memtrace profile-card, once, on a real one.\n"
		 "A card of your own is a file of lines such as 'memory = 22GiB', 'capability = 8.9',\n"
		 "'multiprocessors = 58', 'context = 250MiB': memtrace run --simulate ./mycard.txt\n");
}

static void add_json(struct json *json, const struct sim_card *card)
{
	char capability[16];
	struct text text;
	text_init_fixed(&text, capability, sizeof capability);
	text_printf(&text, "%d.%d", card->capability / 10, card->capability % 10);
	json_open(json, NULL, '{');
	json_string(json, "card", card->name);
	json_string(json, "title", card->title);
	json_string(json, "aliases", card->aliases);
	json_unsigned(json, "memory_bytes", card->memory_bytes);
	json_string(json, "capability", text_string(&text));
	json_signed(json, "multiprocessors", card->multiprocessor_count);
	json_signed(json, "threads_per_multiprocessor", card->threads_per_multiprocessor);
	json_signed(json, "shared_per_block_bytes", card->shared_per_block_bytes);
	json_signed(json, "shared_per_multiprocessor_bytes", card->shared_per_multiprocessor_bytes);
	json_signed(json, "l2_bytes", card->l2_bytes);
	json_unsigned(json, "context_bytes", card->context_bytes);
	json_unsigned(json, "context_spread_bytes", card->context_spread_bytes);
	json_string(json, "context_source", *card->context_source ? card->context_source : NULL);
	json_close(json, '}');
}

static void print_json(struct text *out, const struct sim_card *here)
{
	struct json json = {.out = out};
	struct sim_card card;
	json_open(&json, NULL, '{');
	json_string(&json, "memtrace", VERSION_TEXT);
	json_open(&json, "cards", '[');
	if (here)
		add_json(&json, here);
	for (size_t i = 0; !here && sim_card_at(&card, i); i++)
		add_json(&json, &card);
	json_close(&json, ']');
	json_close(&json, '}');
	text_add_char(out, '\n');
}

static int run(const struct arguments *arguments)
{
	char description[SIM_CARD_TEXT_BYTES];
	struct sim_card here;
	struct text out;
	bool wants_here = arguments->options[OPTION_LIKE_HERE];
	if (arguments->operand_count)
		return options_wrong(&verb_cards, "it takes no operand");
	if (wants_here && !card_read_here(&here))
		return STATUS_NO;
	text_init(&out);
	if (arguments->options[OPTION_JSON]) {
		print_json(&out, wants_here ? &here : NULL);
	} else if (wants_here) {
		sim_card_describe(&here, "\n", description, sizeof description);
		text_add_escaped(&out, "# the card in this machine; its context is estimated");
		text_printf(&out, "\n%s\n", description);
	} else {
		print(&out);
	}
	output_write(&out);
	text_release(&out);
	return STATUS_YES;
}

const struct verb verb_cards = {
	.name = "cards",
	.summary = "Lists the cards that run --simulate and fit know",
	.usage = "[--json] [--like-here]",
	.details = "A file that describes a card has lines KEY = VALUE; capability (8.9) and memory (24GiB) must be\n"
		   "there. The others: name, multiprocessors, threads_per_multiprocessor, shared_per_block,\n"
		   "shared_per_multiprocessor, l2, context (what CUDA itself takes), context_spread, context_source.\n"
		   "Measured by profile-card: first_NAME, what the first use of a library takes beyond the context\n"
		   "(kernels, cublas, cublaslt, cudnn, cufft, cusolver, cusparse); cuDNN's workspaces in thousandths of\n"
		   "the image (conv_forward, conv_backward_data) and of the filter (conv_backward_filter), and the\n"
		   "most that it takes (conv_limit).",
	.options = options,
	.run = run,
};
