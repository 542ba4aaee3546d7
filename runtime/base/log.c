/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/log.c - one line to standard error
 *
 * Runs in every process. Each line is one write(2), so that lines of several processes do not mix.
 * Callers escape untrusted text; what they forget is made harmless here, because a control byte in a
 * terminal or a journal is an instruction to it.
 */
#include "runtime/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1024 };

static const char *log_role = "";
static enum log_level log_threshold = LOG_LEVEL_WARN;
static bool log_prefix;

static const struct {
	const char *name;
	enum log_level level;
} level_names[] = {
	{ "error", LOG_LEVEL_ERROR },
	{ "warn", LOG_LEVEL_WARN },
	{ "info", LOG_LEVEL_INFO },
	{ "debug", LOG_LEVEL_DEBUG },
};

/* stderr_is_journal() - JOURNAL_STREAM names the device and inode of the stream to the journal; a
 * process started by hand below a service may have inherited the variable with another stderr. */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char ours[64];
	struct stat st;

	if (!stream || fstat(STDERR_FILENO, &st) < 0)
		return false;
	(void)snprintf(ours, sizeof(ours), "%llu:%llu", (unsigned long long)st.st_dev,
		       (unsigned long long)st.st_ino);
	return strcmp(stream, ours) == 0;
}

void log_init(const char *role, enum log_level level)
{
	const char *wanted = getenv("SANDBOX_LOG");

	log_role = role ? role : "";
	log_threshold = level;
	for (size_t i = 0; wanted && i < sizeof(level_names) / sizeof(level_names[0]); i++)
		if (strcmp(wanted, level_names[i].name) == 0)
			log_threshold = level_names[i].level;
	log_prefix = stderr_is_journal();
}

/* neutralise() - C0 and C1 control bytes become '?'. C1 is two bytes in UTF-8: C2 80..9F. */
static void neutralise(char *text)
{
	for (unsigned char *p = (unsigned char *)text; *p; p++) {
		if (*p < 0x20 || *p == 0x7f)
			*p = '?';
		else if (*p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f)
			p[0] = p[1] = '?';
	}
}

void log_msg(enum log_level level, const char *fmt, ...)
{
	int saved = errno;
	char text[LINE_MAX_BYTES], line[LINE_MAX_BYTES + 128], prefix[8] = "";
	va_list ap;
	int len;

	if (level > log_threshold)
		return;
	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	neutralise(text);
	if (log_prefix)
		(void)snprintf(prefix, sizeof(prefix), "<%d>", (int)level);
	len = snprintf(line, sizeof(line), "%smcp-sandbox%s%.64s: %s\n", prefix,
		       log_role[0] ? " " : "", log_role, text);
	if (len > 0)
		(void)!write(STDERR_FILENO, line, (size_t)len);
	errno = saved;
}
