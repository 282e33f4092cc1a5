#!/usr/bin/env python3
"""Real agents over libfabric end with the simulator's bits: parameters, models and every number
that is not a time.

Each experiment runs once in the simulator and once with agents. An agent takes a tenth of a second
to begin, whatever it trains: so most algorithms have five of them. test_overlap.py has each
form of all-reduce; fault_world holds agents against the simulator's bits, too."""
import functools
import glob
import os
import sys
import tempfile

from _each import CASES, TOP_TENTH, WITHOUT_MOMENTUM, links_for
from _here import check, read_json, read_lines
from _listed import unnamed
from _scene import read_bytes
from _simulate import QUICK, call, dpsgd, main, of, write, write_problem

TIMES = {"seconds", "time"}  # what two runs of the same experiment may differ in

DIGITS = {"name": "digits", "train_samples": 240, "test_samples": 20, "batch": 8}
SOFTMAX, MLP = {"name": "softmax"}, {"name": "mlp", "hidden": [32, 16]}
WHILE_ADAPTING = of("d-psgd", variant="combine-while-adapt")
PLAIN = {"learning_rate": 0.1}
MOMENTUM = {
    "learning_rate": 0.05,
    "momentum": 0.9,
    "nesterov": True,
    "weight_decay": 0.001,
    "schedule": {"name": "cosine", "warmup_rounds": 5},
}
RING = {"nodes": 8, "family": "ring"}
RECORD = {"every": 5, "parameters_at": [0, 1, 2, 12]}
TORUS = {"nodes": 9, "family": "torus", "sides": [3, 3]}
EXPONENTIAL = {"nodes": 8, "family": "one-peer-exponential"}


def network(model, topology, algorithm, optimizer, **data):
    rounds = 12 if QUICK else 40
    return {
        "name": "parity",
        "seed": 11,
        "rounds": rounds,
        "topology": topology,
        "algorithm": algorithm,
        "optimizer": optimizer,
        "model": model,
        "data": {**DIGITS, **data},
        "record": {"every": 5, "parameters_at": [0, 1, 2, rounds]},
        "transport": {"chunk_bytes": 4096},
    }


DIRICHLET = {"partition": {"name": "dirichlet", "alpha": 0.5}}
NETWORKS = {
    "softmax ring": network(SOFTMAX, RING, WHILE_ADAPTING, MOMENTUM, partition={"name": "shards"}),
    "mlp torus": network(MLP, TORUS, of("d-psgd"), PLAIN, **DIRICHLET),
    "mlp exponential": network(MLP, EXPONENTIAL, WHILE_ADAPTING, PLAIN),
}
NETWORKS["mlp exponential"]["record"]["evaluate"] = 3  # of eight models
TOP, EACH = {"compressor": TOP_TENTH}, {"replicas": "per-neighbour"}
GOSSIP = {"nodes": 5, "family": "ring"}  # sums over five fold one of them
SIX = {"nodes": 6, "family": "random-regular", "degree": 3, "seed": 5}
PAIRS = {"nodes": 8, "family": "hyper-cuboid", "sides": [2, 2, 2]}
EPIDEMIC = {"nodes": 7, "family": "epidemic", "degree": 3}  # one rests, and it never repeats
TREE = {"nodes": 7, "family": "k-ary-tree", "arity": 2}
EDGES = [[i, (i + 1) % 8] for i in range(8)] + [[0, 4], [3, 1], [6, 2]]
PUSH = {"nodes": 8, "directed": True, "edges": EDGES, "weights": "push-sum"}


def algorithm(settings, topology=GOSSIP, **more):
    """A softmax regression, its 7,850 parameters in frames of 4 KiB, by one algorithm."""
    heavy = {**MOMENTUM, "nesterov": settings["name"] != "gmc"}
    optimizer = PLAIN if settings["name"] in WITHOUT_MOMENTUM else heavy
    e = network(SOFTMAX, topology, settings, optimizer)
    return {**e, "rounds": 12, "record": RECORD, **links_for(settings), **more}


