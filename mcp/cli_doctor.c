/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_doctor.c - "doctor": print what runtime/doctor.c found */
#include <stdio.h>
#include <stdlib.h>

#include "mcp/cli.h"
#include "mcp/json_write.h"
#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/cgroup.h"
#include "runtime/doctor.h"

enum { REPORT_MAX = 128 * 1024 };

static void report_json(const struct doctor_row *rows, size_t count, struct buf *out)
{
	buf_append_str(out, "{\"checks\":[");
	for (size_t i = 0; i < count; i++) {
		buf_printf(out, "%s\n  {\"id\":\"%s\",\"status\":\"%s\",\"found\":", i ? "," : "",
			   rows[i].id, doctor_status_text(rows[i].status));
		json_write_string(out, rows[i].found);
		buf_append_str(out, ",\"remedy\":");
		json_write_string(out, rows[i].remedy);
		buf_append_str(out, "}");
	}
	buf_append_str(out, "\n]}\n");
}

static void report_text(const struct doctor_row *rows, size_t count, struct buf *out)
{
	static const char *const verdicts[] = {
		[DOCTOR_OK] = "Sandboxes work on this host.",
		[DOCTOR_DEGRADED] = "Sandboxes work on this host, with what is named above missing.",
		[DOCTOR_MISSING] = "Sandboxes cannot start on this host until what is missing is repaired.",
	};

	for (size_t i = 0; i < count; i++) {
		buf_printf(out, "%-9s %-16s %s\n", doctor_status_text(rows[i].status), rows[i].id,
			   rows[i].found);
		if (rows[i].status != DOCTOR_OK && rows[i].remedy[0])
			buf_printf(out, "%-9s %-16s   remedy: %s\n", "", "", rows[i].remedy);
	}
	buf_printf(out, "\n%s\n", verdicts[doctor_worst(rows, count)]);
}

static int exit_status(enum doctor_status worst)
{
	static const int statuses[] = {
		[DOCTOR_OK] = CLI_OK, [DOCTOR_DEGRADED] = CLI_DEGRADED, [DOCTOR_MISSING] = CLI_FAILURE,
	};

	return statuses[worst];
}

/* As a server would: in a delegated scope of its own if it takes one. What is missing is the report's
 * business; only then is the rest taken for what it is worth. */
static void acquire_cgroup(struct cli_call *call, const struct settings *s, struct cgroup_tree *tree,
			   struct err *why)
{
	struct err ignored = { 0 };
	int r = cgroup_acquire(tree, s->cgroup, false, why);

	if (r == 1)
		r = cgroup_reexec_scope(call->argv, why);
	if (r < 0 && cgroup_acquire(tree, s->cgroup, true, &ignored) != 0)
		*tree = (struct cgroup_tree){ .root_fd = -1 };
}

static int print_report(struct cli_call *call, const struct doctor_row *rows, struct err *e)
{
	size_t count = doctor_count();
	struct buf out;
	int status = exit_status(doctor_worst(rows, count));

	buf_init(&out, REPORT_MAX);
	if (cli_option(call, "json"))
		report_json(rows, count, &out);
	else
		report_text(rows, count, &out);
	if (out.overflow || fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout) != 0)
		status = err_sys(e, "doctor: standard output");
	buf_done(&out);
	return status;
}

int cli_doctor(struct cli_call *call, struct err *e)
{
	_cleanup_free_ struct doctor_row *rows = calloc(doctor_count(), sizeof(*rows));
	struct cgroup_tree tree = { .root_fd = -1 };
	struct err why = { 0 };
	struct settings settings;
	struct doctor_host host = { .settings = &settings, .cgroup = &tree, .cgroup_error = &why };

	if (!rows)
		return err_set(e, ERR_NOMEM, "doctor: out of memory");
	if (config_settings(&call->config, &settings, e) < 0 || config_export(&call->config, e) < 0)
		return -1;
	acquire_cgroup(call, &settings, &tree, &why);
	doctor_run(&host, rows);
	cgroup_tree_done(&tree);
	return print_report(call, rows, e);
}
