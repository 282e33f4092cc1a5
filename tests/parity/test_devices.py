#!/usr/bin/env python3
"""Every algorithm with its vectors on a device: the same bits as on the CPU, in the simulator and
between agents; the learner on a device: the same bits in the simulator and between agents
(test_training compares with the CPU); and what goes wrong with devices.

The quadratic's gradient is computed on the host whatever the device, and copied, as that of a
user's own task is. A network's is the device's.

The device is the emulated one, whose memory cannot be touched but through its operations
(gpu/emulated.c); where payloads leave from and come to it
(transport.gpu_direct), that is the host's memory to the network. The kernels are the GPU's.

With STARLING_TEST_PLUGIN=cuda in the environment the algorithms run on the real one
(tools/gpu-check), and payloads go straight between GPUs' memory only where tcp takes it.

usage: test_devices.py [--starling] STARLING [--only TEXT]
"""
import concurrent.futures
import glob
import math
import os
import re
import subprocess
import sys
import tempfile

import _centralized
import _outer
from _listed import unnamed
from _simulate import QUICK, arguments, read_lines, write

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "chaos")
)
from _ports import free_ports  # noqa: E402

ON_GPU = os.environ.get("STARLING_TEST_PLUGIN") == "cuda"
TIMEOUT_S = (
    30 if ON_GPU else 5
)  # a GPU's driver takes seconds to begin, and longer when many programs do
ROUNDS = 5
RING, DIRECTED = {"nodes": 5, "family": "ring"}, {"nodes": 4, "family": "one-peer-exponential"}


def compressed(name, **settings):
    return {"compressor": {"name": name, **settings}}


