#!/usr/bin/env python3
"""Every algorithm with its vectors on a device: the same bits as on the CPU, in the simulator and
between agents; the learner on a device: the same bits in the simulator and between agents
(test_training compares with the CPU); and what goes wrong with devices.

The quadratic's gradient is computed on the host whatever the device, and copied, as that of a
user's own task is. A network's is the device's.

The device is the emulated one, whose memory cannot be touched but through its operations
(gpu/emulated/); where payloads leave from and come to it
(transport.gpu_direct), that is the host's memory to the network. The kernels are the GPU's.

With STARLING_TEST_PLUGIN=cuda in the environment the algorithms run on the real one
(tools/gpu-check), and payloads go straight between GPUs' memory only where tcp takes it."""
import copy
import functools
import os
import re
import subprocess
import sys
import tempfile

from _each import CASES, HOST_ONLY, SIGN, TOP_TENTH, WITHOUT_MOMENTUM, links_for
from _here import Skipped, check, read_json, read_lines
from _listed import unnamed
from _simulate import QUICK, call, dpsgd, main, of, write, write_problem

ON_GPU = os.environ.get("STARLING_TEST_PLUGIN") == "cuda"
# a GPU's driver takes seconds to begin, and longer when many programs do
TIMEOUT_S = 30 if ON_GPU else 5
ROUNDS = 5
DATA = {"name": "digits", "train_samples": 300, "test_samples": 50, "batch": 8}
RING, DIRECTED = {"nodes": 3, "family": "ring"}, {"nodes": 4, "family": "one-peer-exponential"}


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
CASES["choco-sgd long messages"] = of("choco-sgd", compressor=of("float16"))
LEARNING = ["d-psgd combine-while-adapt", "choco-sgd per tensor", "all-reduce", *OTHERWISE]
DIMENSION, EQUATIONS = 1500, 2
# Nodes at their own times, of which some are slow for a while, on slow links.
APART = {
    "ad-psgd": of("ad-psgd"),
    "ad-psgd beside": of("ad-psgd", average="beside", local_steps=2),
    "d-psgd stale": of("d-psgd", staleness=2),
    "sgp overlapping": of("sgp", overlap_rounds=1),
    "ssp": of("ssp", staleness=1),
    "ssp sharded": of("ssp", server="sharded", local_steps=2),
    "ssp top-k": of("ssp", compressor=TOP_TENTH),
    "round-robin": of("round-robin", compressor=SIGN),
    "backup": of("parameter-server", backup=1),
}
SERVED = ("ssp", "round-robin", "parameter-server")
UNEVEN = {"gradient_ms": 2, "jitter": 0.9, "latency_ms": 0.4, "bandwidth_mbit": 20}
# Payloads between GPUs' memory: vectors as they are, and messages that are put together first.
DIRECT = [
    *("d-psgd adapt-then-combine", "d-psgd combine-while-adapt", "choco-sgd plain per tensor"),
    *("choco-sgd plain", "sgp", "gradient-tracking", "relaysum", "all-reduce", "easgd", "fedavg"),
    *("all-reduce doubling", "parameter-server sharded", "local-sgd double-tree", "noloco"),
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


def plugin(starling, name):
    build = os.path.dirname(os.path.dirname(starling))
    return os.path.join(build, "tests" if name == "other" else "gpu", f"libstarling-{name}.so")


def run(
    starling, command, settings, folder, device="cpu", env=None, model="softmax", otherwise=None
):
    topology = DIRECTED if settings["name"] == "sgp" else RING
    apart = settings in APART.values()
    steady = settings["name"] in (*WITHOUT_MOMENTUM, *(SERVED if apart else ()))
    experiment = {
        "rounds": ROUNDS,
        "model": model,
        "transport": {"chunk_bytes": 4096, "timeout_s": TIMEOUT_S},
        "record": {"every": 2, "parameters_at": [0, 2, ROUNDS]},
        "topology": topology,
        "device": device,
        "algorithm": settings,
        "optimizer": {"learning_rate": 0.05, "momentum": 0 if steady else 0.9},
        **({"network": UNEVEN} if apart else links_for(settings)),
        **(otherwise or {}),
    }
    if model == "quadratic":
        problem = dpsgd.problem(topology["nodes"], EQUATIONS, DIMENSION, True, seed=1)
        experiment["model"] = write_problem(folder, *problem)
    else:
        experiment["data"] = DATA
    write(folder, "experiment.json", experiment)
    path, out = (os.path.join(folder, name) for name in ("experiment.json", "out"))
    return call(starling, command, path, "--out", out, env=env)


def directly(name):
    """The changes of a case whose payloads go straight between GPUs' memory."""
    otherwise = OTHERWISE.get(name, {})
    transport = otherwise.get("transport", {"chunk_bytes": 4096, "timeout_s": TIMEOUT_S})
    return {**otherwise, "transport": {**transport, "gpu_direct": "on"}}


def settings_of(name):
    return CASES[name] if name in CASES else APART[name]


def outcome(starling, command, name, device, env, model, otherwise=None):
    """What a run leaves that does not depend on time: parameters, losses, distances, bytes."""
    with tempfile.TemporaryDirectory(prefix="starling-device-") as folder:
        more = otherwise or OTHERWISE.get(name)
        ended = run(starling, command, settings_of(name), folder, device, env, model, more)
        if ended.returncode == 2 and "offers no GPU memory" in ended.stderr:
            raise Skipped(ended.stderr.strip())
        why = f"starling {command} on {device} ended with {ended.returncode}: {ended.stderr}"
        check(ended.returncode == 0, why)
        out = os.path.join(folder, "out")
        metrics = [
            {key: value for key, value in row.items() if not key.endswith(("time", "seconds"))}
            for name in sorted(name for name in os.listdir(out) if name.startswith("metrics-"))
            for row in read_lines(out, name)
        ]
        check(metrics, "no metrics")
        parameters = ""
        if name not in OTHERWISE:
            with open(os.path.join(out, "parameters.jsonl")) as file:
                parameters = file.read()
        return metrics, parameters


def compare(found, expected):
    check(found[1] == expected[1], "the parameters differ")
    pairs = [pair for pair in zip(found[0], expected[0]) if pair[0] != pair[1]]
    check(found[0] == expected[0], f"the metrics differ: {pairs[:1]}")


def compare_direct(found, expected):
    """The same but for the bytes: a frame between GPUs is longer by as much before its payload,
    which also shows that it was one."""
    for key in ("bytes_sent", "bytes_received"):
        for row, through_host in zip(found[0], expected[0]):
            longer, bytes_through_host = row.pop(key) - through_host[key], through_host.pop(key)
            why = f"{key} is {longer} more than through the host's memory, {bytes_through_host}"
            check(longer % (DIRECT_HEADER - HEADER) == 0, why)
            check((longer > 0) == (bytes_through_host > 0), why)
    compare(found, expected)


def plugin_tested(starling):
    return {"STARLING_PLUGIN": plugin(starling, os.environ.get("STARLING_TEST_PLUGIN", "emulated"))}


def guarded(starling):
    return {**plugin_tested(starling), "STARLING_GUARD": "1"}


@functools.cache
def on_cpu(starling, name):
    return outcome(starling, "sim", name, "cpu", None, "quadratic")


def check_case(starling, name, command):
    found = outcome(starling, command, name, "cuda:0", guarded(starling), "quadratic")
    compare(found, on_cpu(starling, name))


def check_repeated(starling, name, model="quadratic"):
    """What agents with GPUs did has the same bits once more; on the CPU, too, where gradients are
    the host's."""
    env = guarded(starling)
    with tempfile.TemporaryDirectory(prefix="starling-device-") as folder:
        ended = run(starling, "run", APART[name], folder, "cuda:0", env, model)
        check(ended.returncode == 0, ended.stderr)
        out = os.path.join(folder, "out")
        for device in ("cuda:0", "cpu") if model == "quadratic" else ("cuda:0",):
            write(out, "config.json", {**read_json(out, "config.json"), "device": device})
            again = call(starling, "sim", out, "--replay", "--out", f"{folder}/{device}", env=env)
            check(again.returncode == 0, f"{device}: {again.stdout[-300:]} {again.stderr}")


def check_launched(path, name, command):
    """Each node has found losses there (gpu/launches.h): once, and as a graph was noted. Agents add
    what they read in their neighbours' memory in one launch, however many parts that has."""
    counts = {}
    if os.path.exists(path):
        with open(path) as file:
            for kernel, count in map(str.split, file):
                counts[kernel] = counts.get(kernel, 0) + int(count)
    expected = 2 * OTHERWISE.get(name, {}).get("topology", RING)["nodes"]
    for kernel in ("find_loss", "product"):
        count = counts.get(kernel, 0)
        check(count >= expected, f"{expected} gradients, but {kernel} was launched {count} times")
    sums, most = counts.get("combine_four", 0), ROUNDS * expected // 2
    if command == "run" and CASES[name]["name"] == "d-psgd":
        check(sums == most, f"{most} exchanges, but models were added {sums} times")


def check_learning(starling, name):
    """Agents and the simulator, both with a network on the device."""
    found = []
    with tempfile.TemporaryDirectory(prefix="starling-device-") as folder:
        for command in ("run", "sim"):
            path = os.path.join(folder, command)
            env = {**guarded(starling), "STARLING_LAUNCHES": path}
            found.append(outcome(starling, command, name, "cuda:0", env, "softmax"))
            check_launched(path, name, command)
    compare(*found)


def check_direct(starling, name):
    env = plugin_tested(starling)
    found = outcome(starling, "run", name, "cuda:0", env, "quadratic", directly(name))
    compare_direct(found, copy.deepcopy(on_cpu(starling, name)))


def check_learning_direct(starling, name):
    env = plugin_tested(starling)
    compare_direct(
        outcome(starling, "run", name, "cuda:0", env, "softmax", directly(name)),
        outcome(starling, "sim", name, "cuda:0", env, "softmax"),
    )


# Runs a command in a network of its own, and leaves what the network has counted in a file.
ALONE = """#!/bin/sh
exec unshare --net sh -c 'ip link set lo up && "$@"; code=$?
cat /proc/net/netstat >"$0"; exit $code' "{0}.counts" "{1}" "$@"
"""


def octets(starling, name, env, memory):
    """What a run leaves, and the bytes that it has sent by sockets."""
    with tempfile.TemporaryDirectory(prefix="starling-device-") as folder:
        alone = os.path.join(folder, "alone")
        with open(alone, "w") as file:
            file.write(ALONE.format(alone, starling))
        os.chmod(alone, 0o755)
        if subprocess.run([alone, "--version"], capture_output=True).returncode != 0:
            raise Skipped("no network of its own can be had here")
        transport = {"chunk_bytes": 4096, "timeout_s": TIMEOUT_S, "memory": memory}
        more = {"transport": transport, "record": {"every": 2, "parameters_at": [0, 2, ROUNDS]}}
        found = outcome(alone, "run", name, "cuda:0", env, "quadratic", more)
        with open(alone + ".counts") as file:
            names, counts = [line.split() for line in file if line.startswith("IpExt:")]
    return found, int(counts[names.index("OutOctets")])


def check_shared(starling, name, variable):
    """Where neighbours on GPUs of one host read each other's memory, or the host's if they cannot,
    no payload goes by sockets, and bits are the same."""
    env = {**guarded(starling), **({variable: "1"} if variable else {})}
    found, sent = octets(starling, name, env, "auto")
    compare(found, on_cpu(starling, name))
    by_sockets, all_sent = octets(starling, name, env, "off")
    compare(by_sockets, on_cpu(starling, name))
    data = sum({row["node"]: row["bytes_sent"] for row in found[0]}.values())
    check(all_sent - sent > 0.75 * data > 0, f"{data} bytes of {all_sent}, or {sent}, by sockets")


def check_refused(
    starling, device, env, code, *texts, command="sim", case="all-reduce", lines=1, otherwise=None
):
    with tempfile.TemporaryDirectory(prefix="starling-device-") as folder:
        ended = run(starling, command, settings_of(case), folder, device, env, otherwise=otherwise)
    said = [line for line in ended.stderr.splitlines() if line]
    good = len(said) == lines and all(text in "\n".join(said) for text in texts)
    why = f"ended with {ended.returncode}, not {code}, and said {said}, not {texts}"
    check(ended.returncode == code and good, why)


def check_failing(starling, after, otherwise=None, name="d-psgd combine-while-adapt"):
    """A device that fails in the middle of a run: all agents end, and say what and where."""
    env = {"STARLING_PLUGIN": plugin(starling, "emulated"), "STARLING_FAILS_AFTER": str(after)}
    with tempfile.TemporaryDirectory(prefix="starling-device-") as folder:
        ended = run(starling, "run", settings_of(name), folder, "cuda:0", env, otherwise=otherwise)
    text = r"node \d, round [1-5]: cuda:0: [a-z_ ]+ failed: it was asked to"
    good = ended.returncode == 1 and re.search(text, ended.stderr)
    check(good, f"ended with {ended.returncode} and said {ended.stderr}")


def refusals(starling):
    """name, environment, device, exit code, what is said; more arguments of check_refused()"""
    emulated = {"STARLING_PLUGIN": plugin(starling, "emulated")}
    other = {"STARLING_PLUGIN": plugin(starling, "other")}
    absent = {"STARLING_PLUGIN": "/nowhere/libstarling-cuda.so"}
    # libfabric 1.17's tcp offers no FI_HMEM, a later one may.
    as_gpu = {**emulated, "STARLING_AS_GPU": "1"}
    on, auto = (
        {"command": "run", "otherwise": {"transport": {"gpu_direct": value, "chunk_bytes": 4096}}}
        for value in ("on", "auto")
    )
    bound, packed = {"otherwise": {"device_memory_gb": 0.00006}}, {"case": "deep-squeeze float16"}
    demanded, direct, gpu = "cannot be loaded", "GPU-direct", "cuda:0"
    yield "no plug-in, demanded", absent, gpu, 2, ["device: cuda:0", demanded], {}
    yield "no plug-in, auto", absent, "auto", 0, ["device auto is cpu", demanded], {}
    version = ["built for another Starling", "interface"]
    yield "plug-in of another version", other, gpu, 2, version, {}
    only = ["device: cuda:3", "the only GPU here is cuda:0"]
    yield "a GPU that is not there", emulated, "cuda:3", 2, only, {}
    small = "model: working memory for 256 samples at a time: cuda:0: "
    allowed = "of the 0.1 MB that device_memory_gb allows"
    yield "a bound that the model does not fit", emulated, gpu, 1, [small, allowed], bound
    yield "auto takes the GPU", emulated, "auto", 0, ["device auto is cuda:0"], {}
    yield "agents take GPUs in turn", emulated, "cuda", 0, ["device cuda is cuda:0"], {}
    none = ["device: cuda cannot be used", demanded]
    yield "no GPU to take in turn", absent, "cuda", 2, none, {}
    off, through = "gpu_direct auto is off", "through host memory"
    tcp = "gpu_direct: \"on\" is refused: provider 'tcp' offers"
    yield f"{direct} demanded", as_gpu, gpu, 2, [tcp, through], on
    yield f"{direct} auto", as_gpu, gpu, 0, [off, f"{through}: provider 'tcp' offers"], auto
    yield f"{direct} auto, offered", emulated, gpu, 0, ["gpu_direct auto is on"], auto
    needs = ['gpu_direct: "on" needs vectors on a GPU']
    yield f"{direct} without a GPU", {}, "cpu", 2, needs, on
    none = ["device auto is cpu", 'on" is refused: device auto is no GPU here']
    yield f"{direct}, and auto is the CPU", absent, "auto", 2, none, {**on, "lines": 2}
    dense = ['gpu_direct: "on" is for compressor identity only', '"float16"']
    yield f"{direct} of a compressor", emulated, gpu, 2, dense, {**on, **packed}
    packed_off = [off, 'compressor "float16"']
    apart = {"case": "ad-psgd"}
    own = ['gpu_direct: "on", but algorithm \'ad-psgd\'', "payloads go through the host"]
    yield f"{direct} at own times", emulated, gpu, 2, own, {**on, **apart}
    own_off = [off, "those of algorithm ad-psgd, at nodes' own times"]
    yield f"{direct} at own times, auto", emulated, gpu, 0, own_off, {**auto, **apart}
    yield f"{direct} of a compressor, auto", emulated, gpu, 0, packed_off, {**auto, **packed}
    yield "no device's name", emulated, "gpu", 2, ['"gpu" is not allowed', '"cuda:0"'], {}


def all_tests(starling):
    CASES.update({name: {"name": name} for name in unnamed(starling, list(CASES.values()))})
    stride = 3 if QUICK else 1
    for name in list(CASES)[::stride]:
        if name in OTHERWISE or name in HOST_ONLY:
            continue
        yield f"sim {name}", functools.partial(check_case, starling, name, "sim")
    for name in list(APART)[::stride]:
        yield f"sim {name}, apart", functools.partial(check_case, starling, name, "sim")
        yield f"run {name}, apart", functools.partial(check_repeated, starling, name)
    for name in "ad-psgd", "ssp top-k":
        learn = functools.partial(check_repeated, starling, name, "softmax")
        yield f"learning {name}, apart", learn
        stop = {"membership": {"on_loss": "stop"}}
        fail = functools.partial(check_failing, starling, 80, stop, name)
        yield f"{name} on a device that fails", fail
    for name in BETWEEN_AGENTS[::stride]:
        yield f"run {name}", functools.partial(check_case, starling, name, "run")
    for name in LEARNING[::stride]:
        yield f"learning {name}", functools.partial(check_learning, starling, name)
    for name in BETWEEN_AGENTS[:2] if QUICK else DIRECT:
        if name not in OTHERWISE:
            yield f"direct {name}", functools.partial(check_direct, starling, name)
    for name in LEARNING_DIRECT[::stride]:
        yield f"learning direct {name}", functools.partial(check_learning_direct, starling, name)
    for variable in ("", "STARLING_NO_PEERS", "STARLING_OLD_DRIVER")[::stride]:
        for name in BETWEEN_AGENTS[:5:stride]:
            shared = functools.partial(check_shared, starling, name, variable)
            yield f"shared {name} {variable}".strip(), shared
    for after in (50, 65, 80)[::stride]:
        name = f"a device that fails after {after} operations"
        yield name, lambda after=after: check_failing(starling, after)
        direct = directly("d-psgd combine-while-adapt")
        yield f"{name}, direct", lambda after=after: check_failing(starling, after, direct)
    for name, env, device, code, texts, more in refusals(starling):
        yield name, functools.partial(check_refused, starling, device, env, code, *texts, **more)


if __name__ == "__main__":
    sys.exit(main(__doc__, all_tests, 2 if QUICK else 4 if ON_GPU else os.cpu_count()))
