/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_sources.c - which hosts an image's own apt sources name
 *
 * image_apt_hosts() runs in the command line before it serves; the files, which may come from an imported
 * image, are read and parsed in a forked worker without any right (helper.h). What it answers is checked
 * like a setting.
 */
#include "runtime/image_sources.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"
#include "runtime/helper.h"
#include "runtime/net_policy.h"

enum { SOURCE_FILE_MAX = 64 * 1024, SOURCE_FILES_MAX = 64 };

/* ---- text ---- */

/* The host of "http://host[:port]/path"; NULL: not such a word. */
static const char *host_of(const char *word, size_t len, size_t *ret_len)
{
	static const char *const schemes[] = { "http://", "https://" };

	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		size_t skip = strlen(schemes[i]);

		if (len <= skip || strncmp(word, schemes[i], skip) != 0)
			continue;
		*ret_len = strcspn(word + skip, "/ \t\r\n");
		return word + skip;
	}
	return NULL;
}

static void add_host(const char *host, size_t len, char ret[NET_APT_HOSTS_MAX])
{
	size_t used = strlen(ret);
	struct net_dest dest;
	char text[NET_NAME_MAX + 8];
	uint16_t port;

	if (len >= sizeof(text) ||
	    net_dest_port_parse(host, len, NET_PORT_WEB, &dest, &port) < 0 ||
	    (!dest.is_address && !strchr(dest.name, '.')))
		return;
	memcpy(text, host, len);
	text[len] = '\0';
	if (net_policy_uses(ret, text) || used + len + 2 > NET_APT_HOSTS_MAX)
		return;
	if (used > 0)
		ret[used++] = ',';
	memcpy(ret + used, text, len + 1);
}

void image_apt_scan(const char *text, char ret[NET_APT_HOSTS_MAX])
{
	while (*text) {
		size_t line = strcspn(text, "\n"), at = strspn(text, " \t");

		while (at < line && text[at] != '#') {
			size_t word = strcspn(text + at, " \t\r\n"), len;
			const char *host = host_of(text + at, word, &len);

			if (host)
				add_host(host, len, ret);
			at += word;
			at += strspn(text + at, " \t\r");
		}
		text += line;
		text += *text == '\n';
	}
}

/* ---- the worker ---- */

static void scan_file(int dir_fd, const char *name, char ret[NET_APT_HOSTS_MAX])
{
	static char text[SOURCE_FILE_MAX + 1];
	_cleanup_fd_ int fd = fd_open_beneath(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	n = fd_read_full(fd, text, SOURCE_FILE_MAX);
	if (n <= 0)
		return;
	text[n] = '\0';
	image_apt_scan(text, ret);
}

static bool has_ending(const char *name, const char *ending)
{
	size_t len = strlen(name), end = strlen(ending);

	return len > end && strcmp(name + len - end, ending) == 0;
}

static void scan_directory(int root_fd, char ret[NET_APT_HOSTS_MAX])
{
	int fd = fd_open_beneath(root_fd, "etc/apt/sources.list.d", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	unsigned int count = 0;

	if (!dir) {
		close_fd(&fd);
		return;
	}
	while ((entry = readdir(dir)) && count++ < SOURCE_FILES_MAX) {
		if (has_ending(entry->d_name, ".list") || has_ending(entry->d_name, ".sources"))
			scan_file(fd, entry->d_name, ret);
	}
	(void)closedir(dir);
}

static void __attribute__((noreturn)) work(const struct idrange *ids, int root_fd, int answer_fd)
{
	char hosts[NET_APT_HOSTS_MAX] = "";
	int keep[] = { root_fd, answer_fd };
	struct err e = { 0 };

	if (helper_enter(ids, keep, ARRAY_SIZE(keep), 0, &e) < 0) {
		log_error("apt sources: %s", e.message);
		_exit(1);
	}
	scan_file(keep[0], "etc/apt/sources.list", hosts);
	scan_directory(keep[0], hosts);
	_exit(fd_write_full(keep[1], hosts, strlen(hosts)) < 0);
}

/* ---- the caller ---- */

static int check(const char *hosts, struct err *e)
{
	static struct net_policy ignored;

	if (net_policy_parse(&ignored, NET_ALLOWLIST, hosts, "", "", e) == 0)
		return 0;
	return err_set(e, ERR_PROTOCOL, "read the image's apt sources: a damaged answer");
}

int image_apt_hosts(const struct store *s, const struct idrange *ids, const char *image,
		    char ret[NET_APT_HOSTS_MAX], struct err *e)
{
	_cleanup_fd_ int root_fd = store_image_open(s, image, e);
	int ends[2], status = -1;
	ssize_t len;
	pid_t pid;

	ret[0] = '\0';
	if (root_fd < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "read the image's apt sources");
	pid = fork();
	if (pid == 0)
		work(ids, root_fd, ends[1]);
	close_fd(&ends[1]);
	len = pid > 0 ? fd_read_full(ends[0], ret, NET_APT_HOSTS_MAX - 1) : -1;
	close_fd(&ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (len < 0 || status != 0) {
		ret[0] = '\0';
		return err_set(e, ERR_SYSTEM, "read the image's apt sources: the worker failed");
	}
	ret[len] = '\0';
	if (memchr(ret, '\0', (size_t)len) || check(ret, e) < 0) {
		ret[0] = '\0';
		return err_set(e, ERR_PROTOCOL, "read the image's apt sources: a damaged answer");
	}
	return 0;
}
