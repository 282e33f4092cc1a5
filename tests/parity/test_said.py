#!/usr/bin/env python3
"""What `starling check` says of an experiment, a row each: what is refused and why, what is warned
of, and what is meant. tests/unit/test_experiment_errors.c has what is wrong with one key alone;
`sim` and `run` ask the library alike (tests/chaos/wrong_input.py)."""
import functools
import os
import sys
import tempfile

import numpy as np

from _cases import DIGRAPH, GRAPHS, MATCHINGS, RING, TOP4
from _simulate import call, main, of, write, write_problem
from expect import ONE_LEVEL, SCALED_RANDOM, TOP_PERCENT

N, D, ROUNDS = 8, 20, 40
BASE = {
    "rounds": ROUNDS,
    "topology": {"nodes": N, "family": "ring"},
    "algorithm": "d-psgd",
    "optimizer": {"learning_rate": 0.05},
}
DIGITS = {"name": "digits", "train_samples": 640, "test_samples": 100, "batch": 8}
TOP, SIGN = {"compressor": TOP_PERCENT}, {"compressor": "scaled-sign"}
VECTORS = "sends vectors as they are"


def on(graph, name, **more):
    """An algorithm on one of the graphs of _cases.py."""
    return {"topology": GRAPHS[graph].topology, "algorithm": of(name, **more)}


# ---- refused: what the experiment has beside BASE, and what is said ----


def noloco(graph, momentum, step):
    return on(graph, "noloco", outer={"momentum": momentum}, consensus_step=step)


def of_graphs():
    symmetric = "d-psgd choco-sgd deep-squeeze dcd-psgd ecd-psgd gradient-tracking exact-diffusion"
    symmetric += " qgm decentlam gossip-pga beer lead moniqua relaysum d-adam d-amsgrad noloco"
    for name in symmetric.split():
        yield on(DIGRAPH, name), "doubly stochastic"
    yield on(DIGRAPH, "slowmo", base="d-psgd"), "doubly stochastic"
    ring = {"topology": {"nodes": N, "family": "ring", "weights": "metropolis"}}
    plain = of("exact-diffusion", matrix="plain")
    yield {**ring, "algorithm": plain}, "lambda_n is above -0.3333"
    yield on(MATCHINGS, "exact-diffusion", matrix="plain"), "schedule"
    trimmed = {"variant": "trimmed-mean", "trim": 2}
    yield on(RING, "clipped-gossip", **trimmed), "set it to 1 or less"
    yield noloco(MATCHINGS, 0.9, 0.39), "below 0.38"  # random pairs: 2 (1 - mu^2)
    yield on(RING, "relaysum", tree="topology"), "algorithm.tree"
    yield on(MATCHINGS, "relaysum"), "schedule"
    yield on(MATCHINGS, "ecd-psgd"), "deep-squeeze"
    rows = {"nodes": 3, "edges": [[0, 1], [1, 2]], "weights": "uniform"}
    yield {"topology": rows, "algorithm": "sgp"}, "push-sum"


def of_messages():
    three = "choco-sgd", "deep-squeeze", "beer"
    for name, compressor in zip(three, (SCALED_RANDOM, ONE_LEVEL, {**ONE_LEVEL, "levels": 3})):
        yield on(RING, name, compressor=compressor), "contractive"
    kept = {"compressor": SCALED_RANDOM, "error_feedback": True}
    yield on(RING, "parameter-server", **kept), "contractive"
    yield on(RING, "all-reduce", directions="both", **TOP), "algorithm.directions"
    yield on(RING, "all-reduce", delay=1, **TOP), "algorithm.delay"
    yield on(RING, "moniqua", bits=25), "algorithm.bits"
    yield on(RING, "moniqua", theta=0), "algorithm.theta"
    yield on(RING, "moniqua", compressor="qsgd"), "modular"
    yield on(RING, "choco-sgd", compressor="modular"), "algorithm.compressor.name"
    late = {"variant": "combine-while-adapt", "compressor": "shared-mask"}
    yield on(RING, "d-psgd", **late), VECTORS
    shared = {"name": "terngrad", "share_scale": True}
    bucket = {"compressor": {**shared, "bucket": 16}}
    yield on(RING, "all-reduce", **bucket), "algorithm.compressor.bucket is 16; set it to 0"
    local = on(RING, "local-sgd", period=2, compressor={**shared, "bucket": 0})
    yield local, "share_scale: true, but the nodes of algorithm 'local-sgd' do not agree on one"


