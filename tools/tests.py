#!/usr/bin/env python3
"""Builds Starling in its test flavours, runs every test and counts them; called by tools/test.

tests/meson.build lists the tests, in suites. There are two kinds. Check programs write TAP when
CK_TAP_LOG_FILE_NAME asks them to, and print "skip NAME: why" for a test that cannot be made here.
Scripts print a line "ok NAME", "not ok NAME: why" or "skip NAME: why" for each test; one that ends
badly without a "not ok" counts as one failed test.

Without an argument it leaves out what takes long: other flavours, most seeds, packages, Debian 13.

Each core has one job at a time, a build or a test, the long ones first. Tests that wait more than
they work (tests/meson.build's suite `waits`) run beside them, WAITING at a time. Other tests wait
as well, now and then: while a core has nothing to do, one more job runs.

Many tests are processes with deadlines, which a machine with other work can miss. One that fails,
where no sanitizer looks, is run once more, alone, after all others. If it passes then, it counts as
passed, and the run says that it is unsteady. More than UNSTEADY of them are no chance: they count
as they went first.

The group cuda needs an nvcc that works, which tools/setup does not install, but no GPU, and is
skipped without. The group cuda12 fetches Debian 13's nvcc (tools/toolkit.py), and is skipped where
the archive has none. The group debian13 needs root and Debian's archive, makes a Debian 13 of its
own in build-releases/ (tools/releases.py), and is skipped without.
"""

import argparse
import dataclasses
import glob
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import releases
import toolkit

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORK = os.path.join(ROOT, "build-test")
SANITIZED = os.path.join(ROOT, "build-sanitized")
THREADS = os.path.join(ROOT, "build-threads")
FUZZ = os.path.join(ROOT, "build-fuzz")
CUDA12 = os.path.join(ROOT, "build-cuda12")
RELEASE = "trixie"  # Debian 13
DOWNLOAD_SECONDS = 1800
SUITES = ("headers", "tidy", "unit", "plain", "cuda", "cores", "parity", "python", "chaos")
SUITES += ("install",)
USUAL = ("headers", "tidy", "unit", "parity", "python", "chaos", "install")
WAITING = 3
SPARE_SECONDS, SPARE_SHARE = 3, 0.7
UNSTEADY = 2
CORES = os.cpu_count()
BUILD_SECONDS = 1000  # more than any test: what waits for a build begins late enough
FUZZ_SECONDS = 60  # of all targets together, but for those of what strangers say
STRANGERS_SECONDS = 30  # each
FROM_STRANGERS = ("fuzz_doctor", "fuzz_frame", "fuzz_greeting", "fuzz_provider", "fuzz_request")
LIMIT = 4800  # after which no other test begins
SANITIZER_ENV = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}
# libfabric looks for a symbol of the kernel twice as each process starts, and reads a table of 5 MB
# for it: half of what a short run costs. Who may, runs the tests where that table is empty.
WITHOUT_SYMBOLS = ["unshare", "--mount", "sh", "-c"]
WITHOUT_SYMBOLS += ['mount --bind /dev/null /proc/kallsyms && exec "$@"', "sh"]
# Scripts that reach code of their own under the address sanitizer; the others check numbers, or run
# under the thread sanitizer. The program counters counts what checkvec and training run, too.
SANITIZED_SCRIPTS = ("parity", "test_algorithms", "test_command", "test_compare", "test_pictures")
SANITIZED_SCRIPTS += ("test_asynchronous", "test_topology")
# Scripts of another release of Debian: what other libraries print, read and round.
ELSEWHERE = ("test_algorithms", "test_command", "test_own_data", "test_plot", "test_topology")
# Programs that the build of the fuzz targets, which is clang's, runs as well: its sanitizer sees
# undefined behaviour that gcc's does not. Together they pass through most rooms.
BY_CLANG = ("checkpoint", "data", "record", "secure", "session", "tensors", "texts")
BY_CLANG += ("topology", "wire")
NUMBERS = itertools.count()  # of calls
FRAME = ("Thread", "#")  # how gdb's lines begin that tell where a process stands
PROGRESS = re.compile(r"^\[\d+/\d+\] ")  # how ninja's lines begin that tell of no fault
LINE = re.compile(r"^(ok|not ok|skip)\b[ \d-]*(.*)$")


