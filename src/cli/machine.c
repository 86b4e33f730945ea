/* The file of a simulated machine. Owns its making, keeping and removal; what stands in it is the simulated
 * driver's. Must never remove one that a process uses. */
#include "cli/machine.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/output.h"

#define OURS SIM_MACHINE_PREFIX "memtrace-"

static bool lock(int descriptor, int byte, int how)
{
	struct flock wanted = sim_machine_lock(F_WRLCK, byte);
	return !fcntl(descriptor, how, &wanted);
}

/* Nobody: no process is in it, and nobody keeps it. Who enters waits for the gate. */
static bool is_used(int descriptor)
{
	struct flock found = sim_machine_lock(F_WRLCK, SIM_MACHINE_KEEPER);
	found.l_len = 0; /* to the end */
	return !lock(descriptor, SIM_MACHINE_GATE, F_SETLK) || fcntl(descriptor, F_GETLK, &found) ||
	       found.l_type != F_UNLCK;
}

static void remove_unused(const char *name)
{
	char path[300];
	snprintf(path, sizeof path, "%s/%s", SIM_MACHINE_FOLDER, name);
	int descriptor = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (descriptor < 0)
		return;
	if (!is_used(descriptor))
		unlink(path);
	close(descriptor);
}

/* Once, before we have one ourselves: to a process its own locks are none, and closing a file ends them. */
static void sweep(void)
{
	static bool is_done;
	char ours[64];
	if (is_done)
		return;
	is_done = true;
	const struct dirent *entry;
	DIR *folder = opendir(SIM_MACHINE_FOLDER);
	snprintf(ours, sizeof ours, OURS, (unsigned)geteuid());
	while (folder && (entry = readdir(folder)))
		if (!strncmp(entry->d_name, ours, strlen(ours)))
			remove_unused(entry->d_name);
	if (folder)
		closedir(folder);
}

/* Kept; -ENOENT: another's sweep has just taken it for unused. */
static int keep(int descriptor)
{
	struct flock gate = sim_machine_lock(F_UNLCK, SIM_MACHINE_GATE);
	struct stat file;
	if (!lock(descriptor, SIM_MACHINE_KEEPER, F_SETLK) || !lock(descriptor, SIM_MACHINE_GATE, F_SETLKW) ||
	    fstat(descriptor, &file))
		return -errno;
	fcntl(descriptor, F_SETLK, &gate);
	return file.st_nlink ? 0 : -ENOENT;
}

static int make(struct machine *machine)
{
	int error;
	do {
		machine->descriptor = open(machine->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (machine->descriptor < 0)
			return -errno;
		error = keep(machine->descriptor);
		if (error == -ENOENT)
			close(machine->descriptor);
	} while (error == -ENOENT);
	return error ? error : -posix_fallocate(machine->descriptor, 0, sizeof(struct sim_machine_file));
}

static void tell_once(const char *path, int error)
{
	static bool is_told;
	if (!is_told)
		tell("%s: %s; processes of the program that use the same simulated GPU will not see each other's memory",
		     path, strerror(error));
	is_told = true;
}

bool machine_open(struct machine *machine, const char *id)
{
	snprintf(machine->path, sizeof machine->path, SIM_MACHINE_FOLDER "/" OURS "%s", (unsigned)geteuid(), id);
	machine->name = strstr(machine->path, "memtrace-");
	sweep();
	int error = make(machine);
	if (!error)
		return true;
	tell_once(machine->path, -error);
	machine_close(machine);
	return false;
}

/* NULL: it cannot be read. */
static const struct sim_machine_file *read_file(const struct machine *machine)
{
	static struct sim_machine_file file;
	bool is_read = machine->name && pread(machine->descriptor, &file, sizeof file, 0) == (ssize_t)sizeof file;
	return is_read ? &file : NULL;
}

bool machine_peak(const struct machine *machine, unsigned device, struct machine_peak *peak)
{
	const struct sim_machine_file *file = device < SIM_MACHINE_DEVICES ? read_file(machine) : NULL;
	if (file)
		*peak = (struct machine_peak){file->peak_bytes[device], file->peak_process_count[device]};
	return file && peak->bytes;
}

bool machine_is_host_short(const struct machine *machine)
{
	const struct sim_machine_file *file = read_file(machine);
	return file && file->is_host_short;
}

void machine_close(struct machine *machine)
{
	if (machine->name && machine->descriptor >= 0) {
		unlink(machine->path);
		close(machine->descriptor);
	}
	*machine = (struct machine){.descriptor = -1};
}
