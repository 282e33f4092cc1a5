#!/usr/bin/env python3
"""Compiles cuda.cu by nvcc, and tells whether this nvcc can; meson.build calls it.

  nvcc.py probe NVCC
      compiles and links a small program. Prints "include FOLDER" and "library FOLDER" of the
      toolkit; or one line that says why it cannot, and ends with 1
  nvcc.py compile NVCC SOURCE OBJECT PTX REPORT DEPENDENCIES [OPTION ...]
      leaves the PTX and what ptxas said, which tests/ptx_gate.py looks at: tests look at
      what is shipped
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

LIMIT = 900  # seconds, of a loaded machine
# PTX, and the GPUs whose machine code is made of it: A100 and H100/H200, B200 and RTX 50. PTX of
# 9.0 is that of 8.0, and 12.0's that of 10.0. The newest is in the plug-in, too, for GPUs to come.
GPUS = {80: (80, 90), 100: (100, 120)}
PROBE = """
#include <cublas_v2.h>
#include <cuda_runtime.h>

struct arguments {
    float *x;
};
static __global__ __launch_bounds__(256) void kernel(const __grid_constant__ arguments a) {
    *a.x = 1;
}

int main() {
    cublasHandle_t products = NULL;
    cudaGraphExec_t graph;
    kernel<<<1, 256>>>(arguments());
    return products != NULL || cudaGraphInstantiateWithFlags(&graph, NULL, 0);
}
"""


class Failed(Exception):
    pass


def run(*command):
    """What it says."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        done = subprocess.run(command, timeout=LIMIT, check=False, **pipes)
    except subprocess.TimeoutExpired:
        raise Failed(f"{command[0]} error: it took more than {LIMIT} s") from None
    said = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        raise Failed(f"{said}{command[0]} error: it ended with code {done.returncode}")
    return said


def known_gpus(nvcc):
    """{PTX: [GPU]} of those that this nvcc knows."""
    codes = run(nvcc, "--list-gpu-code").split()
    known = {ptx: [gpu for gpu in gpus if f"sm_{gpu}" in codes] for ptx, gpus in GPUS.items()}
    known = {ptx: gpus for ptx, gpus in known.items() if gpus}
    if not known:
        raise Failed("it makes code for none of Starling's GPUs")
    return known


# ---- probe ----


def folders(said, variable, option):
    """Of a line like  #$ INCLUDES="-I/usr/local/cuda/include"  of nvcc --dryrun."""
    line = re.search(rf"^#\$ {variable}=(.*)$", said, re.M)
    return re.findall(rf'"-{option}([^"]*)"', line.group(1)) if line else []


def first_with(name, places):
    for place in places:
        if os.path.exists(os.path.join(place, name)):
            return os.path.realpath(place)
    return None


def probe(nvcc):
    with tempfile.TemporaryDirectory() as folder:
        source, made = (os.path.join(folder, name) for name in ("probe.cu", "probe.o"))
        with open(source, "w") as file:
            file.write(PROBE)
        options = [f"-arch=sm_{min(known_gpus(nvcc).popitem()[1])}", "-Xcompiler=-fPIC"]
        run(nvcc, *options, "-c", source, "-o", made)
        run(nvcc, *options, made, "-o", os.path.join(folder, "probe"))
        steps = run(nvcc, "--dryrun", source, "-o", made)
    places = {
        "include": first_with("cuda_runtime.h", folders(steps, "INCLUDES", "I")),
        "library": first_with("libcudart_static.a", folders(steps, "LIBRARIES", "L")),
    }
    for name, place in places.items():
        if place is not None:
            print(name, place)


# ---- compile ----


def code_options(nvcc):
    known = known_gpus(nvcc)
    for ptx, gpus in known.items():
        codes = [f"sm_{gpu}" for gpu in gpus]
        codes += [f"compute_{ptx}"] if ptx == max(known) else []
        yield f"-gencode=arch=compute_{ptx},code=[{','.join(codes)}]"


def compile_source(nvcc, source, made, ptx, report, dependencies, *options):
    with tempfile.TemporaryDirectory(dir=os.path.dirname(made)) as folder:
        said = run(
            *[nvcc, "-c", "-O3", "-fmad=false", "-Xcompiler=-fPIC,-fvisibility=hidden"],
            *["-Xptxas=-v", "--keep", "--keep-dir", folder, *code_options(nvcc), *options],
            *["-MD", "-MF", dependencies, source, "-o", made],
        )
        with open(ptx, "w") as out:
            for path in sorted(glob.glob(os.path.join(folder, "*.ptx"))):
                with open(path) as file:
                    out.write(file.read())
    with open(report, "w") as out:
        out.write(said)
    for line in said.splitlines():
        if "warning" in line:
            print(line)


def main():
    work, *arguments = sys.argv[1:]
    try:
        {"probe": probe, "compile": compile_source}[work](*arguments)
    except (Failed, OSError) as problem:
        faults = [line for line in str(problem).splitlines() if re.search("error|fatal", line)]
        print(faults[0] if work == "probe" and faults else problem)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
