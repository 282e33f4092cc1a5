#!/usr/bin/env python3
"""A run that goes on from a checkpoint ends with the bits of one that was never stopped: every
algorithm, schedule, optimizer and partition, simulated and, some of them, with agents and on a
device. And what is said of checkpoints that cannot be gone on from."""
import functools
import glob
import itertools
import json
import math
import os
import re
import shutil
import struct
import sys

from _each import CASES, QSGD, SIGN, TOP_TENTH, WITHOUT_MOMENTUM, links_for
from _here import check, read_json, read_lines
from _listed import allowed, families, unnamed
from _scene import read_bytes
from _simulate import QUICK, call, main, of, write
from parity import in_folder
from test_devices import DATA, DIRECTED, OTHERWISE, plugin_tested

ROUNDS, EVERY, KEEP = 11, 2, 4
RING = {"nodes": 5, "family": "ring"}
D_PSGD, CHOCO = of("d-psgd"), of("choco-sgd")
ON_DEVICE = ["d-psgd combine-while-adapt", "choco-sgd per tensor", "all-reduce", "cd-sgd"]
SPEAKERS = ["ANNA:", "BERT:", "CARL:", "DORA:", "EMIL:"]


# ---- what is crossed ----

FIXED = (
    "ring path grid torus hypercube star wheel complete complete-bipartite k-ary-tree barbell "
    "lollipop circulant symmetric-exponential clusters random-regular erdos-renyi watts-strogatz "
    "random-geometric directed-ring static-exponential de-bruijn kautz d-equistatic u-equistatic"
).split()
SLOTS = {
    "nodes": 4,
    "schedule": [{"edges": [[0, 1], [2, 3]]}, {"edges": [[1, 2], [3, 0]]}, {"edges": [[0, 2]]}],
}
EACH = {"replicas": "per-neighbour"}
DRIVE = of("choco-sgd", **EACH, compressor="drive")
NATURAL = of("dcd-psgd", **EACH, compressor="natural")
# Topologies, each with an algorithm that takes it: the ring, and every family of schedules. What a
# compressor draws follows from the round; so it has no state of its own.
PAIRS = [
    (RING, of("choco-sgd", **EACH, compressor=TOP_TENTH)),
    (RING, of("deep-squeeze", compressor=SIGN)),
    (RING, of("choco-sgd", variant="mix-then-compress", compressor=of("float16"))),
    (RING, of("double-squeeze", server="sharded", compressor=of("1-bit", bucket=64))),
    (RING, of("choco-sgd", local_steps=2, compressor=TOP_TENTH)),
    (RING, of("naive-compression", compressor=of("threshold", threshold=0.01))),
    (RING, of("dcd-psgd", compressor=QSGD)),
    ({"family": "one-peer-exponential", "nodes": 5}, of("sgp")),
    ({"family": "one-peer-exponential", "nodes": 8}, of("d-psgd", variant="combine-while-adapt")),
    ({"family": "one-peer-hypercube", "nodes": 4}, DRIVE),
    ({"family": "hyper-cuboid", "nodes": 6}, NATURAL),
    ({"family": "alternating-matchings", "nodes": 6}, DRIVE),
    ({"family": "base-k", "nodes": 5, "peers": 1}, NATURAL),
    ({"family": "od-equidyn", "nodes": 6}, of("sgp")),
    ({"family": "ou-equidyn", "nodes": 6}, of("deep-squeeze")),
    ({"family": "matcha", "nodes": 6, "base": "ring"}, DRIVE),
    ({"family": "matcha", "nodes": 6, "base": "complete"}, D_PSGD),
    (SLOTS, of("gradient-tracking")),
    ({"family": "random-matching", "nodes": 6, "period": 12}, of("noloco", period=2)),
    ({"family": "epidemic", "nodes": 7, "degree": 3}, D_PSGD),
    ({"family": "epidemic", "nodes": 6, "degree": 2}, DRIVE),
]
# The numbers of optimizers, rates and partitions have no common divisor: all pairs of them come.
OPTIMIZERS = [
    {"momentum": 0.9},
    {},
    {"momentum": 0.8, "nesterov": True, "weight_decay": 1e-3},
    {"weight_decay": 1e-2},
    {"name": "adamw", "momentum": 0, "weight_decay": 1e-3, "clip_norm": 1},
    {"name": "lars", "momentum": 0.5, "weight_decay": 1e-3},
    {"name": "lamb", "momentum": 0, "trust": 0.1},
]
RATES = [
    {"name": "cosine", "warmup_rounds": 3},
    {"name": "step", "milestones": [0.3, 0.6]},
    {"name": "constant", "warmup_rounds": 8},
    {"name": "cosine", "minimum": 0.1},
]
PARTITIONS = [{"name": "shards"}, {"name": "dirichlet", "alpha": 0.5}, {"name": "iid"}]
AGENTS_EACH, DEVICE_EACH = 5, 4  # so many pairs, one is run by agents, or on a device


