/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_handover.c - a memory file that another build wrote, or nobody, is not believed
 *
 * tests/sys/test_adopt.c has the handover that works.
 */
#include <fcntl.h>

#include "runtime/base/fd.h"
#include "runtime/handover.h"
#include "runtime/handover_rows.h"
#include "tests/unit/tap.h"

static struct handover_head good;
static unsigned char bytes[sizeof(struct handover_head) + 64 + PEER_MAX * sizeof(struct handover_peer)];

/* What stands in the file: a head, two descriptors, rows of free peers. */
static size_t fill(const struct handover_head *head, const int32_t fds[2])
{
	struct handover_peer none = { .fd = -1 };
	size_t at = 0;

	memcpy(bytes, head, sizeof(*head));
	at += sizeof(*head);
	memcpy(bytes + at, fds, 2 * sizeof(*fds));
	at += 2 * sizeof(*fds);
	at += handover_pad(at);
	for (int i = 0; i < PEER_MAX; i++, at += sizeof(none))
		memcpy(bytes + at, &none, sizeof(none));
	return at;
}

static struct handover *open_with(const void *data, size_t len)
{
	char number[16];
	int fd = fd_memfd_sealed("handover", data, len, 0400, false);

	if (fd < 0)
		tap_bail("memory file");
	(void)snprintf(number, sizeof(number), "%d", fd);
	(void)setenv(HANDOVER_MARKER, number, 1);
	return handover_open();
}

static void make_fds(int32_t fds[2])
{
	fds[0] = open("/dev/null", O_RDONLY);
	fds[1] = open("/dev/null", O_RDONLY);
}

static bool are_closed(const int32_t fds[2])
{
	return fcntl(fds[0], F_GETFD) < 0 && fcntl(fds[1], F_GETFD) < 0;
}

static void test_refused(void)
{
	static const struct {
		const char *desc;
		size_t field, cut;
	} rows[] = {
		{ "another version", offsetof(struct handover_head, version), 0 },
		{ "another layout", offsetof(struct handover_head, layout), 0 },
		{ "another number of peers", offsetof(struct handover_head, peers), 0 },
		{ "more commands than there are", offsetof(struct handover_head, commands), 0 },
		{ "more notes than there are", offsetof(struct handover_head, notes), 0 },
		{ "cut short", SIZE_MAX, 8 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct handover_head head = good;
		int32_t fds[2];
		size_t len;

		make_fds(fds);
		len = fill(&head, fds) - rows[i].cut;
		if (rows[i].field != SIZE_MAX)
			bytes[rows[i].field] ^= 1;
		tap_ok(open_with(bytes, len) == NULL, "%s: refused", rows[i].desc);
		tap_ok(are_closed(fds), "%s: its descriptors are closed", rows[i].desc);
	}
}

static void test_nothing(void)
{
	static const char *const numbers[] = { "", "x", "-1", "0", "2", "99999", "99999999999" };

	(void)unsetenv(HANDOVER_MARKER);
	tap_ok(handover_open() == NULL, "no marker");
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		(void)setenv(HANDOVER_MARKER, numbers[i], 1);
		tap_ok(handover_open() == NULL && !getenv(HANDOVER_MARKER), "marker \"%s\"", numbers[i]);
	}
	tap_ok(open_with("short", 5) == NULL, "a file that is no handover");
}

static void test_good(void)
{
	struct handover_head head = good;
	struct handover *h;
	int32_t fds[2];
	pid_t pid = 0;
	size_t len;

	make_fds(fds);
	head.lock_count = 2;
	len = fill(&head, fds);
	h = open_with(bytes, len);
	tap_ok(h != NULL, "one of this build is taken");
	tap_int(handover_front(h, &pid), -1, "without a front in it");
	tap_ok(fcntl(fds[0], F_GETFD) == FD_CLOEXEC, "its descriptors go no further");
	handover_done(h);
	tap_ok(are_closed(fds), "locks that nobody wanted are let go of");
}

int main(void)
{
	good = (struct handover_head){ .magic = HANDOVER_MAGIC, .fd_count = 2, .version = HANDOVER_VERSION,
				       .layout = handover_layout(), .peers = PEER_MAX };
	test_nothing();
	test_refused();
	test_good();
	return tap_done();
}
