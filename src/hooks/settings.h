/* Changes of the settings of PyTorch's allocator while the program runs. */
#ifndef MT_HOOKS_SETTINGS_H
#define MT_HOOKS_SETTINGS_H

#include <stdbool.h>

extern bool settings_changed __attribute__((visibility("hidden")));
void settings_tell_changed(const void *frame);

/* Before a block event: the first that the new settings may have shaped. `frame`: of the hooked function. */
static inline void settings_tell(const void *frame)
{
	if (__builtin_expect(__atomic_load_n(&settings_changed, __ATOMIC_RELAXED), 0))
		settings_tell_changed(frame);
}

#endif
