#!/usr/bin/env python3
"""Whatever strangers, files and the environment say, a terminal obeys nothing of it; and what is no
regular file is refused at once, not waited for."""
import json
import os
import shutil
import socket

from _here import check, run_tests
from _answers import Answerer, reply

# A title, a colour by C1 as UTF-8, DEL, a line of its own, and text that runs backwards.
SPITE = "x\x1b]0;title\x07\u009b31m\x7f\nstarling: all is well\u202e"
SHOWN = r"x\x1b]0;title\x07\xc2\x9b31m\x7f\x0astarling: all is well\xe2\x80\xae"
QUIET = {"rounds": 2, "topology__nodes": 3, "data__train_samples": 60, "data__test_samples": 10}


def is_obeyed(character):
    code = ord(character)
    return (code < 32 and character != "\n") or 127 <= code < 160 or code in (0x2028, 0x202E)


def look(ended, *shown):
    """Nothing that a terminal obeys; `shown` is there."""
    said = ended.out + ended.err
    obeyed = sorted({repr(character) for character in said if is_obeyed(character)})
    check(not obeyed, f"{obeyed} in {said!r}")
    check("\nstarling: all is well" not in "\n" + said, f"a line of somebody else's: {said!r}")
    for text in shown:
        check(text in said, f"{text} is not in {said!r}")
    return ended


def an_experiments_name(scene):
    path = scene.experiment(name=SPITE[:40], **QUIET)
    head = SHOWN.split(r"\x0a")[0]
    for command in (["sim"], ["run"], ["check"], ["check", "--resolved"]):
        ended = look(scene.call(*command, path))
        check(ended.code == 0, ended.err)
        check(command[-1] == "--resolved" or head in ended.out, ended.out)
    for folder in os.listdir(scene.path("runs")):
        check(folder.isprintable(), repr(folder))
    variants = [{"name": SPITE[:20], "set": {}}, {"name": "b\x1b[2J", "skip": SPITE}]
    path = scene.experiment(variants=variants, **QUIET)
    look(scene.call("compare", path, "--out", scene.path("compared")), r"x\x1b]0;")
    look(scene.call("check", path), r"x\x1b]0;")


def keys_and_values(scene):
    for change in (
        {f"optimizer__{SPITE}": 1},
        {SPITE: 1},
        {"algorithm__name": SPITE},
        {"topology__family": SPITE},
        {"topology": SPITE},
        {"data": {"name": "mnist", "path": SPITE}},
        {"model": SPITE},
        {"faults": [{SPITE: 1}]},
        {"security": {"key": SPITE}},
        {"device": SPITE},
        {"transport__provider": SPITE},
    ):
        path = scene.experiment(**{**QUIET, **change})
        if "security" in change or "transport__provider" in change:  # which check does not read
            look(scene.call("check", path))
            ended = look(scene.call("run", path, "--out", scene.path("out")))
        else:
            ended = look(scene.call("check", path))
        check(ended.code == 2 and len(ended.err) < 1200, f"{change}: {ended.code}, {ended.err}")
    look(scene.call("sim", scene.experiment(**QUIET), "--set", f"{SPITE}=1"))
    look(scene.call(SPITE), SHOWN)
    look(scene.call("sim", f"--{SPITE}"), SHOWN)
    look(scene.call("status", SPITE), SHOWN)


def names_of_files(scene):
    name = scene.path(os.path.join(SPITE, "file"))
    os.mkdir(scene.path(SPITE))
    look(scene.call("sim", name), SHOWN)
    scene.write(name, "{")
    look(scene.call("check", name), SHOWN)
    look(scene.call("topology", "analyse", name), SHOWN)
    look(scene.call("keys", "roster", f"host:1={name}"), SHOWN)
    look(scene.call("checkpoint", name), SHOWN)


def hosts(scene):
    experiment = scene.experiment(**QUIET)
    for line in (
        SPITE.replace("\n", ""),
        "h\x1b[2J:1",
        f"0 h:1 sha256:{SPITE[:9]}",
        f"{SPITE[:9]} h:1",
    ):
        path = scene.write("roster", f"{line}\n" * 3)
        ended = look(scene.call("agent", experiment, "--rank", "0", "--roster", path))
        check(ended.code == 2, ended.err)
    scene.write("node.crt", "")
    look(scene.call("keys", "roster", f"h\x1b[2J:1={scene.path('node.crt')}"))


def variables(scene):
    experiment = scene.experiment(**QUIET)
    launchers = (
        {"RANK": SPITE, "WORLD_SIZE": "3"},
        {"RANK": "0", "WORLD_SIZE": SPITE},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "3", "SLURM_STEP_ID": "0", "SLURM_JOB_ID": SPITE},
        {"RANK": "0", "WORLD_SIZE": "3", "MASTER_ADDR": SPITE, "MASTER_PORT": "1"},
        {"RANK": "0", "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": SPITE},
        {"STARLING_ROSTER": SPITE, "RANK": "0", "WORLD_SIZE": "3"},
        {"STARLING_PORT": SPITE, "RANK": "0", "WORLD_SIZE": "3"},
        {"STARLING_KERNELS": SPITE},
        {"STARLING_PLUGIN": SPITE},
    )
    for scene.environment in launchers:
        look(scene.call("agent", experiment, "--set", "transport.connect_timeout_s=1"))