def over_time():
    def falls(*rows, algorithm="choco-sgd", **more):
        top = of("top-k", fraction=0.1, schedule=[list(row) for row in rows])
        return on(RING, algorithm, compressor=top, **more)

    key = "algorithm.compressor.schedule"
    yield falls((1, 0.1)), f"{key}[0]: exchange 1; exchanges are whole numbers that rise, from 2"
    yield falls((5, 0.1), (5, 0.2)), f"{key}[1]: exchange 5"
    yield falls((5, 2)), f"{key}[0]: 2 is not allowed for algorithm.compressor.fraction; it must"
    levels = of("qsgd", schedule=[[5, 2.5]])
    yield on(RING, "choco-sgd", compressor=levels), "levels; it must be an integer from 1 to 32767"
    yield falls((5, 1, 1)), f"{key}: 1 rows of 3 numbers; allowed are"
    yield falls((5, 0.1), algorithm="dgc", warmup_k=[9]), f"{key}: is given, and algorithm.warmup"
    yield falls((5, 0.1), algorithm="ssp"), f"{key}: goes by exchanges that all have"
    signs = of("scaled-sign", schedule=[[5, 1]])
    yield on(RING, "choco-sgd", compressor=signs), "compressor scaled-sign has no fraction, levels"


def by_links():
    choco, links = {"budget": {"round_ms": 20}, **TOP}, {"network": {"bandwidth_mbit": 1}}
    least, text = {"budget": {"round_ms": 5}, **TOP}, "nodes 3 and 4, 0.1 Mbit/s, 3.848 ms, but the"
    slow = {"network": {"bandwidth_mbit": 1, "links": [[4, 3, 0.1]]}}
    for graph, more, network, said in (
        (DIGRAPH, choco, links, "doubly stochastic"),
        (MATCHINGS, choco, links, "this topology is a schedule of 3"),
        (RING, choco, {}, "says that of nodes 0 and 1; set network.bandwidth_mbit"),
        (RING, choco, {"network": {"links": [[1, 0, 1]]}}, "says that of nodes 0 and 7"),
        (RING, least, slow, f"{text} least message, of algorithm.budget.fraction_min, takes it"),
        (RING, {**choco, **SIGN}, links, "has no fraction, levels or bits"),
        (RING, {**choco, "compressor": {**TOP_PERCENT, "per": "tensor"}}, links, "whole model"),
        (RING, {**choco, "variant": "mix-then-compress"}, links, "is for the form compress-then"),
        (RING, {**choco, "replicas": "per-neighbour"}, links, "keeps none that could be told"),
    ):
        yield {**on(graph, "choco-sgd", **more), **network}, said


def of_periods():
    yield on(RING, "local-sgd", switch_round=5, compressor=TOP4["top-k"]), VECTORS
    adaptive = {"switch_round": 5, "period_schedule": "adaptive"}
    yield on(RING, "local-sgd", **adaptive), "algorithm.switch_round: 5, but"
    growing = {"switch_round": 5, "period_schedule": "growing"}
    yield on(RING, "local-sgd", **growing), "begins with"
    yield on(RING, "local-sgd", buffers="reset"), 'algorithm.buffers: "reset" is for those of'
    yield on(RING, "d-psgd", local_steps=[1] * 8), "exchange together; give one number"
    for more, text in (
        ({"local_steps": [1, 2]}, "has 2 numbers, the topology 8 nodes"),
        ({"local_steps": 2, "local_epochs": 1}, "give one of them"),
        ({"local_steps": [0] * 8}, "an integer, or a list of integers, from 1 to"),
        ({"clients": [[0], [1, 8]]}, "clients[1]: rank 8 is no node"),
        ({"clients": [[2, 2]]}, "clients[0]: rank 2 is there twice"),
        ({"clients": [[2], []]}, "lists of ranks, or a number from 1e-09 to 1"),
        ({"client_weights": [1, 2]}, "has 2 numbers, the topology 8"),
        ({"client_weights": [0] * 8}, "8 are 0, and a turn may have just 8"),
        ({"client_weights": [-1] * 8}, "or a list of numbers from 0 to"),
        (
            {"clients": [[0, 1]], "client_weights": [0, 0, 1, 1, 1, 1, 1, 1]},
            "clients[0]: all of its nodes have",
        ),
    ):
        yield on(RING, "fedavg", **more), text


