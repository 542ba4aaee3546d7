/* SPDX-License-Identifier: Apache-2.0 */
/* tests/escape/payload/preload.c - a library planted inside; whoever loads it appends who he is to the log
 *
 * The log line: executable, effective capabilities, and the first line of uid_map.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void line_of(const char *path, const char *prefix, char *out, size_t size)
{
	char line[256];
	FILE *f = fopen(path, "re");

	snprintf(out, size, "?");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, prefix, strlen(prefix)) == 0) {
			line[strcspn(line, "\n")] = '\0';
			snprintf(out, size, "%s", line);
			break;
		}
	if (f)
		fclose(f);
}

__attribute__((constructor)) static void loaded(void)
{
	char exe[128] = "?", caps[128], map[128], text[512];
	int fd = open(PRELOAD_LOG, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	int len;

	if (fd < 0)
		return;
	(void)!readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	line_of("/proc/self/status", "CapEff:", caps, sizeof(caps));
	line_of("/proc/self/uid_map", "", map, sizeof(map));
	len = snprintf(text, sizeof(text), "LOADED %s|%s|%s\n", exe, caps, map);
	(void)!write(fd, text, (size_t)len);
	close(fd);
}
