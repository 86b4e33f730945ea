/* What an errno value means, in words, without the locale and without allocation. */
#ifndef MT_BASE_ERRNO_TEXT_H
#define MT_BASE_ERRNO_TEXT_H

#include <errno.h>

static inline const char *errno_text(int error)
{
	switch (error) {
	case EACCES: return "permission denied";
	case EPERM: return "not permitted";
	case EROFS: return "read-only file system";
	case ENOSPC: return "no space left on the device";
	case EDQUOT: return "disk quota exceeded";
	case EFBIG: return "file size limit reached";
	case ENOENT: return "no such folder";
	case ENOTDIR: return "a part of the path is not a folder";
	case EISDIR: return "it is a folder";
	case EEXIST: return "it exists already";
	case ELOOP: return "it is a symbolic link";
	case ENAMETOOLONG: return "the name is too long";
	case EMFILE:
	case ENFILE: return "too many open files";
	case EBADF: return "the file was closed by the program";
	case ENODEV:
	case EOPNOTSUPP: return "the file system cannot do it";
	case ENOMEM: return "out of memory";
	case EINVAL: return "invalid argument";
	case EIO: return "input/output error";
	default: return "unexpected error";
	}
}

#endif