CASES = {
    "d-psgd adapt-then-combine": {"name": "d-psgd"},
    "d-psgd combine-while-adapt": {"name": "d-psgd", "variant": "combine-while-adapt"},
    "d-psgd local steps": {"name": "d-psgd", "local_steps": 2},
    "dcd-psgd": {"name": "dcd-psgd", **compressed("qsgd", levels=127, bucket=512)},
    "dcd-psgd plain": {"name": "dcd-psgd"},
    "dcd-psgd replicas": {
        "name": "dcd-psgd",
        "replicas": "per-neighbour",
        **compressed("qsgd", levels=127, bucket=512),
    },
    "ecd-psgd": {"name": "ecd-psgd", **compressed("natural")},
    "choco-sgd top-k": {"name": "choco-sgd", **compressed("top-k", fraction=0.01)},
    "choco-sgd top-k dense": {"name": "choco-sgd", **compressed("top-k", fraction=0.3)},
    "choco-sgd replicas": {
        "name": "choco-sgd",
        "replicas": "per-neighbour",
        **compressed("magnitude-dropping", fraction=0.3, contractive=True),
    },
    "choco-sgd sign": {"name": "choco-sgd", **compressed("scaled-sign")},
    "choco-sgd mix-then-compress": {
        "name": "choco-sgd",
        "variant": "mix-then-compress",
        **compressed("random-k", fraction=0.1),
    },
    "choco-sgd plain": {"name": "choco-sgd", "consensus_step": 1},
    "choco-sgd plain per tensor": {
        "name": "choco-sgd",
        "consensus_step": 1,
        **compressed("identity", per="tensor"),
    },
    "choco-sgd per tensor": {"name": "choco-sgd", **compressed("1-bit", per="tensor")},
    "deep-squeeze": {"name": "deep-squeeze", **compressed("terngrad", clip_sigma=2.5)},
    "deep-squeeze plain": {"name": "deep-squeeze"},
    "deep-squeeze float16": {"name": "deep-squeeze", **compressed("float16")},
    "sgp": {"name": "sgp"},
    "gradient-tracking": {"name": "gradient-tracking"},
    "exact-diffusion": {"name": "exact-diffusion"},
    "d2": {"name": "exact-diffusion", "matrix": "plain"},
    "qgm": {"name": "qgm", "nesterov": True},
    "decentlam": {"name": "decentlam"},
    "gossip-pga": {"name": "gossip-pga", "average_period": 2},
    "clipped-gossip": {"name": "clipped-gossip"},
    "beer": {"name": "beer", **compressed("top-k", fraction=0.05)},
    "lead": {"name": "lead", **compressed("qsgd", levels=127, bucket=512)},
    "all-reduce": {"name": "all-reduce"},
    "all-reduce doubling": {"name": "all-reduce", "all_reduce": "recursive-doubling"},
    "local-sgd double-tree": {"name": "local-sgd", "period": 2, "all_reduce": "double-tree"},
    "parameter-server": {"name": "parameter-server"},
    "parameter-server sharded": {"name": "parameter-server", "server": "sharded"},
    "local-sgd": {"name": "local-sgd", "period": 2},
    **_outer.CASES,
    "double-squeeze": {"name": "double-squeeze", **compressed("bfloat16")},
    "double-squeeze sharded": {
        "name": "double-squeeze",
        "server": "sharded",
        **compressed("random-dropping", probability=0.3),
    },
    "cd-sgd": {"name": "cd-sgd", "correction_period": 3},
    "naive-compression": {"name": "naive-compression", **compressed("strom", threshold=0.1)},
}
CASES.update(_centralized.CASES)
HOST_ONLY = (*_outer.HOST_ONLY, *_centralized.HOST_ONLY)
# Messages that come in more loads than there are places for; not measured, which would wait for
# each.
LONG = {
    "topology": {"nodes": 2, "family": "complete"},
    "model": {"name": "mlp", "hidden": [512]},
    "record": {"every": ROUNDS},
    "transport": {"chunk_bytes": 4096, "timeout_s": TIMEOUT_S},
}
OTHERWISE = {"d-psgd long messages": LONG, "choco-sgd long messages": LONG}
CASES["d-psgd long messages"] = CASES["d-psgd combine-while-adapt"]
CASES["choco-sgd long messages"] = {"name": "choco-sgd", **compressed("float16")}
WITHOUT_MOMENTUM = (
    *("gradient-tracking", "exact-diffusion", "double-squeeze", "cd-sgd"),
    *_centralized.WITHOUT_MOMENTUM,
    *("qgm", "decentlam", "beer", "lead", *_outer.WITHOUT_MOMENTUM),
)
LEARNING = ["d-psgd combine-while-adapt", "choco-sgd per tensor", "all-reduce", *OTHERWISE]
DIMENSION, EQUATIONS = 3000, 2
# Payloads between GPUs' memory: vectors as they are, and messages that are put together first.
DIRECT = [
    name
    for name, settings in CASES.items()
    if settings.get("compressor", {"name": "identity"})["name"] == "identity"
    and settings["name"] not in ("cd-sgd", *HOST_ONLY)
]
LEARNING_DIRECT = [
    "d-psgd combine-while-adapt",
    "choco-sgd plain per tensor",
    "all-reduce",
    "d-psgd long messages",
]
HEADER, DIRECT_HEADER = 64, 576  # bytes of a frame before its payload
BETWEEN_AGENTS = [
    "d-psgd adapt-then-combine",
    "d-psgd combine-while-adapt",
    "choco-sgd top-k",
    "choco-sgd mix-then-compress",
    "all-reduce",
    "cd-sgd",
]


class Skipped(Exception):
    """The text is why."""


def plugin(starling, name):
    build = os.path.dirname(os.path.dirname(starling))
    return os.path.join(build, "tests" if name == "other" else "gpu", f"libstarling-{name}.so")


def write_quadratic(folder, nodes):
    """1/2 |A x - b|^2 of each node, of numbers that a formula gives; returns the model."""

    def number(*place):
        return math.sin(sum(factor * i for factor, i in zip((12.9898, 78.233, 37.719), place)) + 1)

    write(
        folder,
        "quadratic.json",
        {
            "A": [
                [[0.05 * number(n, m, d) for d in range(DIMENSION)] for m in range(EQUATIONS)]
                for n in range(nodes)
            ],
            "b": [[number(n, m, -1) for m in range(EQUATIONS)] for n in range(nodes)],
            "x0": [[number(-1, 0, d) for d in range(DIMENSION)]] * nodes,
        },
    )
    return {"name": "quadratic", "path": "quadratic.json"}


DIGITS = {"name": "digits", "train_samples": 300, "test_samples": 50, "batch": 8}


