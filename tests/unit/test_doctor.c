/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_doctor.c - the report is complete, leaves nothing behind and sees what is missing */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/doctor.h"
#include "tests/unit/tap.h"

static const struct doctor_row *find(const struct doctor_row *rows, const char *id)
{
	for (size_t i = 0; i < doctor_count(); i++) {
		if (!strcmp(rows[i].id, id))
			return &rows[i];
	}
	tap_bail("no check %s", id);
}

static size_t count_entries(const char *path)
{
	DIR *dir = opendir(path);
	size_t count = 0;

	if (!dir)
		tap_bail("open %s", path);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

static void test_report(struct doctor_row *rows, const struct settings *s)
{
	struct cgroup_tree tree = { .root_fd = -1 };
	struct err why = { .code = ERR_HOST, .message = "no cgroup", .remedy = "make one" };
	struct doctor_host host = { .settings = s, .cgroup = &tree, .cgroup_error = &why };
	char before[PATH_MAX], after[PATH_MAX];

	if (!getcwd(before, sizeof(before)))
		tap_bail("getcwd");
	doctor_run(&host, rows);
	tap_str(getcwd(after, sizeof(after)), before, "the working directory is as it was");
	for (size_t i = 0; i < doctor_count(); i++) {
		tap_ok(rows[i].id && rows[i].found[0], "%s: %s: %s", rows[i].id,
		       doctor_status_text(rows[i].status), rows[i].found);
		if (rows[i].status != DOCTOR_OK)
			tap_ok(rows[i].remedy[0], "%s has a remedy: %s", rows[i].id, rows[i].remedy);
	}
	tap_int(count_entries(s->home), 0, "nothing is left in the state directory");
}

static void test_missing(struct settings *s)
{
	_cleanup_free_ struct doctor_row *rows = calloc(doctor_count(), sizeof(*rows));

	test_report(rows, s);
	tap_int(find(rows, "image")->status, DOCTOR_MISSING, "no image: missing");
	tap_ok(strstr(find(rows, "image")->remedy, "image build"), "its remedy builds one");
	tap_int(find(rows, "disk-free")->status, DOCTOR_MISSING, "too little disk: missing");
	tap_int(find(rows, "memory-limit")->status, DOCTOR_MISSING, "no memory controller: missing");
	tap_str(find(rows, "cgroup")->remedy, "make one", "the cgroup's own remedy is shown");
	tap_int(doctor_worst(rows, doctor_count()), DOCTOR_MISSING, "the worst row decides");
}

static void test_best_effort(struct settings *s)
{
	_cleanup_free_ struct doctor_row *rows = calloc(doctor_count(), sizeof(*rows));
	char path[PATH_MAX + 32];

	s->limits_best_effort = true;
	s->min_free_bytes = 0;
	snprintf(path, sizeof(path), "%s/images", s->home);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/images/test", s->home);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/images/test/rootfs", s->home);
	mkdir(path, 0700);
	doctor_run(&(struct doctor_host){ .settings = s, .cgroup = &(struct cgroup_tree){ .root_fd = -1 },
					  .cgroup_error = &(struct err){ .message = "no cgroup" } },
		   rows);
	tap_int(find(rows, "image")->status, DOCTOR_OK, "the image is found");
	tap_int(find(rows, "disk-free")->status, DOCTOR_OK, "there is enough disk");
	tap_int(find(rows, "pids-limit")->status, DOCTOR_DEGRADED, "best-effort: a missing limit degrades");
	rmdir(path);
	snprintf(path, sizeof(path), "%s/images/test", s->home);
	rmdir(path);
	snprintf(path, sizeof(path), "%s/images", s->home);
	rmdir(path);
}

int main(int argc, char **argv)
{
	char home[] = "/var/tmp/test-doctor-XXXXXX";
	struct settings s = { .profile = &profile_table[PROFILE_CODE], .max_sandboxes = 8,
			      .min_free_bytes = UINT64_MAX, .image = "test" };

	/* The id range is tried by re-executing this program as root of the storage namespace. */
	if (argc == 2 && !strcmp(argv[1], "@nothing"))
		return 0;
	if (!mkdtemp(home))
		tap_bail("mkdtemp");
	snprintf(s.home, sizeof(s.home), "%s", home);
	test_missing(&s);
	test_best_effort(&s);
	rmdir(home);
	return tap_done();
}
