#!/usr/bin/env python3
"""Builds Starling in its test flavours, runs every test and counts them; called by tools/test.

Test programs come in two kinds. Check programs write TAP when CK_TAP_LOG_FILE_NAME asks them to,
and print "skip NAME: why" for a test that cannot be made here. Scripts are called with the
path of the `starling` command and print a line "ok NAME", "not ok NAME: why" or "skip NAME: why" for each test; a script that
ends badly without a "not ok" counts as one failed test.

groups: headers unit parity chaos sanitized threads fuzz
"""
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORK = os.path.join(ROOT, "build-test")
SANITIZED = os.path.join(ROOT, "build-sanitized")
THREADS = os.path.join(ROOT, "build-threads")
FUZZ = os.path.join(ROOT, "build-fuzz")
FUZZ_SECONDS = 10
SANITIZER_ENV = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}
LINE = re.compile(r"^(ok|not ok|skip)\b[ \d-]*(.*)$")


class Counts:
    """What all groups add up to."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def take(self, label, results, output="", seconds=0.0):
        """Counts [(kind, name)] of one program and says how it went."""
        passed = sum(kind == "ok" for kind, _ in results)
        failed = [name for kind, name in results if kind == "not ok"]
        skipped = [name for kind, name in results if kind == "skip"]
        self.passed += passed
        self.failed += len(failed)
        self.skipped += len(skipped)
        print(
            f"{label}: {passed} passed, {len(failed)} failed, {len(skipped)} skipped ({seconds:.1f} s)"
        )
        for name in skipped:
            print(f"  skipped {name}")
        for name in failed:
            print(f"  FAILED {name}")
        if failed and output:
            lines = [line for line in output.strip().splitlines() if not line.startswith("ok ")]
            print("  | " + "\n  | ".join(lines[-60:]))
        sys.stdout.flush()


def parse(text):
    return [match.groups() for match in map(LINE.match, text.splitlines()) if match]


def call(command, timeout, env=None, cwd=ROOT):
    """(exit code, output, seconds); 124 when it took too long."""
    began = time.monotonic()
    child = subprocess.Popen(
        command,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = child.communicate(timeout=timeout)
        code = child.returncode
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, 9)
        output, _ = child.communicate()
        output += f"\nkilled after {timeout} s\n"
        code = 124
    return code, output, time.monotonic() - began


def build(counts, folder, options, env=None, targets=()):
    """True when it built, everything or these targets; a build that fails is a failed test."""
    name = os.path.basename(folder)
    began = time.monotonic()
    code, output = 0, ""
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        code, output, _ = call(["meson", "setup", folder, ROOT, *options], 120, env)
    if code == 0:
        code, output, _ = call(["meson", "compile", "-C", folder, *targets], 900)
    counts.take(
        f"build {name}",
        [("ok" if code == 0 else "not ok", "build " + name)],
        output,
        time.monotonic() - began,
    )
    return code == 0


def run_program(label, command, timeout, env):
    """One test program: the arguments of Counts.take."""
    with tempfile.TemporaryDirectory() as folder:
        tap = os.path.join(folder, "tap")
        code, output, seconds = call(command, timeout, {**(env or {}), "CK_TAP_LOG_FILE_NAME": tap})
        text = open(tap, errors="replace").read() if os.path.exists(tap) else output
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
    elif code != 0 and not any(kind == "not ok" for kind, _ in results):
        results.append(("not ok", f"{label}: ended with code {code}"))
    return label, results, output + text if text != output else output, seconds


def run_programs(counts, programs, at_once):
    """programs: [arguments of run_program], counted in their order."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for outcome in pool.map(lambda program: run_program(*program), programs):
            counts.take(*outcome)


def meson_tests(folder, prefix, env=None):
    listing = subprocess.run(
        ["meson", "introspect", folder, "--tests"], capture_output=True, text=True, check=True
    )
    return [
        (
            f"{prefix} {test['name']}",
            test["cmd"],
            test["timeout"] or 300,
            {**test["env"], **(env or {})},
        )
        for test in json.loads(listing.stdout)
    ]


def scripts(folder, pattern, prefix, env=None, timeout=600):
    starling = os.path.join(folder, "tools", "starling")
    return [
        (f"{prefix} {os.path.basename(script)}", [sys.executable, script, starling], timeout, env)
        for script in sorted(glob.glob(os.path.join(ROOT, pattern)))
        if not os.path.basename(script).startswith("_")
    ]  # shared by the others


