#!/usr/bin/env python3
"""What nvcc has made of the kernels, for each kind of GPU; no GPU is needed.

  - every operation rounds to nearest, none flushes small numbers to zero and none is contracted,
    but in the listed kernels, which call functions of mathematics and promise no bits
  - no kernel has a stack, spills a register, or takes more than 64; each says its block's size
  - memory is read past the caches' coherence in the listed kernels only, and stored by words
  - the plug-in exports one function and needs no CUDA runtime or cuBLAS of the machine's

usage: ptx_gate.py PLUGIN PTX REPORT     the last two as gpu/nvcc.py leaves them
"""

import re
import subprocess
import sys

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


def faults_of_assembly(name, told):
    """What ptxas -v tells of a kernel."""
    if registers_of(told) > REGISTERS_MAX:
        yield f"{name}: {registers_of(told)} registers"
    if "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" not in told:
        yield f"{name}: has a stack or spills"


def registers_of(told):
    return int(re.search(r"Used (\d+) registers", told).group(1))


def look_at_texts(path):
    """({kernels}, whether they are good) of each kind of GPU."""
    with open(path) as file:
        texts = re.split(r"^\.target sm_(\d+)", file.read(), flags=re.M)[1:]
    for gpu, text in zip(texts[::2], texts[1::2]):
        bodies = list(bodies_of(text))
        faults = [fault for body in bodies for fault in faults_of_text(*body)]
        yield {name for name, _ in bodies}, tell(f"PTX of {gpu}: {len(bodies)} kernels", faults)


def look_at_report(path, kernels):
    """Whether the machine code of each kind of GPU is good, and all kernels are in it."""
    with open(path) as file:
        parts = re.split(r"Compiling entry function '(\w+)' for 'sm_(\d+)'", file.read())[1:]
    told = list(zip(parts[::3], parts[1::3], parts[2::3]))
    for gpu in GPUS:
        mine = {kernel_of(name): text for name, found, text in told if int(found) == gpu}
        if not mine:
            print(f"skip sm_{gpu}: this nvcc does not know it")
            continue
        faults = [fault for each in mine.items() for fault in faults_of_assembly(*each)]
        faults += [f"{name} is missing" for name in kernels - mine.keys()]
        most = max(map(registers_of, mine.values()))
        yield tell(f"sm_{gpu}: {len(mine)} kernels, at most {most} registers", faults)


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def faults_of_plugin(plugin):
    names = [line.split()[-1] for line in output("nm", "-D", "--defined-only", plugin).splitlines()]
    if names != ["sl_backend_entry"]:
        yield f"exports {' '.join(names)}"
    for library in ("libcudart", "libcublas"):
        if library in output("ldd", plugin):
            yield f"needs {library} of the machine's"


def tell(name, faults):
    print(f"not ok {name}" if faults else f"ok {name}")
    for fault in faults:
        print(f"  {fault}")
    return not faults


def main():
    plugin, ptx, report = sys.argv[1:]
    good = [tell("the plug-in exports one function", list(faults_of_plugin(plugin)))]
    texts = list(look_at_texts(ptx))
    kernels = set().union(*(names for names, _ in texts))
    good += [tell("PTX has kernels", [] if kernels else [f"{ptx} has none"])]
    good += [fine for _, fine in texts]
    good += look_at_report(report, kernels)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
