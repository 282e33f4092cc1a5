#!/usr/bin/env python3
"""A run that goes on from a checkpoint ends with the bits of one that was never stopped: every
algorithm, compressor, schedule, optimizer and partition (_cover.py), simulated and, some of them,
with agents and on a device. And what is said of checkpoints that cannot be gone on from."""
import glob
import itertools
import json
import math
import os
import re
import shutil
import struct
import sys
import tempfile

from _cover import NO_GPU_KERNELS, combinations, forgotten
from _each import CASES, WITHOUT_MOMENTUM
from _listed import unnamed
from _simulate import QUICK, call, main, read_lines, write
from test_devices import DATA, DIRECTED, OTHERWISE, plugin_tested

ROUNDS, EVERY, KEEP = 11, 2, 4
RING = {"nodes": 5, "family": "ring"}
ON_DEVICE = ["d-psgd combine-while-adapt", "choco-sgd per tensor", "all-reduce", "cd-sgd"]
AGENTS_EACH, DEVICE_EACH = 13, 10  # so many combinations, one is run by agents, or on a device
SPEAKERS = ["ANNA:", "BERT:", "CARL:", "DORA:", "EMIL:"]


class Wrong(AssertionError):
    """The text is why."""


def experiment(settings, topology=RING, device="cpu", optimizer=None, **more):
    momentum = 0 if settings["name"] in WITHOUT_MOMENTUM else 0.9
    return {
        "name": "resume",
        "rounds": ROUNDS,
        "topology": topology,
        "device": device,
        "algorithm": settings,
        "optimizer": {"learning_rate": 0.05, "momentum": momentum, **(optimizer or {})},
        "model": "softmax",
        "data": dict(DATA),
        "record": {"every": 3, "parameters_at": [0, 5, ROUNDS]},
        "checkpoint": {"every": EVERY, "keep": KEEP},
        **more,
    }


def must(ended):
    if ended.returncode != 0:
        raise Wrong(f"ended with {ended.returncode}: {ended.stderr.strip()}")
    return ended


def run_whole(starling, folder, content, env=None, command="sim"):
    write(folder, "experiment.json", content)
    out = os.path.join(folder, f"whole-{command}")
    must(call(starling, command, os.path.join(folder, "experiment.json"), "--out", out, env=env))
    return out


def cut_back(whole, to, last):
    """A copy of a run as if it had been killed after the checkpoint of round `last`. It keeps the
    best model, which may be of a round before."""
    shutil.copytree(whole, to)
    for path in glob.glob(os.path.join(to, "checkpoints", "round-*")):
        if int(re.search(r"round-(\d+)-", path).group(1)) > last:
            os.unlink(path)
    for path in glob.glob(os.path.join(to, "model*")) + [os.path.join(to, "summary.json")]:
        if "-best." not in path:
            os.unlink(path)
    return to


def lasting(out):
    """What a run leaves that does not depend on time."""
    found = {}
    for path in sorted(glob.glob(os.path.join(out, "*"))):
        name = os.path.basename(path)
        if name.startswith("metrics"):
            rows = read_lines(out, name)
            found[name] = [
                {k: v for k, v in row.items() if k not in ("time", "seconds")} for row in rows
            ]
        elif name.endswith((".npy", ".safetensors")) or name in (
            "parameters.jsonl",
            "consensus.jsonl",
        ):
            with open(path, "rb") as file:
                found[name] = file.read()
    return found


def same(found, expected):
    if found.keys() != expected.keys():
        raise Wrong(f"files differ: {sorted(found.keys() ^ expected.keys())}")
    different = [name for name in found if found[name] != expected[name]]
    if different:
        raise Wrong(f"these differ: {different}")


def alike(found, expected):
    """Lines of consensus: losses of the averaged model may have another rounding."""
    pairs = [(row.pop("test_loss"), other.pop("test_loss")) for row, other in zip(found, expected)]
    if found != expected or not all(math.isclose(*pair, rel_tol=1e-6) for pair in pairs):
        raise Wrong(f"consensus: {found} and {expected}, losses {pairs}")


def check(starling, content, lasts, env=None):
    with tempfile.TemporaryDirectory(prefix="starling-resume-") as folder:
        whole = run_whole(starling, folder, content, env)
        for last in lasts:
            again = cut_back(whole, os.path.join(folder, f"again-{last}"), last)
            must(call(starling, "sim", "--resume", again, env=env))
            same(lasting(again), lasting(whole))


