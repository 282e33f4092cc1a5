#!/usr/bin/env python3
"""The CUDA toolkit of Debian 13, nvcc 12.4: what of it builds the GPU plug-in for today's drivers,
beside the machine's own. It is unpacked, not installed, and needs no root.

usage: toolkit.py      makes build-releases/cuda-12.4 with nvcc, headers and the static runtime, and
                       nvcc.ini, a native file for meson. 1.0 GB are fetched and 0.2 GB stay. Ends
                       with 77 and a sentence where it cannot be had
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

from releases import FOLDER, UNAVAILABLE, Unavailable, call, mirror

RELEASE, VERSION = "trixie", "12.4"
TOOLKIT = os.path.join(FOLDER, "cuda-" + VERSION)
NATIVE_FILE = os.path.join(TOOLKIT, "nvcc.ini")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# Of a package, what of it is taken, and the folder of the toolkit that it comes to.
BIN = [f"./usr/bin/{name}" for name in ("ptxas", "fatbinary", "cudafe++", "nvlink", "bin2c")]
BIN += [f"./usr/lib/nvidia-cuda-toolkit/bin/{name}" for name in ("nvcc", "cicc", "crt")]
TAKEN = {
    "nvidia-cuda-toolkit": {"bin": BIN, ".": ["./usr/lib/nvidia-cuda-toolkit/libdevice"]},
    "nvidia-cuda-dev": {".": ["./usr/include"], "lib": ["./usr/lib/*/libcuda*rt*.a"]},
    "libcu++-dev": {"include": ["./usr/include/nv"]},
}
PROFILE = """NVVMIR_LIBRARY_DIR = $(_HERE_)/../libdevice
PATH += $(_HERE_):
INCLUDES += "-I$(_HERE_)/../include" $(_SPACE_)
LIBRARIES =+ $(_SPACE_) "-L$(_HERE_)/../lib"
"""


def fetch(folder):
    """{package: its file}, as apt finds and proves them, with lists of its own."""
    sources = os.path.join(folder, "sources.list")
    with open(sources, "w") as file:
        file.write(f"deb [signed-by={KEYRING}] {mirror()} {RELEASE} main non-free\n")
    options = [f"Dir::Etc::sourcelist={sources}", "Dir::Etc::sourceparts=-"]
    options += ["Dir::State::status=/dev/null", "APT::Sandbox::User=", "Acquire::Retries=3"]
    for place in ("State", "Cache"):
        os.makedirs(os.path.join(folder, place, "lists", "partial"))
        options.append(f"Dir::{place}={folder}/{place}")
    apt = ["apt-get", *(word for option in options for word in ("-o", option))]
    call(*apt, "update", failure=Unavailable)
    subprocess.run([*apt, "download", *TAKEN], cwd=folder, capture_output=True, check=False)
    found = {name: glob.glob(os.path.join(folder, f"{name}_*.deb")) for name in TAKEN}
    for name, paths in found.items():
        if not paths:
            raise Unavailable(f"{mirror()} has no {name} of {RELEASE}; it is in non-free")
    return {name: path for name, (path,) in found.items()}


def unpack(package, taken, into):
    with tempfile.TemporaryDirectory(dir=os.path.dirname(into)) as folder:
        patterns = [pattern for each in taken.values() for pattern in each]
        tar = ["tar", "-C", folder, "-x", "--wildcards", *patterns]
        files = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
        subprocess.run(tar, stdin=files.stdout, check=True)
        files.stdout.close()
        files.wait()
        for place, each in taken.items():
            os.makedirs(os.path.join(into, place), exist_ok=True)
            for path in [path for p in each for path in glob.glob(os.path.join(folder, p))]:
                shutil.move(path, os.path.join(into, place))


def make():
    if os.path.exists(NATIVE_FILE):
        return
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise Unavailable(f"no {program} here")
    shutil.rmtree(TOOLKIT, ignore_errors=True)
    os.makedirs(FOLDER, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        for name, path in fetch(folder).items():
            unpack(path, TAKEN[name], TOOLKIT)
    with open(os.path.join(TOOLKIT, "bin", "nvcc.profile"), "w") as file:
        file.write(PROFILE)
    nvcc = os.path.join(TOOLKIT, "bin", "nvcc")
    probe = os.path.join(os.path.dirname(FOLDER), "gpu", "nvcc.py")
    call(sys.executable, probe, "probe", nvcc, failure=Unavailable)  # with this system's gcc
    with open(NATIVE_FILE, "w") as file:
        file.write(f"[binaries]\nnvcc = '{nvcc}'\n")


def main():
    try:
        make()
    except Unavailable as why:
        print(f"no CUDA toolkit {VERSION} here: {why}")
        return UNAVAILABLE
    except (OSError, RuntimeError, subprocess.CalledProcessError) as problem:
        print(problem)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
