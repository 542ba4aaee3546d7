/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/standalone.c - runs a fuzz target without libFuzzer: "TARGET DIRECTORY ROUNDS [SEED]"
 *
 * Every file of the directory is one input, placed against an unreadable page; then ROUNDS inputs are
 * made by changing, cutting and joining them. The seed is printed, so a failure can be repeated; the
 * input that fails is left in fuzz-input. For longer runs link a target with -fsanitize=fuzzer.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/tap.h"

enum { INPUTS_MAX = 256, INPUT_MAX = 64 * 1024 };

static struct {
	char *data;
	size_t len;
} inputs[INPUTS_MAX];
static size_t input_count;
static uint64_t seed = 20260728;
static struct tap_guard current;

static void on_abort(int sig)
{
	int fd = open("fuzz-input", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd >= 0 && write(fd, current.data, current.len) >= 0)
		close(fd);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void run(const char *data, size_t len)
{
	current = tap_guard_new(data, len);
	(void)LLVMFuzzerTestOneInput((const uint8_t *)current.data, len);
	tap_guard_free(&current);
}

static void load(const char *directory, const char *name)
{
	char path[4096], *data = malloc(INPUT_MAX);
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	f = fopen(path, "rbe");
	if (!f || !data || input_count == INPUTS_MAX)
		tap_bail("%s", path);
	len = fread(data, 1, INPUT_MAX, f);
	fclose(f);
	inputs[input_count].data = data;
	inputs[input_count++].len = len;
}

static void load_all(const char *directory)
{
	struct dirent **names;
	int count = scandir(directory, &names, NULL, alphasort);

	if (count < 0)
		tap_bail("%s", directory);
	for (int i = 0; i < count; i++) {
		if (names[i]->d_name[0] != '.')
			load(directory, names[i]->d_name);
		free(names[i]);
	}
	free(names);
}

static size_t next_random(size_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return below ? (size_t)(seed % below) : 0;
}

/* Change some bytes; favour those that mean something to a parser. */
static void change(char *data, size_t len)
{
	static const char special[] = "\"\\{}[]:,0e-u\x00\x1b\r\n\x7f\x80\xc2\xe2\xff;m";

	for (size_t n = next_random(6); n > 0 && len > 0; n--) {
		size_t at = next_random(len);

		switch (next_random(3)) {
		case 0:
			data[at] = special[next_random(sizeof(special) - 1)];
			break;
		case 1:
			data[at] ^= (char)(1 << next_random(8));
			break;
		default:
			data[at] = data[next_random(len)];
			break;
		}
	}
}

/* The beginning of one input and the end of another. */
static void run_mutation(void)
{
	static char data[2 * INPUT_MAX];
	size_t a = next_random(input_count), b = next_random(input_count), len;
	size_t head = next_random(inputs[a].len + 1), from = next_random(inputs[b].len + 1);

	if (next_random(3) == 0) {
		b = a;
		from = head;
	}
	memcpy(data, inputs[a].data, head);
	memcpy(data + head, inputs[b].data + from, inputs[b].len - from);
	len = head + inputs[b].len - from;
	change(data, len);
	run(data, len);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;

	if (argc < 3)
		tap_bail("usage: %s DIRECTORY ROUNDS [SEED]", argv[0]);
	if (argc > 3)
		seed = strtoull(argv[3], NULL, 10);
	signal(SIGABRT, on_abort);
	signal(SIGSEGV, on_abort);
	load_all(argv[1]);
	for (size_t i = 0; i < input_count; i++)
		run(inputs[i].data, inputs[i].len);
	tap_ok(input_count > 0, "%zu inputs", input_count);
	tap_diag("seed %llu", (unsigned long long)seed);
	for (unsigned long i = 0; i < rounds && input_count; i++)
		run_mutation();
	tap_ok(true, "%lu mutations", rounds);
	return tap_done();
}
