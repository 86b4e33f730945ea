/* `memtrace sparse-checkpoint`: a checkpoint with the shapes of a model and no weights. Owns nothing
 * but the start of the user's Python, which has the model; the work is in sparse_checkpoint.py. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/simulate.h"

extern const char sparse_checkpoint_script[];

enum { OPTION_DTYPE, OPTION_PYTHON };

static const struct option_row options[] = {
	[OPTION_DTYPE] = {"dtype", "D", "bfloat16, float16, ...; else the config's own"},
	[OPTION_PYTHON] = {"python", "P", "the Python that has torch and transformers; else python"},
	{0},
};

static int become_python(const char *python, char *const *operands, const char *dtype)
{
	output_restore_signals();
	execlp(python, python, "-c", sparse_checkpoint_script, operands[0], operands[1], dtype,
	       (char *)NULL);
	return -errno;
}

static int run(const struct arguments *arguments)
{
	const char *python = arguments->options[OPTION_PYTHON], *dtype = arguments->options[OPTION_DTYPE];
	if (arguments->operand_count > 2)
		return options_wrong(&verb_sparse_checkpoint, "there are too many operands");
	/* A PyTorch for CUDA cannot be imported without its libraries. */
	if (!simulate_preload(false, false))
		return STATUS_CANNOT_RUN;
	int error = become_python(python ? python : "python", arguments->operands, dtype ? dtype : "");
	if (!python && error == -ENOENT)
		error = become_python("python3", arguments->operands, dtype ? dtype : "");
	tell("%s: %s", python ? python : "python", strerror(-error));
	return STATUS_CANNOT_RUN;
}

const struct verb verb_sparse_checkpoint = {
	.name = "sparse-checkpoint",
	.summary = "Makes a checkpoint without weights, for dry runs, from a config.json",
	.usage = "[--dtype D] [--python P] CONFIG.json DIR",
	.details = "Writes DIR/config.json and DIR/model.safetensors, whose tensors are one hole: they "
		   "take no room on\n"
		   "the disk and read as zeros, so that from_pretrained(DIR) takes its real path.",
	.options = options,
	.operands_least = 2,
	.run = run,
};
