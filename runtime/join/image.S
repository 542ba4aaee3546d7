/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/join/image.S - the finished joiner as bytes of the keeper */
#ifdef __CET__
#include <cet.h> /* the note that keeps the linked program marked for CET */
#endif

	.section .rodata
	.balign 16
	.globl enter_join_image
	.hidden enter_join_image
	.type enter_join_image, %object
enter_join_image:
	.incbin JOIN_FILE
	.globl enter_join_image_end
	.hidden enter_join_image_end
enter_join_image_end:
	.size enter_join_image, . - enter_join_image

	.section .note.GNU-stack, "", %progbits