def check_agents(starling, content, last, env):
    """Agents that go on, beside a simulator that was never stopped."""
    with tempfile.TemporaryDirectory(prefix="starling-resume-") as folder:
        simulated = run_whole(starling, folder, content, env)
        expected = lasting(simulated)
        whole = run_whole(starling, folder, content, env, "run")
        if content["device"] != "cpu":  # where `run` does not evaluate the averaged model
            name = "consensus.jsonl"
            alike(read_lines(whole, name), read_lines(simulated, name))
            expected[name] = lasting(whole)[name]
        again = cut_back(whole, os.path.join(folder, "again"), last)
        must(call(starling, "run", "--resume", again, env=env))
        for row in read_lines(again, "metrics-0.jsonl"):
            if row["seconds"]["wait"] > row["time"]:
                raise Wrong(f"a wait that is longer than the run: {row}")
        found = {name: rows for name, rows in lasting(again).items() if name in expected}
        same(found, {name: expected[name] for name in found})
        if not any(re.match(r"model-\d+.npy", name) for name in found):
            raise Wrong(f"no models among {sorted(found)}")


def cases(starling):
    for name, settings in CASES.items():
        more = {"topology": DIRECTED if settings["name"] == "sgp" else RING}
        more.update(OTHERWISE.get(name, {}))
        content = experiment(settings, **more)
        yield f"resume {name}", lambda content=content: check(starling, content, (4,))
    for i, combination in enumerate(combinations()):
        yield combined(starling, i, *combination)
    for name in ON_DEVICE:
        content = experiment(CASES[name], device="cuda:0")
        yield f"resume {name} on a device", lambda content=content: check(
            starling, content, (6,), plugin_tested(starling)
        )
    for last in (8, ROUNDS):
        content = experiment(
            {"name": "d-psgd"}, final_average=True, checkpoint={"every": last, "keep": KEEP}
        )
        yield f"resume from {last} to an average", lambda content=content, last=last: check_agents(
            starling, content, last, None
        )
    for command in ("sim", "run"):
        yield f"resume {command} with another rate", lambda command=command: rates_are_changed(
            starling, command, {"name": "d-psgd"}
        )
    others = (
        rounds_are_extended,
        others_are_refused,
        files_are_refused,
        cuts_are_chosen,
        lines_come_again,
    )
    for test in (speakers_go_on, lists_go_on, *others, keys_are_refused):
        yield test.__name__.replace("_", " "), lambda test=test: test(starling)


def combined(starling, i, topology, algorithm, optimizer, partition):
    """The case of one combination: its name, and what to call."""
    content = experiment(algorithm, topology or RING, optimizer=optimizer)
    if algorithm["name"] in WITHOUT_MOMENTUM:
        content["optimizer"].update(name="sgd", momentum=0, nesterov=False)
    content["data"]["partition"] = partition
    content["checkpoint"]["keep"] = 66 if (topology or {}).get("family") == "epidemic" else 6
    settings = algorithm.get("compressor", {"name": ""})
    compressor, env = settings["name"], None
    has_kernels = compressor not in NO_GPU_KERNELS and "coding" not in settings
    if i % DEVICE_EACH == 0 and has_kernels:
        content["device"], env = "cuda:0", plugin_tested(starling)
    family = (topology or RING).get("family", "schedule")
    where = "agents" if i % AGENTS_EACH == 0 else "sim"
    words = [algorithm["name"], compressor, family, partition["name"], content["device"], where]
    name = " ".join(["combined", str(i), *filter(None, words)])
    if where == "agents":
        return name, lambda: check_agents(starling, content, 4, env)
    return name, lambda: check(starling, content, (4 + i % 2 * 2,), env)


# ---- other experiments, other files ----


def speakers_go_on(starling):
    """The partition that only texts have."""
    with tempfile.TemporaryDirectory(prefix="starling-resume-") as folder:
        path = os.path.join(folder, "text")
        with open(path, "w") as file:
            for i in range(60):
                file.write(f"{SPEAKERS[i % 5]}\n{'to be or not to be ' * (3 + i % 4)}\n\n")
        content = experiment({"name": "choco-sgd"})
        content["model"] = {"name": "lstm", "layers": 1, "units": 8}
        content["data"] = {
            "name": "text",
            "path": path,
            "sequence": 20,
            "batch": 4,
            "partition": {"name": "speakers"},
        }
        check(starling, content, (6,))