@dataclasses.dataclass
class Outcome:
    """How a job went: [(kind, name)], what it wrote, and the jobs that may begin now."""

    results: list
    output: str = ""
    seconds: float = 0.0
    cpu: float = 0.0
    following: list = dataclasses.field(default_factory=list)

    def failed(self):
        return [name for kind, name in self.results if kind == "not ok"]

    def tell_failures(self):
        for name in self.failed():
            print(f"  FAILED {name}")
        lines = self.output.strip().splitlines()
        lines = [line for line in lines if not line.startswith("ok ")]
        print("  | " + "\n  | ".join(lines[-200:]))


@dataclasses.dataclass
class Job:
    label: str
    work: object  # () -> Outcome
    seconds: float
    waits: bool = False
    again: bool = False  # may it be run once more?


class Counts:
    """What all jobs add up to."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.cpu = 0.0

    def take(self, label, outcome):
        """Counts one job's tests and says how they went."""
        results = outcome.results
        passed = sum(kind == "ok" for kind, _ in results)
        failed = outcome.failed()
        skipped = [name for kind, name in results if kind == "skip"]
        self.passed += passed
        self.failed += len(failed)
        self.skipped += len(skipped)
        self.cpu += outcome.cpu
        times = f"{outcome.seconds:.1f} s, of a core {outcome.cpu:.1f} s"
        print(f"{label}: {passed} passed, {len(failed)} failed, {len(skipped)} skipped ({times})")
        for name in skipped:
            print(f"  skipped {name}")
        if failed:
            outcome.tell_failures()
        sys.stdout.flush()


def idle_seconds():
    """Of all cores together, since the machine began."""
    with open("/proc/stat") as file:
        fields = file.readline().split()
    return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")


class Schedule:
    """Runs jobs, the longest first: one at a time on each core, beside them those that wait, and
    one more while a core has nothing to do."""

    def __init__(self, jobs):
        self.jobs, self.running = list(jobs), 0
        self.counts, self.changed = Counts(), threading.Condition()
        self.once = []  # (job, outcome) of those that may be run again
        self.began = time.monotonic()

    def take_job(self, waits):
        """The next job, or None when there is none and none can follow."""
        while True:
            ready = [job for job in self.jobs if job.waits == waits]
            if ready:
                job = max(ready, key=lambda job: job.seconds)
                self.jobs.remove(job)
                self.running += 1
                return job
            if not self.jobs and self.running == 0:
                return None
            self.changed.wait()

    def is_over(self):
        with self.changed:
            return not self.jobs and self.running == 0

    def wait_for_a_core(self):
        """Until one has been idle for most of SPARE_SECONDS, or there are no jobs."""
        idle = 0
        while idle < SPARE_SHARE and not self.is_over():
            before = idle_seconds()
            time.sleep(SPARE_SECONDS)
            idle = (idle_seconds() - before) / SPARE_SECONDS

    def serve(self, waits, spare=False):
        while True:
            if spare:
                self.wait_for_a_core()
            with self.changed:
                job = self.take_job(waits)
            if job is None:
                return
            try:
                if time.monotonic() - self.began > LIMIT:
                    raise TimeoutError(f"not begun: the tests have taken {LIMIT} s")
                outcome = job.work()
            except Exception as problem:  # counted as the job's failure
                outcome = Outcome([("not ok", job.label)], f"{type(problem).__name__}: {problem}")
            with self.changed:
                if job.again and outcome.failed():
                    self.once.append((job, outcome))
                else:
                    self.counts.take(job.label, outcome)
                self.jobs += outcome.following
                self.running -= 1
                self.changed.notify_all()

    def run(self):
        lanes = [(False,)] * CORES + [(True,)] * WAITING + [(False, True)]
        workers = [threading.Thread(target=self.serve, args=lane) for lane in lanes]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.run_again()
        return self.counts

    def run_again(self):
        """Counts those that have failed once."""
        chance = len(self.once) <= UNSTEADY
        for job, first in self.once:
            if not chance:
                self.counts.take(job.label, first)
                continue
            print(f"{job.label}: failed, and is run again alone")
            first.tell_failures()
            second = job.work()
            self.counts.take(f"{job.label}, again", second)
            if not second.failed():
                print(f"{job.label}: unsteady, for it failed once and passed alone")


