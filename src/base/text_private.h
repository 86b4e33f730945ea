/* Shared by text.c and text_printf.c. */
#ifndef MT_BASE_TEXT_PRIVATE_H
#define MT_BASE_TEXT_PRIVATE_H

#include "base/text.h"

void text_add_repeated(struct text *, char c, size_t count);

#endif
