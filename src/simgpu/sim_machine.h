/*
 * A machine that processes share (SIMGPU_MACHINE=name): the layout of its file, so that who started them
 * can keep it, read it and remove it.
 *
 * A process that has a slot holds a lock (of fcntl) on that slot's byte of the file; who keeps the file,
 * on the keeper's.  The kernel gives them back when a process dies.  The gate is held around a look at
 * what is free and the taking of it, and while the file is removed.
 */
#ifndef SIMGPU_SIM_MACHINE_H
#define SIMGPU_SIM_MACHINE_H

#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#define SIM_MACHINE_DEVICES    16
#define SIM_MACHINE_SLOTS      128
#define SIM_MACHINE_NAME_BYTES 64
/* Of the user's id and the machine's name. */
#define SIM_MACHINE_FOLDER "/dev/shm"
#define SIM_MACHINE_PREFIX "simgpu-%u-"

enum { SIM_MACHINE_GATE, SIM_MACHINE_KEEPER, SIM_MACHINE_FIRST_SLOT };

struct sim_machine_file {
	uint64_t peak_bytes[SIM_MACHINE_DEVICES]; /* of all processes together */
	uint64_t peak_process_count[SIM_MACHINE_DEVICES];
	uint64_t is_host_short; /* a process found no address space for what it was to have */
	struct {
		uint64_t used_bytes[SIM_MACHINE_DEVICES];
	} slots[SIM_MACHINE_SLOTS];
};

static inline struct flock sim_machine_lock(short type, int byte)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
}

#endif
