/*
 * Files of communicators that were killed before all their ranks had come: nobody else removes
 * them. Owns the look for them. Must never take one that a process has, nor one that was only just
 * made and is not locked yet, nor what is no such file but only has a name like theirs.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sim_nccl.h"

#define YOUNG_SECONDS 60

/* As ncclGetUniqueId() makes it: 16 digits after `ours`. */
static bool is_room_name(const char *name, const char *ours)
{
	size_t bytes = strlen(ours);

	return strncmp(name, ours, bytes) == 0 && strspn(name + bytes, "0123456789abcdef") == 16 &&
	       name[bytes + 16] == '\0';
}

static bool has_magic(int descriptor)
{
	uint32_t magic;

	return pread(descriptor, &magic, sizeof(magic), 0) == sizeof(magic) &&
	       magic == NCCL_ROOM_MAGIC;
}

/* Each rank that is in it has locked its byte. */
static bool is_left_behind(int descriptor)
{
	struct flock found = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct stat about;

	return fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) &&
	       about.st_uid == geteuid() && time(NULL) - about.st_mtime > YOUNG_SECONDS && has_magic(descriptor) &&
	       fcntl(descriptor, F_GETLK, &found) == 0 && found.l_type == F_UNLCK;
}

static void remove_if_left(const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", NCCL_ROOM_FOLDER, name);
	int descriptor = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (descriptor < 0)
		return;
	if (is_left_behind(descriptor))
		unlink(path);
	close(descriptor);
}

void nccl_room_sweep(void)
{
	static bool is_done;
	char ours[64];
	const struct dirent *entry;

	if (is_done)
		return;
	is_done = true;
	snprintf(ours, sizeof(ours), NCCL_ROOM_PREFIX "nccl-", (unsigned)geteuid());
	DIR *folder = opendir(NCCL_ROOM_FOLDER);
	while (folder != NULL && (entry = readdir(folder)) != NULL)
		if (is_room_name(entry->d_name, ours))
			remove_if_left(entry->d_name);
	if (folder != NULL)
		closedir(folder);
}