# ---- programs ----


def parse(text):
    return [match.groups() for match in map(LINE.match, text.splitlines()) if match]


def processes_of(mark):
    """The processes that have this in their environment; sessions of their own do not hide them."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                if mark in file.read().split(b"\0"):
                    found.append(int(path.split("/")[2]))
        except OSError:
            pass  # it has ended, or is another user's
    return found


def kill_all(mark):
    """Kills these processes and all that they begin meanwhile."""
    while pids := processes_of(mark):
        for pid in pids:
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        time.sleep(0.05)


def where_they_stand(mark):
    """What a test that hangs waits for: its processes, with all threads where gdb is installed."""
    told = ""
    for pid in processes_of(mark):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                told += f"{pid}: {file.read().replace(bytes(1), b' ').decode(errors='replace')}\n"
            command = ["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all backtrace 12"]
            seen = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
            told += "".join(line + "\n" for line in seen.splitlines() if line.startswith(FRAME))
        except (OSError, subprocess.TimeoutExpired) as problem:
            told += f"{pid}: {problem}\n"
    return told


def call(command, timeout, env=None, cwd=ROOT):
    """(exit code, output, seconds, seconds of a core); 124 when it took too long. The output goes
    to a file: a process left behind could hold a pipe open for ever."""
    began = time.monotonic()
    mark = f"STARLING_TEST={os.getpid()}-{next(NUMBERS)}"
    with tempfile.TemporaryFile() as file:
        streams = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": subprocess.STDOUT}
        env = {**os.environ, **(env or {}), **dict([mark.split("=")])}
        child = subprocess.Popen(command, cwd=cwd, env=env, start_new_session=True, **streams)
        late = []

        def end():
            late.append(where_they_stand(mark.encode()))
            kill_all(mark.encode())

        timer = threading.Timer(timeout, end)
        timer.start()
        _, status, usage = os.wait4(child.pid, 0)
        timer.cancel()
        timer.join()
        kill_all(mark.encode())
        child.returncode = code = os.waitstatus_to_exitcode(status)
        file.seek(0)
        output = file.read().decode(errors="replace")
    if late:
        code, output = 124, output + f"\n{late[0]}killed after {timeout} s\n"
    return code, output, time.monotonic() - began, usage.ru_utime + usage.ru_stime


def run_program(label, command, timeout, env, cwd):
    """One test program."""
    with tempfile.TemporaryDirectory() as folder:
        tap = os.path.join(folder, "tap")
        env = {**env, "CK_TAP_LOG_FILE_NAME": tap}
        code, output, *times = call(command, timeout, env, cwd)
        text = output
        if os.path.exists(tap):
            with open(tap, errors="replace") as file:
                text = file.read()
    skips = [name for kind, name in parse(output) if kind == "skip" and name]
    results = [
        (kind, name)
        for kind, name in parse(text)
        if kind != "skip" and not any(skip.split(":")[0] in name for skip in skips)
    ]
    results += [("skip", name) for name in skips]
    if code == 77 and not results:
        results = [("skip", label)]
    elif not results:
        results = [("ok" if code == 0 else "not ok", label)]
    elif code not in (0, 77) and not any(kind == "not ok" for kind, _ in results):
        results.append(("not ok", f"{label}: ended with code {code}"))
    return Outcome(results, output + text if text != output else output, *times)


def tests_of(folder, suites, prefix="", env=None, system=None, usual=False):
    """A job for each test of a build's suites; the build is in the system, if there is one. usual:
    without what takes long."""
    with open((system or "") + os.path.join(folder, "meson-info", "intro-tests.json")) as file:
        listed = json.load(file)
    jobs = []
    for test in listed:
        suite, *others = [name.split(":")[-1] for name in test["suite"]]
        if suite in suites and not (usual and "long" in others):
            label = f"{prefix}{suite} {test['name']}"
            command, place = test["cmd"], test["workdir"] or folder
            if system:
                command, place = releases.entered(system, place, command), ROOT
            more = {"STARLING_QUICK": "1"} if usual and "seeds" in others else env or {}
            arguments = (label, command, test["timeout"], {**test["env"], **more}, place)
            work = lambda arguments=arguments: run_program(*arguments)
            waits = "waits" in others
            jobs.append(Job(label, work, test["priority"], waits, again=not prefix or bool(system)))
    return jobs


# ---- builds ----


def build_once(steps, env):
    """(exit code, what it says without progress, seconds, seconds of a core)"""
    code, output, seconds, cpu = 0, "", 0, 0
    for step in steps:
        if code == 0:
            code, output, *times = call(step, 1200, env)
            seconds, cpu = seconds + times[0], cpu + times[1]
    output = "\n".join(line for line in output.splitlines() if not PROGRESS.match(line))
    return code, output, seconds, cpu


def build(folder, options, following, env=None, targets=(), spared=None, system=None):
    """Builds a flavour, everything or these targets: one test. Then come following()'s jobs.
    spared: (what, option) that it is built with if it cannot be built otherwise; `what` is skipped
    then. system: where to build."""
    root, name = ROOT, os.path.basename(folder)
    if system:
        root, name = releases.SOURCES, os.path.basename(system)

    def here(*command):
        return releases.entered(system, "/", command) if system else command

    def work():
        make = here("ninja", "-C", folder, f"-j{max(1, CORES // 2)}", *targets)
        there = os.path.exists((system or "") + os.path.join(folder, "build.ninja"))
        begin = [] if there else [here("meson", "setup", folder, root, *options)]
        code, output, *times = build_once([*begin, make], env)
        results = []
        if code != 0 and spared:
            faults = [line for line in output.splitlines() if "error:" in line.lower()]
            why = (faults or [output[-200:]])[0]
            results.append(("skip", f"{spared[0]}: it cannot be built here: {why}"))
            begin = [here("meson", "setup", "--wipe", folder, root, *options, spared[1])]
            code, output, *more = build_once([*begin, make], env)
            times = [sum(pair) for pair in zip(times, more)]
        results.append(("ok" if code == 0 else "not ok", "build " + name))
        return Outcome(results, output, *times, following() if code == 0 else [])

    return Job(f"build {name}", work, BUILD_SECONDS)


def sanitizer_options(sanitizer, optimization, *c_args):
    """Line numbers are all that reports need; with more optimization the build takes longer than
    the tests gain."""
    return [
        f"-Db_sanitize={sanitizer}",
        "-Db_lundef=false",
        f"-Doptimization={optimization}",
        "-Ddebug=false",
        "-Dc_args=" + " ".join(["-g1", *c_args]),
        "-Dcuda=disabled",
    ]


def plain_build(suites, asked, left_out, usual):
    """With the plug-in for GPUs where nvcc works: its tests need no GPU. An nvcc that only seems to
    work ends nothing, unless somebody has asked for these tests. left_out: labels."""
    spared = None if "cuda" in asked else ("cuda", "-Dcuda=disabled")

    def tests():
        return [job for job in tests_of(WORK, suites, usual=usual) if job.label not in left_out]

    return build(WORK, ["-Dwerror=true"], tests, spared=spared)


def reaches_code_of_its_own(label):
    """Not: programs that run others' code again, for races, for counts, or with further seeds."""
    name = label.split()[-1]
    again = name in ("counters", "launch_races") or name.isdecimal()
    return name in SANITIZED_SCRIPTS if " parity " in label else not again


