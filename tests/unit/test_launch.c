/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_launch.c - the words for every step of creation */
#include "runtime/launch.h"

#include "tests/unit/tap.h"

static void test_every_stage_has_words(void)
{
	for (uint32_t a = 1; a < LAUNCH_STAGE_COUNT; a++) {
		const char *text = launch_stage_text(a);
		bool unique = text != NULL && text[0] != '\0' && strcmp(text, launch_stage_text(0)) != 0;

		for (uint32_t b = 1; unique && b < a; b++)
			unique = strcmp(text, launch_stage_text(b)) != 0;
		tap_ok(unique, "step %u: %s", a, text);
	}
}

static void test_strange_stages(void)
{
	static const uint32_t stages[] = { 0, LAUNCH_STAGE_COUNT, 99, ENTER_EXEC + 1, UINT32_MAX };

	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
		struct enter_status status = { ENTER_FAILED, stages[i], EPERM, 0 };
		struct err e;

		tap_int(launch_explain(&status, "", &e), -1, "step %u is explained", stages[i]);
		tap_ok(strstr(e.message, strerror(EPERM)) != NULL, "  %s", e.message);
	}
}

static void test_shared_steps(void)
{
	struct enter_status status = { ENTER_FAILED, ENTER_SECCOMP, EINVAL, 0 };
	struct err e;

	(void)launch_explain(&status, "", &e);
	tap_ok(strstr(e.message, enter_stage_text(ENTER_SECCOMP)) != NULL,
	       "a step of enter.c has its own words: %s", e.message);
	tap_ok(strstr(e.remedy, "Linux 6.1") != NULL, "  and a remedy: %s", e.remedy);
}

static void test_object_and_null(void)
{
	struct enter_status status = { ENTER_FAILED, LAUNCH_DEV, ENODEV, 0 };
	struct err e;

	(void)launch_explain(&status, "/dev/null", &e);
	tap_str(e.message, "create the sandbox: fill /dev (/dev/null): No such device",
		"what a step was at is named");
	tap_int(launch_explain(&status, "", NULL), -1, "nobody needs to listen");
}

/* A remedy that does not fit would lose its end, which is where the value is. */
static void test_remedies_fit(void)
{
	static const int errors[] = { EPERM, EACCES, ENOENT, EAGAIN, ENOMEM, EBUSY, ENODEV, EINVAL, EMFILE,
				      ENFILE, ENOSPC, EROFS, ENOSYS, EUSERS, EOPNOTSUPP, EOVERFLOW };
	size_t longest = 0;

	for (uint32_t stage = 1; stage <= ENTER_EXEC; stage++) {
		for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
			struct enter_status status = { ENTER_FAILED, stage, errors[i], 0 };
			struct err e;

			(void)launch_explain(&status, "", &e);
			if (strlen(e.remedy) > longest)
				longest = strlen(e.remedy);
		}
	}
	tap_ok(longest > 0 && longest < ERR_REMEDY_MAX - 1, "the longest remedy has %zu bytes", longest);
}

int main(void)
{
	test_every_stage_has_words();
	test_strange_stages();
	test_shared_steps();
	test_object_and_null();
	test_remedies_fit();
	return tap_done();
}
