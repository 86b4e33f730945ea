/* A library for LD_PRELOAD that makes the file system of a trace look worse than it is. NOFRONT says how:
 *
 *   fallocate   posix_fallocate of a .mtrace file is not supported
 *   mmap        nor is a shared mapping of one
 *   remote      it lies on NFS
 *   nowhere     posix_fallocate is supported for no file at all
 *   quota       after 6.5 MiB the user's quota is used up; "quota 0": it is from the start
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define QUOTA_BYTES (13 << 19)

static int is_set(const char *what)
{
	const char *value = getenv("NOFRONT");
	return value && !strcmp(value, what);
}

static int is_trace(int fd)
{
	char link[64], path[4096];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t bytes = readlink(link, path, sizeof path - 1);
	return bytes > 7 && !memcmp(path + bytes - 7, ".mtrace", 7);
}

int posix_fallocate(int fd, off_t offset, off_t bytes)
{
	if (is_set("quota 0") && is_trace(fd))
		return EDQUOT;
	if (is_set("nowhere") || (is_set("fallocate") && is_trace(fd)))
		return EOPNOTSUPP;
	return syscall(SYS_fallocate, fd, 0, offset, bytes) ? errno : 0;
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
	if (is_set("quota") && offset + (off_t)bytes > QUOTA_BYTES && is_trace(fd)) {
		errno = EDQUOT;
		return -1;
	}
	return syscall(SYS_pwrite64, fd, data, bytes, offset);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (fd >= 0 && flags & MAP_SHARED && is_set("mmap") && is_trace(fd)) {
		errno = ENODEV;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

int fstatfs(int fd, struct statfs *facts)
{
	int result = (int)syscall(SYS_fstatfs, fd, facts);
	if (!result && is_set("remote") && is_trace(fd))
		facts->f_type = 0x6969;
	return result;
}
