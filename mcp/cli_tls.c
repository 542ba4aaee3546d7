/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_tls.c - "tls self-signed": a certificate and key for those who have none
 *
 * Runs as the user who runs the server. Files that exist are left alone: a client may have been told to
 * trust them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mcp/cli.h"
#include "mcp/tls_cert.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"
#include "runtime/store.h"

#define DEFAULT_NAMES "localhost,127.0.0.1,::1"

enum { NAMES_TEXT_MAX = 4096, TEXT_MAX = 64 * 1024 };

static int write_new(const char *path, const struct buf *text, struct err *e)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 && errno == EEXIST) {
		err_set(e, ERR_BUSY, "%s exists", path);
		return err_remedy(e, "use it, or remove it first");
	}
	if (fd < 0)
		return err_sys(e, "%s", path);
	if (fd_write_full(fd, text->data, text->len) == 0 && fsync(fd) == 0)
		return 0;
	err_sys(e, "write %s", path);
	(void)unlink(path);
	return -1;
}

/* Both or none: half a pair would be in the way of the next attempt. */
static int write_pair(const char *chain_path, const struct buf *chain, const char *key_path,
		      const struct buf *key, struct err *e)
{
	if (write_new(key_path, key, e) < 0)
		return -1;
	if (write_new(chain_path, chain, e) == 0)
		return 0;
	(void)unlink(key_path);
	return -1;
}

/* Where the settings say, else below the state directory. */
static int choose_paths(const struct config *c, char chain[PATH_MAX], char key[PATH_MAX], struct err *e)
{
	const char *home = config_text(c, CONFIG_HOME);
	char folder[PATH_MAX];
	struct store store;

	if (*config_text(c, CONFIG_TLS_CERT) && *config_text(c, CONFIG_TLS_KEY))
		return str_copy(chain, PATH_MAX, config_text(c, CONFIG_TLS_CERT)) |
		       str_copy(key, PATH_MAX, config_text(c, CONFIG_TLS_KEY));
	if (store_open(&store, home, e) < 0) /* makes it, and checks whose it is */
		return -1;
	store_done(&store);
	if (snprintf(folder, sizeof(folder), "%s/tls", home) >= (int)sizeof(folder) ||
	    snprintf(chain, PATH_MAX, "%s/tls/cert.pem", home) >= PATH_MAX ||
	    snprintf(key, PATH_MAX, "%s/tls/key.pem", home) >= PATH_MAX)
		return err_set(e, ERR_CONFIG, "SANDBOX_HOME is too long");
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "%s", folder);
	return 0;
}

static int split_names(char *text, const char *names[TLS_CERT_NAMES_MAX], size_t *ret_count, struct err *e)
{
	size_t count = 0;

	for (char *name; (name = strsep(&text, ","));) {
		if (count == TLS_CERT_NAMES_MAX)
			return err_set(e, ERR_USAGE, "--host: more than %d names", TLS_CERT_NAMES_MAX);
		names[count++] = name;
	}
	*ret_count = count;
	return 0;
}

int cli_tls_self_signed(struct cli_call *call, struct err *e)
{
	const char *given = cli_option(call, "host"), *names[TLS_CERT_NAMES_MAX];
	char text[NAMES_TEXT_MAX], chain_path[PATH_MAX], key_path[PATH_MAX];
	struct buf chain, key;
	size_t count = 0;
	int r;

	if (str_copy(text, sizeof(text), given ? given : DEFAULT_NAMES) < 0)
		return err_set(e, ERR_USAGE, "--host: too long");
	if (split_names(text, names, &count, e) < 0 || choose_paths(&call->config, chain_path, key_path, e) < 0)
		return -1;
	buf_init(&chain, TEXT_MAX);
	buf_init(&key, TEXT_MAX);
	r = tls_cert_make(names, count, &chain, &key, e);
	if (r == 0)
		r = write_pair(chain_path, &chain, key_path, &key, e);
	if (r == 0)
		(void)printf("SANDBOX_TLS_CERT=%s\nSANDBOX_TLS_KEY=%s\n", chain_path, key_path);
	if (key.cap)
		explicit_bzero(key.data, key.cap);
	buf_done(&chain);
	buf_done(&key);
	return r < 0 ? -1 : CLI_OK;
}