def of_own_times():
    odd, pairs = {"topology": {"nodes": 7, "family": "ring"}}, {"algorithm": "ad-psgd"}
    halves = {"algorithm": of("ad-psgd", initiators="bipartite"), **odd}
    yield halves, "this one has a cycle of odd length: 3-2-1-0-6-5-4-3"
    directed = {"nodes": 5, "family": "directed-ring", "weights": "push-sum"}
    yield {**pairs, "topology": directed}, "averages both ways, and this topology"
    one_peer = {"topology": {"nodes": 8, "family": "one-peer-exponential"}}
    yield {**pairs, **one_peer}, "this topology is a schedule of 3"
    yield {**pairs, "network": {"compute_ms": [[1, 2]]}}, "compute_ms[0]: has 2 times"
    ends = {"checkpoint": {"every": 5}, "membership": {"on_loss": "stop"}}
    yield {**pairs, **ends}, 'checkpoint.every, where membership.on_loss is "stop"'
    stale = on(RING, "d-psgd", staleness=2)
    yield {**stale, **one_peer}, "algorithm.staleness: it needs the same"
    own_times = "faults[0].nonfinite: algorithm 'd-psgd' lets nodes go at their own times"
    yield {**stale, **at_5(nonfinite=[1])}, own_times
    even = {**halves, "topology": {"nodes": N, "family": "ring"}, **at_5(kill=[1])}
    yield even, "the members from round 5 on: algorithm.initiators"
    yield {**on(RING, "parameter-server", backup=7), **at_5(kill=[1])}, "algorithm.backup: 7 of 7"
    late = {"variant": "combine-while-adapt", "staleness": 1}
    yield on(RING, "d-psgd", **late), "algorithm.staleness: it is for the form adapt-then-combine"
    replicas = "algorithm.staleness: algorithm 'choco-sgd' keeps replicas of its neighbours' models"
    yield on(RING, "choco-sgd", staleness=1, **TOP), replicas
    few = {"staleness": 3, "staleness_max": 2}
    yield on(RING, "ssp", **few), "algorithm.staleness_max: 2, but algorithm.staleness is 3"
    every = {"staleness": "unbounded", "staleness_max": 2}
    yield on(RING, "ssp", **every), 'algorithm.staleness_max: 2, but algorithm.staleness is "unbou'
    sharded = on(RING, "round-robin", server="sharded")
    yield sharded, '"sharded", but round-robin has one server'
    yield {**on(RING, "ssp"), "optimizer": {"momentum": 0.9}}, "is defined without momentum"
    yield on(RING, "parameter-server", server=8), "algorithm.server: 8"
    yield on(RING, "parameter-server", backup=8), "algorithm.backup: 8 of 8 nodes"
    sharded = {"backup": 1, "server": "sharded"}
    yield on(RING, "parameter-server", **sharded), "each shard would take the gradients of other"
    both = {"backup": 1, "directions": "both", **TOP}
    yield on(RING, "parameter-server", **both), 'algorithm.directions: "both", but with backup'


def at_5(**event):
    return {"faults": [{"round": 5, **event}]}