def lists_go_on(starling):
    """The partition that a file lists."""
    with tempfile.TemporaryDirectory(prefix="starling-resume-") as folder:
        content = experiment({"name": "choco-sgd"})
        path = os.path.join(folder, "owners")
        with open(path, "w") as file:
            file.writelines(f"{min(i % 9, 4)}\n" for i in range(DATA["train_samples"]))
        content["data"]["partition"] = {"name": "listed", "path": path}
        check(starling, content, (6,))


def rounds_are_extended(starling):
    """A longer run after a shorter one is the longer run, where the rate does not depend on it."""
    with tempfile.TemporaryDirectory(prefix="starling-resume-") as folder:
        content = experiment({"name": "gradient-tracking"})
        whole = run_whole(starling, folder, content)
        shorter = os.path.join(folder, "shorter")
        path = os.path.join(folder, "experiment.json")
        must(call(starling, "sim", path, "--out", shorter, "--set", "rounds=8"))
        must(call(starling, "sim", path, "--resume", shorter))
        found, expected = lasting(shorter), lasting(whole)
        for name in [name for name in found if name.startswith(("metrics", "consensus"))]:
            del found[name], expected[name]  # round 8 was its last, and so recorded
        same(found, expected)


def rates_are_changed(starling, command, settings):
    """A run that goes on with other rates, twice, is the run whose schedule has all of them."""
    with tempfile.TemporaryDirectory(prefix="starling-resume-") as folder:
        steps = {"name": "step", "milestones": [4.5 / ROUNDS, 8.5 / ROUNDS], "factor": 0.2}
        content = experiment(settings, optimizer={"schedule": steps})
        expected = lasting(run_whole(starling, folder, content, command=command))
        shutil.rmtree(os.path.join(folder, f"whole-{command}"))
        whole = run_whole(starling, folder, experiment(settings), command=command)
        run = cut_back(whole, os.path.join(folder, "again"), 4)
        rate = 0.05 * 0.2
        others = {"name": "step", "milestones": [0.1], "factor": 0.5}  # whose rates are half
        sets = [f"optimizer.learning_rate={2 * rate!r}", f"optimizer.schedule={json.dumps(others)}"]
        said = must(call(starling, command, "--resume", run, "--set", sets[0], "--set", sets[1]))
        if f"goes on with optimizer.learning_rate {2 * rate:.15g}, before 0.05" not in said.stdout:
            raise Wrong(said.stdout)
        again = cut_back(run, os.path.join(folder, "once more"), 8)
        sets = [f"optimizer.learning_rate={rate * 0.2!r}", "optimizer.schedule=constant"]
        must(call(starling, command, "--resume", again, "--set", sets[0], "--set", sets[1]))
        with open(os.path.join(again, "config.json")) as file:
            if json.load(file)["optimizer"]["learning_rate"] != rate * 0.2:
                raise Wrong("config.json has another rate")
        same(lasting(again), expected)


KEPT = (
    "a run that goes on keeps what neighbours compare, but for rounds, epochs, "
    "optimizer.learning_rate and optimizer.schedule"
)


def others_are_refused(starling):
    """What neighbours compare stays; all else may differ, and is then what the folder has."""
    with tempfile.TemporaryDirectory(prefix="starling-resume-") as folder:
        whole = run_whole(starling, folder, experiment({"name": "d-psgd"}))
        run = cut_back(whole, os.path.join(folder, "again"), 4)
        there = os.path.join(run, "config.json")
        larger = '{"nodes":6,"family":"ring"}'
        for value, here, before in (
            ("algorithm.name=choco-sgd", '"choco-sgd"', '"d-psgd"'),
            ("optimizer.momentum=0.5", "0.5", "0.9"),
            ("seed=2", "2", "1"),
            ("checkpoint.keep=9", "9", "4"),
            ("loss_limit=7", "7", "0"),
            ("membership.on_loss=stop", '"stop"', '"continue"'),
            ("transport.chunk_bytes=4096", "4096", "114688"),
            (f"topology={larger}", '{"nodes":6,"family":"ring",', '{"nodes":5,"family":"ring",'),
        ):
            ended = call(starling, "sim", "--resume", run, "--set", value, "--set", "rounds=12")
            text = f"{value.split('=')[0]}: {here}"
            words = (text, f" here, {before}", f" in {there}; {KEPT}")
            if ended.returncode != 2 or not all(word in ended.stderr for word in words):
                raise Wrong(f"{value}: {ended.stderr.strip()!r} instead of {words!r}")
        sets = ("record.every=2", "record.parameters_at=[0,5,7]", "network.latency_ms=3")
        sets += ("name=another", "transport.connect_timeout_s=7", "monitor.listen=127.0.0.1:0")
        words = [word for value in sets for word in ("--set", value)]
        must(call(starling, "sim", "--resume", run, *words))
        with open(there) as file:
            config = json.load(file)
        found = (
            config["name"],
            config["record"]["every"],
            config["transport"]["connect_timeout_s"],
        )
        if found != ("another", 2, 7):
            raise Wrong(f"config.json has {found}")
        rounds = [row["round"] for row in read_lines(run, "metrics-0.jsonl")]
        if rounds != [3, 4, 6, 8, 10, 11]:
            raise Wrong(f"recorded rounds {rounds}")
        lines_come_as_they_are_asked_for(starling, folder)


