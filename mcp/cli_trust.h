/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_trust.h - SANDBOX_EXTRA_CA: the operator's file of certificates */
#pragma once

#include "runtime/base/buf.h"
#include "runtime/base/err.h"
#include "runtime/spec.h"

enum { TRUST_FILE_MAX = 256 * 1024 };

/* trust_parse() - the certificates in a PEM text, written anew one after the other; what stands between
 * them is left out. Refused: anything else in PEM (a private key above all), what is not base64 of one
 * DER value, none at all, more than TRUST_MAX. Pure. Return: 0 with ret->count and ends filled, -1. */
int trust_parse(const char *text, size_t len, struct trust *ret, struct buf *out, struct err *e);

/* trust_open() - the same of a file, sealed in memory. Return: 0, -1 (ERR_CONFIG). */
int trust_open(const char *path, struct trust *ret, struct err *e);
void trust_done(struct trust *t);
