#!/usr/bin/env python3
"""tools/gpu-steps and tools/gpu-check tell what was checked: nothing where there is no GPU, and no
failure is passed.

Their programs are scripts here, packed as gpu-check packs them."""
import json
import os
import subprocess
import tarfile

from _here import ROOT, check, run_tests

NO_GPU = "echo 'no GPU: no NVIDIA driver, or one that is older than CUDA 13.0'"
GPU = "echo 'cpu always there'; echo 'cuda:0     NVIDIA H100, compute capability 9.0'"
STEPS = "look", "sanitize", "right", "algorithms", "speed", "agents", "session", "large"


def pack(scene, devices, checkvec):
    files = {"commit": "abc1234", "lib/none": "", "gpu/libstarling-cuda.so": "libcublas.so.13"}
    files |= {"tools/starling": devices, "tests/checkvec": checkvec}
    files |= {f"tests/test_{name}": "echo x:1:P:a:b:0: Passed" for name in ("layers", "models")}
    files["tests/test_training"] = "echo x:1:P:a:b:0: Passed"
    packed = scene.path("programs.tar.xz")
    with tarfile.open(packed, "w:xz") as tar:
        for name, text in files.items():
            path = scene.path(os.path.basename(name))
            with open(path, "w") as file:
                file.write(text if name == "commit" else f"#!/bin/sh\n{text}\n")
            os.chmod(path, 0o755)
            tar.add(path, name)
    return packed


def told(scene, packed, *command):
    """How a tool ends where these are its programs, and the steps' lines."""
    env = {**os.environ, "PACK": packed, "OUT": scene.path("out")}
    command = [os.path.join(ROOT, "tools", command[0]), *command[1:]]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600, env=env
    )
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    with open(os.path.join(scene.path("out"), "steps.jsonl")) as kept:
        check(kept.readlines()[-len(lines) :] == ended.stdout.splitlines(True), ended.stdout)
    for line in lines:
        check(line["code"] in (0, 1, 3) and line["seconds"] < 600, ended.stdout)
    return ended.returncode, lines


def test_no_gpu_is_not_passed(scene):
    packed = pack(scene, NO_GPU, "echo ok cuda:0: all")
    for step in STEPS:
        code, (line,) = told(scene, packed, "gpu-steps", step)
        check(code == line["code"] == 3 and line["step"] == step, line)
        check("no GPU was checked: no NVIDIA driver" in line["why"], line)
        check(line["passed"] == line["failed"] == 0, line)


def test_what_cannot_be_run_checks_nothing(scene):
    code, (line,) = told(scene, scene.path("absent"), "gpu-steps", "look")
    check(code == 3 and "absent is not here" in line["why"], line)
    for devices, why in (
        ("exit 127", "does not run here"),
        ("echo 'cuda:0     emulated on the host: for tests, no GPU'", "no GPU was checked"),
        ("echo 'cuda:0     not usable: too old'", "not usable: too old"),
    ):
        code, (line,) = told(scene, pack(scene, devices, "echo ok"), "gpu-steps", "right")
        check(code == line["code"] == 3 and why in line["why"], line)


def test_a_failure_is_no_success(scene):
    for checkvec in (
        "echo 'not ok cuda:0: fill'; exit 1",
        "echo 'ok cuda:0: fill'; exit 1",
        "echo 'ok cpu: fill'",  # which compared nothing on the GPU
        "exit 0",
    ):
        code, (line,) = told(scene, pack(scene, GPU, checkvec), "gpu-steps", "right")
        check(code == line["code"] == 1 and line["failed"] > 0, line)


def test_a_step_says_what_passed_and_where(scene):
    packed = pack(scene, GPU, "echo ok cuda:0: fill")
    code, lines = told(scene, packed, "gpu-check", "--packed", packed, "look", "right")
    check(code == 0 and [line["step"] for line in lines] == ["look", "right"], lines)
    check(lines[1]["passed"] == 5 and len(lines[1]["runs"]) == 5, lines)
    check(lines[1]["card"].startswith("NVIDIA H100") and lines[1]["commit"] == "abc1234", lines)
    code, lines = told(scene, packed, "gpu-check", "--packed", packed, "sanitize", "right")
    check(code == 3 or "compute-sanitizer" not in lines[0]["why"], lines)


if __name__ == "__main__":
    run_tests()