def of_faults():
    yield {"faults": 3}, "faults: must be a list"
    for events, text in (
        ({"kill": [8]}, "faults[0].kill: [8] is not allowed"),
        ({"kill": [1, 1]}, "each once"),
        ({"round": 1, "kill": [1]}, "faults[0].round: 1 is not allowed"),
        ({}, "has 0 of kill"),
        ({"kill": [1], "join": [2]}, "has 2 of kill"),
        ({"kil": [1]}, 'faults[0]: unknown key "kil"'),
        ({"join": [1]}, "node 1 joins, but it is there then"),
        ({"kill": list(range(N))}, "nobody is left"),
        ({"partition": [[0], [1]], "rounds": 2}, "names 2 nodes, and 8 are there"),
        ({"partition": [[0, 1, 2, 3], [4, 5, 6, 7]]}, "faults[0].rounds: missing"),
        (
            {"partition": [[0, 1, 2], [3, 4, 5], [6, 7]], "rounds": 2},
            "no side of the partition of round 5 has more than half of the 8 nodes",
        ),
        ({"round": 99, "kill": [1]}, "comes after the last round, 40"),
        ({"nonfinite": [1], "rounds": 2}, "a nonfinite has none"),
        (
            {"kill": [1], "epoch_after": 3},
            "faults[0].epoch_after: is no key any more: a view begins with the round of the loss",
        ),
    ):
        yield at_5(**events), text
    yield {"faults": [{"kill": [1]}]}, "faults[0].round: missing"
    twice = {"faults": [*at_5(kill=[1])["faults"], {"round": 7, "kill": [1]}]}
    yield twice, "in round 7 node 1 is killed, but it is not there then"
    parted = [{"round": 3, "kill": [7]}, {"round": 7, "join": [7]}]
    parted[1:1] = at_5(partition=[[0, 1, 2, 3], [4, 5, 6]], rounds=9)["faults"]
    yield {"faults": parted}, "in round 7 the network is in parts"


def of_members():
    """What nobody may be lost in, or join."""
    tree = {"topology": {"nodes": N, "family": "path"}, **at_5(kill=[1])}
    tree["algorithm"] = of("relaysum", tree="topology")
    yield tree, 'algorithm \'relaysum\' has "tree": "topology", which others may not be'
    clients = {**on(RING, "fedavg", clients=[[0, 1], [2, 3]]), **at_5(kill=[1])}
    yield clients, "algorithm 'fedavg' has lists of ranks in algorithm.clients"
    stop = {"membership": {"on_loss": "stop"}, **at_5(kill=[1])}
    yield stop, 'membership.on_loss: "stop" ends a run'
    yield {"checkpoint": {"every": 10}, **at_5(kill=[1])}, "checkpoint.every: a run with faults"
    one = {"membership": {"joiners": 1}}
    text = "faults[0].join: [9] is not allowed; it must be a list of ranks, 0 to 8"
    yield {**one, **at_5(join=[9])}, text
    listed = {"nodes": N, "edges": [[i, (i + 1) % N, 0.3] for i in range(N)]}
    text = "membership.joiners: 1: listed weights say nothing of a node that joins"
    yield {**one, "topology": listed}, text
    stop = {"membership": {"joiners": 1, "on_loss": "stop"}}
    yield stop, "membership.joiners: 1, but nobody joins where membership.on_loss is"


def of_checkpoints():
    for keys, text in (
        ({"every": 1, "keep": 2}, "set keep to 5, or every to 4 with keep 2"),
        ({"every": 5, "keep": 0}, "checkpoint.keep: 0 is not allowed"),
        ({"every": 5, "path": "nowhere"}, "nowhere: No such file"),
    ):
        yield {"checkpoint": keys}, text
    often = {"checkpoint": {"every": 1, "keep": 2}, "algorithm": "cd-sgd"}
    yield often, "nodes may be 2 rounds apart here"


