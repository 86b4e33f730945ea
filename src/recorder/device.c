/* Owns a small table of device names and sizes. Two threads that learn at once learn the same. */
#include "recorder/device.h"

#include <stdbool.h>
#include <string.h>

#include "recorder/intern.h"

#define DEVICES_MAX 16
#define NAME_BYTES 128

static struct known_device {
	char name[NAME_BYTES];
	uint64_t total_bytes;
	uint8_t uuid[DEVICE_UUID_BYTES];
	bool has_uuid;
} known[DEVICES_MAX];

void device_learn(unsigned ordinal, const char *name, uint64_t total_bytes)
{
	if (ordinal >= DEVICES_MAX)
		return;
	if (name && !known[ordinal].name[0])
		strncpy(known[ordinal].name, name, NAME_BYTES - 1);
	if (total_bytes)
		known[ordinal].total_bytes = total_bytes;
}

void device_learn_uuid(unsigned ordinal, const void *uuid)
{
	static const uint8_t none[DEVICE_UUID_BYTES];
	if (ordinal >= DEVICES_MAX || device_uuid(ordinal) || !memcmp(uuid, none, sizeof none))
		return;
	memcpy(known[ordinal].uuid, uuid, DEVICE_UUID_BYTES);
	__atomic_store_n(&known[ordinal].has_uuid, true, __ATOMIC_RELEASE);
}

const uint8_t *device_uuid(unsigned ordinal)
{
	return ordinal < DEVICES_MAX && __atomic_load_n(&known[ordinal].has_uuid, __ATOMIC_ACQUIRE)
		       ? known[ordinal].uuid
		       : NULL;
}

uint64_t device_total_bytes(unsigned ordinal)
{
	return ordinal < DEVICES_MAX ? known[ordinal].total_bytes : 0;
}

void device_define_all(struct session *session)
{
	for (unsigned i = 0; i < DEVICES_MAX; i++)
		if (known[i].name[0] || known[i].total_bytes)
			intern_device(session, i, known[i].name[0] ? known[i].name : NULL, known[i].total_bytes);
}