def headers(counts):
    """Every public header compiles alone, in C and in C++."""
    results, log = [], ""
    began = time.monotonic()
    for header in sorted(glob.glob(os.path.join(ROOT, "include", "starling", "*.h"))):
        for compiler, standard in (("gcc", "c11"), ("g++", "c++11")):
            language = "c" if compiler == "gcc" else "c++"
            code, output, _ = call(
                [
                    compiler,
                    "-x",
                    language,
                    f"-std={standard}",
                    "-Wall",
                    "-Wextra",
                    "-Werror",
                    "-fsyntax-only",
                    "-I",
                    os.path.join(ROOT, "include"),
                    header,
                ],
                60,
            )
            results.append(
                ("ok" if code == 0 else "not ok", f"{os.path.basename(header)} alone in {language}")
            )
            log += output
    counts.take("headers", results, log, time.monotonic() - began)


def sanitized(counts):
    options = [
        "-Db_sanitize=address,undefined",
        "-Db_lundef=false",
        "-Dbuildtype=debugoptimized",
        "-Dwerror=true",
        "-Dcuda=disabled",
    ]
    if not build(counts, SANITIZED, options):
        return
    env = {**SANITIZER_ENV, "CK_FORK": "no", "STARLING_QUICK": "1"}
    run_programs(
        counts,
        meson_tests(SANITIZED, "sanitized unit", env)
        + scripts(SANITIZED, "tests/parity/*.py", "sanitized parity", env),
        os.cpu_count(),
    )


def threads(counts):
    """The emulated device's streams are threads (gpu/emulated_stream.h): operations without an order between them are a race that ThreadSanitizer reports."""
    options = [
        "-Db_sanitize=thread",
        "-Db_lundef=false",
        "-Dbuildtype=debugoptimized",
        "-Dwerror=true",
        "-Dcuda=disabled",
    ]
    if not build(
        counts,
        THREADS,
        options,
        None,
        ["tools/starling", "checkvec", "starling-emulated", "starling-other"],
    ):
        return
    env = {"TSAN_OPTIONS": "halt_on_error=1", "OPENBLAS_NUM_THREADS": "1", "STARLING_QUICK": "1"}
    run_programs(
        counts,
        [
            program
            for program in meson_tests(THREADS, "threads unit", env)
            if program[0].endswith(" checkvec")
        ]
        + scripts(THREADS, "tests/parity/test_devices.py", "threads parity", env),
        1,
    )


def fuzz(counts):
    targets = sorted(glob.glob(os.path.join(ROOT, "tests", "fuzz", "fuzz_*.c")))
    names = [os.path.basename(path)[:-2] for path in targets]
    if shutil.which("clang") is None:
        counts.take("fuzz", [("skip", f"{name}: no clang here") for name in names])
        return
    options = [
        "-Dfuzz=true",
        "-Db_sanitize=address,undefined",
        "-Db_lundef=false",
        "-Dbuildtype=debugoptimized",
        "-Dc_args=-fsanitize=fuzzer-no-link",
        "-Dcuda=disabled",
    ]
    if not build(counts, FUZZ, options, {"CC": "clang"}, names):
        return
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, (code, output, seconds) in zip(names, pool.map(fuzz_one, names)):
            counts.take(name, [("ok" if code == 0 else "not ok", name)], output, seconds)


def fuzz_one(name):
    corpus = os.path.join(FUZZ, "corpus", name)
    seeds = os.path.join(ROOT, "tests", "fuzz", "seeds", name[len("fuzz_") :])
    os.makedirs(corpus, exist_ok=True)
    command = [
        os.path.join(FUZZ, "tests", "fuzz", name),
        f"-max_total_time={FUZZ_SECONDS}",
        "-timeout=10",
        "-rss_limit_mb=2048",
        "-max_len=65536",
        f"-artifact_prefix={FUZZ}/{name}-",
        corpus,
    ]
    return call(command + [seeds] * os.path.isdir(seeds), FUZZ_SECONDS + 120, SANITIZER_ENV)


def main():
    groups = ["headers", "unit", "parity", "chaos", "sanitized", "threads", "fuzz"]
    wanted = sys.argv[1:] or groups
    if any(name not in groups for name in wanted):
        print(__doc__)
        return 2
    counts = Counts()
    if "headers" in wanted:
        headers(counts)
    if {"unit", "parity", "chaos"} & set(wanted) and build(counts, WORK, ["-Dwerror=true"]):
        if "unit" in wanted:
            run_programs(counts, meson_tests(WORK, "unit"), os.cpu_count())
        if "parity" in wanted:
            run_programs(counts, scripts(WORK, "tests/parity/*.py", "parity"), os.cpu_count())
        if "chaos" in wanted:
            run_programs(
                counts, scripts(WORK, "tests/chaos/*.py", "chaos"), 1
            )  # they set time limits
    if "sanitized" in wanted:
        sanitized(counts)
    if "threads" in wanted:
        threads(counts)
    if "fuzz" in wanted:
        fuzz(counts)
    print(f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped")
    return 1 if counts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
