/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/test_launch.c - a created sandbox is what launch.c says, and leaves nothing behind */
#include "tests/sys/box.h"

static void test_ready(struct box *b)
{
	if (!tap_int(box_start(b), 0, "a sandbox becomes ready")) {
		tap_diag("%s | %s", b->e.message, b->e.remedy);
		return;
	}
	tap_int(b->l.replaced, 0, "nothing had to be renamed aside");
	tap_int(box_inside(b, true, box_cat, (void *)(uintptr_t) "/etc/passwd"), 0, "joining works");
	tap_str(b->text, "root:x:0:0:root:/root:/bin/bash\n", "the image is the root");
	box_end(b);
}

int main(int argc, char **argv)
{
	static struct box b;

	(void)argc;
	box_enter(argv);
	box_open(&b);
	test_ready(&b);
	box_close(&b);
	return tap_done();
}