# Each algorithm and form of _each.py, and what other topologies, forms and data make of some.
ALGORITHMS = {
    name: algorithm(settings, EXPONENTIAL if settings["name"] == "sgp" else GOSSIP)
    for name, settings in CASES.items()
}
MASK = of("shared-mask", fraction=0.1, order="cyclic", per="tensor")
MIX_FIRST = of("choco-sgd", variant="mix-then-compress", trigger=100, **EACH, **TOP)
HALVING = of("local-sgd", period=8, period_schedule="adaptive-halving", server=1)
UNEVEN = of("fedavg", local_steps=[3, 1, 2, 3, 1, 4], clients=0.6, server=2)
LISTED = of("fedavg", clients=[[0, 2], [3, 1, 5]], client_weights=[1, 2, 0, 0.5, 1, 3])
SPARSE = of("all-reduce", all_reduce="halving-doubling", **TOP)
ALGORITHMS |= {
    "all-reduce two-rings": algorithm(of("all-reduce", all_reduce="two-rings", group=2), SIX),
    "sparse sums, folded": algorithm(SPARSE, SIX),
    "adacomp per tensor": algorithm(of("all-reduce", compressor=of("adacomp", per="tensor"))),
    "choco-sgd sbc elias per tensor": algorithm(
        of("choco-sgd", compressor=of("sbc", fraction=0.05, coding="elias", per="tensor"))
    ),
    "dcd-psgd eden": algorithm(of("dcd-psgd", compressor=of("eden", bits=3))),
    "choco-sgd replicas silent overlapped": algorithm(MIX_FIRST, PAIRS),
    "choco-sgd epidemic replicas": algorithm(of("choco-sgd", **EACH, **TOP), EPIDEMIC),
    "gradient-tracking epidemic": algorithm(of("gradient-tracking"), EPIDEMIC),
    "sgp digraph": algorithm(of("sgp", local_steps=2), PUSH),
    "slowmo sgp": algorithm(of("slowmo", period=4, base="sgp", buffers="reset"), PUSH),
    "moniqua 24 bits schedule": algorithm(of("moniqua", bits=24, theta=1, local_steps=2), PAIRS),
    "relaysum on a tree": algorithm(of("relaysum", tree="topology"), TREE),
    "power-gossip schedule": algorithm(of("power-gossip", rank=1, local_steps=2), PAIRS),
    "noloco schedule": algorithm(of("noloco", period=4), PAIRS),
    "d-psgd masked schedule": algorithm(of("d-psgd", compressor=MASK), EXPONENTIAL),
    "local-sgd adaptive halving": algorithm(HALVING),
    "fedavg of uneven steps": algorithm(UNEVEN, SIX),
    "fedavg of listed clients": algorithm(LISTED, SIX),
    "fedavg of epochs": algorithm(
        of("fedavg", local_epochs=1, **TOP), data={**DIGITS, **DIRICHLET}
    ),
    "laq of a server": algorithm(of("laq", server=1, bits=7, clock=2)),
    "double-squeeze both": algorithm(of("double-squeeze", server=2, **TOP)),
}
# After the last round all take the exact average.
for name, e in {
    "d-psgd": algorithm(of("d-psgd", local_steps=3)),
    "sgp digraph": algorithm(of("sgp"), PUSH),
    "local-sgd tree": algorithm(of("local-sgd", period=7, all_reduce="tree")),
    "easgd": algorithm(of("easgd", period=4)),
}.items():
    ALGORITHMS["final average " + name] = {**e, "final_average": True}


def train(starling, command, experiment, out, *overrides):
    sets = [argument for override in overrides for argument in ("--set", override)]
    ended = call(starling, command, experiment, "--out", out, *sets)
    why = f"starling {command} ended with {ended.returncode}: {ended.stderr.strip()[-2000:]}"
    assert ended.returncode == 0, why
    return out


def without_times(value, drop):
    if isinstance(value, dict):
        return {key: without_times(inner, drop) for key, inner in value.items() if key not in drop}
    return value


def metrics(folder, name, drop):
    return [without_times(line, drop) for line in read_lines(folder, name)]


def names(folder, pattern):
    return sorted(os.path.basename(path) for path in glob.glob(os.path.join(folder, pattern)))


