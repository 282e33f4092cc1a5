#!/usr/bin/env python3
"""What nvcc makes of the kernels, for each kind of GPU; no GPU is needed.

  - the source compiles alone, with these include folders: include, the root, src, gpu
  - every operation rounds to nearest, none flushes small numbers to zero and none is contracted,
    but in the listed kernels, which call functions of mathematics and promise no bits
  - no kernel has a stack, spills a register, or takes more than 64; each says its block's size
  - memory is read past the caches' coherence in the listed kernels only, and stored by words
  - the plug-in exports one function and needs no CUDA runtime of the machine's

usage: ptx_gate.py NVCC PLUGIN
"""

import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = os.path.join(ROOT, "gpu", "cuda.cu")
GPUS = [80, 90, 100, 120]
REGISTERS_MAX, BLOCK = 64, 256

# They call exp, tanh, erf or log, and are compared within a tolerance.
MATHEMATICS = {"find_loss", "lstm_advance", "lstm_retreat", "softmax_rows", "gelu_value"}
MATHEMATICS |= {"gelu_slope"}
# What they read so is written by no thread of the launch.
READ_ONLY = {"take_rows", "unfold", "fold", "normalise", "take_normalised", "give_normalised"}
READ_ONLY |= {"lstm_advance", "lstm_retreat", "convolve", "convolve_back"}

ROUNDED = re.compile(r"\b(?:add|sub|mul|div|sqrt|rcp)\.(?!rn\.f)[\w.]*f(?:32|64)\b")
LOOSE = re.compile(r"\b\w+\.[\w.]*(?:approx|ftz)[\w.]*|\bfma\.[\w.]+")
NARROW = re.compile(r"\bst\.(?:global\.)?[usb](?:8|16)\b")


def run(*command):
    """Its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{os.path.basename(command[0])}: {(done.stderr + done.stdout)[-2000:]}")
    return done.stdout + done.stderr


def kernel_of(mangled):
    """_Z16kernel_find_loss14find_loss_argsm: find_loss."""
    length, rest = re.match(r"_Z(\d+)(kernel_\w+)", mangled).groups()
    return rest[: int(length)].removeprefix("kernel_")


def bodies_of(ptx):
    """(kernel, text) of each."""
    for part in re.split(r"\.entry ", ptx)[1:]:
        yield kernel_of(part.split("(")[0].strip()), part


def faults_of_text(name, text):
    """What a kernel's PTX must not hold."""
    if name not in MATHEMATICS:
        for pattern in (ROUNDED, LOOSE):
            found = sorted(set(pattern.findall(text)))
            if found:
                yield f"{name}: {' '.join(found)}"
    if ".nc" in text and re.search(r"\bld\.global\.nc", text) and name not in READ_ONLY:
        yield f"{name}: reads through ld.global.nc, and is not listed"
    if NARROW.search(text):
        yield f"{name}: stores less than words"
    if f".maxntid {BLOCK}" not in text:
        yield f"{name}: has no launch bounds of {BLOCK}"


def faults_of_assembly(told):
    """What ptxas -v tells of each kernel."""
    for part in re.split(r"Compiling entry function '", told)[1:]:
        name = kernel_of(part)
        registers = int(re.search(r"Used (\d+) registers", part).group(1))
        if registers > REGISTERS_MAX:
            yield f"{name}: {registers} registers"
        if "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" not in part:
            yield f"{name}: has a stack or spills"


def look_at(nvcc, gpu, folder):
    """(summary, faults) of this kind of GPU."""
    ptx, code = os.path.join(folder, f"{gpu}.ptx"), os.path.join(folder, f"{gpu}.cubin")
    includes = ["-I" + os.path.join(ROOT, place) for place in ("include", ".", "src", "gpu")]
    run(nvcc, "-fmad=false", f"-arch=compute_{gpu}", "-ptx", *includes, SOURCE, "-o", ptx)
    ptxas = os.path.join(os.path.dirname(nvcc), "ptxas")
    told = run(ptxas, "-v", f"-arch=sm_{gpu}", ptx, "-o", code)
    with open(ptx) as file:
        bodies = list(bodies_of(file.read()))
    faults = [fault for body in bodies for fault in faults_of_text(*body)]
    faults += faults_of_assembly(told)
    most = max(int(used) for used in re.findall(r"Used (\d+) registers", told))
    if len(bodies) != told.count("Compiling entry function"):
        faults.append(f"{len(bodies)} kernels, and ptxas tells of others")
    return f"{len(bodies)} kernels, at most {most} registers", faults


def knows(nvcc, gpu):
    return f"compute_{gpu}" in run(nvcc, "--list-gpu-arch")


def faults_of_plugin(plugin):
    names = [line.split()[-1] for line in run("nm", "-D", "--defined-only", plugin).splitlines()]
    if names != ["sl_backend_entry"]:
        yield f"exports {' '.join(names)}"
    if "libcudart" in run("ldd", plugin):
        yield "needs libcudart of the machine's"


def tell(name, faults):
    print(f"not ok {name}" if faults else f"ok {name}")
    for fault in faults:
        print(f"  {fault}")
    return not faults


def main():
    nvcc, plugin = os.path.realpath(sys.argv[1]), sys.argv[2]
    good = tell("the plug-in exports one function", list(faults_of_plugin(plugin)))
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        known = [gpu for gpu in GPUS if knows(nvcc, gpu)]
        for gpu in set(GPUS) - set(known):
            print(f"skip sm_{gpu}: this nvcc does not know it")
        looks = pool.map(lambda gpu: look_at(nvcc, gpu, folder), known)
        for gpu, (summary, faults) in zip(known, looks):
            good &= tell(f"sm_{gpu}: {summary}", faults)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
