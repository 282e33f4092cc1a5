#!/usr/bin/env python3
"""Runs a test with OpenBLAS's kernels for one kind of processor, if this one can execute them.

usage: on_core.py CORE COMMAND ...     CORE: a value of OPENBLAS_CORETYPE
"""

import os
import platform
import sys

AVX2 = {"avx2", "fma"}
AVX512 = AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
# Instructions as /proc/cpuinfo names them; OpenBLAS does not ask before it executes them.
NEEDED = {
    "Nehalem": {"sse4_2"},
    "Haswell": AVX2,
    "Zen": AVX2,
    "SkylakeX": AVX512,
    "Cooperlake": AVX512 | {"avx512_bf16"},
}
SKIPPED = 77


def flags():
    if platform.machine() != "x86_64":
        return set()
    with open("/proc/cpuinfo") as file:
        return next((set(line.split()) for line in file if line.startswith("flags")), set())


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in NEEDED:
        print(__doc__)
        return 2
    core, command = sys.argv[1], sys.argv[2:]
    missing = sorted(NEEDED[core] - flags())
    if missing:
        script = [part for part in command if part.endswith(".py")]
        name = os.path.basename((script or command)[0])
        print(f"skip {name} with {core}: this processor has no {', '.join(missing)}")
        return SKIPPED
    os.environ["OPENBLAS_CORETYPE"] = core
    os.execvp(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