def whoever_answers_at_a_port(scene):
    said = {"rank": 0, "doing": SPITE, "round": 3, "still_s": 9, "waits_for": SPITE, "root": None}
    edge = {"rank": 1, "awaited": True, "protection": SPITE}
    edge["said"] = {"rank": 1, "doing": SPITE, "round": 3, "ago_s": 0, "still_s": 9}
    other = {"rank": 2, "awaited": False, "protection": SPITE * 1000}
    for edges in ([edge], [edge, other]):
        server = Answerer({**said, "neighbours": edges})
        ended = look(scene.call("status", server.place), r"\x1b]0;title")
        check(ended.code == 0 and len(ended.out) < 8000, ended.out)
    for raw in (SPITE.encode(), b"\x1b]0;\x07", b'{"doing": "\x1b"}'):
        look(scene.call("status", Answerer(reply(raw)).place))
        look(scene.call("top", Answerer(reply(raw)).place))
    board = {"run": {"name": SPITE, "why": SPITE}, "nodes": [{"rank": -1, "state": SPITE}] * 2}
    board["links"] = [{"from": 1e300, "protection": SPITE * 1000}]
    board["events"] = [{"text": SPITE, "time": 1e300, "node": "x"}]
    board["strip"] = [{"rank": 9, "until": [-1, 1e300], "wait": [None, 1e300], "down": [[0], 1]}]
    board["curves"] = {"round": [1], "loss": [0, 1e308, 1e308, -1, "x"], "bytes": {}}
    for answer in (board, {"run": {}}, {**said, "neighbours": [edge], "lost": [1, {}]}):
        look(scene.call("top", Answerer(answer).place)).check_well()


def logs_of_events(scene):
    """What a file says of a run's losses, and what is wrong with its lines."""
    path, run = scene.experiment(**QUIET), scene.path("run")
    check(scene.call("sim", path, "--out", run).code == 0, "sim")
    for line in (
        {"event": SPITE, "node": 0, "time": 0},
        {"event": "end", "node": None, "round": 1, "outcome": SPITE, "why": SPITE, "time": 0},
        {"event": "start", SPITE: 1},
    ):
        scene.write("run/events.jsonl", json.dumps(line) + "\n")
        look(scene.call("sim", "--replay", run, "--out", scene.path("again")))
    scene.write("run/events.jsonl", SPITE + "\n")
    look(scene.call("sim", "--replay", run, "--out", scene.path("again")))
    look(scene.call("sim", "--resume", run))


# ---- what is no regular file ----


def refuse(scene, what, *arguments):
    ended = look(scene.call(*arguments, timeout=30))
    check(ended.code in (1, 2), f"{arguments}: exit code {ended.code}: {ended.out}{ended.err}")
    check(what in ended.err, f"{arguments}: {what} is not in {ended.err!r}")
    check(len(ended.errors) == 1, ended.err)


def what_is_no_file_is_named(scene):
    os.mkfifo(scene.path("pipe"))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(scene.path("socket"))
    os.mkdir(scene.path("folder"))
    for path, what in (
        (scene.path("folder"), "is a folder"),
        (scene.path("pipe"), "is not a regular file but a pipe"),
        (scene.path("socket"), "is not a regular file but a socket"),
        ("/dev/zero", "is not a regular file but a device"),
        ("/dev/tty", "is not a regular file but a device"),
    ):
        refuse(scene, what, "sim", path)
        refuse(scene, what, "keys", "roster", f"127.0.0.1:7000={path}")
    experiment, pipe = scene.experiment(**QUIET), scene.path("pipe")
    for arguments in (
        ["agent", experiment, "--rank", "0", "--roster", pipe],
        ["check", experiment, "--set", f"security.key={pipe}"],
        ["topology", "make", "--from", pipe],
    ):
        refuse(scene, "is not a regular file but a pipe", *arguments)
    scene.environment = {"STARLING_PLUGIN": pipe}
    look(scene.call("devices", timeout=30), "is not a regular file but a pipe")


def no_reader_of_a_run_waits_for_a_pipe(scene):
    path, run, bad = scene.experiment(checkpoint__every=1, **QUIET), scene.path("run"), "bad"
    os.mkfifo(scene.path("pipe"))
    check(scene.call("sim", path, "--out", run).code == 0, "sim")
    for name in ("config.json", "run.json", "events.jsonl", "metrics-0.jsonl", "model-0.npy"):
        shutil.rmtree(scene.path(bad), ignore_errors=True)
        shutil.copytree(run, scene.path(bad))
        os.unlink(scene.path(os.path.join(bad, name)))
        os.symlink(scene.path("pipe"), scene.path(os.path.join(bad, name)))
        for what in (["--resume", bad], [bad, "--replay", "--out", "again"]):
            ended = look(scene.call("sim", *what, timeout=30))
            check(ended.code == 0 or len(ended.errors) == 1, f"{name}, {what}: {ended.err}")
            shutil.rmtree(scene.path("again"), ignore_errors=True)


if __name__ == "__main__":
    run_tests()
