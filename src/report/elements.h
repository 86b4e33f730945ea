/* How large the elements of the tensors of one category are. Private to report/. */
#ifndef MT_REPORT_ELEMENTS_H
#define MT_REPORT_ELEMENTS_H

#include "model/model.h"

/* Of what was live at the peak; all zero if that had none. */
struct model_elements elements_at_peak(const struct model *, unsigned ordinal, enum model_category);
/* At least nine tenths of the bytes are of a known size. */
bool elements_are_known(const struct model_elements *);
/* The bytes of an element that at least nine tenths of the bytes have; 0: there is no such size. */
unsigned elements_main_bytes(const struct model_elements *);
unsigned elements_main_at_peak(const struct model *, unsigned ordinal, enum model_category);

#endif
