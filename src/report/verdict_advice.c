/* What helps and what does not, in words. Owns these texts. Must never name a setting of PyTorch's allocator as a cure. */
#include "report/verdict_words.h"

const char *verdict_advice_text(enum verdict_advice advice)
{
	static const char *const texts[ADVICE_COUNT] = {
		[ADVICE_CHECK_SHAPES] = "check the shape of what is made there",
		[ADVICE_RAISE_LIMIT] = "raise torch.cuda.set_per_process_memory_fraction",
		[ADVICE_END_OTHERS] = "end other processes (see nvidia-smi), or use another GPU",
		[ADVICE_LESS_OUTSIDE] = "give that library less, or start it after PyTorch",
		[ADVICE_EMPTY_CACHE] = "torch.cuda.empty_cache() before that library is used",
		[ADVICE_WHATIF] = "may be cured by a setting: run `memtrace whatif` on the trace",
		[ADVICE_FREE_PINNERS] = "free these blocks, or make them before the large ones",
		[ADVICE_ONE_STREAM] = "allocate on one stream",
		[ADVICE_DROP_POOL] = "drop the graph or pool whose memory is idle, or share it",
		[ADVICE_WAIT_STREAM] = "wait for the other stream (synchronize) before asking again",
		[ADVICE_DETACH] = "keep loss.item() or x.detach(), or run under torch.no_grad()",
		[ADVICE_CLEAR_LIST] = "move what is kept to the CPU, reduce it first, or clear it",
		[ADVICE_CLONE_SLICE] = "where a slice is kept, its clone(): a slice holds all of it",
		[ADVICE_BOUND_CACHE] = "a fixed or paged cache (torch.cat has old and new at once)",
		[ADVICE_BREAK_CYCLE] = "del old objects and break the cycle, or gc.collect() after",
		[ADVICE_FIXED_THREADS] = "use a fixed pool of threads",
		[ADVICE_DROP_COPY] = "del the copy, or keep it on the CPU (averages, the best one)",
		[ADVICE_DROP_LOADED] = "torch.load(..., map_location='cpu'); del checkpoint after use",
		[ADVICE_IN_PLACE] = "change the weights in place (weight += ...), make no new ones",
		[ADVICE_SMALLER_STATE] = "an optimizer with 8-bit state",
		[ADVICE_SHARD_STATE] = "sharding the optimizer's state on 2 GPUs (ZeRO-1)",
		[ADVICE_NO_FOREACH] = "foreach=False: no temporaries of the whole model in a step",
		[ADVICE_SMALLER_BATCH] = "half the batch",
		[ADVICE_CHECKPOINT] = "checkpointing the activations (torch.utils.checkpoint)",
		[ADVICE_NO_GRAD] = "evaluation under torch.no_grad()",
		[ADVICE_NO_GRAD_IF] = "evaluation under torch.no_grad(), unless it is so already",
		[ADVICE_SMALLER_EVAL] = "a smaller batch for evaluation, its results on the CPU",
		[ADVICE_LOAD_CPU] = "load and save by way of the CPU (map_location='cpu')",
		[ADVICE_SMALLER_MODEL] = "keep less at once, or take a larger card",
		[ADVICE_LESS_PINNED] = "pin less: fewer batches ahead, or pin_memory=False",
		[ADVICE_CLEAR_AUTOCAST] = "leave the autocast region each step, or cache_enabled=False",
		[ADVICE_EMPTY_ONCE] = "torch.cuda.empty_cache() once, right after that",
		[ADVICE_NO_TRIAL] = "no trial of variants in the first step (autotuning, warm-up)",
		[ADVICE_SHORTER_SEGMENTS] = "checkpointing in shorter pieces: one is recomputed at once",
		[ADVICE_SPARSE_EMBEDDING] = "nn.Embedding(sparse=True), with SGD or SparseAdam",
		[ADVICE_CUT_BATCH] = "a limit for the largest batch: cut long inputs",
		[ADVICE_BACKWARD_EACH] = "losses that are summed: backward() of each, not of the sum",
		[ADVICE_KEEP_TEXT] = "exceptions that are kept: str(error), without their frames",
		[ADVICE_FIND_LIMIT] = "look for that limit (nvidia-smi -L, ulimit -v); try again",
		[ADVICE_HALF_WEIGHTS] = "weights of two bytes (bfloat16) or less, if these have four",
		[ADVICE_LEAVE_EXCEPT] = "the second try after the except block, not in it",
		[ADVICE_DROP_GRAPH] = "del the loss and outputs after the step; no retain_graph=True",
		[ADVICE_LARGEST_FIRST] = "the largest batch first: later ones fit in what it leaves",
		[ADVICE_RAISE_SETTING] = "raise per_process_memory_fraction in PYTORCH_ALLOC_CONF",
		[ADVICE_SAVE_FOR_BACKWARD] = "autograd.Function: ctx.save_for_backward(x), not ctx.x = x",
		[ADVICE_SHORTER_CACHE] = "a limit of its length, fewer sequences, 8-bit entries",
		[ADVICE_COLLECT] = "where gc.disable() is used: gc.collect() now and then",
		[ADVICE_STEP_PIECES] = "an optimizer that takes one parameter after the other",
	};
	return texts[advice < ADVICE_COUNT ? advice : ADVICE_CHECK_SHAPES];
}

const char *verdict_not_text(enum verdict_not_advised what)
{
	static const char *const texts[NOT_ADVISED_COUNT] = {
		[NOT_SMALLER_BATCH] = "a smaller batch",
		[NOT_SETTINGS] = "settings of PyTorch's allocator",
		[NOT_EMPTY_CACHE] = "empty_cache() at that point",
		[NOT_MORE_MEMORY] = "a larger card",
		[NOT_SMALLER_MODEL] = "a smaller model or a larger card",
	};
	return texts[what < NOT_ADVISED_COUNT ? what : NOT_EMPTY_CACHE];
}
