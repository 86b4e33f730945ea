/* Bytes and calls of one kind of memory. Sums are modulo 2^64 and so always undo exactly; a single
 * allocation is at most BYTES_MAX, so that only a made-up trace can wrap one. */
#include "model/model_private.h"

uint64_t bytes_change(uint64_t bytes, enum change change, uint64_t by)
{
	return change == CHANGE_OBTAINED || change == CHANGE_KEPT ? bytes + by : bytes - by;
}

void meter_change(struct meter *meter, enum change change, uint64_t bytes)
{
	meter->live_bytes = bytes_change(meter->live_bytes, change, bytes);
	if (meter->live_bytes > meter->peak_bytes && change != CHANGE_GIVEN_BACK)
		meter->peak_bytes = meter->live_bytes;
	switch (change) {
	case CHANGE_OBTAINED:
		meter->total_bytes += bytes;
		meter->allocations++;
		break;
	case CHANGE_GIVEN_BACK:
		meter->frees++;
		break;
	case CHANGE_KEPT:
		meter->frees--;
		break;
	case CHANGE_WITHDRAWN:
		meter->total_bytes -= bytes;
		meter->allocations--;
		break;
	}
}