def forgotten(starling):
    """What the program allows and nothing here holds."""
    held = {
        "optimizer.name": ["sgd", *(optimizer.get("name") for optimizer in OPTIMIZERS)],
        "optimizer.schedule.name": [rate["name"] for rate in RATES],
        "data.partition.name": ["speakers", "listed", *(p["name"] for p in PARTITIONS)],
    }
    missing = [n for key, names in held.items() for n in allowed(starling, key) if n not in names]
    known = [*FIXED, *(topology.get("family") for topology, _ in PAIRS)]
    missing += [family for family in families(starling) if family not in known]
    return missing + unnamed(starling, CASES.values())


# ---- a run, cut back and gone on with ----


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
        **links_for(settings),
        **more,
    }


def must(ended):
    check(ended.returncode == 0, f"ended with {ended.returncode}: {ended.stderr.strip()}")
    return ended


def sets_of(*settings):
    return [word for setting in settings for word in ("--set", setting)]


def run_whole(starling, folder, content, env=None, command="sim"):
    write(folder, "experiment.json", content)
    out = os.path.join(folder, f"whole-{command}")
    must(call(starling, command, os.path.join(folder, "experiment.json"), "--out", out, env=env))
    return out


def drop_checkpoints(run, are_lost):
    for path in glob.glob(os.path.join(run, "checkpoints", "round-*")):
        if are_lost(int(re.search(r"round-(\d+)-", path).group(1))):
            os.unlink(path)


def cut_back(whole, to, last):
    """A copy of a run as if it had been killed after the checkpoint of round `last`. It keeps the
    best model, which may be of a round before."""
    shutil.copytree(whole, to)
    drop_checkpoints(to, lambda number: number > last)
    for path in glob.glob(os.path.join(to, "model*")) + [os.path.join(to, "summary.json")]:
        if "-best." not in path:
            os.unlink(path)
    return to


def lasting(out):
    """What a run leaves that does not depend on time."""
    found = {}
    for name in sorted(os.listdir(out)):
        if name.startswith("metrics"):
            rows = read_lines(out, name)
            found[name] = [
                {k: v for k, v in row.items() if k not in ("time", "seconds")} for row in rows
            ]
        elif name.endswith((".npy", ".safetensors", "parameters.jsonl", "consensus.jsonl")):
            found[name] = read_bytes(os.path.join(out, name))
    return found


def same(found, expected):
    check(found.keys() == expected.keys(), f"files differ: {found.keys() ^ expected.keys()}")
    different = [name for name in found if found[name] != expected[name]]
    check(not different, f"these differ: {different}")


def alike(found, expected):
    """Lines of consensus: losses of the averaged model may have another rounding."""
    pairs = [(row.pop("test_loss"), other.pop("test_loss")) for row, other in zip(found, expected)]
    near = all(math.isclose(*pair, rel_tol=1e-6) for pair in pairs)
    check(found == expected and near, f"consensus: {found} and {expected}, losses {pairs}")


def goes_on(starling, folder, content, last, env=None):
    whole = run_whole(starling, folder, content, env)
    again = cut_back(whole, os.path.join(folder, "again"), last)
    must(call(starling, "sim", "--resume", again, env=env))
    same(lasting(again), lasting(whole))


def agents_go_on(starling, folder, content, last, env=None):
    """Agents that go on, beside a simulator that was never stopped."""
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
        check(row["seconds"]["wait"] <= row["time"], f"a wait that is longer than the run: {row}")
    found = {name: rows for name, rows in lasting(again).items() if name in expected}
    same(found, {name: expected[name] for name in found})
    check(any(re.match(r"model-\d+.npy", name) for name in found), f"no models in {found.keys()}")


# ---- other experiments, other files ----


