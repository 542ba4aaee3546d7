/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/fuzz.h - one fuzz target; the entry point is libFuzzer's */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* FUZZ_MUST() - a property that no input may break. */
#define FUZZ_MUST(cond)                                                              \
	do {                                                                         \
		if (!(cond)) {                                                       \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);   \
			abort();                                                     \
		}                                                                    \
	} while (0)
