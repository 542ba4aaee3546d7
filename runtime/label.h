/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/label.h - from the label a model picks to the key that names a sandbox; pure */
#pragma once

#include <stddef.h>

#include "runtime/base/err.h"
#include "runtime/spec.h"

enum { LABEL_MAX_BYTES = 256 };

/* The rule as the model is told it: tool description, instructions, and the remedy of a refusal. */
#define LABEL_RULE                                                                        \
	"at the start of a new conversation pick a NEW short label, use it for every call, " \
	"never reuse one from an earlier conversation"

/* How keys of sandboxes that live for one call begin. No label has such a key: a run of separators
 * becomes a single '-'. */
#define KEY_THROWAWAY "once--"

/* label_to_key() - "Amber Otter" -> "amber-otter-1a2b3c". The label is trimmed and lower-cased (ASCII
 * only), every run of other characters becomes one '-'; the digest at the end keeps labels apart
 * that are cut, and those the alphabet cannot express. The key passes str_is_key().
 * Return: 0, -1 (ERR_USAGE) when empty, over LABEL_MAX_BYTES or not UTF-8. */
int label_to_key(const char *label, size_t len, char ret_key[KEY_MAX], struct err *e);