def speakers_go_on(starling, folder):
    """The partition that only texts have."""
    path = os.path.join(folder, "text")
    with open(path, "w") as file:
        for i in range(60):
            file.write(f"{SPEAKERS[i % 5]}\n{'to be or not to be ' * (3 + i % 4)}\n\n")
    text = {"name": "text", "path": path, "sequence": 20, "batch": 4, "partition": "speakers"}
    model = {"name": "lstm", "layers": 1, "units": 8}
    goes_on(starling, folder, experiment(CHOCO, model=model, data=text), 6)


def lists_go_on(starling, folder):
    """The partition that a file lists."""
    path = os.path.join(folder, "owners")
    with open(path, "w") as file:
        file.writelines(f"{min(i % 9, 4)}\n" for i in range(DATA["train_samples"]))
    listed = {**DATA, "partition": {"name": "listed", "path": path}}
    goes_on(starling, folder, experiment(CHOCO, data=listed), 6)


def rounds_are_extended(starling, folder):
    """A longer run after a shorter one is the longer run, where the rate does not depend on it."""
    whole = run_whole(starling, folder, experiment(of("gradient-tracking")))
    shorter, path = (os.path.join(folder, name) for name in ("shorter", "experiment.json"))
    must(call(starling, "sim", path, "--out", shorter, "--set", "rounds=8"))
    must(call(starling, "sim", path, "--resume", shorter))
    found, expected = lasting(shorter), lasting(whole)
    for name in [name for name in found if name.startswith(("metrics", "consensus"))]:
        del found[name], expected[name]  # round 8 was its last, and so recorded
    same(found, expected)


def rates_are_changed(starling, folder, command):
    """A run that goes on with other rates, twice, is the run whose schedule has all of them."""
    steps = {"name": "step", "milestones": [4.5 / ROUNDS, 8.5 / ROUNDS], "factor": 0.2}
    content = experiment(D_PSGD, optimizer={"schedule": steps})
    expected = lasting(run_whole(starling, folder, content, command=command))
    shutil.rmtree(os.path.join(folder, f"whole-{command}"))
    whole = run_whole(starling, folder, experiment(D_PSGD), command=command)
    run = cut_back(whole, os.path.join(folder, "again"), 4)
    rate = 0.05 * 0.2
    others = {"name": "step", "milestones": [0.1], "factor": 0.5}  # whose rates are half
    sets = f"optimizer.learning_rate={2 * rate!r}", f"optimizer.schedule={json.dumps(others)}"
    said = must(call(starling, command, "--resume", run, *sets_of(*sets))).stdout
    text = f"goes on with optimizer.learning_rate {2 * rate:.15g}, before 0.05"
    check(text in said, said)
    again = cut_back(run, os.path.join(folder, "once more"), 8)
    sets = f"optimizer.learning_rate={rate * 0.2!r}", "optimizer.schedule=constant"
    must(call(starling, command, "--resume", again, *sets_of(*sets)))
    has = read_json(again, "config.json")["optimizer"]["learning_rate"]
    check(has == rate * 0.2, f"config.json has the rate {has}")
    same(lasting(again), expected)


KEPT = (
    "a run that goes on keeps what neighbours compare, but for rounds, epochs, "
    "optimizer.learning_rate and optimizer.schedule"
)


def others_are_refused(starling, folder):
    """What neighbours compare stays; all else may differ, and is then what the folder has."""
    whole = run_whole(starling, folder, experiment(D_PSGD))
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
        ended = call(starling, "sim", "--resume", run, *sets_of(value, "rounds=12"))
        words = (f"{value.split('=')[0]}: {here}", f" here, {before}", f" in {there}; {KEPT}")
        good = ended.returncode == 2 and all(word in ended.stderr for word in words)
        check(good, f"{value}: {ended.stderr.strip()!r} instead of {words!r}")
    sets = ("record.every=2", "record.parameters_at=[0,5,7]", "network.latency_ms=3")
    sets += ("name=another", "transport.connect_timeout_s=7", "monitor.listen=127.0.0.1:0")
    must(call(starling, "sim", "--resume", run, *sets_of(*sets)))
    has = read_json(there)
    found = has["name"], has["record"]["every"], has["transport"]["connect_timeout_s"]
    check(found == ("another", 2, 7), f"config.json has {found}")
    rounds = [row["round"] for row in read_lines(run, "metrics-0.jsonl")]
    check(rounds == [3, 4, 6, 8, 10, 11], f"recorded rounds {rounds}")


