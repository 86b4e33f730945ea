/* What is said of a graph that nobody needs at the peak. Owns these sentences: see verdict_words.c. */
#include "report/verdict_words.h"
#include "report/where.h"

static void add_call(struct text *out, const struct verdict_words *words, uint32_t stack)
{
	const struct def_python_frame *caller = where_find_caller(words->defs, stack);
	if (caller)
		where_add_frame(out, words->defs, caller);
	else
		words_add_stack(out, words, stack);
}

static void add_without(struct text *out, const struct verdict_evidence *evidence)
{
	words_add_number(out, " Without it the peak may be as low as ", evidence->left_bytes);
	text_add_char(out, '.');
}

void verdict_say_unused_graph(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	const struct verdict_evidence *evidence = &verdict->evidence;
	words_add_number(out, "At the peak ", evidence->bytes);
	text_add(out, " are kept of forward passes that no backward pass follows, at ");
	add_call(out, words, evidence->stack);
	text_add(out, ": torch.no_grad() spares them. Keeping .item() or .detach() alone, if they are held, spares those of "
		      "earlier batches.");
	add_without(out, evidence);
}

void verdict_say_kept_graph(struct text *out, const struct verdict *verdict, const struct verdict_words *words)
{
	const struct verdict_evidence *evidence = &verdict->evidence;
	words_add_number(out, "At the peak a variable still holds ", evidence->bytes);
	text_add(out, " of the step before, its outputs or (retain_graph=True) its graph: del it after the step. Most is from ");
	add_call(out, words, evidence->stack);
	text_add_char(out, '.');
	add_without(out, evidence);
}
