/* Owns the choice of a place for a front that cannot lie in its trace. It must never take more than a small part of
 * a memory-backed folder, or remove a file that is not the one it made. */
#include "trace/front_place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

#define MEMORY_SHARE 8 /* of what is free in a memory-backed folder */

/* f_type of statfs(2): what is on another machine, or served by a process that may end. */
static const uint32_t remote_types[] = {
	0x6969,     /* NFS */
	0x65735546, /* FUSE: sshfs, s3fs, gcsfuse … */
	0x01021997, /* 9p */
	0xff534d42, /* CIFS */
	0xfe534d42, /* SMB 2 */
	0x00c36400, /* Ceph */
	0x0bd00bd0, /* Lustre */
	0x47504653, /* GPFS */
	0x5346414f, /* AFS */
	0x19830326, /* BeeGFS */
	0x7461636f, /* OCFS2 */
	0x01161970, /* GFS2 */
	0x786f4256, /* a virtual machine's shared folder */
};

bool front_place_is_remote(int fd)
{
	struct statfs facts;
	if (fstatfs(fd, &facts))
		return false;
	for (size_t i = 0; i < sizeof remote_types / sizeof *remote_types; i++)
		if ((uint32_t)facts.f_type == remote_types[i])
			return true;
	return false;
}

bool front_place_cannot(int error)
{
	return error == -EOPNOTSUPP || error == -ENODEV || error == -ENOSYS || error == -EINVAL;
}

static bool has_room(const char *folder, uint64_t bytes, unsigned share)
{
	struct statfs facts;
	return !statfs(folder, &facts) && bytes <= (uint64_t)facts.f_bavail * (uint64_t)facts.f_bsize / share;
}

static void make_name(char *path, size_t path_bytes, const char *folder)
{
	struct timespec now;
	struct text text;
	clock_gettime(CLOCK_REALTIME, &now);
	text_init_fixed(&text, path, path_bytes);
	text_printf(&text, "%s/memtrace-%d-%llx.front", folder, (int)getpid(),
		    (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec);
	text_string(&text);
}

/* Absolute, short enough to be kept in a header, with room, and on this machine. */
static int create_in(struct sink *sink, const char *folder, char *path, size_t path_bytes, uint64_t bytes, unsigned share)
{
	if (!folder || *folder != '/' || strlen(folder) + 64 > path_bytes || !has_room(folder, bytes, share))
		return -ENOENT;
	make_name(path, path_bytes, folder);
	int error = sink_create(sink, path);
	if (error)
		return error;
	error = front_place_is_remote(sink->fd) ? -ENODEV : sink_reserve(sink, 0, bytes);
	if (error) {
		front_place_remove(sink, path);
		sink_close(sink);
	}
	return error;
}

int front_place_create(struct sink *sink, char *path, size_t path_bytes, uint64_t front_bytes)
{
	const struct {
		const char *folder;
		unsigned share;
	} places[] = { { getenv("TMPDIR"), 1 }, { "/dev/shm", MEMORY_SHARE }, { "/tmp", 1 } };
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (!create_in(sink, places[i].folder, path, path_bytes, front_bytes, places[i].share))
			return 0;
	*path = 0;
	return -ENODEV;
}

void front_place_remove(struct sink *sink, const char *path)
{
	struct stat facts;
	if (!lstat(path, &facts) && facts.st_dev == sink->device && facts.st_ino == sink->inode)
		unlink(path);
}
