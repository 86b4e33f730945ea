/* A program on the simulated GPU. Owns how the stand-ins come into it and what is said of the
 * answer. Must never touch the program's own files: all is in its environment. */
#include "cli/simulate.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/card.h"
#include "cli/output.h"
#include "cli/run_preload.h"

/* A link is another name of one of them. */
static int is_library(const struct dirent *entry)
{
	return entry->d_type != DT_LNK && strstr(entry->d_name, ".so") != NULL;
}

static void add_libraries(struct text *list, const char *folder)
{
	struct dirent **entries;
	int count = scandir(folder, &entries, is_library, alphasort);
	for (int i = 0; i < count; i++) {
		text_printf(list, ":%s/%s", folder, entries[i]->d_name);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

/* `folder` first, then what was there. */
static bool put_first(const char *variable, const char *folder)
{
	const char *before = getenv(variable);
	struct text whole;
	text_init(&whole);
	text_add(&whole, folder);
	if (before && *before)
		text_printf(&whole, ":%s", before);
	int failed = setenv(variable, text_string(&whole), 1);
	text_release(&whole);
	return !failed;
}

static bool preload_python(const char *folder, const char *values)
{
	char python[PATH_MAX + 8];
	snprintf(python, sizeof python, "%s/python", folder);
	return put_first("PYTHONPATH", python) && !setenv("SIMGPU_VALUES", values, 1);
}

bool simulate_find_stand_ins(char folder[PATH_MAX])
{
	static const char *const places[] = {"libmemtrace-sim",
					     "../lib/memtrace/libmemtrace-sim"};
	return run_find_beside("libmemtrace-sim", places, sizeof places / sizeof *places, folder);
}

bool simulate_preload(bool has_values, bool has_ranks)
{
	const char *before = getenv("LD_PRELOAD");
	char folder[PATH_MAX];
	struct text list;
	if (!simulate_find_stand_ins(folder))
		return false;
	text_init(&list);
	text_add(&list, before ? before : "");
	add_libraries(&list, folder);
	int failed = setenv("LD_PRELOAD", text_string(&list), 1);
	text_release(&list);
	/* The numbers in them are those of other GPUs. */
	if ((has_values || has_ranks) && !preload_python(folder, has_values ? "all" : "objects"))
		return false;
	return !failed && put_first("LD_LIBRARY_PATH", folder) && !unsetenv("CUDA_VISIBLE_DEVICES") &&
	       !unsetenv("NVIDIA_VISIBLE_DEVICES");
}

bool simulate_set_card(const struct simulation *simulation, const struct machine *machine)
{
	char count[24];
	struct sim_card card = simulation->card;
	if (simulation->memory_bytes)
		card.memory_bytes = simulation->memory_bytes;
	snprintf(count, sizeof count, "%llu", (unsigned long long)simulation->device_count);
	if (machine->name && setenv("SIMGPU_MACHINE", machine->name, 1))
		return false;
	return !unsetenv("SIMGPU_MEMORY") && !unsetenv("SIMGPU_CAPABILITY") &&
	       !unsetenv("SIMGPU_CONTEXT") && !setenv("SIMGPU_DEVICES", count, 1) &&
	       !setenv("SIMGPU_EVENTS", simulation->is_late ? "late" : "early", 1) &&
	       !setenv("MEMTRACE_READBACKS", "on", 1) &&
	       card_set_environment(&card);
}

static void add_bound(struct text *out, bool is_late)
{
	text_add(out, is_late ?
		      "  upper bound  work ends only when the program waits for it: memory that waits for\n"
		      "               other streams (FSDP, offloading, prefetching) is given back late;\n"
		      "               without --late there is the lower bound\n" :
		      "  lower bound  work ends at once: memory that waits for other streams (FSDP,\n"
		      "               offloading, prefetching) is given back too early; --late is the\n"
		      "               other extreme\n");
}

/* Was it measured, by profile-card with PyTorch? Kernels take something on every card. */
static bool has_profile(const struct sim_card *card)
{
	return card->first_use_bytes[SIM_CODE_kernels] > 0;
}

static uint64_t device_bytes(const struct simulation *simulation)
{
	return simulation->memory_bytes ? simulation->memory_bytes : simulation->card.memory_bytes;
}

static void add_shared(struct text *out, const struct simulation *simulation, const struct machine *machine)
{
	struct machine_peak peak;
	for (unsigned i = 0; i < simulation->device_count; i++) {
		if (!machine_peak(machine, i, &peak) || peak.process_count < 2)
			continue;
		text_printf(out, "  shared       GPU %u: %llu processes together had at most ", i,
			    (unsigned long long)peak.process_count);
		text_add_size(out, peak.bytes);
		text_add(out, " of its ");
		text_add_size(out, device_bytes(simulation));
		text_add_char(out, '\n');
	}
}

void simulate_add_promise(struct text *out, const struct simulation *simulation, const struct machine *machine)
{
	const struct sim_card *card = &simulation->card;
	const char *spread = output_is_ascii() ? "+-" : "±";
	text_printf(out, "\nThis was simulated: %llu x ", (unsigned long long)simulation->device_count);
	text_add_escaped(out, card->title);
	text_add(out, " with ");
	text_add_size(out, device_bytes(simulation));
	text_printf(out, ", compute capability %d.%d. No GPU computed anything.\n",
		    card->capability / 10, card->capability % 10);
	add_shared(out, simulation, machine);
	text_add(out, "  exact        allocated and reserved by PyTorch, if no value that the GPU\n"
		      "               computes steers the program, and but for what follows\n");
	if (simulation->has_values)
		text_add(out, "  nearly       --values stands between the program and each operator, which moves\n"
			      "               the figures by some 0.01 %, and hides the operators' names and those\n"
			      "               of the backward pass's nodes\n");
	add_bound(out, simulation->is_late);
	text_add(out, "  assumed      CUDA context ");
	text_add_size(out, sim_card_context_bytes(card));
	text_printf(out, " %s ", spread);
	text_add_size(out, card->context_spread_bytes);
	text_add(out, " (");
	text_add_escaped(out, *card->context_source ? card->context_source : "estimated");
	if (sim_card_eager_bytes()) {
		text_add(out, "; ");
		text_add_size(out, sim_card_eager_bytes());
		text_add(out, " of it for CUDA_MODULE_LOADING=EAGER: pytorch#86509");
	}
	text_add(out, ");\n");
	text_add(out, has_profile(card) ?
		      "               what libraries take and workspaces of cuDNN, as that card's profile has\n"
		      "               them; how much of the card's memory the driver leaves\n" :
		      "               workspaces of cuDNN (convolutions: a few per cent); how much of the\n"
		      "               card's memory the driver leaves. A real card of the kind tells:\n"
		      "               memtrace profile-card\n");
	if (simulation->device_count > 1)
		text_add(out, "               buffers of NCCL, by its version and the card's links: measured for\n"
			      "               8 H100 and for 2 and 4 A100, the rest estimated\n");
}
