/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_log.c - levels, prefixes, and what an untrusted text may not do to a terminal */
#include "runtime/base/log.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "tests/unit/tap.h"

static int pipe_fd[2];

/* What the calls since the last time wrote to standard error. */
static const char *logged(void)
{
	static char text[4096];
	ssize_t len = read(pipe_fd[0], text, sizeof(text) - 1);

	text[len > 0 ? len : 0] = '\0';
	return text;
}

static void test_levels(void)
{
	log_init("keeper", LOG_LEVEL_INFO);
	log_debug("hidden");
	log_info("shown %d", 1);
	tap_str(logged(), "mcp-sandbox keeper: shown 1\n", "the level given is the threshold");
	(void)setenv("SANDBOX_LOG", "error", 1);
	log_init("front", LOG_LEVEL_INFO);
	log_warn("hidden");
	log_error("shown");
	tap_str(logged(), "mcp-sandbox front: shown\n", "SANDBOX_LOG is stronger");
	(void)setenv("SANDBOX_LOG", "debug", 1);
	log_init(NULL, LOG_LEVEL_WARN);
	log_debug("shown");
	tap_str(logged(), "mcp-sandbox: shown\n", "in both directions");
	(void)setenv("SANDBOX_LOG", "nonsense", 1);
	log_init("keeper", LOG_LEVEL_WARN);
	log_info("hidden");
	tap_str(logged(), "", "nonsense in it changes nothing");
	(void)unsetenv("SANDBOX_LOG");
}

static void test_content(void)
{
	char text[3000];

	log_init("keeper", LOG_LEVEL_INFO);
	log_info("%s", "a\nb\x1b[31m\xc2\x9b" "c\x7f\t\xc3\xa4");
	tap_str(logged(), "mcp-sandbox keeper: a?b?[31m??c??\xc3\xa4\n",
		"control bytes of a forgotten escape are harmless");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_info("%s", text);
	tap_ok(strlen(logged()) < 1200, "a line is bounded");
	errno = ENOENT;
	log_info("x");
	tap_int(errno, ENOENT, "errno is kept");
	(void)logged();
}

static void test_journal(void)
{
	char stream[64];
	struct stat st;

	if (fstat(STDERR_FILENO, &st) < 0)
		tap_bail("fstat");
	(void)snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		       (unsigned long long)st.st_ino);
	(void)setenv("JOURNAL_STREAM", stream, 1);
	log_init("keeper", LOG_LEVEL_INFO);
	log_warn("x");
	tap_str(logged(), "<4>mcp-sandbox keeper: x\n", "the journal gets a level");
	(void)setenv("JOURNAL_STREAM", "1:1", 1);
	log_init("keeper", LOG_LEVEL_INFO);
	log_warn("x");
	tap_str(logged(), "mcp-sandbox keeper: x\n", "another stream below a service does not");
}

int main(void)
{
	if (pipe2(pipe_fd, O_CLOEXEC) < 0 || dup2(pipe_fd[1], STDERR_FILENO) < 0 ||
	    fcntl(pipe_fd[0], F_SETFL, O_NONBLOCK) < 0)
		tap_bail("pipe");
	test_levels();
	test_content();
	test_journal();
	return tap_done();
}
