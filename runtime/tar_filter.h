/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/tar_filter.h - read a foreign tar stream, write the part of it that may be unpacked
 *
 * The host's tar does the unpacking; it cannot count what it leaves out, bound what it writes, or
 * choose extended attributes by policy. This does, header by header: ustar, GNU and pax. It runs in
 * a box (image_box.h) because its input is hostile; what it reports is counts and an enumerated reason.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum tar_verdict {
	TAR_OK,
	TAR_TRUNCATED,   /* ends inside an entry, or without the end mark */
	TAR_MALFORMED,   /* no tar header, a wrong checksum, a number out of range */
	TAR_TOO_BIG,     /* more bytes than max_bytes */
	TAR_TOO_MANY,    /* more entries than max_entries */
	TAR_READ_ERROR,
	TAR_WRITE_ERROR, /* nobody reads: the unpacking side has failed */
	TAR_VERDICT_COUNT,
};

struct tar_policy {
	uint64_t max_bytes;   /* of the whole stream */
	uint64_t max_entries;
	uint32_t max_id;      /* larger ids become nobody's ... */
	uint32_t nobody;      /* ... and this one is always kept */
	bool strip_setid;     /* for a directory of the host: no set-id bits ... */
	bool confine_links;   /* ... and no symbolic link that is absolute or climbs */
	const char *skip;     /* one top-level name that is left out silently; NULL */
};

enum { TAR_SKIPPED_MAX = 4096 }; /* whole blocks */

struct tar_report {
	uint32_t verdict; /* enum tar_verdict */
	uint32_t complete; /* the filter came to its end; anything else is a crash of it */
	uint64_t entries; /* passed on */
	uint64_t bytes;   /* of the input */
	/* left out */
	uint64_t devices, escaping, unknown;
	/* changed */
	uint64_t ids, overlay_xattrs, other_xattrs, setids;
	/* content of the first file of the name to skip; none when it is longer than this */
	char skipped[TAR_SKIPPED_MAX];
	uint32_t skipped_len;
};

/* tar_filter() - copy in_fd to out_fd until the end mark, then read in_fd to its end. */
void tar_filter(int in_fd, int out_fd, const struct tar_policy *policy, struct tar_report *ret);

/* tar_verdict_text() - the sentence for a verdict. */
const char *tar_verdict_text(uint32_t verdict);
