#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stages of the project's tests: what runs, on which core, how long it may take, what it counted.

Started by tools/test. Stages of the lane "both" run one after the other with all cores; then the lanes
"native" (core 0) and "guest" (core 1) run beside each other. A stage that reaches its limit is killed
and has failed. Whatever a stage prints goes to build-test/logs/<stage>.log and, when it fails, to the
terminal. A test suite that the tree does not have is not a stage.
"""

import argparse
import collections
import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(TOP, "build-test")
LOGS = os.path.join(BUILD, "logs")

# needs: stages that must have ended well before this one starts, in whichever lane they are.
# on_demand: runs only when it is named, and in the run of the night.
Stage = collections.namedtuple("Stage", "name lane budget limit run needs on_demand", defaults=((), False))
Result = collections.namedtuple("Result", "passed failed skipped")


TOTAL_LIMIT = 85 * 60
NIGHTLY_LIMIT = 180 * 60
BEGAN = time.monotonic()


class Failed(Exception):
    """A stage could not do its work."""


class Context:
    """One running stage: its log, its core, its deadline."""

    def __init__(self, stage, cores, total_limit):
        self.stage = stage
        self.cores = cores
        self.total_limit = total_limit
        self.start()
        self.log_path = os.path.join(LOGS, stage.name + ".log")
        self.log = open(self.log_path, "wb")

    def start(self):
        """The clock runs from here: waiting for another lane is not the stage's own time."""
        self.started = time.monotonic()
        self.deadline = min(self.started + self.stage.limit, BEGAN + self.total_limit)

    def call(self, *argv, env=None, clear=False, cwd=TOP):
        """Run a command in its own session; at the deadline the session is killed. Its exit status."""
        self.log.write(("+ " + " ".join(argv) + "\n").encode())
        self.log.flush()
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT, cwd=cwd,
            env={**({} if clear else os.environ), **(env or {})}, start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, self.cores))
        try:
            return process.wait(max(1, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise Failed("killed at its limit (%d s, or %d s for all stages)" % (
                self.stage.limit, self.total_limit)) from None

    def must(self, *argv, **kwargs):
        status = self.call(*argv, **kwargs)
        if status != 0:
            raise Failed("%s: status %d" % (" ".join(argv[:3]), status))


def setup(build, *options):
    if not os.path.exists(os.path.join(build, "build.ninja")):
        return ("meson", "setup", build, *options)
    return ("meson", "setup", "--reconfigure", build, *options)


def meson_log(build, logbase):
    return os.path.join(build, "meson-logs", logbase + ".json")


def count_meson(build, logbase):
    """Results of one "meson test" from its log, one JSON object a line."""
    passed = failed = skipped = 0
    with open(meson_log(build, logbase), encoding="utf-8") as log:
        for line in log:
            result = json.loads(line)["result"]
            if result in ("OK", "EXPECTEDFAIL"):
                passed += 1
            elif result in ("SKIP", "IGNORED"):
                skipped += 1
            else:
                failed += 1
    return Result(passed, failed, skipped)


def suites_of(build):
    out = subprocess.run(["meson", "introspect", "--tests", build], check=True, capture_output=True)
    return {suite.split(":")[-1] for test in json.loads(out.stdout) for suite in test["suite"]}


def meson_test(ctx, build, *suites, env=None, multiplier=1):
    have = [s for s in suites if s in suites_of(build)]
    if not have:
        return Result(0, 0, 0)
    logbase = "-".join([ctx.stage.name, *have])
    args = [arg for suite in have for arg in ("--suite", suite)]
    ctx.call("meson", "test", "-C", build, "--no-rebuild", "--print-errorlogs", "--num-processes",
             str(len(ctx.cores)), "--logbase", logbase, "--timeout-multiplier", str(multiplier), *args,
             env=env)
    result = count_meson(build, logbase)
    if sum(result) == 0:
        raise Failed("ran no test")
    return result


def build_native(ctx):
    ctx.must(*setup(BUILD))
    ctx.must("ninja", "-C", BUILD)
    return Result(1, 0, 0)


def unit(ctx):
    return meson_test(ctx, BUILD, "unit", "proto", "lint")


def sanitizers(ctx):
    build = os.path.join(TOP, "build-asan")
    ctx.must(*setup(build, "-Db_sanitize=address,undefined", "-Db_lundef=false", "-Doptimization=1"))
    ctx.must("ninja", "-C", build)
    undefined = {"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
    unit_result = meson_test(ctx, build, "unit", multiplier=3, env={
        **undefined, "ASAN_OPTIONS": "abort_on_error=1:detect_stack_use_after_return=1"})
    # The front may not make the thread that looks for leaks, and its memory is measured.
    proto_result = meson_test(ctx, build, "proto", multiplier=3, env={
        **undefined, "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=0:quarantine_size_mb=1"})
    return Result(*map(sum, zip(unit_result, proto_result)))


def cross_build(ctx):
    ctx.must(*setup(ARM64_BUILD, "--cross-file", "tools/cross/aarch64-linux-gnu.ini"))
    ctx.must("ninja", "-C", ARM64_BUILD)
    return Result(1, 0, 0)


HOME = os.path.join(BUILD, "home")
PROGRAM = os.path.join(BUILD, "mcp", "mcp-sandbox")
GUESTS = os.path.join(BUILD, "guests")
VM = os.path.join(TOP, "tests", "vm")


def product_environment(**settings):
    """Of a program run by hand: none of the tests' own variables, which look like settings."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SANDBOX_", "MCP_"))}
    return {**env, **settings}


def image(ctx):
    """The image that the README promises, built as the README says, with its own check of every command."""
    env = product_environment(SANDBOX_HOME=HOME, SANDBOX_LIMITS="best-effort")
    ctx.must(PROGRAM, "image", "build", "default", env=env, clear=True)
    ctx.must(PROGRAM, "image", "list", "--json", env=env, clear=True)
    return Result(1, 0, 0)


TOOLS_ARCHIVE = os.path.join(BUILD, "default.tar")
TOOLS_TREES = "/var/tmp/mcpt/cache/tools"  # on the disk of the tests' scratch homes


def with_tools(ctx):
    """What fetches from networks, with the programs of the image that was just built."""
    remove_tools()
    env = product_environment(SANDBOX_HOME=HOME, SANDBOX_LIMITS="best-effort")
    ctx.must(PROGRAM, "image", "export", "default", TOOLS_ARCHIVE, env=env, clear=True)
    os.makedirs(TOOLS_TREES)
    try:
        return meson_test(ctx, BUILD, "tools", env={"SANDBOX_TEST_TOOLS": TOOLS_ARCHIVE,
                                                    "SANDBOX_TEST_TREES": TOOLS_TREES})
    finally:
        remove_tools()


def remove_tools():
    """Gigabytes, also those of a run that was stopped."""
    shutil.rmtree(TOOLS_TREES, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(TOOLS_ARCHIVE)


def fresh_root(ctx):
    """The README's quick start where nothing is installed. Counts its own checks."""
    # Mounts of its own: others count theirs.
    ctx.must("unshare", "--mount", "--propagation", "private", os.path.join(TOP, "tests", "fresh", "run"), env=product_environment(), clear=True)
    with open(ctx.log_path, encoding="utf-8", errors="replace") as log:
        passed = sum(line.startswith("== check: ") for line in log)
    if passed == 0:
        raise Failed("checked nothing")
    return Result(passed, 0, 0)


def count_tap(path):
    passed = failed = skipped = 0
    with open(path, encoding="utf-8", errors="replace") as log:
        for line in log:
            if line.startswith("not ok "):
                failed += 1
            elif line.startswith("ok "):
                skipped += "# SKIP" in line
                passed += "# SKIP" not in line
    return Result(passed, failed, skipped)


def debian_suite():
    with open("/etc/os-release", encoding="utf-8") as f:
        for line in f:
            if line.startswith("VERSION_CODENAME="):
                return line.split("=")[1].strip().strip('"')
    raise Failed("this is no Debian: /etc/os-release names no VERSION_CODENAME")


def debian_arch():
    """What the programs here are, which is not always what the kernel is."""
    return subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True).stdout.decode().strip()


def make_guest(ctx, suite):
    # Mounts of its own: killed at its limit, it leaves none of the image's behind.
    ctx.must("unshare", "--mount", "--propagation", "private", os.path.join(VM, "build-image"),
             debian_arch(), suite, GUESTS)


def guest_image(ctx):
    make_guest(ctx, debian_suite())
    return Result(1, 0, 0)


def vm_suite(ctx, *options):
    status = ctx.call(os.path.join(VM, "run"), "suite", *options)
    ctx.log.flush()
    result = count_tap(ctx.log_path)
    if status not in (0, 1) or sum(result) == 0:
        raise Failed("ended with status %d" % status)
    return result


def guest_suite(ctx, suite=None, program=PROGRAM):
    return vm_suite(ctx, "--image", os.path.join(GUESTS, "%s-%s" % (debian_arch(), suite or debian_suite())),
                    "--home", HOME, "--program", program, "--client", PROGRAM)


ARM64_BUILD = os.path.join(TOP, "build-arm64")
ARM64_HOME = os.path.join(BUILD, "home-arm64")
ARM64_EXPORT = os.path.join(BUILD, "minimal-arm64.tar")
ARM64_PACKAGES = os.path.join(BUILD, "packages-arm64")


def arm64_images(ctx):
    """The arm64 guest; an image for its sandboxes, package and bundle, made on this machine as the README says."""
    emulated = (os.path.join(VM, "with-emulator"), "arm64")
    ctx.must(*emulated, os.path.join(VM, "build-image"), "arm64", debian_suite(), GUESTS)
    env = product_environment(SANDBOX_HOME=ARM64_HOME, SANDBOX_LIMITS="best-effort")
    if not os.path.isdir(os.path.join(ARM64_HOME, "images", "minimal")):
        ctx.must(*emulated, PROGRAM, "image", "build", "minimal", "--arch", "arm64", "--packages", "python3-minimal",
                 env=env, clear=True)
    if not os.path.exists(ARM64_EXPORT):
        ctx.must(PROGRAM, "image", "export", "minimal", ARM64_EXPORT, env=env, clear=True)
    shutil.rmtree(ARM64_PACKAGES, ignore_errors=True)
    for option in ([], ["--bundle"]):
        ctx.must(os.path.join(TOP, "tools", "package"), "--arch", "arm64", "--output", ARM64_PACKAGES, *option)
    return Result(4, 0, 0)


def arm64_guest(ctx):
    """Three boots of what a Raspberry Pi is, emulated: cross-built programs, the package, 1 GiB of memory."""
    (package,), (bundle,) = (glob.glob(os.path.join(ARM64_PACKAGES, end)) for end in ("*.deb", "*.tar.gz"))
    return vm_suite(ctx, "--arch", "arm64", "--image", os.path.join(GUESTS, "arm64-" + debian_suite()), "--home", ARM64_HOME,
                    "--home-image", "minimal", "--program", os.path.join(ARM64_BUILD, "mcp", "mcp-sandbox"),
                    "--package", package, "--bundle", bundle, "--export", ARM64_EXPORT)


DEBIAN13 = os.path.join(BUILD, "trixie")
DEBIAN13_BUILD = os.path.join(DEBIAN13, "build-trixie")
DEBIAN13_TESTS = ("unit", "proto")


def debian13_build(ctx):
    """The whole tree with the compiler and the libraries of Debian 13, and the tests that need nothing else."""
    logbase = "-".join(DEBIAN13_TESTS)
    log = meson_log(DEBIAN13_BUILD, logbase)
    if os.path.exists(log):
        os.unlink(log)  # or a build that fails would count the results of the one before
    status = ctx.call(os.path.join(VM, "build-in"), "trixie", DEBIAN13, *DEBIAN13_TESTS)
    result = count_meson(DEBIAN13_BUILD, logbase) if os.path.exists(log) else Result(0, 0, 0)
    if sum(result) == 0 or (status != 0 and result.failed == 0):
        raise Failed("ended with status %d" % status)
    return result


def debian13_guest(ctx):
    """The vm suite on Debian 13's kernel and systemd, with the program that was built for it."""
    make_guest(ctx, "trixie")
    return guest_suite(ctx, "trixie", os.path.join(DEBIAN13_BUILD, "mcp", "mcp-sandbox"))


def suite_stage(name, suite, budget, limit, *needs):
    return Stage(name, "native", budget, limit, lambda ctx: meson_test(ctx, BUILD, suite), needs)


STAGES = [
    Stage("build", "both", 90, 600, build_native),
    Stage("unit", "native", 240, 900, unit),
]
if os.path.exists(os.path.join(TOP, "mcp", "cli_image.c")):
    STAGES.append(Stage("image", "native", 240, 900, image))
if debian_arch() == "amd64":
    STAGES.append(Stage("arm64-build", "native", 120, 600, cross_build))
STAGES += [
    suite_stage("image-verbs", "image", 360, 1800),  # early: the guests' lane waits for it
    # Root and an ordinary user each, by the tests themselves.
    suite_stage("sys", "sys", 300, 900),
    suite_stage("escape", "escape", 600, 1500),
    suite_stage("e2e", "e2e", 300, 1200),
    Stage("tools", "native", 300, 1200, with_tools, ("image",)),
    suite_stage("fault", "fault", 120, 600),
    suite_stage("package", "package", 180, 900),
    Stage("asan", "native", 420, 900, sanitizers),
]
GUESTS_ARE_HERE = os.path.exists(os.path.join(VM, "run"))
# The guests' lane would wait for the image otherwise. The fresh root comes before the stages that look for
# what is left on the host, because it is busy there as well.
if GUESTS_ARE_HERE:
    STAGES.append(Stage("guest-image", "guest", 240, 900, guest_image))
if os.path.exists(os.path.join(TOP, "tests", "fresh", "run")):
    STAGES.append(Stage("fresh-root", "guest", 420, 1500, fresh_root))
if GUESTS_ARE_HERE:
    STAGES.append(Stage("guest", "guest", 1200, 3000, guest_suite, ("guest-image", "image")))
    if debian_arch() == "amd64":
        # After the test that looks for what a host without an emulator says.
        STAGES.append(Stage("arm64-images", "guest", 1200, 2400, arm64_images, ("image-verbs",)))
        STAGES.append(Stage("arm64-guest", "guest", 900, 1800, arm64_guest, ("arm64-build", "arm64-images")))
    STAGES.append(Stage("debian13-build", "guest", 600, 1800, debian13_build, (), True))
    STAGES.append(Stage("debian13-guest", "guest", 1500, 3600, debian13_guest, ("debian13-build", "image"), True))


class Run:
    """The stages of one run and what has become of them."""

    def __init__(self, stages, total_limit):
        self.stages = stages
        self.total_limit = total_limit
        self.results = {}
        self.lock = threading.Lock()
        self.ended = {stage.name: threading.Event() for stage in stages}

    def wait_for(self, stage):
        """Names of what this stage needs and did not get."""
        lacking = []
        for name in stage.needs:
            if name in self.ended:
                self.ended[name].wait()
                if self.results[name].failed:
                    lacking.append(name)
        return lacking

    def attempt(self, ctx):
        """The stage's result and, where it failed, a sentence."""
        lacking = self.wait_for(ctx.stage)
        if lacking:
            return Result(0, 1, 0), "not run, because of " + ", ".join(lacking)
        os.sync()  # an image's gigabytes on their way to the disk stop whoever makes a directory
        ctx.start()
        try:
            result = ctx.stage.run(ctx)
            return result, "failed" if result.failed else ""
        except Failed as error:
            return Result(0, 1, 0), str(error)
        except Exception as error:  # a stage that breaks must not keep others waiting for ever
            return Result(0, 1, 0), repr(error)

    def stage(self, stage, cores):
        ctx = Context(stage, cores, self.total_limit)
        result, note = self.attempt(ctx)
        ctx.log.close()
        took = time.monotonic() - ctx.started
        with self.lock:
            self.results[stage.name] = result
            print("stage %s: %s, %.0f s (budget %d s): %d passed, %d failed, %d skipped" % (
                stage.name, note or "ok", took, stage.budget, *result), flush=True)
            if took > stage.budget:
                print("stage %s: over its budget" % stage.name, flush=True)
            if note:
                with open(ctx.log_path, encoding="utf-8", errors="replace") as log:
                    sys.stdout.write("".join(collections.deque(log, 200)))
                sys.stdout.flush()
        self.ended[stage.name].set()

    def lane(self, lane, cores):
        for stage in self.stages:
            if stage.lane == lane:
                self.stage(stage, cores)


def lane_cores():
    cores = sorted(os.sched_getaffinity(0))
    return set(cores[: max(1, len(cores) // 2)]), set(cores[len(cores) // 2:])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the stages")
    parser.add_argument("--nightly", action="store_true",
                        help="all stages, with those that otherwise run only when named")
    parser.add_argument("stage", nargs="*")
    args = parser.parse_args()
    if args.list:
        for stage in STAGES:
            print("%-14s %-7s budget %d s, limit %d s%s" % (*stage[:4], ", nightly or when named" if stage.on_demand else ""))
        return 0
    unknown = set(args.stage) - {stage.name for stage in STAGES}
    if unknown:
        parser.error("no such stage: " + ", ".join(sorted(unknown)))
    if args.nightly and args.stage:
        parser.error("--nightly is all stages: name none")
    stages = [s for s in STAGES if s.name == "build" or
              (s.name in args.stage if args.stage else args.nightly or not s.on_demand)]
    os.makedirs(LOGS, exist_ok=True)
    run = Run(stages, NIGHTLY_LIMIT if args.nightly else TOTAL_LIMIT)
    started = time.monotonic()
    run.lane("both", os.sched_getaffinity(0))
    if run.results["build"].failed == 0:
        native, guest = lane_cores()
        lanes = [threading.Thread(target=run.lane, args=lane)
                 for lane in (("native", native), ("guest", guest))]
        for thread in lanes:
            thread.start()
        for thread in lanes:
            thread.join()
    passed, failed, skipped = (sum(column) for column in zip(*run.results.values()))
    print("all stages: %.0f s" % (time.monotonic() - started))
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped), flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
