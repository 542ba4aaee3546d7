/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/attack/image.S - the finished attacking program as bytes of the command line */
#ifdef __CET__
#include <cet.h> /* the note that keeps the linked program marked for CET */
#endif

	.section .rodata
	.balign 16
	.globl attack_image
	.hidden attack_image
	.type attack_image, %object
attack_image:
	.incbin ATTACK_FILE
	.globl attack_image_end
	.hidden attack_image_end
attack_image_end:
	.size attack_image, . - attack_image

	.section .note.GNU-stack, "", %progbits