def sanitized():
    def tests():
        env = {**SANITIZER_ENV, "CK_FORK": "no", "STARLING_QUICK": "1"}
        jobs = tests_of(SANITIZED, ("unit", "parity"), "sanitized ", env)
        return [job for job in jobs if reaches_code_of_its_own(job.label)]

    return build(SANITIZED, sanitizer_options("address,undefined", "g"), tests)


def threads():
    """The emulated device's streams are threads (gpu/emulated/queue.h), and so may be those of a
    launch: what ThreadSanitizer reports of them has no order on a GPU either. Checkpoints are
    written, and events logged, by threads."""
    names = ("launch_races", "test_devices", "session_device", "checkpoint", "event_log")

    def tests():
        env = {"TSAN_OPTIONS": "halt_on_error=1", "STARLING_QUICK": "1"}
        jobs = tests_of(THREADS, ("unit", "parity"), "threads ", env)
        return [job for job in jobs if job.label.split()[-1] in names]

    targets = ["tools/starling", "tests/checkvec", "tests/libstarling-other.so"]
    targets += ["gpu/libstarling-emulated.so", "tests/test_checkpoint", "tests/test_event_log"]
    targets += ["tests/test_session_device"]
    return build(THREADS, sanitizer_options("thread", 1), tests, None, targets)


