/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/enter_probe.h - says what a command inside finds itself to be, one "key value" a line
 *
 * Part of a test program that is executed again inside. A program instead of a shell script,
 * because a shell opens descriptors and changes signals of its own.
 */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static inline void probe_print_descriptors(void)
{
	printf("fds");
	for (int fd = 0; fd < 65536; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			printf(" %d", fd);
	}
	putchar('\n');
}

static inline void probe_print_file(const char *path, const char *prefix)
{
	char line[4096];
	FILE *f = fopen(path, "re");

	if (!f) {
		printf("%s(cannot open %s)\n", prefix, path);
		return;
	}
	while (fgets(line, sizeof(line), f))
		printf("%s%s", prefix, line);
	(void)fclose(f);
}

static inline void probe_print_limits(void)
{
	static const struct {
		const char *name;
		int resource;
	} rows[] = {{"core", RLIMIT_CORE},	   {"nofile", RLIMIT_NOFILE},
		    {"stack", RLIMIT_STACK},	   {"sigpending", RLIMIT_SIGPENDING},
		    {"msgqueue", RLIMIT_MSGQUEUE}, {"memlock", RLIMIT_MEMLOCK},
		    {"rtprio", RLIMIT_RTPRIO},	   {"nice", RLIMIT_NICE}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rlimit r;
		if (getrlimit((__rlimit_resource_t)rows[i].resource, &r) == 0)
			printf("limit-%s %lld %lld\n", rows[i].name, (long long)r.rlim_cur,
			       (long long)r.rlim_max);
	}
}

static inline int probe_main(int argc, char **argv, char **envp)
{
	char cwd[4096];

	probe_print_descriptors(); /* before anything of ours is open */
	printf("argc %d %s\n", argc, argc > 2 ? argv[2] : "");
	printf("cwd %s\n", getcwd(cwd, sizeof(cwd)) ? cwd : "(none)");
	printf("umask %03o\n", umask(0));
	printf("session %d\n", getsid(0) == getpid() && getpgid(0) == getpid());
	printf("securebits %d\n", prctl(PR_GET_SECUREBITS));
	for (char **env = envp; *env; env++)
		printf("env %s\n", *env);
	probe_print_limits();
	probe_print_file("/proc/self/cgroup", "cgroup ");
	probe_print_file("/proc/self/status", "self ");
	probe_print_file("/proc/1/status", "init ");
	if (fcntl(3, F_GETFD) >= 0)
		probe_print_file("/proc/self/fd/3", "script ");
	return 0;
}
