/* SPDX-License-Identifier: Apache-2.0 */
/* tests/escape/payload/cred_state.c - what /proc/self/status does not show of a process's rights */
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

int main(void)
{
	struct rlimit core = { 0, 0 };
	int death = -1;

	getrlimit(RLIMIT_CORE, &core);
	prctl(PR_GET_PDEATHSIG, &death);
	printf("securebits %d\n", prctl(PR_GET_SECUREBITS, 0, 0, 0, 0));
	printf("keepcaps %d\n", prctl(PR_GET_KEEPCAPS, 0, 0, 0, 0));
	printf("fsuid %d fsgid %d\n", setfsuid(~0U), setfsgid(~0U));
	printf("groups %d\n", getgroups(0, NULL));
	printf("core %llu\n", (unsigned long long)core.rlim_max);
	printf("nonewprivs %d\n", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	return 0;
}
