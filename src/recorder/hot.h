/* Marks the functions that every event runs through: the linker puts them side by side, so that an event in a
 * program that does much in between brings in few pages of code. */
#ifndef MT_RECORDER_HOT_H
#define MT_RECORDER_HOT_H

#define MT_HOT __attribute__((hot))

#endif
