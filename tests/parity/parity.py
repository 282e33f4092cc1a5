#!/usr/bin/env python3
"""Real agents over libfabric end with the simulator's bits: parameters, models and every number
that is not a time.

Each experiment runs once in the simulator and once with agents, some of them twice. An agent takes
a tenth of a second to begin, whatever it trains: so algorithms have six of them, and four under
sanitizers, where each algorithm runs once.

usage: parity.py STARLING [TEST ...]
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

from _listed import unnamed
from _simulate import call, dpsgd, of, write

QUICK = "STARLING_QUICK" in os.environ  # under sanitizers
TIMES = {"seconds", "time"}  # what two runs of the same experiment may differ in

DIGITS = {"name": "digits", "train_samples": 640, "test_samples": 100, "batch": 8}
SOFTMAX, MLP = {"name": "softmax"}, {"name": "mlp", "hidden": [32, 16]}
ADAPT_FIRST, WHILE_ADAPTING = "adapt-then-combine", "combine-while-adapt"
PLAIN = {"learning_rate": 0.1}
MOMENTUM = {
    "learning_rate": 0.05,
    "momentum": 0.9,
    "nesterov": True,
    "weight_decay": 0.001,
    "schedule": {"name": "cosine", "warmup_rounds": 5},
}
RING = {"nodes": 8, "family": "ring"}
SHARED = {"name": "terngrad", "bucket": 0, "share_scale": True}
TORUS = {"nodes": 9, "family": "torus", "sides": [3, 3]}
EXPONENTIAL = {"nodes": 8, "family": "one-peer-exponential"}


def network(model, topology, variant, optimizer, **data):
    rounds = 12 if QUICK else 40
    return {
        "name": "parity",
        "seed": 11,
        "rounds": rounds,
        "topology": topology,
        "algorithm": {"name": "d-psgd", "variant": variant},
        "optimizer": optimizer,
        "model": model,
        "data": {**DIGITS, **data},
        "record": {"every": 5, "parameters_at": [0, 1, 2, rounds]},
        "transport": {"chunk_bytes": 4096},
    }


NETWORKS = {
    "softmax ring": network(SOFTMAX, RING, ADAPT_FIRST, PLAIN),
    "softmax ring overlapped": network(
        SOFTMAX, RING, WHILE_ADAPTING, MOMENTUM, partition={"name": "shards"}
    ),
    "softmax exponential": network(SOFTMAX, EXPONENTIAL, ADAPT_FIRST, MOMENTUM),
    "mlp ring": network(MLP, RING, ADAPT_FIRST, MOMENTUM),
    "mlp torus": network(
        MLP, TORUS, ADAPT_FIRST, PLAIN, partition={"name": "dirichlet", "alpha": 0.5}
    ),
    "mlp torus overlapped": network(MLP, TORUS, WHILE_ADAPTING, MOMENTUM),
    "mlp exponential overlapped": network(MLP, EXPONENTIAL, WHILE_ADAPTING, PLAIN),
}
TOP_K, QSGD = {"name": "top-k", "fraction": 0.05}, {"name": "qsgd", "levels": 7, "bucket": 256}
GOSSIP = {"nodes": 4 if QUICK else 6, "family": "random-regular", "degree": 3, "seed": 5}
PAIRS = {"nodes": 8, "family": "hyper-cuboid", "sides": [2, 2, 2]}
EPIDEMIC = {"nodes": 7, "family": "epidemic", "degree": 3}  # one rests, and it never repeats
PUSH = {
    "nodes": 8,
    "directed": True,
    "edges": [[i, (i + 1) % 8] for i in range(8)] + [[0, 4], [3, 1], [6, 2]],
    "weights": "push-sum",
}


def algorithm(name, topology=GOSSIP, optimizer=MOMENTUM, **parameters):
    """A softmax regression, its 7,850 parameters in frames of 4 KiB, by one algorithm."""
    e = network(SOFTMAX, topology, "default", optimizer)
    e["algorithm"] = {"name": name, **parameters}
    return e


TOP, QUANTIZED = {"compressor": TOP_K}, {"compressor": QSGD}
EACH, SHARDED = {"replicas": "per-neighbour"}, {"server": "sharded"}
MIX_FIRST, ADAPTIVE = {"variant": "mix-then-compress"}, {"period_schedule": "adaptive"}
SLOW = {"optimizer": PLAIN}
ALGORITHMS = {
    "dcd-psgd qsgd": algorithm("dcd-psgd", **QUANTIZED),
    "dcd-psgd top-k": algorithm("dcd-psgd", **TOP),
    "ecd-psgd qsgd": algorithm("ecd-psgd", **QUANTIZED),
    "choco-sgd top-k": algorithm("choco-sgd", **TOP),
    "choco-sgd qsgd": algorithm("choco-sgd", **QUANTIZED),
    "choco-sgd top-k overlapped": algorithm("choco-sgd", **MIX_FIRST, **TOP),
    "choco-sgd random-k local steps": algorithm(
        "choco-sgd", local_steps=3, compressor=of("random-k", fraction=0.1)
    ),
    "choco-sgd top-k per tensor": algorithm("choco-sgd", compressor={**TOP_K, "per": "tensor"}),
    "choco-sgd top-k replicas": algorithm("choco-sgd", PAIRS, **EACH, **TOP),
    "choco-sgd top-k replicas overlapped": algorithm(
        "choco-sgd", PAIRS, **MIX_FIRST, **EACH, **TOP
    ),
    "dcd-psgd qsgd replicas": algorithm("dcd-psgd", PAIRS, **EACH, **QUANTIZED),
    "deep-squeeze top-k": algorithm("deep-squeeze", **TOP),
    "deep-squeeze scaled-sign": algorithm("deep-squeeze", compressor="scaled-sign"),
    "choco-sgd stc": algorithm("choco-sgd", compressor=of("stc", fraction=0.05)),
    "deep-squeeze sbc": algorithm("deep-squeeze", compressor=of("sbc", fraction=0.05)),
    "double-squeeze pos-neg": algorithm(
        "double-squeeze", **SLOW, compressor=of("pos-neg", fraction=0.05)
    ),
    "naive-compression strom": algorithm(
        "naive-compression", compressor=of("strom", threshold=0.01)
    ),
    "choco-sgd top-k golomb": algorithm("choco-sgd", compressor={**TOP_K, "coding": "golomb"}),
    "dcd-psgd qsgd huffman": algorithm("dcd-psgd", compressor={**QSGD, "coding": "huffman"}),
    "deep-squeeze terngrad elias per tensor": algorithm(
        "deep-squeeze", compressor=of("terngrad", coding="elias", per="tensor")
    ),
    "choco-sgd sbc elias per tensor": algorithm(
        "choco-sgd", compressor=of("sbc", fraction=0.05, coding="elias", per="tensor")
    ),
    "naive-compression strom golomb": algorithm(
        "naive-compression", compressor=of("strom", threshold=0.01, coding="golomb")
    ),
    "deep-squeeze 3lc": algorithm("deep-squeeze", compressor=of("3lc", multiplier=1.2)),
    "dcd-psgd magnitude-dropping": algorithm(
        "dcd-psgd", compressor=of("magnitude-dropping", fraction=0.5)
    ),
    "choco-sgd drive": algorithm("choco-sgd", compressor="drive"),
    "dcd-psgd rotated-qsgd": algorithm("dcd-psgd", compressor={**QSGD, "name": "rotated-qsgd"}),
    "dcd-psgd eden": algorithm("dcd-psgd", compressor=of("eden", bits=3)),
    "sgp digraph": algorithm("sgp", PUSH),
    "sgp exponential local steps": algorithm("sgp", EXPONENTIAL, local_steps=2),
    "gradient-tracking": algorithm("gradient-tracking", **SLOW),
    "gradient-tracking while adapting": algorithm(
        "gradient-tracking", variant="combine-while-adapt", **SLOW
    ),
    "d-psgd epidemic": algorithm("d-psgd", EPIDEMIC),
    "gradient-tracking epidemic": algorithm("gradient-tracking", EPIDEMIC, **SLOW),
    "choco-sgd epidemic replicas": algorithm("choco-sgd", EPIDEMIC, **EACH, **TOP),
    "exact-diffusion": algorithm("exact-diffusion", **SLOW),
    "qgm": algorithm("qgm", **SLOW),
    "gossip-pga": algorithm("gossip-pga", average_period=3),
    "gossip-pga tree local steps": algorithm(
        "gossip-pga", EXPONENTIAL, average_period=4, all_reduce="tree", local_steps=2
    ),
    "decentlam": algorithm("decentlam", **SLOW),
    "clipped-gossip": algorithm("clipped-gossip"),
    "clipped-gossip median": algorithm("clipped-gossip", variant="median"),
    "beer": algorithm("beer", **SLOW, **TOP),
    "lead": algorithm("lead", **SLOW, **QUANTIZED),
    "moniqua": algorithm("moniqua", theta=0.5),
    "moniqua 24 bits schedule local steps": algorithm(
        "moniqua", PAIRS, bits=24, theta=1, local_steps=2
    ),
    "relaysum": algorithm("relaysum"),
    "relaysum on a tree": algorithm(
        "relaysum", {"nodes": 7, "family": "k-ary-tree", "arity": 2}, tree="topology"
    ),
    "all-reduce": algorithm("all-reduce"),
    **{
        f"all-reduce {form}": algorithm("all-reduce", all_reduce=form)
        for form in ("tree", "recursive-doubling", "halving-doubling", "hierarchical", "torus-2d")
    },
    "all-reduce two-rings": algorithm("all-reduce", all_reduce="two-rings", group=2),
    "all-reduce star": algorithm("all-reduce", all_reduce="star"),
    "local-sgd double-tree": algorithm("local-sgd", period=4, all_reduce="double-tree"),
    "parameter-server": algorithm("parameter-server", server=3),
    "parameter-server sharded": algorithm("parameter-server", **SHARDED),
    "parameter-server top-k both ways": algorithm(
        "parameter-server", server=2, directions="both", **TOP
    ),
    "parameter-server sharded qsgd": algorithm("parameter-server", **SHARDED, **QUANTIZED),
    "all-reduce top-k by sparse sums": algorithm(
        "all-reduce", all_reduce="halving-doubling", **TOP
    ),
    "dgc by sparse sums": algorithm("dgc", all_reduce="recursive-doubling", **TOP),
    "all-reduce adacomp per tensor": algorithm(
        "all-reduce", compressor=of("adacomp", bin=50, per="tensor")
    ),
    "parameter-server sharded adacomp": algorithm(
        "parameter-server", **SHARDED, compressor="adacomp"
    ),
    "all-reduce top-k": algorithm("all-reduce", **TOP),
    "all-reduce delayed": algorithm("all-reduce", delay=2),
    "local-sgd scaled-sign": algorithm("local-sgd", period=3, compressor="scaled-sign"),
    "sign-vote": algorithm("sign-vote", **SLOW, beta=0.9, **SHARDED),
    "ef21": algorithm("ef21", **SHARDED, **TOP),
    "lag-3pc": algorithm("lag-3pc", server=2),
    "clag": algorithm("clag", **SHARDED, trigger=2, **TOP),
    "lag-wk": algorithm("lag-wk", **SHARDED, depth=4),
    "laq": algorithm("laq", **SHARDED, depth=4),
    "laq server": algorithm("laq", server=1, bits=7, clock=2),
    "choco-sgd silent": algorithm("choco-sgd", trigger=30, trigger_growth=0.5, **TOP),
    "choco-sgd silent overlapped": algorithm(
        "choco-sgd", PAIRS, **MIX_FIRST, replicas="per-neighbour", trigger=100, **TOP
    ),
    "diana": algorithm("diana", **SLOW, beta=0.5, **QUANTIZED),
    "gmc": algorithm("gmc", optimizer={**PLAIN, "momentum": 0.9}, **TOP),
    "dgc": algorithm("dgc", clip=1, warmup_k=[7850, 2000, 500], **TOP),
    "dgc epochs": algorithm("dgc", warmup=[0.25, 0.1], **TOP),
    "gtop-k": algorithm("gtop-k", **TOP),
    "powersgd": algorithm("powersgd", rank=2),
    "power-gossip": algorithm("power-gossip", rank=2),
    "power-gossip schedule": algorithm("power-gossip", PAIRS, rank=1, local_steps=2),
    "powersgd tree": algorithm("powersgd", rank=3, all_reduce="tree"),
    "fetch-sgd": algorithm("fetch-sgd", **SLOW, sketch={"rows": 3}),
    "fetch-sgd torus": algorithm(
        "fetch-sgd", **SLOW, sketch={"rows": 6, "columns": 400, "k": 500}, all_reduce="torus-2d"
    ),
    "parameter-server shared scale": algorithm(
        "parameter-server", **SHARDED, compressor={**SHARED, "clip_sigma": 2.5}
    ),
    "all-reduce shared scale": algorithm("all-reduce", compressor={**SHARED, "per": "tensor"}),
    "ecq-sgd": algorithm("ecq-sgd", **SLOW, **QUANTIZED),
    "double-squeeze top-k": algorithm("double-squeeze", **SLOW, server=2, **TOP),
    "double-squeeze sharded qsgd": algorithm("double-squeeze", **SLOW, **SHARDED, **QUANTIZED),
    "local-sgd": algorithm("local-sgd", period=4),
    "slowmo": algorithm("slowmo", period=4),
    "slowmo d-psgd": algorithm("slowmo", period=4, base="d-psgd", buffers="average"),
    "slowmo sgp": algorithm("slowmo", PUSH, period=4, base="sgp", buffers="reset"),
    "d-psgd masked": algorithm("d-psgd", EXPONENTIAL, compressor=of("shared-mask", fraction=0.1)),
    "d-psgd masked in order": algorithm(
        "d-psgd",
        EXPONENTIAL,
        compressor=of("shared-mask", fraction=0.1, order="cyclic", per="tensor"),
    ),
    "post-local": algorithm("local-sgd", period=4, switch_round=10),
    "local-sgd growing": algorithm("local-sgd", period=6, period_schedule="growing"),
    "local-sgd adaptive": algorithm("local-sgd", period=6, **ADAPTIVE, server=2),
    "local-sgd adaptive sharded": algorithm(
        "local-sgd", period=5, **ADAPTIVE, **SHARDED, buffers="average"
    ),
    "local-sgd adaptive halving": algorithm(
        "local-sgd", period=8, period_schedule="adaptive-halving", server=1
    ),
    "local-sgd adaptive rate": algorithm("local-sgd", period=7, period_schedule="adaptive-rate"),
    "local-sgd averaged buffers": algorithm("local-sgd", period=3, buffers="average"),
    "diloco": algorithm("diloco", period=4),
    "noloco": algorithm("noloco", PAIRS, period=4),
    "fedavg": algorithm("fedavg", local_steps=3, clients=0.5, server=2),
    "fedavg sharded": algorithm(
        "fedavg", local_steps=2, **SHARDED, client_weights="uniform", clients=0.3
    ),
    "fedavg top-k": algorithm("fedavg", local_steps=3, clients=0.5, **TOP),
    "fedavg stc both ways": algorithm(
        "fedavg",
        local_steps=2,
        clients=0.6,
        **SHARDED,
        directions="both",
        compressor=of("stc", fraction=0.05),
    ),
    "fedavg of uneven steps": algorithm(
        "fedavg", local_steps=[3, 1, 2, 3, 1, 4], clients=0.6, server=2
    ),
    "fedavg of listed clients": algorithm(
        "fedavg", clients=[[0, 2], [3, 1, 5]], client_weights=[1, 2, 0, 0.5, 1, 3]
    ),
    "fedavg of epochs": {
        **algorithm("fedavg", local_epochs=1, **TOP),
        "data": {**DIGITS, "batch": 40, "partition": {"name": "dirichlet", "alpha": 0.5}},
    },
    "fedavg of uneven shares": {
        **algorithm("fedavg", local_steps=2, clients=0.6),
        "data": {**DIGITS, "partition": {"name": "dirichlet", "alpha": 0.5}},
    },
    "easgd": algorithm("easgd", period=4, server=2),
    "d-adam": algorithm("d-adam", **SLOW),
    "d-amsgrad": algorithm("d-amsgrad", **SLOW),
    "one-bit-adam": algorithm(
        "one-bit-adam", **SLOW, beta2=0.5, warmup_ratio=0.5, **SHARDED, compressor="scaled-sign"
    ),
    "cd-sgd": algorithm("cd-sgd", **SLOW, threshold=0.01, warmup_rounds=3),
    "cd-sgd sharded": algorithm("cd-sgd", **SLOW, threshold=0.01, **SHARDED, correction_period=3),
    "naive-compression qsgd": algorithm("naive-compression", **QUANTIZED),
}
# After the last round all take the exact average.
for name, e in {
    "d-psgd": algorithm("d-psgd", local_steps=3),
    "sgp digraph": algorithm("sgp", PUSH),
    "local-sgd tree": algorithm("local-sgd", period=7, all_reduce="tree"),
    "easgd": algorithm("easgd", period=4),
}.items():
    ALGORITHMS["final average " + name] = {**e, "final_average": True}
TWICE = (
    "softmax ring",
    "mlp torus overlapped",
    "algorithm choco-sgd top-k",
    "algorithm all-reduce",
)
WARM_UP = {"learning_rate": 0.6, "schedule": {"name": "constant", "warmup_rounds": 8}}
HEAVY = {"learning_rate": 0.2, "momentum": 0.7, "weight_decay": 0.001}
PAIRINGS = {"nodes": 6, "schedule": [{"edges": edges} for edges in dpsgd.MATCHINGS]}
QUADRATICS = {
    "ring overlapped": (RING, WHILE_ADAPTING, HEAVY),
    "torus": (TORUS, ADAPT_FIRST, WARM_UP),
    "matchings": ({**PAIRINGS, "weights": "metropolis"}, ADAPT_FIRST, HEAVY),
    "exponential": (EXPONENTIAL, ADAPT_FIRST, MOMENTUM),
    "exponential overlapped": (EXPONENTIAL, WHILE_ADAPTING, HEAVY),
}


class Failure(Exception):
    """Its text is the reason."""


def check(holds, why):
    if not holds:
        raise Failure(why)


def train(starling, command, experiment, out, *overrides):
    sets = [argument for override in overrides for argument in ("--set", override)]
    ended = call(starling, command, experiment, "--out", out, *sets)
    why = f"starling {command} ended with {ended.returncode}: {ended.stderr.strip()[-2000:]}"
    check(ended.returncode == 0, why)
    return out


def content(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def without_times(value, drop):
    if isinstance(value, dict):
        return {key: without_times(inner, drop) for key, inner in value.items() if key not in drop}
    return value


def metrics(folder, name, drop):
    return [without_times(json.loads(line), drop) for line in content(folder, name).splitlines()]


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
        check(content(simulated, name) == content(trained, name), f"{name} differs")
    said = [
        json.loads(content(folder, "summary.json")).get("final_average")
        for folder in (simulated, trained)
    ]
    check(said[0] == said[1], f"the average at the end: {said}")
    for name in measured:
        for a, b in zip(metrics(simulated, name, drop), metrics(trained, name, drop), strict=True):
            # As texts: NaN equals NaN.
            differing = [k for k in a.keys() | b.keys() if repr(a.get(k)) != repr(b.get(k))]
            pairs = ", ".join(f"{k} {a.get(k)} and {b.get(k)}" for k in differing)
            check(not differing, f"{name}, round {a.get('round')}: {pairs}")


def agents_repeat(starling, experiment, folder, runs=1):
    simulated = train(starling, "sim", experiment, os.path.join(folder, "sim"))
    for turn in range(runs):
        compare(simulated, train(starling, "run", experiment, os.path.join(folder, f"run{turn}")))


def written(folder, experiment):
    path = os.path.join(folder, "experiment.json")
    with open(path, "w") as file:
        json.dump(experiment, file)
    return path


def written_quadratic(folder, name):
    topology, variant, optimizer = QUADRATICS[name]
    a, b, x0 = dpsgd.problem(topology["nodes"], 12, 10, False, seed=1000)
    write(folder, "problem.json", {"A": a.tolist(), "b": b.tolist(), "x0": x0.tolist()})
    experiment = {
        "name": "quadratic",
        "rounds": 50,
        "topology": topology,
        "algorithm": {"name": "d-psgd", "variant": variant},
        "optimizer": optimizer,
        "model": {"name": "quadratic", "path": "problem.json"},
        "record": {"parameters_at": [1, 2, 5, 10, 50]},
    }
    return written(folder, experiment)


def chunk_size_changes_no_bit(starling, folder):
    """Frames are cut differently, and have no checksums: only bytes sent and the grouping of
    distance sums may change."""
    path = written(folder, NETWORKS["mlp ring"])
    one = train(starling, "run", path, os.path.join(folder, "small"))
    sets = ["transport.chunk_bytes=1048576", "transport.window_chunks=2"]
    sets += ["transport.checksums=false"]
    other = train(starling, "run", path, os.path.join(folder, "large"), *sets)
    counts = {"bytes_sent", "bytes_received", "frames_sent", "frames_received"}
    compare(one, other, TIMES | counts | {"neighbour_distance"})


def folder_repeats_itself(starling, folder, path):
    """A run from another run folder's config.json alone."""
    first = train(starling, "sim", path, os.path.join(folder, "first"))
    again = os.path.join(folder, "again")
    compare(first, train(starling, "sim", os.path.join(first, "config.json"), again))


