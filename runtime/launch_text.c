/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/launch_text.c - failed steps of creation as sentences with remedies
 *
 * Runs in the keeper. Pure but for the host's settings it looks up to tell causes apart that share an
 * errno. Where a row gives no remedy the sentence alone goes out: a wrong hint is worse than none.
 */
#include <errno.h>
#include <string.h>

#include "runtime/base/cleanup.h"
#include "runtime/launch.h"

static const char *const stage_texts[LAUNCH_STAGE_COUNT] = {
	[LAUNCH_PREPARE] = "prepare the descriptors of a new sandbox",
	[LAUNCH_CLONE] = "clone a process into new namespaces",
	[LAUNCH_SESSION] = "start a session in the new namespaces",
	[LAUNCH_MAPS] = "write the id maps",
	[LAUNCH_UPLINK] = "connect the sandbox to the host's network",
	[LAUNCH_IDS] = "become the sandbox's root",
	[LAUNCH_PRIVATE] = "cut the mount tree off from the host's",
	[LAUNCH_SCRATCH] = "mount a place to build the root in",
	[LAUNCH_TRUST] = "put the certificates of SANDBOX_EXTRA_CA beside the image's",
	[LAUNCH_OVERLAY] = "mount the image and the layer as one root",
	[LAUNCH_TARGETS] = "make the mount points on the root",
	[LAUNCH_PROC] = "mount /proc",
	[LAUNCH_DEV] = "fill /dev",
	[LAUNCH_TMPFS] = "mount /tmp, /run and /dev/shm",
	[LAUNCH_WORKSPACE] = "mount /workspace",
	[LAUNCH_OUTPUT] = "mount /output",
	[LAUNCH_PROC_SYS] = "open /proc/sys",
	[LAUNCH_TAP] = "make the network device that pasta or slirp4netns serves",
	[LAUNCH_NET] = "set up the network namespace",
	[LAUNCH_SOCKETS] = "make the sockets that are served from outside",
	[LAUNCH_MASKS] = "mask the host's parts of /proc and /sys",
	[LAUNCH_PIVOT] = "leave the host's mount tree",
	[LAUNCH_RESOLVER] = "write /etc/resolv.conf",
	[LAUNCH_COUNTS] = "forbid further namespaces",
	[LAUNCH_CLOSE] = "close the inherited descriptors",
	[LAUNCH_TETHER] = "tie the sandbox's life to the server's",
	[LAUNCH_RIGHTS] = "drop privileges",
	[LAUNCH_EXEC] = "execute process 1",
};

const char *launch_stage_text(uint32_t stage)
{
	if (stage >= ENTER_JOIN)
		return enter_stage_text(stage);
	if (stage == 0 || stage >= LAUNCH_STAGE_COUNT)
		return "take an unknown step";
	return stage_texts[stage];
}

#define NESTED                                                                                     \
	"when this runs in a container, start that one with "                                      \
	"--security-opt seccomp=unconfined --security-opt apparmor=unconfined "                    \
	"--security-opt systempaths=unconfined"
#define KERNEL "use Linux 6.1 or newer with all namespaces, overlayfs and seccomp enabled"
#define HOME   "put SANDBOX_HOME on a local ext4, xfs or btrfs file system"
#define OWNERS "the image or layer belongs to other ids than this server uses: " \
	       "run \"mcp-sandbox image build\" as the user who runs the server"

#define NO_STORE "the image does not keep certificates where Debian does: leave SANDBOX_EXTRA_CA out and add " \
		 "them to the image"

