/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/log.h - one line to standard error
 *
 * errno is preserved. Under a service manager (JOURNAL_STREAM set) lines get a "<n>" level prefix.
 * Standard output belongs to the protocol and is never written here. Untrusted text goes through
 * str_escape() first; tokens, signed links and command text are never logged.
 */
#pragma once

enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARN = 4, LOG_LEVEL_INFO = 6, LOG_LEVEL_DEBUG = 7 };

/* log_init() - name the process in every line ("keeper", "front"); level from SANDBOX_LOG
 * (error, warn, info, debug; default info for serve, warn otherwise). */
void log_init(const char *role, enum log_level level);

void log_msg(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_msg(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_msg(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_msg(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_msg(LOG_LEVEL_DEBUG, __VA_ARGS__)