def call(
    starling, command, settings, folder, device="cpu", env=None, model="softmax", otherwise=None
):
    topology = DIRECTED if settings["name"] == "sgp" else RING
    momentum = 0 if settings["name"] in WITHOUT_MOMENTUM else 0.9
    experiment = {
        "rounds": ROUNDS,
        "model": model,
        "data": DIGITS,
        "transport": {"chunk_bytes": 4096, "timeout_s": TIMEOUT_S},
        "record": {"every": 2, "parameters_at": [0, 2, ROUNDS]},
        "topology": topology,
        "device": device,
        "algorithm": settings,
        "optimizer": {"learning_rate": 0.05, "momentum": momentum},
        **(otherwise or {}),
    }
    if model == "quadratic":
        experiment["model"] = write_quadratic(folder, topology["nodes"])
        del experiment["data"]
    write(folder, "experiment.json", experiment)
    path, out = os.path.join(folder, "experiment.json"), os.path.join(folder, "out")
    return subprocess.run(
        [starling, command, path, "--out", out],
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **(env or {})},
    )


def directly(name):
    """The changes of a case whose payloads go straight between GPUs' memory."""
    otherwise = OTHERWISE.get(name, {})
    transport = otherwise.get("transport", {"chunk_bytes": 4096, "timeout_s": TIMEOUT_S})
    return {**otherwise, "transport": {**transport, "gpu_direct": "on"}}


def outcome(starling, command, name, device, env, model, otherwise=None):
    """What a run leaves that does not depend on time: parameters, losses, distances, bytes."""
    otherwise = otherwise or OTHERWISE.get(name)
    with tempfile.TemporaryDirectory(prefix="starling-device-") as folder:
        ended = call(starling, command, CASES[name], folder, device, env, model, otherwise)
        if ended.returncode == 2 and "offers no GPU memory" in ended.stderr:
            raise Skipped(ended.stderr.strip())
        if ended.returncode != 0:
            said = f"ended with {ended.returncode}: {ended.stderr.strip()}"
            raise RuntimeError(f"starling {command} on {device} {said}")
        out = os.path.join(folder, "out")
        metrics = [
            {key: row[key] for key in row if key != "time" and not key.endswith("seconds")}
            for node in sorted(glob.glob(os.path.join(out, "metrics-*.jsonl")))
            for row in read_lines(out, os.path.basename(node))
        ]
        if not metrics:
            raise RuntimeError("no metrics")
        parameters = ""
        if name not in OTHERWISE:
            with open(os.path.join(out, "parameters.jsonl")) as file:
                parameters = file.read()
        return metrics, parameters


def compare(found, expected):
    if found[1] != expected[1]:
        raise RuntimeError("the parameters differ")
    if found[0] != expected[0]:
        raise RuntimeError(
            "the metrics differ:"
            f" {[pair for pair in zip(found[0], expected[0]) if pair[0] != pair[1]][:1]}"
        )


def compare_direct(found, expected):
    """The same but for the bytes: a frame between GPUs is longer by as much before its payload,
    which also shows that it was one."""
    for key in ("bytes_sent", "bytes_received"):
        for row, through_host in zip(found[0], expected[0]):
            longer, bytes_through_host = row.pop(key) - through_host[key], through_host.pop(key)
            if longer % (DIRECT_HEADER - HEADER) != 0 or (longer > 0) != (bytes_through_host > 0):
                raise RuntimeError(
                    f"{key} is {longer} more than through the host's memory, {bytes_through_host}"
                )
    compare(found, expected)


def plugin_tested(starling):
    return {"STARLING_PLUGIN": plugin(starling, os.environ.get("STARLING_TEST_PLUGIN", "emulated"))}


def guarded(starling):
    return {**plugin_tested(starling), "STARLING_GUARD": "1"}


def check(starling, name, command):
    compare(
        outcome(starling, command, name, "cuda:0", guarded(starling), "quadratic"),
        outcome(starling, "sim", name, "cpu", None, "quadratic"),
    )