static const struct remedy {
	uint32_t stage; /* 0: any */
	int error;
	const char *text;
} remedies[] = {
	{ LAUNCH_PREPARE, EACCES, "allow executable memory files: sysctl -w vm.memfd_noexec=1" },
	{ LAUNCH_PREPARE, EPERM, NESTED },
	{ LAUNCH_CLONE, EAGAIN, "a process limit is reached: raise TasksMax= of the service, or "
				"ulimit -u of the user" },
	{ LAUNCH_CLONE, EACCES, "the cgroup is not ours to start processes in: name a delegated one "
				"with SANDBOX_CGROUP, or run mcp-sandbox doctor" },
	{ LAUNCH_CLONE, EBUSY, "the sandbox's cgroup has controllers enabled for children: remove "
			       "what was made in it by hand" },
	{ LAUNCH_CLONE, ENOENT, "the sandbox's cgroup was removed while it was being used: check "
				"what else manages that part of the tree" },
	{ LAUNCH_CLONE, EINVAL, KERNEL },
	{ LAUNCH_IDS, EINVAL, "give the server's user at least 65535 subordinate ids in /etc/subuid "
			      "and /etc/subgid" },
	{ LAUNCH_UPLINK, EPERM, "the server lacks CAP_NET_ADMIN: run it with that, or install slirp4netns" },
	{ LAUNCH_UPLINK, EACCES, "the host's /proc/sys is not writable: install slirp4netns, whose way out "
				 "needs no setting of the host" },
	{ LAUNCH_UPLINK, EROFS, "the host's /proc/sys is read-only: install slirp4netns, whose way out needs "
				"no setting of the host" },
	{ LAUNCH_UPLINK, EOPNOTSUPP, "load the driver for pairs of interfaces: modprobe veth" },
	{ LAUNCH_TAP, ENOENT, "modprobe tun" },
	{ LAUNCH_TAP, ENODEV, "modprobe tun" },
	{ LAUNCH_TAP, EACCES, "chmod 0666 /dev/net/tun" },
	{ LAUNCH_TAP, EPERM, "chmod 0666 /dev/net/tun" },
	{ LAUNCH_TRUST, ENOTDIR, NO_STORE },
	{ LAUNCH_TRUST, ELOOP, NO_STORE },
	{ LAUNCH_TRUST, EINVAL, NO_STORE },
	{ LAUNCH_TRUST, EFBIG, NO_STORE },
	{ LAUNCH_OVERLAY, ENODEV, "load overlayfs: modprobe overlay" },
	{ LAUNCH_OVERLAY, EINVAL, HOME },
	{ LAUNCH_OVERLAY, EOPNOTSUPP, HOME },
	{ LAUNCH_OVERLAY, EPERM, HOME },
	{ LAUNCH_OVERLAY, EROFS, HOME },
	{ LAUNCH_OVERLAY, EACCES, OWNERS },
	{ LAUNCH_OVERLAY, EOVERFLOW, OWNERS },
	{ LAUNCH_OVERLAY, EBUSY, "another process has this sandbox's layer mounted: stop it first" },
	{ LAUNCH_TARGETS, EACCES, OWNERS },
	{ LAUNCH_TARGETS, EOVERFLOW, OWNERS },
	{ LAUNCH_TARGETS, EROFS, "the state directory is mounted read-only: remount it writable" },
	{ LAUNCH_PROC, EPERM, "parts of this host's /proc are hidden, as in a container: start that "
			      "one with --security-opt systempaths=unconfined (Docker) or "
			      "unmask=ALL (podman)" },
	{ LAUNCH_DEV, ENODEV, "this host has something else in the device's place: recreate it, or "
			      "give the container a real /dev" },
	{ LAUNCH_DEV, ENOENT, "this host lacks a device every Linux has: recreate it, or give the "
			      "container a real /dev" },
	{ LAUNCH_PIVOT, EINVAL, "the host's root is a ramdisk or a chroot: run the server from a "
				"mounted root file system" },
	{ LAUNCH_EXEC, EACCES, "allow executable memory files: sysctl -w vm.memfd_noexec=1" },
	{ ENTER_SECCOMP, EINVAL, KERNEL },
	{ 0, EMFILE, "raise LimitNOFILE= of the service, or ulimit -n" },
	{ 0, ENFILE, "raise sysctl fs.file-max" },
	{ 0, ENOMEM, "free memory on the host, or run fewer sandboxes (SANDBOX_MAX)" },
	{ 0, ENOSYS, KERNEL "; " NESTED },
};

static const char *find_remedy(uint32_t stage, int error)
{
	for (size_t i = 0; i < ARRAY_SIZE(remedies); i++) {
		const struct remedy *r = &remedies[i];

		if ((r->stage == 0 || r->stage == stage) && r->error == error)
			return r->text;
	}
	return NULL;
}

/* is_namespace_refusal() - the errors by which hosts refuse namespaces to ordinary users; which of
 * their settings did it, userns.c can tell. */
static int is_namespace_refusal(uint32_t stage, int error)
{
	switch (stage) {
	case LAUNCH_CLONE:
		return error == EPERM || error == ENOSPC || error == EUSERS;
	case LAUNCH_SESSION:
	case LAUNCH_PRIVATE:
	case LAUNCH_SCRATCH:
	case LAUNCH_NET:
		return error == EPERM || error == EACCES;
	default:
		return 0;
	}
}

int launch_explain(const struct enter_status *status, const char *object, struct err *e)
{
	const char *text = launch_stage_text(status->stage);
	const char *remedy;

	errno = status->error;
	if (object[0] != '\0')
		err_sys(e, "create the sandbox: %s (%s)", text, object);
	else
		err_sys(e, "create the sandbox: %s", text);
	if (is_namespace_refusal(status->stage, status->error))
		return userns_explain_refusal(status->error, e);
	remedy = find_remedy(status->stage, status->error);
	if (remedy == NULL || e == NULL)
		return -1;
	if (e->code == ERR_SYSTEM)
		e->code = ERR_HOST;
	return err_remedy(e, "%s", remedy);
}
