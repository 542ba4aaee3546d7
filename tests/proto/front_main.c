/* SPDX-License-Identifier: Apache-2.0 */
/* tests/proto/front_main.c - the front alone, as a program: "front @front ID" like the real one */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "mcp/front.h"
#include "mcp/tools.h"
#include "runtime/base/log.h"

int main(int argc, char **argv)
{
	struct err e;
	int status;

	log_init("front", LOG_LEVEL_WARN);
	status = front_stdio(argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : FRONT_KEEP_ID,
			     &sandbox_registry, &e);
	if (status < 0) {
		fprintf(stderr, "front: %s\n", e.message);
		return 1;
	}
	return status;
}