def check_launched(path, name):
    """Each node has found losses there (gpu/launches.h): once, and as a graph was noted."""
    counts = {}
    if os.path.exists(path):
        with open(path) as file:
            for kernel, count in map(str.split, file):
                counts[kernel] = counts.get(kernel, 0) + int(count)
    expected = 2 * OTHERWISE.get(name, {}).get("topology", RING)["nodes"]
    if counts.get("find_loss", 0) < expected or counts.get("product", 0) < expected:
        raise RuntimeError(
            f"{expected} gradients, but the device launched find_loss {counts.get('find_loss', 0)} "
            f"and product {counts.get('product', 0)} times"
        )


def check_learning(starling, name):
    """Agents and the simulator, both with a network on the device."""
    found = []
    with tempfile.TemporaryDirectory(prefix="starling-device-") as folder:
        for command in ("run", "sim"):
            path = os.path.join(folder, command)
            env = {**guarded(starling), "STARLING_LAUNCHES": path}
            found.append(outcome(starling, command, name, "cuda:0", env, "softmax"))
            check_launched(path, name)
    compare(*found)


def check_direct(starling, name, model):
    """A quadratic beside the CPU, a network beside the simulator's on the device."""
    env, there = plugin_tested(starling), ("cpu", None)
    if model == "softmax":
        there = ("cuda:0", env)
    compare_direct(
        outcome(starling, "run", name, "cuda:0", env, model, directly(name)),
        outcome(starling, "sim", name, *there, model),
    )


# Name, device, plug-in, exit code, what is different, and what each line of stderr says.
# libfabric 1.17's tcp offers no FI_HMEM to a GPU, a later one may.
TOLD = """
no plug-in, demanded|cuda:0|absent|2||device: cuda:0.*cannot be loaded
no plug-in, auto|auto|absent|0||device auto is cpu.*cannot be loaded
plug-in of another version|cuda:0|other|2||built for another Starling.*interface
a GPU that is not there|cuda:3|emulated|2||device: cuda:3.*the only GPU here is cuda:0
a bound that products do not fit|cuda:0|emulated|1|small|cuda:0 cannot be .*0.1 MB.*allows 0.0 MB
auto takes the GPU|auto|emulated|0||device auto is cuda:0
no device's name|gpu|emulated|2||"gpu" is not allowed.*"cuda:0"
GPU-direct demanded|cuda:0|as GPU|2|on|"on" is refused: provider 'tcp' offers.*through host memory
GPU-direct auto|cuda:0|as GPU|0|auto|auto is off.*through host memory: provider 'tcp' offers
GPU-direct auto, offered|cuda:0|emulated|0|auto|gpu_direct auto is on
GPU-direct without a GPU|cpu|emulated|2|on|gpu_direct: "on" needs vectors on a GPU
GPU-direct, and auto is the CPU|auto|absent|2|on|device auto is cpu|device auto is no GPU here
GPU-direct of a compressor|cuda:0|emulated|2|float16 on|for compressor identity only.*"float16"
GPU-direct of a compressor, auto|cuda:0|emulated|0|float16 auto|auto is off.*compressor "float16"
"""


def check_told(starling, device, name, code, different, *lines):
    env = {"STARLING_PLUGIN": plugin(starling, "other" if name == "other" else "emulated")}
    if name == "absent":
        env["STARLING_PLUGIN"] = "/nowhere/libstarling-cuda.so"
    elif name == "as GPU":
        env["STARLING_AS_GPU"] = "1"
    *case, direct = different.split(" ")
    command, otherwise = "sim", {"device_memory_gb": 0.00001} if different == "small" else {}
    if direct in ("on", "auto"):
        command, otherwise = "run", {"transport": {"gpu_direct": direct, "chunk_bytes": 4096}}
    settings = CASES["deep-squeeze float16" if case else "all-reduce"]
    with tempfile.TemporaryDirectory(prefix="starling-device-") as folder:
        ended = call(starling, command, settings, folder, device, env, otherwise=otherwise)
    said = [line for line in ended.stderr.splitlines() if line]
    good = len(said) == len(lines) and all(map(re.search, lines, said))
    if ended.returncode != int(code) or not good:
        raise RuntimeError(f"ended with {ended.returncode}, not {code}, and said {said}")


