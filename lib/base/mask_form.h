/* mask_form.h - the forms of a value that mask.h lists. */
#pragma once

#include "mask.h"

typedef void mask_form_each(void *arg, const char *form, size_t length);
/* Calls `each` with every form, some more than once. */
void mask_forms(const struct mask_value *value, mask_form_each *each, void *arg);
