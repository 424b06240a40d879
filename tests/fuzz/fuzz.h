/* fuzz.h - what a fuzz target offers (libFuzzer's interface) and how it complains. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* A broken promise: say which and stop, so that the driver keeps the input. */
#define PROMISE(condition)                                                                        \
	do {                                                                                      \
		if (!(condition)) {                                                               \
			fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition);    \
			abort();                                                                  \
		}                                                                                 \
	} while (0)