def fuzz_one(name, seconds):
    corpus = os.path.join(FUZZ, "corpus", name)
    seeds = os.path.join(ROOT, "tests", "fuzz", "seeds", name[len("fuzz_") :])
    os.makedirs(corpus, exist_ok=True)
    command = [os.path.join(FUZZ, "tests", "fuzz", name), f"-max_total_time={seconds}"]
    command += ["-timeout=10", "-rss_limit_mb=2048", "-max_len=65536"]
    command += [f"-artifact_prefix={FUZZ}/{name}-", corpus]
    code, output, *times = call(
        command + [seeds] * os.path.isdir(seeds), seconds + 120, SANITIZER_ENV
    )
    return Outcome([("ok" if code == 0 else "not ok", name)], output, *times)


def fuzz():
    targets = sorted(glob.glob(os.path.join(ROOT, "tests", "fuzz", "fuzz_*.c")))
    names = [os.path.basename(path)[:-2] for path in targets]
    if shutil.which("clang") is None:
        skips = [("skip", f"{name}: no clang here") for name in names]
        return Job("fuzz", lambda: Outcome(skips), 0)
    seconds = max(1, FUZZ_SECONDS // len(names))
    options = sanitizer_options("address,undefined", 0, "-fsanitize=fuzzer-no-link")
    options.append("-Dfuzz=true")

    def tests():
        env = {**SANITIZER_ENV, "CK_FORK": "no", "STARLING_QUICK": "1"}
        jobs = tests_of(FUZZ, ("unit",), "clang ", env)
        jobs = [job for job in jobs if job.label.split()[-1] in BY_CLANG]
        for name in names:
            longer = STRANGERS_SECONDS if name in FROM_STRANGERS else seconds
            jobs.append(Job(name, lambda name=name, s=longer: fuzz_one(name, s), longer))
        return jobs

    targets = ["tests/fuzz/" + name for name in names] + ["tests/test_" + name for name in BY_CLANG]
    compiler = "ccache clang" if shutil.which("ccache") else "clang"
    return build(FUZZ, options, tests, {"CC": compiler}, targets)


def tests_in(system, folder):
    """What another compiler, other libraries and another torch can change, once: not what repeats
    tests for other processors, nor all seeds and scripts. Packages are tried last: they take the
    longest."""
    name = os.path.basename(system) + " "
    jobs = tests_of(folder, ("unit", "parity"), name, {"STARLING_QUICK": "1"}, system)
    jobs = [job for job in jobs if " unit " in job.label or job.label.split()[-1] in ELSEWHERE]
    jobs += tests_of(folder, ("python", "install"), name, None, system)
    demo = releases.entered(system, releases.SOURCES, ["tools/demo"])
    jobs.append(Job(name + "demo", lambda: run_program(name + "demo", demo, 600, {}, ROOT), 20))
    return jobs


def made_first(what, script, arguments, following):
    """A script that makes what a build needs, or says why there is none here; then following()."""

    def work():
        command = [sys.executable, script.__file__, *arguments]
        code, output, *times = call(command, DOWNLOAD_SECONDS)
        if code == releases.UNAVAILABLE:
            return Outcome([("skip", output.strip())], output, *times)
        if code != 0:
            return Outcome([("not ok", what)], output, *times)
        return Outcome([("ok", what)], output, *times, [following()])

    return Job(what, work, BUILD_SECONDS, waits=True)


def other_release(release):
    """Another release of Debian, with everything that is built and installed there."""
    system, folder = releases.system_of(release), os.path.join(releases.SOURCES, "build")

    def made():
        targets = ("all", "meson-test-prereq")  # later mesons leave what tests need out of `all`
        tests = lambda: tests_in(system, folder)
        return build(folder, ["-Dwerror=true"], tests, targets=targets, system=system)

    return made_first("system " + release, releases, [release], made)


def cuda12():
    """What an older nvcc makes of cuda.cu, and the pack of it."""
    tests = lambda: tests_of(CUDA12, ("cuda",), "cuda12 ")
    options = ["-Dwerror=true", "-Dcuda=enabled", "--native-file", toolkit.NATIVE_FILE]
    made = lambda: build(CUDA12, options, tests, targets=["cuda_tests"])
    return made_first("toolkit of CUDA 12.4", toolkit, [], made)


def hide_symbols():
    """Begins again without the kernel's symbols, if that is allowed."""
    if "STARLING_WITHOUT_SYMBOLS" in os.environ or shutil.which("unshare") is None:
        return
    os.environ["STARLING_WITHOUT_SYMBOLS"] = "1"
    if subprocess.run([*WITHOUT_SYMBOLS, "true"], capture_output=True).returncode == 0:
        os.execvp(WITHOUT_SYMBOLS[0], [*WITHOUT_SYMBOLS, sys.executable, *sys.argv])


def read_options(groups):
    parser = argparse.ArgumentParser(
        "tools/test", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    about = (
        f"{' '.join(groups)}; or all of them; default {' '.join(USUAL)}, without what takes long"
    )
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=about)
    parser.add_argument(
        "--suite", metavar="RELEASE", default=RELEASE, help="of debian13: another release, as forky"
    )
    options = parser.parse_args()
    for name in options.groups:
        if name not in (*groups, "all"):
            parser.error(f"{name}: no such group; there are all {' '.join(groups)}")
    return options


def main():
    flavours = {"sanitized": sanitized, "threads": threads, "fuzz": fuzz, "cuda12": cuda12}
    flavours["debian13"] = lambda: other_release(options.suite)
    options = read_options([*SUITES, *flavours])
    wanted = options.groups or USUAL
    if "all" in wanted:
        wanted = [*SUITES, *flavours]
    hide_symbols()
    if shutil.which("ccache"):
        os.environ.setdefault("CC", "ccache gcc")
    # The library asks OpenBLAS for one thread; its others would wait at the start by turning round.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    suites = [name for name in wanted if name in SUITES]
    done_there = {"debian13": "install test_package", "cuda12": "cuda pack"}
    left_out = [label for name, label in done_there.items() if name in wanted]
    jobs = [plain_build(suites, options.groups, left_out, not options.groups)] if suites else []
    jobs += [flavours[name]() for name in wanted if name in flavours]
    began = time.monotonic()
    counts = Schedule(jobs).run()
    print(f"{(time.monotonic() - began) / 60:.1f} min, of a core {counts.cpu / 60:.1f} min")
    print(f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped")
    return 1 if counts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
