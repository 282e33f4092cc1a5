#!/usr/bin/env python3
"""Disks that are full, fail or are read-only, under real commands: what ends says which file and
why, in one line; what can do without goes on; and from the newest whole cut a run goes on with the
same bits. Real file systems where they can be mounted; else failing_disk.c. sweep_world and
test_record_errors let each call fail."""
import contextlib
import os
import re
import subprocess
import sys

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "parity")
)
from _scene import Skipped, check, needs, run_tests  # noqa: E402
from test_resume import lasting, same  # noqa: E402

SMALL = {
    "rounds": 6,
    "topology": {"nodes": 2, "family": "complete"},
    "optimizer__momentum": 0.9,
    "model": "softmax",
    "data__train_samples": 100,
    "data__test_samples": 20,
    "record": {"every": 2, "parameters_at": [0, 3]},
    "checkpoint": {"every": 2, "keep": 3},
}
AGENTS = {
    **SMALL,
    "rounds": 12,
    "topology": {"nodes": 4, "family": "ring"},
    "transport__connect_timeout_s": 60,
}
MODELS = r"model-\d+\."


def failing(scene, part, call, at, why):
    """The environment in which calls fail (failing_disk.c)."""
    return {
        "LD_PRELOAD": scene.built("tests/libfailing_disk.so"),
        "STARLING_DISK": part,
        "STARLING_DISK_CALL": call,
        "STARLING_DISK_AT": str(at),
        "STARLING_DISK_WHY": str(why),
    }


@contextlib.contextmanager
def environment(scene, changes):
    scene.environment = changes
    yield
    scene.environment = {}


def results(out):
    """But for the model that was rescued when a run failed."""
    return {name: content for name, content in lasting(out).items() if "-last." not in name}


def check_same(out, whole, names=""):
    """names: a pattern. Lines that a failed run did not write come again only after the cut."""
    found, expected = results(out), results(whole)
    same(*({n: c for n, c in files.items() if re.match(names, n)} for files in (found, expected)))


def writes_take_half(scene):
    """Each of them: nothing is lost."""
    path, whole, out = scene.experiment(**SMALL), scene.path("whole"), scene.path("halves")
    scene.call("sim", path, "--out", whole).check_well()
    with environment(scene, failing(scene, out, "write", "1+", 0)):
        ended = scene.call("sim", path, "--out", out)
    ended.check_well()
    check(ended.err == "", ended.err)
    check_same(out, whole)
    listed = scene.call("checkpoint", out)
    check(listed.code == 0 and "whole, sums right" in listed.out, listed.said)


# ---- real file systems ----


@contextlib.contextmanager
def mounted(scene, *words):
    """A folder on a file system of its own."""
    folder = scene.path("disk")
    os.makedirs(folder, exist_ok=True)
    made = subprocess.run(["mount", *words, folder], capture_output=True, check=False)
    needs(made.returncode == 0, "no right to mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def a_full_disk_is_given_room(scene):
    """All of a run's files are on it. It ends, with one line, and goes on once there is room."""
    with mounted(scene, "-t", "tmpfs", "-o", "size=800k", "starling-test") as disk:
        for command in ("sim", "run"):
            path, out = scene.experiment(**AGENTS), f"{disk}/{command}"
            subprocess.run(["mount", "-o", "remount,size=800k", disk], check=True)
            ended = scene.call(command, path, "--out", out)
            check(ended.code == 1, f"exit code {ended.code}: {ended.out!r}, {ended.err!r}")
            errors = [line for line in ended.err.splitlines() if "training goes on" not in line]
            check(len(errors) == 1 and "No space left" in errors[0], ended.err)
            subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
            scene.call(command, "--resume", out).check_well()
            if command == "sim":
                scene.call("sim", path, "--out", scene.path("sim")).check_well()
            check_same(out, scene.path("sim"), MODELS)
            subprocess.run(["rm", "-r", out], check=True)


def nothing_can_be_written(scene):
    """Whatever writes a file says which and why, in one line."""
    with mounted(scene, "-t", "tmpfs", "-o", "size=64k", "starling-test") as disk:
        with open(f"{disk}/rest", "wb") as file, contextlib.suppress(OSError):
            os.write(file.fileno(), bytes(1 << 20))
        path, graph = scene.experiment(**SMALL), scene.path("graph.json")
        scene.call("topology", "make", "ring", "--nodes", "4", "--out", graph).check_well()
        for reason in ("No space left", "Read-only"):
            for words in (
                ("sim", path, "--out", f"{disk}/sim"),
                ("run", path, "--out", f"{disk}/run"),
                ("keys", "make", "--out", f"{disk}/key"),
                ("topology", "make", "ring", "--nodes", "4", "--out", f"{disk}/made"),
                ("topology", "draw", graph, "-o", f"{disk}/drawn.svg"),
            ):
                ended = scene.call(*words)
                ended.check_refused(reason, words[-1], code=ended.code)
                check(ended.code in (1, 2), f"{words}: exit code {ended.code}")
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)


def a_file_system_gives_errors(scene):
    """An image of ext4 whose own disk is full: what was written cannot be synced. Checkpoints go
    there; training goes on without them, and says so once for each agent."""
    needs(os.path.exists("/dev/loop-control"), "no loop devices")
    store = scene.path("store")
    os.mkdir(store)
    made = "mount -t tmpfs -o size=600k starling-test {0} && truncate -s 16M {0}/image"
    made += " && mkfs.ext4 -q -O ^has_journal {0}/image"
    if subprocess.run(made.format(store), shell=True, capture_output=True).returncode != 0:
        subprocess.run(["umount", store], capture_output=True)
        raise Skipped("no right to mount, or no mkfs.ext4")
    try:
        with mounted(scene, "-o", "loop", f"{store}/image") as disk:
            changes = {**AGENTS, "checkpoint": {"every": 2, "keep": 3, "path": disk}}
            path, out = scene.experiment(**changes), scene.path("out")
            ended = scene.call("run", path, "--out", out)
            ended.check_well()
            said = re.findall(
                r"no checkpoint of round.*(?:Input/output error|No space)", ended.said
            )
            check(1 <= len(said) <= 4, f"{ended.out!r}")
        scene.call("sim", scene.experiment(**AGENTS), "--out", scene.path("sim")).check_well()
        check_same(out, scene.path("sim"), MODELS)
    finally:
        subprocess.run(["umount", store], check=True)


if __name__ == "__main__":
    run_tests()