def lines_come_as_they_are_asked_for(starling, folder):
    """Lines that only the earlier process had to write are not missing from the later one."""
    content = experiment({"name": "d-psgd"}, record={"every": 5})
    whole = run_whole(starling, folder, content, command="run")
    run = cut_back(whole, os.path.join(folder, "later"), 8)
    must(call(starling, "sim", "--resume", run, "--set", "record.every=2"))
    again = cut_back(run, os.path.join(folder, "once more"), 8)
    drop_lines(again, ["metrics*", "consensus*"], lambda row: row["round"] >= 8)
    ended = must(call(starling, "sim", "--resume", again))
    if "not whole" in ended.stderr:
        raise Wrong(ended.stderr)
    same(lasting(again), lasting(run))


def refused(starling, run, text, code=2):
    ended = call(starling, "sim", "--resume", run)
    if ended.returncode != code or not re.search(text, ended.stderr):
        raise Wrong(f"{ended.returncode}, {ended.stderr.strip()!r} instead of {text!r}")


def change(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def files_are_refused(starling):
    with tempfile.TemporaryDirectory(prefix="starling-resume-") as folder:
        content = experiment({"name": "choco-sgd"}, checkpoint={"every": 10, "keep": 2})
        whole = run_whole(starling, folder, content)

        def broken(what, text):
            run = os.path.join(folder, "broken")
            shutil.copytree(whole, run)
            what(os.path.join(run, "checkpoints", "round-10-rank-3.safetensors"))
            refused(starling, run, text)
            shutil.rmtree(run)

        file = "round-10-rank-3.safetensors: "
        size = os.path.getsize(os.path.join(whole, "checkpoints", file[:-2]))
        broken(
            lambda p: shutil.rmtree(os.path.dirname(p)),
            "holds no whole checkpoint; checkpoint.every makes them",
        )
        broken(os.unlink, "holds no whole checkpoint: round 10: rank 3 has none")
        broken(
            lambda p: (os.unlink(p), os.unlink(p.replace("rank-3", "rank-1"))),
            "round 10: ranks 1, 3 have none",
        )
        broken(
            lambda p: os.truncate(p, 5), file + "is cut short: its 5 bytes end within its length"
        )
        broken(lambda p: os.truncate(p, 900), file + "is cut short or no checkpoint")
        broken(
            lambda p: os.truncate(p, size - 8),
            file + 'is cut short: tensor "replicas" ends at byte',
        )
        broken(lambda p: (os.unlink(p), os.mkdir(p)), file + "is not a regular file")
        broken(
            lambda p: os.unlink(os.path.join(folder, "broken", "run.json")),
            "run.json: No such file or directory; it must be there",
        )
        broken(lambda p: change(p, 700, b"7"), file + "its head .* differs from its checksum|JSON")
        broken(
            lambda p: change(p, size - 100, struct.pack("<f", float("nan"))),
            file + r'tensor "replicas", bytes \d+ to \d+, differs from its checksum',
        )
        other = os.path.join(whole, "checkpoints", "round-10-rank-2.safetensors")
        broken(lambda p: shutil.copy(other, p), file + "is of another rank: 2, here 3")
        write(folder, "experiment.json", content)
        run = os.path.join(folder, "other")
        must(call(starling, "sim", os.path.join(folder, "experiment.json"), "--out", run))
        other = os.path.join(run, "checkpoints", "round-10-rank-3.safetensors")
        broken(lambda p: shutil.copy(other, p), file + "is of another run: ")
        path = os.path.join(whole, "config.json")
        ended = call(starling, "sim", path, "--resume", whole, "--set", "data.batch=4")
        if ended.returncode != 2 or "data.batch: 4 here, 8 in " not in ended.stderr:
            raise Wrong(ended.stderr)


def cuts_are_chosen(starling):
    """A newer cut that is not whole is left, and said once."""
    with tempfile.TemporaryDirectory(prefix="starling-resume-") as folder:
        whole = run_whole(starling, folder, experiment({"name": "d-psgd"}))
        run = os.path.join(folder, "again")
        shutil.copytree(whole, run)
        at = os.path.join(run, "checkpoints", "round-10-rank-4.safetensors")
        os.truncate(at, os.path.getsize(at) - 1)
        ended = must(call(starling, "sim", "--resume", run))
        if "going on from round 8; newer ones are not whole: round 10: " not in ended.stderr:
            raise Wrong(ended.stderr)
        same(lasting(run), lasting(whole))


def drop_lines(run, names, is_lost):
    for path in [path for name in names for path in glob.glob(os.path.join(run, name))]:
        with open(path) as file:
            lines = file.readlines()
        with open(path, "w") as file:
            file.writelines(line for line in lines if not is_lost(json.loads(line)))


def lines_come_again(starling):
    """A checkpoint that is newer than a line which a kill has lost is passed over."""
    with tempfile.TemporaryDirectory(prefix="starling-resume-") as folder:
        whole = run_whole(starling, folder, experiment({"name": "d-psgd"}))
        metrics = ["metrics*", "consensus*"]

        def loses(names, is_lost, text, newest=ROUNDS, oldest=0):
            run = cut_back(whole, os.path.join(folder, "again"), newest)
            for path in glob.glob(os.path.join(run, "checkpoints", "round-*")):
                if int(re.search(r"round-(\d+)-", path).group(1)) < oldest:
                    os.unlink(path)
            drop_lines(run, names, is_lost)
            ended = must(call(starling, "sim", "--resume", run))
            if text not in ended.stderr:
                raise Wrong(f"{ended.stderr!r} instead of {text!r}")
            found = lasting(run)
            shutil.rmtree(run)
            return found

        lack = "going on from round 6; newer ones are not whole: round 10: lines of metrics are"
        for names in (metrics, ["consensus*"]):
            same(loses(names, lambda row: row["round"] >= 6, lack), lasting(whole))

        def of_a_node(row):
            return row["round"] == 5 and row["node"] == 2

        said = "going on from round 4; "
        same(loses(["parameters*"], of_a_node, said), lasting(whole))
        lost = "lines of metrics from round 6 to round 9 are lost"
        found = loses(metrics, lambda row: row["round"] >= 6, lost, oldest=8)
        if [row["round"] for row in found["metrics-0.jsonl"]] != [3, ROUNDS]:
            raise Wrong(f"{found['metrics-0.jsonl']}")


def keys_are_refused(starling):
    with tempfile.TemporaryDirectory(prefix="starling-resume-") as folder:
        for name, keys, text in (
            ("d-psgd", {"every": 1, "keep": 2}, "set keep to 3, or every to 2 with keep 2"),
            ("cd-sgd", {"every": 1, "keep": 2}, "nodes may be 2 rounds apart here"),
            ("d-psgd", {"every": 5, "keep": 0}, "checkpoint.keep: 0 is not allowed"),
            ("d-psgd", {"every": 5, "path": "nowhere"}, "checkpoint.path: .*No such file"),
        ):
            write(folder, "experiment.json", experiment({"name": name}, checkpoint=keys))
            ended = call(starling, "check", os.path.join(folder, "experiment.json"))
            if ended.returncode != 2 or not re.search(text, ended.stderr):
                raise Wrong(f"{keys}: {ended.stderr.strip()!r} instead of {text!r}")
        # A folder of checkpoints that has another run's.
        os.mkdir(os.path.join(folder, "shared"))
        content = experiment({"name": "d-psgd"}, checkpoint={"every": 5, "path": "shared"})
        run_whole(starling, folder, content)
        again = os.path.join(folder, "again")
        ended = call(starling, "sim", os.path.join(folder, "experiment.json"), "--out", again)
        if "holds checkpoints of an earlier run" not in ended.stderr:
            raise Wrong(ended.stderr)


def all_checks(starling):
    missing = unnamed(starling, CASES.values()) + forgotten(starling, ["speakers", "listed"])
    yield "all are there", lambda: (f"no case of {missing}" if missing else None, None)
    yield from itertools.islice(cases(starling), 0, None, 4 if QUICK else 1)


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks, 2))
