/*
 * A machine that processes share: SIMGPU_MACHINE=name. Each of them has a slot in a file of
 * /dev/shm, with what it has in use on each device; sim_machine.h has its layout, and the locks by
 * which a dead process's memory is free again.
 *
 * The file is of mode 0600 and is taken for a machine only if it is this user's. The last process
 * removes it, if nobody keeps it. Must never wait for anything but that one short lock.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver.h"
#include "sim_machine.h"

static struct {
	struct sim_machine_file *file; /* NULL: this process has a machine of its own */
	int descriptor;
	int slot;
	pid_t pid; /* a forked child has neither slot nor lock */
	char path[128];
} shared = {.descriptor = -1};

/* ---- locks ---- */

/* They are the process's, not inherited, and gone when it closes any descriptor of the file: it has
 * one, and never closes that. */
static bool lock(int byte, bool may_wait)
{
	struct flock wanted = sim_machine_lock(F_WRLCK, byte);
	int result;

	do {
		result = fcntl(shared.descriptor, may_wait ? F_SETLKW : F_SETLK, &wanted);
	} while (result != 0 && errno == EINTR);
	return result == 0;
}

static void unlock(int byte)
{
	struct flock wanted = sim_machine_lock(F_UNLCK, byte);

	fcntl(shared.descriptor, F_SETLK, &wanted);
}

/* The other process that holds a byte; 0: nobody, or it died. */
static pid_t holder(int byte)
{
	struct flock found = sim_machine_lock(F_WRLCK, byte);

	if (fcntl(shared.descriptor, F_GETLK, &found) != 0 ||
	    found.l_type == F_UNLCK)
		return 0;
	return found.l_pid > 0 ? found.l_pid : 1; /* of another pid namespace */
}

static bool is_here(void)
{
	return shared.file != NULL && shared.pid == getpid();
}

/* ---- joining ---- */

static bool make_path(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_.";

	if (strspn(name, allowed) != strlen(name) || strlen(name) > SIM_MACHINE_NAME_BYTES) {
		sim_warn("SIMGPU_MACHINE=%s is no name: letters, digits, - _ .", name);
		return false;
	}
	snprintf(shared.path, sizeof(shared.path), SIM_MACHINE_FOLDER "/" SIM_MACHINE_PREFIX "%s",
		 (unsigned)geteuid(), name);
	return true;
}

/* Opens the file, and takes the first lock. False: it is not ours, or cannot be made. */
static bool open_locked(void)
{
	struct stat about;

	for (;;) {
		shared.descriptor = open(shared.path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (shared.descriptor < 0 || fstat(shared.descriptor, &about) != 0 ||
		    !S_ISREG(about.st_mode) || about.st_uid != geteuid() || !lock(SIM_MACHINE_GATE, true))
			return false;
		if (fstat(shared.descriptor, &about) == 0 && about.st_nlink > 0)
			break;
		close(shared.descriptor); /* the last process of it has just removed it */
	}
	return posix_fallocate(shared.descriptor, 0, sizeof(struct sim_machine_file)) == 0;
}

static bool take_slot(void)
{
	for (int i = 0; i < SIM_MACHINE_SLOTS; i++) {
		if (!lock(SIM_MACHINE_FIRST_SLOT + i, false))
			continue;
		memset(&shared.file->slots[i], 0, sizeof(shared.file->slots[i]));
		shared.slot = i;
		return true;
	}
	return false;
}

static void remove_if_last(void)
{
	if (!is_here() || !lock(SIM_MACHINE_GATE, true))
		return;
	bool is_last = holder(SIM_MACHINE_KEEPER) == 0;
	for (int i = 0; i < SIM_MACHINE_SLOTS; i++)
		is_last = is_last && holder(SIM_MACHINE_FIRST_SLOT + i) == 0;
	if (is_last)
		unlink(shared.path);
	unlock(SIM_MACHINE_GATE);
}

static bool join(void)
{
	if (!open_locked())
		return false;
	void *mapped = mmap(NULL, sizeof(struct sim_machine_file), PROT_READ | PROT_WRITE, MAP_SHARED,
			    shared.descriptor, 0);
	if (mapped == MAP_FAILED)
		return false;
	shared.file = mapped;
	shared.slot = -1;
	bool has_slot = take_slot();
	unlock(SIM_MACHINE_GATE);
	if (!has_slot)
		shared.file = NULL;
	return has_slot;
}

void machine_join(void)
{
	const char *name = getenv("SIMGPU_MACHINE");

	if (name == NULL || *name == '\0' || !make_path(name))
		return;
	if (join()) {
		shared.pid = getpid();
		atexit(remove_if_last);
		return;
	}
	sim_warn("%s cannot be shared (%s): this process has a machine of its own", shared.path,
		 strerror(errno));
	if (shared.descriptor >= 0)
		close(shared.descriptor);
	shared.descriptor = -1;
}

/* ---- the account ---- */

bool machine_lock(void)
{
	return is_here() && lock(SIM_MACHINE_GATE, true);
}

void machine_unlock(void)
{
	if (is_here())
		unlock(SIM_MACHINE_GATE);
}

void machine_set_used(int place, size_t bytes)
{
	if (is_here())
		__atomic_store_n(&shared.file->slots[shared.slot].used_bytes[place], bytes,
				 __ATOMIC_RELAXED);
}

void machine_note_peak(int place, size_t bytes, unsigned process_count)
{
	if (!is_here() || bytes <= shared.file->peak_bytes[place])
		return;
	shared.file->peak_bytes[place] = bytes;
	shared.file->peak_process_count[place] = process_count;
}

void machine_note_host_short(void)
{
	if (is_here())
		shared.file->is_host_short = 1;
}

unsigned machine_others(int place, struct sim_process *list, unsigned room)
{
	unsigned count = 0;

	for (int i = 0; is_here() && i < SIM_MACHINE_SLOTS && count < room; i++) {
		const uint64_t *used_bytes = &shared.file->slots[i].used_bytes[place];
		size_t bytes = __atomic_load_n(used_bytes, __ATOMIC_RELAXED);
		bool is_other = bytes > 0 && i != shared.slot;
		pid_t pid = is_other ? holder(SIM_MACHINE_FIRST_SLOT + i) : 0;

		if (pid > 0)
			list[count++] = (struct sim_process){(unsigned)pid, bytes};
	}
	return count;
}

size_t machine_others_bytes(int place, unsigned *count)
{
	struct sim_process list[SIM_MACHINE_SLOTS];
	unsigned found = machine_others(place, list, SIM_MACHINE_SLOTS);
	size_t bytes = 0;

	for (unsigned i = 0; i < found; i++)
		bytes += list[i].used_bytes;
	if (count != NULL)
		*count = found;
	return bytes;
}