def check_failing(starling, after, otherwise=None):
    """A device that fails in the middle of a run: all agents end, and say what and where."""
    env = {"STARLING_PLUGIN": plugin(starling, "emulated"), "STARLING_FAILS_AFTER": str(after)}
    settings = CASES["d-psgd combine-while-adapt"]
    with tempfile.TemporaryDirectory(prefix="starling-device-") as folder:
        ended = call(starling, "run", settings, folder, "cuda:0", env, otherwise=otherwise)
    told = r"node \d, round [1-5]: cuda:0: [a-z_ ]+ failed: it was asked to"
    if ended.returncode != 1 or not re.search(told, ended.stderr):
        raise RuntimeError(f"ended with {ended.returncode} and said {ended.stderr}")


def check_neighbour(starling):
    """The device of one of two agents fails: the other, on the CPU, hears of it, and why, long
    before its time-out."""
    env = {"STARLING_PLUGIN": plugin(starling, "emulated"), "STARLING_FAILS_AFTER": "300"}
    with tempfile.TemporaryDirectory(prefix="starling-device-") as folder:
        experiment = {
            "rounds": 100000,
            "model": "softmax",
            "data": DIGITS,
            "topology": {"nodes": 2, "family": "complete"},
            "transport": {"timeout_s": 60},
            "membership": {"on_loss": "stop"},
        }
        write(folder, "experiment.json", experiment)
        path, roster = (os.path.join(folder, name) for name in ("experiment.json", "roster"))
        with open(roster, "w") as file:
            file.writelines(f"127.0.0.1:{port}\n" for port in free_ports(2))
        command = [starling, "agent", path, "--roster", roster]
        agents = [
            subprocess.Popen(
                [*command, "--rank", str(rank), "--out", f"{path}-{rank}", "--set", device],
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank, device in enumerate(("device=cuda:0", "device=cpu"))
        ]
        said = [agent.communicate(timeout=50)[1] for agent in agents]
    told = r"cuda:0: .*failed: it was asked to"
    good = re.search(told, said[0]) and re.search("agent 0 ended: node 0, round .*" + told, said[1])
    if [agent.returncode for agent in agents] != [1, 1] or not good:
        raise RuntimeError(f"ended with {[agent.returncode for agent in agents]}, said {said}")


def all_tests(starling):
    CASES.update({name: {"name": name} for name in unnamed(starling, list(CASES.values()))})
    stride = 3 if QUICK else 1
    for name in list(CASES)[::stride]:
        if name in OTHERWISE or name in HOST_ONLY:
            continue
        yield f"sim {name}", lambda name=name: check(starling, name, "sim")
    for name in BETWEEN_AGENTS[::stride]:
        yield f"run {name}", lambda name=name: check(starling, name, "run")
    for name in LEARNING[::stride]:
        yield f"learning {name}", lambda name=name: check_learning(starling, name)
    for name in BETWEEN_AGENTS[:2] if QUICK else DIRECT:
        if name not in OTHERWISE:
            yield f"direct {name}", lambda name=name: check_direct(starling, name, "quadratic")
    for name in LEARNING_DIRECT[::stride]:
        yield f"learning direct {name}", lambda name=name: check_direct(starling, name, "softmax")
    for after in (50, 65, 80)[::stride]:
        name = f"a device that fails after {after} operations"
        yield name, lambda after=after: check_failing(starling, after)
        direct = directly("d-psgd combine-while-adapt")
        yield f"{name}, direct", lambda after=after: check_failing(starling, after, direct)
    yield "a device that fails, and the neighbour", lambda: check_neighbour(starling)
    for row in TOLD.strip().splitlines():
        name, *told = row.split("|")
        yield name, lambda told=told: check_told(starling, *told)


def attempt(name, test):
    """The test's line."""
    try:
        test()
        return f"ok {name}"
    except Skipped as why:
        return f"skip {name}: {why}"
    except Exception as problem:  # told as the test's failure
        return f"not ok {name}: {problem}"


def main():
    starling, only = arguments(__doc__)
    tests = [(name, test) for name, test in all_tests(starling) if only in name]
    with concurrent.futures.ThreadPoolExecutor(
        2 if QUICK else 4 if ON_GPU else os.cpu_count()
    ) as pool:
        lines = list(pool.map(attempt, *zip(*tests)))
    print("\n".join(lines))
    return 1 if any(line.startswith("not ok") for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