def before_all_is_there():
    layers = {"model": {"name": "mlp", "hidden": [8]}, "data": DIGITS}
    layers["transport"] = {"overlap": "layers"}
    layers["network"] = links = {"gradient_ms": 5, "latency_ms": 1, "bandwidth_mbit": 100}
    whole, one = of("top-k", fraction=0.1), of("qsgd", levels=4, bucket=0)
    for changes, text in (
        (on(RING, "all-reduce", compressor=whole), "top-k looks at all"),
        (on(RING, "all-reduce", compressor=one), "compressor.bucket"),
        (on(RING, "all-reduce", compressor="3lc"), 'compressor.per to "tensor"'),
        ({"optimizer": {"clip_norm": 1}}, "optimizer.clip_norm: 1 needs the norm"),
        (on(RING, "choco-sgd", compressor="float16"), "'choco-sgd'"),
        (on(RING, "d-psgd", variant="combine-while-adapt"), "'d-psgd'"),
        (
            {**on(RING, "all-reduce", compressor="float16"), "device": "cuda:0"},
            'with device "cuda:0", from which only what is exchanged by',
        ),
    ):
        for way in ("layers", "merged", "partitioned"):
            yield {**layers, **changes, "transport": {"overlap": way}}, text
    each, key = {**whole, "per": "tensor", "fraction_min": 0.01}, "algorithm.compressor.fraction"
    for more, text in (
        ({"per": "model"}, 'set algorithm.compressor.per to "tensor"'),
        ({"k": 5}, "leave algorithm.compressor.k out"),
        ({"fraction_min": 0.2}, f"{key}_min: 0.2 is above {key}, 0.1"),
    ):
        yield {**layers, **on(RING, "all-reduce", compressor={**each, **more})}, text
    by_layer = {**layers, **on(RING, "all-reduce", compressor=each)}
    yield {**by_layer, "transport": {}}, 'set transport.overlap to "layers"'
    yield {**by_layer, "network": {"gradient_ms": 5}}, f"{key}_min: 0.01 plans by what sending"
    for key in ("overlap", "buckets"):
        planned = {**layers, **on(RING, "all-reduce"), "transport": {key: "merged"}}
        text = f'transport.{key}: "merged" plans by '
        yield {**planned, "network": {**links, "gradient_ms": 0}}, text + "the time of a gradient"
        yield {**planned, "network": {"gradient_ms": 5}}, text + "what sending costs"
    text = 'transport.buckets: "merged" is for d-psgd with adapt-then-combine, all-reduce and'
    for algorithm in (on(RING, "choco-sgd"), on(RING, "all-reduce", compressor="float16")):
        yield {**layers, **algorithm, "transport": {"buckets": "merged"}}, text
    many = {**on(RING, "all-reduce"), "network": links}
    many["model"] = {"name": "synthetic", "table": "resnet50"}
    many["transport"] = {"overlap": "partitioned", "partition_bytes": 4096}
    yield many, "are more than the 65535 steps that an exchange may have; raise"


def of_matrices():
    def factors(rank, matrix, **more):
        algorithm = of("powersgd", rank=rank, all_reduce="ring", **more)
        return {"algorithm": algorithm, "model": {"matrix": matrix}}

    text = "algorithm.rank: 6 is no rank of a matrix of this model; it must be from 1 to 5"
    yield factors(6, [6, 5]), text
    yield factors(2, []), '"powersgd" factors matrices, and this model has none'
    yield factors(2, [6, 6]), "model.matrix: must be [rows, columns] of at most the 30"
    yield factors(2, [6]), "model.matrix: must be [rows, columns]"
    text = "algorithm.start: has 4 rows of 2 numbers; it must have 5, one for each column of each "
    text += "matrix that is factored, of algorithm.rank 2"
    yield factors(2, [6, 5], start=[[1, 0]] * 4), text
    uneven = factors(2, [6, 5], start=[[1, 0], [1]])
    yield uneven, "equally long lists of numbers"
    yield factors(2, [6, 5], compressor="top-k"), VECTORS


def of_sketches():
    five = {"rows": 5, "columns": 8, "k": 6}
    wide, many = {**five, "columns": 9}, {**five, "k": 121}
    yield on(RING, "fetch-sgd", sketch=wide), "120 parameters; take at most 8 columns"
    text = "algorithm.sketch.k: 121, but the model has 120"
    yield on(RING, "fetch-sgd", sketch=many), text
    fetch, heavy = on(RING, "fetch-sgd", sketch=five), {"optimizer": {"momentum": 0.9}}
    yield {**fetch, **heavy}, "has a momentum of its own, algorithm.beta"
    yield {**fetch, "optimizer": "adamw"}, 'takes "sgd" only'
    yield {**on(RING, "gmc"), "optimizer": "adamw"}, 'takes "sgd" only'


# ---- said of what is taken: warnings, and what is meant ----


def taken():
    yield on(DIGRAPH, "slowmo", base="sgp"), ""
    yield noloco(MATCHINGS, 0.9, 0.37), ""
    yield noloco(RING, 0.9, 0.7), ""


def doubtful():
    biased = on(RING, "parameter-server", error_feedback=False, **TOP)
    yield biased, "an error that no learning rate"
    unbiased = of("qsgd", levels=127, bucket=64)
    kept = on(RING, "parameter-server", error_feedback=True, compressor=unbiased)
    yield kept, "error feedback is for biased"
    yield on(RING, "diana", **TOP), "top-k is biased, and the"
    yield on(RING, "sign-vote"), "counts signs, not sizes"
    hasty = on(RING, "one-bit-adam", warmup_rounds=5, **SIGN)
    yield hasty, "v needs about 1/(1 - beta2) = 1000 rounds"