def lines_come_as_they_are_asked_for(starling, folder):
    """Lines that only the earlier process had to write are not missing from the later one."""
    content = experiment(D_PSGD, record={"every": 5})
    whole = run_whole(starling, folder, content, command="run")
    run = cut_back(whole, os.path.join(folder, "later"), 8)
    must(call(starling, "sim", "--resume", run, "--set", "record.every=2"))
    again = cut_back(run, os.path.join(folder, "once more"), 8)
    drop_lines(again, ["metrics*", "consensus*"], lambda row: row["round"] >= 8)
    ended = must(call(starling, "sim", "--resume", again))
    check("not whole" not in ended.stderr, ended.stderr)
    same(lasting(again), lasting(run))


def change(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


RANK_3 = os.path.join("checkpoints", "round-10-rank-3.safetensors")


def broken_files(whole, other):
    """What is done to the path of rank 3's file, and what is said."""
    file, nan = os.path.basename(RANK_3), struct.pack("<f", float("nan"))
    size = os.path.getsize(os.path.join(whole, RANK_3))
    of_rank_2 = os.path.join(whole, RANK_3.replace("rank-3", "rank-2"))
    none, cut = "holds no whole checkpoint", f"{file}: is cut short"
    sum_of = rf'{file}: tensor "replicas", bytes \d+ to \d+, differs from its checksum'

    def gone(*names):
        """Files beside rank 3's."""
        return lambda p: [os.unlink(p.replace(RANK_3, name)) for name in names]

    def without(to):
        return lambda p: os.truncate(p, to)

    return (
        (lambda p: shutil.rmtree(os.path.dirname(p)), f"{none}; checkpoint.every makes them"),
        (os.unlink, f"{none}: round 10: rank 3 has none"),
        (gone(RANK_3, RANK_3.replace("3", "1")), "round 10: ranks 1, 3 have none"),
        (without(5), f"{cut}: its 5 bytes end within its length"),
        (without(900), f"{cut} or no checkpoint"),
        (without(size - 8), f'{cut}: tensor "replicas" ends at byte'),
        (lambda p: (os.unlink(p), os.mkdir(p)), f"{file}: is not a regular file"),
        (gone("run.json"), "run.json: No such file or directory; it must be there"),
        (lambda p: change(p, 700, b"7"), f"{file}: its head .* differs from its checksum|JSON"),
        (lambda p: change(p, size - 100, nan), sum_of),
        (lambda p: shutil.copy(of_rank_2, p), f"{file}: is of another rank: 2, here 3"),
        (lambda p: shutil.copy(os.path.join(other, RANK_3), p), f"{file}: is of another run: "),
    )


def files_are_refused(starling, folder):
    content = experiment(CHOCO, checkpoint={"every": 10, "keep": 2})
    whole = run_whole(starling, folder, content)
    other, run = (os.path.join(folder, name) for name in ("other", "broken"))
    must(call(starling, "sim", os.path.join(folder, "experiment.json"), "--out", other))
    for what, text in broken_files(whole, other):
        shutil.copytree(whole, run)
        what(os.path.join(run, RANK_3))
        ended = call(starling, "sim", "--resume", run)
        good = ended.returncode == 2 and re.search(text, ended.stderr)
        check(good, f"{ended.returncode}, {ended.stderr.strip()!r} instead of {text!r}")
        shutil.rmtree(run)
    path = os.path.join(whole, "config.json")
    ended = call(starling, "sim", path, "--resume", whole, "--set", "data.batch=4")
    check(ended.returncode == 2 and "data.batch: 4 here, 8 in " in ended.stderr, ended.stderr)


def cuts_are_chosen(starling, folder):
    """A newer cut that is not whole is left, and said once."""
    whole = run_whole(starling, folder, experiment(D_PSGD))
    run = os.path.join(folder, "again")
    shutil.copytree(whole, run)
    at = os.path.join(run, "checkpoints", "round-10-rank-4.safetensors")
    os.truncate(at, os.path.getsize(at) - 1)
    said = must(call(starling, "sim", "--resume", run)).stderr
    check("going on from round 8; newer ones are not whole: round 10: " in said, said)
    same(lasting(run), lasting(whole))


def drop_lines(run, names, is_lost):
    for path in [path for name in names for path in glob.glob(os.path.join(run, name))]:
        with open(path) as file:
            lines = file.readlines()
        with open(path, "w") as file:
            file.writelines(line for line in lines if not is_lost(json.loads(line)))


def lines_come_again(starling, folder):
    """A checkpoint that is newer than a line which a kill has lost is passed over."""
    whole = run_whole(starling, folder, experiment(D_PSGD))
    metrics = ["metrics*", "consensus*"]

    def loses(names, is_lost, text, oldest=0):
        run = cut_back(whole, os.path.join(folder, "again"), ROUNDS)
        drop_checkpoints(run, lambda number: number < oldest)
        drop_lines(run, names, is_lost)
        said = must(call(starling, "sim", "--resume", run)).stderr
        check(text in said, f"{said!r} instead of {text!r}")
        found = lasting(run)
        shutil.rmtree(run)
        return found

    def is_late(row):
        return row["round"] >= 6

    def of_a_node(row):
        return row["round"] == 5 and row["node"] == 2

    lack = "going on from round 6; newer ones are not whole: round 10: lines of metrics are"
    for names in (metrics, ["consensus*"]):
        same(loses(names, is_late, lack), lasting(whole))
    same(loses(["parameters*"], of_a_node, "going on from round 4; "), lasting(whole))
    lost = "lines of metrics from round 6 to round 9 are lost"
    found = loses(metrics, is_late, lost, oldest=8)["metrics-0.jsonl"]
    check([row["round"] for row in found] == [3, ROUNDS], f"{found}")


def shared_folders_are_refused(starling, folder):
    """A folder of checkpoints that has another run's."""
    os.mkdir(os.path.join(folder, "shared"))
    run_whole(starling, folder, experiment(D_PSGD, checkpoint={"every": 5, "path": "shared"}))
    path, again = (os.path.join(folder, name) for name in ("experiment.json", "again"))
    ended = call(starling, "sim", path, "--out", again)
    check("holds checkpoints of an earlier run" in ended.stderr, ended.stderr)


# ---- all of them ----


def combined(starling, i, topology, algorithm):
    """The case of one pair: its name, and what to call with which arguments."""
    optimizer = {**OPTIMIZERS[i % 7], "schedule": RATES[i % 4]}
    content = experiment(algorithm, topology, optimizer=optimizer)
    if algorithm["name"] in WITHOUT_MOMENTUM:
        content["optimizer"].update(name="sgd", momentum=0, nesterov=False)
    content["data"]["partition"], env = PARTITIONS[i % 3], None
    content["checkpoint"]["keep"] = 66 if topology.get("family") == "epidemic" else 6
    if topology is RING and i % DEVICE_EACH == 0:
        content["device"], env = "cuda:0", plugin_tested(starling)
    run = agents_go_on if i % AGENTS_EACH == 0 else goes_on
    words = algorithm["name"], topology.get("family", "schedule"), content["device"], run.__name__
    return " ".join(["combined", str(i), *words]), run, content, 4 + i % 2 * 2, env


def cases(starling):
    """Names, what to call, and with which arguments."""
    for name, settings in CASES.items():
        more = {"topology": DIRECTED if settings["name"] == "sgp" else RING}
        content = experiment(settings, **{**more, **OTHERWISE.get(name, {})})
        yield f"resume {name}", goes_on, content, 4
    for i, pair in enumerate(PAIRS):
        yield combined(starling, i, *pair)
    for name in ON_DEVICE:
        content = experiment(CASES[name], device="cuda:0")
        yield f"resume {name} on a device", goes_on, content, 6, plugin_tested(starling)
    for last in (8, ROUNDS):
        saved = {"checkpoint": {"every": last, "keep": KEEP}}
        content = experiment(D_PSGD, final_average=True, **saved)
        yield f"resume from {last} to an average", agents_go_on, content, last
    for command in ("sim", "run"):
        yield f"resume {command} with another rate", rates_are_changed, command
    for test in (
        *(speakers_go_on, lists_go_on, rounds_are_extended, others_are_refused),
        *(files_are_refused, cuts_are_chosen, lines_come_again, lines_come_as_they_are_asked_for),
        shared_folders_are_refused,
    ):
        yield test.__name__.replace("_", " "), test


def all_checks(starling):
    missing = forgotten(starling)
    yield "all are there", lambda: (f"no case of {missing}" if missing else None, None)
    for name, run, *arguments in itertools.islice(cases(starling), 0, None, 4 if QUICK else 1):
        yield name, functools.partial(in_folder, run, starling, *arguments)


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks, 2))
