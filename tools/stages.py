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
import json
import os
import signal
import subprocess
import sys
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(TOP, "build-test")
LOGS = os.path.join(BUILD, "logs")

Stage = collections.namedtuple("Stage", "name lane budget limit run")
Result = collections.namedtuple("Result", "passed failed skipped")


class Failed(Exception):
    """A stage could not do its work."""


class Context:
    """One running stage: its log, its core, its deadline."""

    def __init__(self, stage, cores):
        self.stage = stage
        self.cores = cores
        self.deadline = time.monotonic() + stage.limit
        self.log_path = os.path.join(LOGS, stage.name + ".log")
        self.log = open(self.log_path, "wb")

    def call(self, *argv, env=None, cwd=TOP):
        """Run a command in its own session; at the deadline the session is killed. Its exit status."""
        self.log.write(("+ " + " ".join(argv) + "\n").encode())
        self.log.flush()
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT, cwd=cwd,
            env={**os.environ, **(env or {})}, start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, self.cores))
        try:
            return process.wait(max(1, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise Failed("killed at its limit of %d s" % self.stage.limit) from None

    def must(self, *argv, **kwargs):
        status = self.call(*argv, **kwargs)
        if status != 0:
            raise Failed("%s: status %d" % (" ".join(argv[:3]), status))


def setup(build, *options):
    if not os.path.exists(os.path.join(build, "build.ninja")):
        return ("meson", "setup", build, *options)
    return ("meson", "setup", "--reconfigure", build, *options)


def count_meson(build, logbase):
    """Results of one "meson test" from its log, one JSON object a line."""
    passed = failed = skipped = 0
    with open(os.path.join(build, "meson-logs", logbase + ".json"), encoding="utf-8") as log:
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
    build = os.path.join(TOP, "build-arm64")
    ctx.must(*setup(build, "--cross-file", "tools/cross/aarch64-linux-gnu.ini"))
    ctx.must("ninja", "-C", build)
    return Result(1, 0, 0)


def suite_stage(name, suite, budget, limit):
    return Stage(name, "native", budget, limit, lambda ctx: meson_test(ctx, BUILD, suite))


STAGES = [
    Stage("build", "both", 60, 600, build_native),
    Stage("unit", "native", 60, 300, unit),
    Stage("asan", "native", 180, 600, sanitizers),
]
if os.uname().machine == "x86_64":
    STAGES.append(Stage("arm64-build", "native", 60, 300, cross_build))
STAGES += [
    # Root and an ordinary user, by the tests' own wrapper (tests/sys/as-user).
    suite_stage("sys", "sys", 300, 900),
    suite_stage("fault", "fault", 120, 600),
    suite_stage("escape", "escape", 600, 1500),
    suite_stage("e2e", "e2e", 300, 1200),
]


def run_stage(stage, cores, results, lock):
    ctx = Context(stage, cores)
    started = time.monotonic()
    note = ""
    try:
        result = stage.run(ctx)
        if result.failed:
            note = "failed"
    except (Failed, OSError, ValueError, subprocess.SubprocessError) as error:
        note = str(error)
        result = Result(0, 1, 0)
    ctx.log.close()
    took = time.monotonic() - started
    with lock:
        results[stage.name] = result
        print("stage %s: %s, %.0f s (budget %d s): %d passed, %d failed, %d skipped" % (
            stage.name, note or "ok", took, stage.budget, *result), flush=True)
        if took > stage.budget:
            print("stage %s: over its budget" % stage.name, flush=True)
        if note:
            with open(ctx.log_path, encoding="utf-8", errors="replace") as log:
                sys.stdout.write("".join(collections.deque(log, 200)))
            sys.stdout.flush()


def run_lane(lane, cores, stages, results, lock):
    for stage in stages:
        if stage.lane == lane:
            run_stage(stage, cores, results, lock)


def lane_cores():
    cores = sorted(os.sched_getaffinity(0))
    return set(cores[: max(1, len(cores) // 2)]), set(cores[len(cores) // 2:])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the stages")
    parser.add_argument("stage", nargs="*")
    args = parser.parse_args()
    if args.list:
        for stage in STAGES:
            print("%-12s %-7s budget %d s, limit %d s" % stage[:4])
        return 0
    unknown = set(args.stage) - {stage.name for stage in STAGES}
    if unknown:
        parser.error("no such stage: " + ", ".join(sorted(unknown)))
    stages = [s for s in STAGES if not args.stage or s.name in args.stage or s.name == "build"]
    os.makedirs(LOGS, exist_ok=True)
    results, lock, started = {}, threading.Lock(), time.monotonic()
    run_lane("both", os.sched_getaffinity(0), stages, results, lock)
    if results["build"].failed == 0:
        native, guest = lane_cores()
        lanes = [threading.Thread(target=run_lane, args=(lane, cores, stages, results, lock))
                 for lane, cores in (("native", native), ("guest", guest))]
        for thread in lanes:
            thread.start()
        for thread in lanes:
            thread.join()
    passed, failed, skipped = (sum(column) for column in zip(*results.values()))
    print("all stages: %.0f s" % (time.monotonic() - started))
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped), flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