def of_lengths():
    yield {"final_average": True}, "final average of all models"
    pga = on(RING, "gossip-pga", average_period=41)
    yield pga, "algorithm.average_period: 41, but the run has 40 exchanges"
    local = on(RING, "gossip-pga", average_period=9, local_steps=5)
    yield local, "average_period: 9, but the run has 8 exchanges"
    switch = on(RING, "local-sgd", switch_round=40)
    text = "algorithm.switch_round: 40, and the run has 40 rounds: all are all-reduce's"
    yield switch, text
    adam = {"warmup_ratio": 0.96, **SIGN}
    text = "warmup_ratio: can end the warm-up after round 1040 at the earliest, and rounds are 40"
    yield on(RING, "one-bit-adam", **adam), text
    soon = on(RING, "one-bit-adam", beta2=0.8, warmup_rounds=9, **adam)
    yield soon, "warm-up ends after round 6 at the earliest, after round 9 at the latest"


def of_algorithms():
    steps = {"clients": 0.5, "local_steps": [1, 2, 3, 4] * 2}
    for algorithm, words in (
        ("d-psgd", "algorithm d-psgd topology"),
        (of("d-psgd", variant="combine-while-adapt"), "d-psgd, variant combine-while-adapt"),
        (of("qgm", beta=0.8), "qgm, beta 0.8, mu 0.8"),
        (of("local-sgd", all_reduce="tree"), "local-sgd, period 10, all_reduce tree"),
        (of("parameter-server", server="sharded"), "parameter-server, server sharded"),
        (of("fedavg", **steps), "fedavg, local_steps as listed, clients 0.5"),
        (
            of("all-reduce", compressor=of("top-k", fraction=0.2, schedule=[[3, 0.1]])),
            "bytes up to exchange 2",
        ),
    ):
        yield {"algorithm": algorithm}, words


def of_losses():
    goes_on = "a lost peer the others go on without it, after 30 s of silence at most"
    restart = {"on_loss": "continue", "restart": "always"}
    for changes, words in (
        ({"membership": {"on_loss": "stop"}}, 'run; membership.on_loss "continue" lets the others'),
        ({}, goes_on),
        ({"final_average": True, **on(RING, "fedavg")}, goes_on),
        ({"membership": restart}, f"{goes_on}; `starling run` starts it"),
        (
            on(RING, "fedavg", clients=[[0, 1]]),
            "a lost peer ends the run: fedavg has lists of ranks in algorithm.clients",
        ),
    ):
        yield changes, words


REFUSED = of_graphs, of_messages, over_time, by_links, of_periods, of_own_times, of_faults
REFUSED += of_members, of_checkpoints
# The function of rows, what check ends with, and the parameters of the model.
TABLES = [
    *((rows, 2, D) for rows in (*REFUSED, before_all_is_there)),
    (of_matrices, 2, 30),
    (of_sketches, 2, 120),
    (doubtful, 0, 1000),
    *((rows, 0, D) for rows in (taken, of_lengths, of_algorithms, of_losses)),
]


def check_said(starling, changes, text, code, d):
    experiment = {**BASE, **changes}
    n, model = experiment["topology"]["nodes"], experiment.get("model", {})
    with tempfile.TemporaryDirectory(prefix="starling-said-") as folder:
        if "name" not in model:
            zeros = np.zeros((n, 1, d)), np.zeros((n, 1)), np.zeros((n, d))
            experiment["model"] = {**write_problem(folder, *zeros), **model}
        write(folder, "experiment.json", experiment)
        ended = call(starling, "check", os.path.join(folder, "experiment.json"))
    said = " ".join((ended.stderr if code else ended.stdout + ended.stderr).split())
    good = ended.returncode == code and text in said
    return (None if good else f"{ended.returncode}: {said}"), None


def all_checks(starling):
    for rows, code, d in TABLES:
        for changes, text in rows():
            name = f"{'refused' if code else 'said'} of {changes}: {text}"
            yield name, functools.partial(check_said, starling, changes, text, code, d)


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks))
