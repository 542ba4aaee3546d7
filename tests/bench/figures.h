/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench/figures.h - time and order statistics of the measuring programs */
#pragma once

#include <stdlib.h>
#include <time.h>

static inline double now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static inline int figures_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* quantile() - sorts the values. */
static inline double quantile(double *values, size_t count, double q)
{
	qsort(values, count, sizeof(values[0]), figures_compare);
	return values[(size_t)((double)(count - 1) * q)];
}
