/* runtime_calls against the runtime of CUDA 11: its functions have another version node, and are
 * other functions. */
#define NODE 11
#include "runtime_calls.c"
