/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/init/image.S - the finished process 1 as bytes of the keeper */
#ifdef __CET__
#include <cet.h> /* the note that keeps the linked program marked for CET */
#endif

	.section .rodata
	.balign 16
	.globl launch_init_image
	.hidden launch_init_image
	.type launch_init_image, %object
launch_init_image:
	.incbin INIT_FILE
	.globl launch_init_image_end
	.hidden launch_init_image_end
launch_init_image_end:
	.size launch_init_image, . - launch_init_image

	.section .note.GNU-stack, "", %progbits
