/*
 * Work on a stream that is over only when other ranks have done theirs: what the stand-in for NCCL
 * and the stand-in driver ask of each other. A gate is a number. The driver knows which streams and
 * events stand behind which gates, so that a host that waits for them waits for the other ranks;
 * the library knows whether a gate is open. They meet through cuGetExportTable, as in sim_watch.h.
 */
#ifndef SIM_GATE_H
#define SIM_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#define SIM_GATE_ID "simgpu gates  1" /* 16 bytes with the zero */

enum sim_gate_state { SIM_GATE_FAILED = -1, SIM_GATE_SHUT = 0, SIM_GATE_OPEN = 1 };

#define SIM_GATE_FOREVER (-1)

/* Called without the driver's lock. */
struct sim_gate_keeper {
	/* Waits for a gate, at most so long: what it is then. What has failed stays so. */
	enum sim_gate_state (*wait)(uint64_t gate, long patience_ms);
	/* Before a small copy or fill of these bytes: what is under way with them comes first. */
	void (*settle)(uint64_t address, size_t bytes);
	const unsigned *shut_count; /* gates that are not open; atomic */
};

struct sim_gate_table {
	size_t bytes; /* of this struct */
	void (*keep)(const struct sim_gate_keeper *keeper);
	/* What is put on the stream from now on stands behind the gate. */
	void (*put)(CUstream stream, uint64_t gate);
	bool (*is_captured)(CUstream stream);
	/* Contents of any size, at once. read: false when nothing was ever stored there. */
	bool (*read)(uint64_t address, void *contents, size_t bytes);
	bool (*write)(uint64_t address, const void *contents, size_t bytes);
	void (*forget)(uint64_t address, size_t bytes); /* it reads as zeros again */
};

#endif