def run_folder_repeats_itself(starling, folder):
    folder_repeats_itself(starling, folder, written(folder, NETWORKS["softmax exponential"]))


def quadratic_folder_repeats_itself(starling, folder):
    folder_repeats_itself(starling, folder, written_quadratic(folder, "exponential"))


def first_of_each_algorithm():
    by_name = {}
    for name, experiment in ALGORITHMS.items():
        by_name.setdefault(experiment["algorithm"]["name"], name)
    return {name: ALGORITHMS[name] for name in by_name.values()}


def tests(starling):
    """name -> test(starling, folder)"""
    for name in unnamed(starling, [e["algorithm"] for e in ALGORITHMS.values()]):
        ALGORITHMS[name] = algorithm(name, optimizer=PLAIN)
    stride = 3 if QUICK else 1
    experiments = {name: NETWORKS[name] for name in list(NETWORKS)[::stride]}
    for name, experiment in (first_of_each_algorithm() if QUICK else ALGORITHMS).items():
        experiments["algorithm " + name] = experiment
    found = {}
    for name, experiment in experiments.items():
        found[name] = lambda starling, folder, e=experiment, n=name: agents_repeat(
            starling, written(folder, e), folder, 2 if n in TWICE and not QUICK else 1
        )
    for name in list(QUADRATICS)[::stride]:
        found["quadratic " + name] = lambda starling, folder, n=name: agents_repeat(
            starling, written_quadratic(folder, n), folder
        )
    others = chunk_size_changes_no_bit, run_folder_repeats_itself, quadratic_folder_repeats_itself
    for test in others:
        found[test.__name__.replace("_", " ")] = test
    return found


def main():
    starling, failed = os.path.abspath(sys.argv[1]), 0
    for name, test in tests(starling).items():
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        with tempfile.TemporaryDirectory(prefix="starling-parity-") as folder:
            try:
                test(starling, folder)
                print(f"ok parity {name}", flush=True)
            except (Failure, OSError, ValueError, subprocess.TimeoutExpired) as failure:
                failed += 1
                print(f"not ok parity {name}: {failure}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
