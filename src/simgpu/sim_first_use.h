/*
 * How a library tells the driver that its code is used: what that takes of the device is charged
 * once a context.  Past the CUDA API, because on a card it is no call that anyone could see.
 */
#ifndef SIM_FIRST_USE_H
#define SIM_FIRST_USE_H

#include "sim_api.h"
#include "sim_card.h"

/* 0, or -1 when the device has no room for it. Of the calling thread's context; without one nothing
 * is charged yet. */
SIM_EXPORT int simgpuFirstUse(int code);

#pragma GCC visibility push(hidden)

/* The same from another library than the driver. */
int sim_first_use(enum sim_code code);

#pragma GCC visibility pop

#endif
