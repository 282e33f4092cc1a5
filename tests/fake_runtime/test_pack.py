#!/usr/bin/env python3
"""The pack that tools/gpu-check makes: small enough to send, whole, and what its steps say, without
a GPU and over the emulated device.

usage: test_pack.py BUILD"""
import json
import os
import platform
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(sys.argv[1])
DEBIAN_12 = (2, 36)  # glibc's version


def tool(name, *arguments, **env):
    command = [os.path.join(ROOT, "tools", name), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=800, env={**os.environ, **env}
    )


def tell(name, is_good, ended):
    print(f"ok {name}" if is_good else f"not ok {name}: {ended}")


def look(folder, **env):
    ended = tool("gpu-steps", "look", OUT=os.path.join(folder, "out"), **env)
    return ended, json.loads(ended.stdout) if ended.stdout else {}


def over_fake(folder):
    """The build, with the emulated device's plug-in for the GPU's."""
    os.mkdir(os.path.join(folder, "gpu"))
    for name in ("tests", "tools", "src"):
        os.symlink(os.path.join(BUILD, name), os.path.join(folder, name))
    emulated = os.path.join(BUILD, "gpu", "libstarling-emulated.so")
    os.symlink(emulated, os.path.join(folder, "gpu", "libstarling-cuda.so"))
    return look(folder, PROGRAMS=folder, STARLING_AS_GPU="1")


def main():
    with tempfile.TemporaryDirectory() as folder:
        pack = os.path.join(folder, "gpu.tar.xz")
        ended = tool("gpu-check", "--pack", pack, PROGRAMS=BUILD)
        tell("a pack is made, below 40 MB", ended.returncode == 0, ended)
        own = tuple(map(int, platform.libc_ver()[1].split(".")))
        if own <= DEBIAN_12:
            tell("it runs on Ubuntu 22.04", "glibc 2.35 or newer" in ended.stdout, ended)
        else:
            print("skip it runs on Ubuntu 22.04: this system's glibc is newer than Debian 12's")
        ended, line = look(folder, PACK=pack)
        known = line.get("code") == ended.returncode and ended.returncode in (0, 3)
        known = known and "run here" not in line["why"]
        tell("its programs run, and say what was checked", known, ended)
    with tempfile.TemporaryDirectory() as folder:
        ended, line = over_fake(folder)
        good = ended.returncode == 0 and line["passed"] > 80 and "fake GPU" in line["card"]
        tell("a look at a GPU that works", good, ended)


main()
