/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/fuzz_tar.c - what the archive filter lets pass, it lets pass again, byte for byte
 *
 * So nothing it writes can be read in two ways, at least not by itself. Checksums are put right first, or
 * hardly any changed input would get beyond them.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/buf.h"
#include "runtime/tar_filter.h"
#include "runtime/tar_header.h"
#include "tests/fuzz/fuzz.h"

enum { OUTPUT_MAX = 4 * 1024 * 1024 };

static const struct tar_policy policy = { .max_bytes = 1024 * 1024, .max_entries = 1000,
					  .max_id = 59999, .nobody = 65534, .skip = "skipped",
					  .strip_setid = true, .confine_links = true };

static int memory_file(const void *data, size_t len)
{
	int fd = memfd_create("tar", MFD_CLOEXEC);

	FUZZ_MUST(fd >= 0 && pwrite(fd, data, len, 0) == (ssize_t)len);
	return fd;
}

static struct tar_report filter(const void *data, size_t len, struct buf *out)
{
	int in_fd = memory_file(data, len), out_fd = memory_file("", 0);
	struct tar_report report;
	char text[65536];
	ssize_t n;

	tar_filter(in_fd, out_fd, &policy, &report);
	FUZZ_MUST(lseek(out_fd, 0, SEEK_SET) == 0);
	while ((n = read(out_fd, text, sizeof(text))) > 0)
		FUZZ_MUST(buf_append(out, text, (size_t)n) == 0);
	close(in_fd);
	close(out_fd);
	return report;
}

static void mend_checksums(char *data, size_t len)
{
	for (size_t at = 0; at + TAR_BLOCK <= len; at += TAR_BLOCK) {
		struct tar_header h;

		memcpy(&h, data + at, sizeof(h));
		if (memcmp(h.magic, "ustar", 5) != 0)
			continue;
		tar_write_checksum(&h);
		memcpy(data + at, &h, sizeof(h));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tar_report first, second;
	struct buf once, twice;
	char *copy = malloc(size + 1);

	FUZZ_MUST(copy);
	memcpy(copy, data, size);
	mend_checksums(copy, size);
	buf_init(&once, OUTPUT_MAX);
	buf_init(&twice, OUTPUT_MAX);
	first = filter(copy, size, &once);
	FUZZ_MUST(first.complete && first.verdict < TAR_VERDICT_COUNT && first.bytes <= size);
	if (first.verdict == TAR_OK) {
		second = filter(once.data, once.len, &twice);
		FUZZ_MUST(second.verdict == TAR_OK && second.entries == first.entries);
		FUZZ_MUST(second.devices + second.escaping + second.unknown + second.ids +
				  second.overlay_xattrs + second.other_xattrs + second.setids ==
			  0);
		FUZZ_MUST(twice.len == once.len && memcmp(twice.data, once.data, once.len) == 0);
	}
	buf_done(&once);
	buf_done(&twice);
	free(copy);
	return 0;
}
