#!/usr/bin/env python3
"""tools/gpu-check says what was checked: nothing where there is no GPU, and no failure is passed.

Its programs are scripts here, packed as it packs them."""
import os
import subprocess
import tarfile

from _here import ROOT, check, run_tests

NO_GPU = "echo 'no GPU: no NVIDIA driver, or one that is older than CUDA 13.0'"
GPU = "echo 'cuda:0  a GPU'"


def checked(scene, devices, checkvec, part):
    """What gpu-check does where these shell commands are its programs."""
    files = {"cublas": "", "lib/none": "", "tools/starling": devices, "tests/checkvec": checkvec}
    files |= {f"tests/test_{name}": "exit 1" for name in ("layers", "models", "training")}
    packed = scene.path("programs.tar.xz")
    with tarfile.open(packed, "w:xz") as tar:
        for name, text in files.items():
            path = scene.path(os.path.basename(name))
            with open(path, "w") as file:
                file.write(f"#!/bin/sh\n{text}\n")
            os.chmod(path, 0o755)
            tar.add(path, name)
    command = [os.path.join(ROOT, "tools", "gpu-check"), "--packed", packed, part]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def test_no_gpu_is_not_passed(scene):
    for part in ("checks", "speed"):
        ended = checked(scene, NO_GPU, "echo ok cuda:0: all", part)
        check(ended.returncode == 3, f"code {ended.returncode}: {ended.stderr!r}")
        check("no GPU was checked: no NVIDIA driver" in ended.stderr, ended.stderr)
        check("passed" not in ended.stdout + ended.stderr, ended.stdout + ended.stderr)


def test_programs_that_do_not_run_check_nothing(scene):
    ended = checked(scene, "exit 127", "echo ok cuda:0: all", "checks")
    check(ended.returncode == 3 and "no GPU was checked" in ended.stderr, repr(ended))


def test_a_failure_is_no_success(scene):
    for part, checkvec in (
        ("checks", "echo 'not ok cuda:0: fill'; exit 1"),
        ("checks", "exit 0"),  # which compared nothing
        ("speed", "echo 'cuda:0: a kernel or copy failed'; exit 1"),
    ):
        ended = checked(scene, GPU, checkvec, part)
        check(ended.returncode not in (0, 3), f"{part}, {checkvec}: {ended!r}")


def test_no_packed_programs(scene):
    command = [os.path.join(ROOT, "tools", "gpu-check"), "--packed", scene.path("absent")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    check(ended.returncode == 3 and "no GPU was checked" in ended.stderr, repr(ended))


if __name__ == "__main__":
    run_tests()
