/* Traces for fuzzers: an input is either a trace file as it is (it begins like one), or a little program that builds
 * one (trace_steps.c). trace_seeds.c writes some of these programs. */
#ifndef TESTS_TRACE_STEPS_H
#define TESTS_TRACE_STEPS_H

#include <stddef.h>
#include <stdint.h>

#include "../unit/build_trace.h"

/* Valid until the next call. */
const unsigned char *trace_of_steps(const uint8_t *data, size_t bytes, size_t *trace_bytes);
void write_trace_seeds(const char *directory);

#endif
