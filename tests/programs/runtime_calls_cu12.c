/* runtime_calls against the runtime of CUDA 12: its functions have another version node, and are
 * other functions. */
#define NODE 12
#include "runtime_calls.c"
