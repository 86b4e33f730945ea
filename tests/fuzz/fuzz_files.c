/* Feeds what is read of small files that others write anything: the boot's id, a command line with its zeros, the file of
 * a program that left no trace, and CUDA_VISIBLE_DEVICES. All get the same input. What is taken from a text must end in
 * its room. */
#define _GNU_SOURCE
#include "replay.h"

#include <stdarg.h>
#include <sys/mman.h>

/* Their readers are their own: they are built into this. */
#include "cli/run_program.c"
#include "recorder/notes.c"
#include "recorder/nvml.c"

static const uint8_t *content;
static size_t content_bytes;

/* Linked with --wrap=open: every file that is read holds the input. */
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	va_list more;
	va_start(more, flags);
	int mode = flags & O_CREAT ? va_arg(more, int) : 0;
	va_end(more);
	if (!content)
		return __real_open(path, flags, mode);
	int fd = memfd_create("content", MFD_CLOEXEC);
	if (fd >= 0 && pwrite(fd, content, content_bytes, 0) != (ssize_t)content_bytes)
		abort();
	return fd;
}

/* ---------- what they need of others ---------- */

static char told[1 << 15];

void tell(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(told, sizeof told, format, arguments);
	va_end(arguments);
}

void intern_info(struct session *session, enum memtrace_info info, const char *value)
{
	(void)session;
	if (info == MEMTRACE_INFO_ARGUMENT && strlen(value) >= CMDLINE_BYTES)
		abort();
}

bool intern_try_info(struct session *session, enum memtrace_info info, const char *value)
{
	intern_info(session, info, value);
	return true;
}

const char *python_version(void)
{
	return NULL;
}

void name_stacks(struct session *session)
{
	(void)session;
}

const uint8_t *device_uuid(unsigned ordinal)
{
	(void)ordinal;
	return NULL;
}

uint64_t device_total_bytes(unsigned ordinal)
{
	(void)ordinal;
	return 0;
}

/* ---------- a machine with four devices ---------- */

#define DEVICES 4

static struct device_handle *const some_handle = (struct device_handle *)told;

static int give_by_index(unsigned index, struct device_handle **handle)
{
	if (index >= DEVICES)
		abort();
	*handle = some_handle;
	return 0;
}

static int give_by_uuid(const char *uuid, struct device_handle **handle)
{
	if (strlen(uuid) >= 2 * UUID_TEXT_BYTES || strchr(uuid, ','))
		abort();
	*handle = some_handle;
	return 0;
}

static void check_devices(const char *text)
{
	setenv("CUDA_VISIBLE_DEVICES", text, 1);
	setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
	nvml_read_environment();
	api.by_index = give_by_index;
	api.by_uuid = give_by_uuid;
	for (unsigned ordinal = 0; ordinal < DEVICES_MAX; ordinal++)
		find_by_order(ordinal, DEVICES);
}

/* ---------- the rest ---------- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char id[64];
	char *text = strndup((const char *)data, bytes);
	content = data;
	content_bytes = bytes;
	proc_boot_id(id, sizeof id);
	if (!memchr(id, 0, sizeof id) || strchr(id, '\n'))
		abort();
	tell_arguments(NULL);
	program_explain_silence("/bin/sh");
	content = NULL;
	check_devices(text);
	free(text);
	return 0;
}