def compare(simulated, trained, drop=TIMES):
    """The two run folders hold the same bits."""
    models, measured = names(simulated, "model*.npy"), names(simulated, "metrics-*.jsonl")
    whole = len(measured) > 1 and len(models) == len(measured) + 2
    check(whole, f"the simulator wrote only {models + measured}")
    others = names(trained, "model*.npy") + names(trained, "metrics-*.jsonl")
    check(models + measured == others, "different files")
    for name in ("parameters.jsonl", *models):
        found, expected = (read_bytes(os.path.join(out, name)) for out in (trained, simulated))
        check(found == expected, f"{name} differs")
    said = [read_json(out, "summary.json").get("final_average") for out in (simulated, trained)]
    check(said[0] == said[1], f"the average at the end: {said}")
    for name in measured:
        for a, b in zip(metrics(simulated, name, drop), metrics(trained, name, drop), strict=True):
            # As texts: NaN equals NaN.
            differing = [k for k in a.keys() | b.keys() if repr(a.get(k)) != repr(b.get(k))]
            pairs = ", ".join(f"{k} {a.get(k)} and {b.get(k)}" for k in differing)
            check(not differing, f"{name}, round {a.get('round')}: {pairs}")


def agents_repeat(starling, folder, experiment):
    path = written(folder, experiment)
    simulated = train(starling, "sim", path, os.path.join(folder, "sim"))
    compare(simulated, train(starling, "run", path, os.path.join(folder, "run")))


def written(folder, experiment):
    write(folder, "experiment.json", experiment)
    return os.path.join(folder, "experiment.json")


def quadratic(starling, folder):
    """A model that a file says, on a schedule that is listed."""
    model = write_problem(folder, *dpsgd.problem(6, 12, 10, False, seed=1000))
    matchings = [{"edges": edges} for edges in dpsgd.MATCHINGS]
    experiment = {
        "rounds": 50,
        "topology": {"nodes": 6, "schedule": matchings, "weights": "metropolis"},
        "algorithm": of("d-psgd", variant="adapt-then-combine"),
        "optimizer": {"learning_rate": 0.2, "momentum": 0.7, "weight_decay": 0.001},
        "model": model,
        "record": {"parameters_at": [1, 2, 5, 10, 50]},
    }
    agents_repeat(starling, folder, experiment)


def chunk_size_changes_no_bit(starling, folder):
    """Frames are cut differently, and have no checksums: only bytes sent and the grouping of
    distance sums may change."""
    path = written(folder, NETWORKS["mlp torus"])
    one = train(starling, "run", path, os.path.join(folder, "small"))
    sets = ["transport.chunk_bytes=1048576", "transport.window_chunks=2"]
    sets += ["transport.checksums=false"]
    other = train(starling, "run", path, os.path.join(folder, "large"), *sets)
    counts = {"bytes_sent", "bytes_received", "frames_sent", "frames_received"}
    compare(one, other, TIMES | counts | {"neighbour_distance"})


def first_of_each_algorithm():
    by_name = {}
    for name, experiment in ALGORITHMS.items():
        by_name.setdefault(experiment["algorithm"]["name"], name)
    return {name: ALGORITHMS[name] for name in by_name.values()}


def in_folder(test, starling, *arguments):
    with tempfile.TemporaryDirectory(prefix="starling-parity-") as folder:
        test(starling, folder, *arguments)


def all_checks(starling):
    for name in unnamed(starling, [e["algorithm"] for e in ALGORITHMS.values()]):
        ALGORITHMS[name] = algorithm(of(name))
    experiments = {name: NETWORKS[name] for name in list(NETWORKS)[:: 3 if QUICK else 1]}
    for name, experiment in (first_of_each_algorithm() if QUICK else ALGORITHMS).items():
        experiments["algorithm " + name] = experiment
    for name, experiment in experiments.items():
        yield f"parity {name}", functools.partial(in_folder, agents_repeat, starling, experiment)
    for test in (quadratic, chunk_size_changes_no_bit):
        name = test.__name__.replace("_", " ")
        yield f"parity {name}", functools.partial(in_folder, test, starling)


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks, 1))
