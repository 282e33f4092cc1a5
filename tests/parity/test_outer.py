#!/usr/bin/env python3
"""What is around a step: optimizers other than SGD, outer steps from exchange to exchange, Adam
with messages; against an independent float64 program (tests/reference/algorithms.py), on quadratic
problems. Then the identities between them, what they conserve, and what is refused.

usage: test_outer.py [--starling] STARLING [--only TEXT]
"""
import sys

import numpy as np

import _simulate
import algorithms
from _simulate import Refused, run_all, simulate
from expect import Graph
from test_algorithms import (
    DECAY,
    DIGRAPH,
    EXPONENTIAL,
    GRAPHS,
    IRREGULAR,
    MATCHINGS,
    MOMENTUM,
    NESTEROV,
    OWN,
    PLAIN,
    RING,
    SAME,
    TOP4,
    Case,
    cases,
    compare,
    difference,
)

OPTIMIZERS = {
    "adamw": {"name": "adamw", "learning_rate": 0.02, "weight_decay": 0.05},
    "adamw beta": {"name": "adamw", "learning_rate": 0.02, "beta1": 0.5, "epsilon": 0.01},
    "lars": {"name": "lars", "learning_rate": 4, "momentum": 0.5, "weight_decay": 0.05},
    "lamb": {"name": "lamb", "learning_rate": 0.02, "weight_decay": 0.05},
    "clip": {**MOMENTUM, "clip_norm": 3},
    "clip lamb": {"name": "lamb", "learning_rate": 0.02, "trust": 0.5, "clip_norm": 3},
}


def optimizers():
    choco = {"name": "choco-sgd", "consensus_step": 0.3, "compressor": {"name": "top-k", "k": 4}}
    for settings in (
        {"name": "d-psgd"},
        {"name": "d-psgd", "variant": "combine-while-adapt", "local_steps": 3},
        {"name": "sgp"},
        {"name": "all-reduce"},
        {"name": "local-sgd", "period": 3},
        choco,
    ):
        label = " ".join(["optimizers", *map(str, list(settings.values())[:2])])
        yield from cases(label, settings, None, [RING, IRREGULAR], OPTIMIZERS, [OWN])


HEAVY = {"momentum": MOMENTUM, "nesterov": NESTEROV}
COSINE = {"name": "cosine", "minimum": 0.05, "warmup_rounds": 5}
FALLING = {"cosine": {**MOMENTUM, "schedule": COSINE}}
STEPS = {"momentum": MOMENTUM, "nesterov": NESTEROV, "adamw": OPTIMIZERS["adamw"]}
ADAM = {"sgd": {"learning_rate": 0.02}, "decay": {"learning_rate": 0.02, "weight_decay": 0.05}}


def outer_steps():
    both = [SAME, OWN]
    for settings in (
        {"name": "slowmo", "period": 3},
        {"name": "slowmo", "period": 4, "beta": 0.8, "slow_rate": 0.5},
        {"name": "diloco", "period": 3},
        {"name": "diloco", "period": 5, "outer": {"nesterov": False, "momentum": 0.6}},
    ):
        label = " ".join(map(str, settings.values()))
        yield from cases(label, settings, None, [IRREGULAR], STEPS, both)
    slow = {"name": "slowmo", "period": 3}
    yield from cases(
        "slowmo d-psgd", {**slow, "base": "d-psgd"}, None, [RING, EXPONENTIAL], STEPS, both
    )
    yield from cases(
        "slowmo sgp", {**slow, "base": "sgp"}, None, [DIGRAPH, EXPONENTIAL], STEPS, both
    )
    for rule in ("average", "reset"):
        for base in ("local-sgd", "d-psgd", "sgp"):
            settings = {**slow, "base": base, "buffers": rule}
            yield from cases(f"slowmo {base} {rule}", settings, None, [RING], HEAVY, [OWN])
        settings = {"name": "local-sgd", "period": 3, "buffers": rule}
        yield from cases(f"local-sgd {rule}", settings, None, [IRREGULAR], HEAVY, [OWN])
    for more in ({"switch_round": 4}, {"switch_round": 7, "buffers": "average"}):
        settings = {"name": "local-sgd", "period": 3, **more}
        label = " ".join(map(str, settings.values()))
        yield from cases(label, settings, None, [RING, IRREGULAR], HEAVY, both)
    for more in (
        {"period": 8},
        {"period": 12, "server": "sharded"},
        {"period": 7, "server": 2, "buffers": "average"},
        {"period": 9, "buffers": "reset"},
        {"period": 12, "period_schedule": "adaptive-halving"},
        {"period": 5, "period_schedule": "adaptive-halving", "server": "sharded"},
        {"period": 9, "period_schedule": "adaptive-rate"},
        {"period": 14, "period_schedule": "adaptive-rate", "server": 2},
    ):
        settings = {"name": "local-sgd", "period_schedule": "adaptive", **more}
        how = HEAVY if "rate" not in settings["period_schedule"] else FALLING
        label = " ".join(map(str, settings.values()))
        yield from cases(label, settings, None, [IRREGULAR], how, both)
    for more in (
        {"period": 8},
        {"period": 30, "first_period": 2, "growth": 0.75, "buffers": "average"},
        {"period": 5, "first_period": 3, "growth": 0, "buffers": "reset"},
    ):
        settings = {"name": "local-sgd", "period_schedule": "growing", **more}
        label = " ".join(map(str, settings.values()))
        yield from cases(label, settings, None, [IRREGULAR], HEAVY, both)
    for more in ({}, {"average_period": 4, "local_steps": 2}, {"all_reduce": "halving-doubling"}):
        settings = {"name": "gossip-pga", **more}
        label = " ".join(map(str, settings.values()))
        yield from cases(label, settings, None, [IRREGULAR, EXPONENTIAL], STEPS, both)
    for settings in (
        {"name": "noloco", "period": 3},
        {"name": "noloco", "period": 2, "outer": {"momentum": 0.3}, "consensus_step": 0.4},
    ):
        label = " ".join(map(str, settings.values()))
        yield from cases(label, settings, None, [RING, IRREGULAR, MATCHINGS], STEPS, both)
    for settings in (
        {"name": "easgd", "period": 3},
        {"name": "easgd", "period": 1, "elastic": 0.05, "server": "sharded"},
    ):
        label = " ".join(map(str, settings.values()))
        yield from cases(label, settings, None, [IRREGULAR], STEPS, [SAME])


SETS, WEIGHTS = [[0, 3], [6, 1, 2], [5]], [1, 0.5, 2, 0, 3, 1, 7]


def federated():
    with_buffers = {"momentum": MOMENTUM, "nesterov": NESTEROV}
    for settings in (
        {"name": "fedavg"},
        {"name": "fedavg", "local_steps": 3, "server": 2},
        {"name": "fedavg", "local_steps": 3, "clients": 0.5, "server": "sharded"},
        {"name": "fedavg", "local_steps": 2, "clients": 0.3, "server": 2},
        {"name": "fedavg", "clients": 0.01, "client_weights": "uniform"},
        {"name": "fedavg", "local_steps": [1, 4, 2, 3, 3, 1, 2], "clients": 0.6},
        {"name": "fedavg", "local_epochs": 3, "clients": 0.4},
        {"name": "fedavg", "local_steps": 2, "clients": SETS},
        {"name": "fedavg", "clients": SETS, "client_weights": WEIGHTS, "server": "sharded"},
        {"name": "fedavg", "clients": 0.5, "client_weights": WEIGHTS},
    ):
        label = " ".join(map(str, settings.values()))
        yield from cases(label, settings, None, [IRREGULAR], with_buffers, [SAME, OWN])
    few = {**TOP4, "sign": {"name": "scaled-sign"}, "stc": {"name": "stc", "k": 4}}
    one = {**few, "top-k": {"name": "top-k", "k": 1}, "stc": {"name": "stc", "k": 1}}
    for more in (
        {},
        {"error_feedback": False, "clients": 0.4},
        {"directions": "both", "clients": 0.6},
        {"directions": "both", "error_feedback": False},
    ):
        for server in (2, "sharded"):
            settings = {"name": "fedavg", "local_steps": 3, "server": server, **more}
            label = " ".join(map(str, settings.values()))
            lossy = few if server == 2 else one
            yield from cases(label, settings, lossy, [IRREGULAR], with_buffers, [SAME])
    listed = {"name": "fedavg", "local_steps": 2, "clients": SETS, "client_weights": WEIGHTS}
    yield from cases("fedavg listed", listed, few, [IRREGULAR], with_buffers, [SAME])
    uneven = {"name": "fedavg", "local_steps": [3, 1, 2, 3, 1, 2, 3]}
    yield from cases("fedavg uneven", uneven, few, [IRREGULAR], with_buffers, [SAME])
    settings = {"name": "fedavg", "local_steps": 2, "clients": 0.5}
    bins = {"adacomp": {"name": "adacomp", "bin": 5}}
    yield from cases("fedavg", settings, bins, [IRREGULAR], with_buffers, [SAME])


def adam_with_messages():
    for name in ("d-adam", "d-amsgrad"):
        yield from cases(name, {"name": name}, None, [RING, MATCHINGS], ADAM, [SAME, OWN])
    sign = {"sign": {"name": "scaled-sign"}, "top": {"name": "top-k", "fraction": 0.5}}
    for server in (2, "sharded"):
        settings = {"name": "one-bit-adam", "warmup_rounds": 20, "server": server}
        label = f"one-bit-adam {server}"
        yield from cases(label, settings, sign, [IRREGULAR], ADAM, [SAME])
    for beta2, more in ((0.9, {}), (0.95, {}), (0.8, {"warmup_rounds": 12})):
        settings = {"name": "one-bit-adam", "beta2": beta2, "warmup_ratio": 0.96, **more}
        label = f"one-bit-adam until it rests {beta2}"
        yield from cases(label, settings, {"sign": sign["sign"]}, [IRREGULAR], ADAM, [SAME])


# ---- identities: what is compared, and how many times 1 they may differ ----


def complete(n):
    topology = {"nodes": n, "family": "complete", "weights": "metropolis"}
    return Graph(topology, [np.full((n, n), 1 / n)])


GRAPHS["complete"] = complete(8)
LOCAL = {"name": "local-sgd", "period": 4}


def identities():
    diloco = {"name": "diloco", "period": 4}
    plain = {**diloco, "outer": {"nesterov": False, "learning_rate": 0.7, "momentum": 0.5}}
    still = {**diloco, "outer": {"learning_rate": 1, "momentum": 0}}
    slow = {"name": "slowmo", "period": 4}
    yield "noloco with W = J is diloco without Nesterov", "complete", MOMENTUM, {
        "name": "noloco",
        "period": 4,
    }, plain
    yield "noloco of plain sums is d-psgd", RING, PLAIN, {
        "name": "noloco",
        "period": 1,
        "consensus_step": 1,
        "outer": {"learning_rate": 1, "momentum": 0},
    }, {"name": "d-psgd"}
    yield "diloco that follows is local-sgd", RING, MOMENTUM, still, LOCAL
    yield "slowmo that follows is local-sgd", RING, MOMENTUM, {**slow, "beta": 0}, LOCAL
    yield "slowmo is diloco without Nesterov", RING, MOMENTUM, {
        **slow,
        "beta": 0.5,
        "slow_rate": 0.7,
    }, plain
    on_gossip = {**slow, "beta": 0, "base": "d-psgd"}
    pga = {"name": "gossip-pga", "average_period": 4}
    yield "slowmo on d-psgd that follows is gossip-pga", IRREGULAR, MOMENTUM, on_gossip, pga
    yield "slowmo on sgp of a doubly stochastic W is on d-psgd", EXPONENTIAL, MOMENTUM, {
        **slow,
        "base": "sgp",
    }, {**slow, "base": "d-psgd"}
    each = {"name": "local-sgd", "period": 1}
    yield "an adaptive period of at most 1 is local-sgd's", RING, MOMENTUM, {
        **each,
        "period_schedule": "adaptive",
    }, each
    yield "a period that grows by nothing is local-sgd's", RING, MOMENTUM, {
        **LOCAL,
        "period": 9,
        "period_schedule": "growing",
        "first_period": 4,
        "growth": 0,
    }, LOCAL
    yield "fedavg of all clients is local-sgd", RING, MOMENTUM, {
        "name": "fedavg",
        "local_steps": 4,
    }, {**LOCAL, "buffers": "reset"}
    yield "fedavg of all clients, one step each, is all-reduce", RING, PLAIN, {
        "name": "fedavg",
        "server": "sharded",
    }, {"name": "all-reduce"}
    top = {"compressor": {"name": "top-k", "k": 4}, "directions": "both"}
    yield "compressed fedavg of all clients is compressed local-sgd", RING, PLAIN, {
        "name": "fedavg",
        "local_steps": 4,
        **top,
    }, {**LOCAL, **top}
    each = {"name": "local-sgd", "period": 1}
    yield "averaged buffers in every round are all-reduce's", RING, MOMENTUM, {
        **each,
        "buffers": "average",
    }, {"name": "all-reduce"}
    yield "post-local SGD that never switches is all-reduce", RING, NESTEROV, {
        **LOCAL,
        "switch_round": 50,
    }, {"name": "all-reduce"}
    yield "post-local SGD with period 1 and averaged buffers too", RING, MOMENTUM, {
        "name": "local-sgd",
        "period": 1,
        "switch_round": 20,
        "buffers": "average",
    }, {"name": "all-reduce"}
    averaging = {"name": "gossip-pga", "average_period": 1}
    yield "gossip-pga in every exchange is averaging", RING, MOMENTUM, averaging, {
        "name": "local-sgd",
        "period": 1,
    }
    seldom = {"name": "gossip-pga", "average_period": 1000}
    yield "gossip-pga that never averages is d-psgd", IRREGULAR, MOMENTUM, seldom, {
        "name": "d-psgd"
    }
    yield "d-adam is d-psgd with adamw", RING, OPTIMIZERS["adamw"], {"name": "d-adam"}, {
        "name": "d-psgd"
    }


def check_identity(starling, graph, optimizer, settings, other):
    found, expected = (
        Case("", settings_of, graph, of, SAME).found(starling).models
        for settings_of, of in (
            (settings, ADAM["decay"] if settings["name"] == "d-adam" else optimizer),
            (other, optimizer),
        )
    )
    worst = max(difference(found[r], expected[r]) for r in expected)
    return (None if worst <= 1e-6 else f"differs by {worst:.1e}, allowed 1e-6"), worst


def check_mean(starling):
    """NoLoCo's mean takes DiLoCo's steps where all gradients are equal: here they are 0."""
    still = {"learning_rate": 0}
    case = Case("", {"name": "noloco", "period": 1}, MATCHINGS, still, OWN)
    problem = case.problem()
    models = case.found(starling, problem).models
    worst = max(difference(m.mean(axis=0), problem[2].mean(axis=0)) for m in models.values())
    return (None if worst <= 1e-5 else f"the mean moves by {worst:.1e}"), worst


def check_uneven(starling):
    """One second moment for all leads to the optimum; local ones end elsewhere on uneven data."""
    far = {}
    for name in ("d-adam", "d-amsgrad"):
        case = Case("", {"name": name}, RING, {"learning_rate": 0.01}, SAME)
        problem, rounds = case.problem(), 6000
        settings = case.graph, case.settings, case.optimizer
        last = simulate(starling, *settings, *problem, rounds, [rounds]).models[rounds]
        optimum = algorithms.Quadratic(*problem[:2]).optimum()
        far[name] = abs(last.mean(axis=0) - optimum).max()
    good = far["d-amsgrad"] < far["d-adam"] / 5
    return (None if good else f"ends this far from the optimum: {far}"), far["d-amsgrad"]


def refusals():
    def noloco(momentum, step):
        return {"name": "noloco", "outer": {"momentum": momentum}, "consensus_step": step}

    yield "random pairs bear a step below 2 (1 - mu^2)", MATCHINGS, noloco(0.9, 0.39), "below 0.38"
    yield "and take a smaller one", MATCHINGS, noloco(0.9, 0.37), None
    yield "a ring of eight bears more", RING, noloco(0.9, 0.7), None
    slow = {"name": "slowmo", "base": "d-psgd"}
    yield "slowmo on d-psgd takes no directed graph", "digraph", slow, "doubly stochastic"
    yield "slowmo on sgp does", "digraph", {**slow, "base": "sgp"}, None
    late = {"name": "local-sgd", "switch_round": 5, "compressor": {"name": "top-k", "k": 4}}
    yield "post-local SGD takes no compressor", RING, late, "sends vectors as they are"
    sooner = {"name": "local-sgd", "period_schedule": "adaptive", "switch_round": 5}
    yield "no switch in an adaptive period", RING, sooner, "algorithm.switch_round: 5, but"
    yield "nor in a growing one", RING, {**sooner, "period_schedule": "growing"}, "begins with"
    anew = {"name": "local-sgd", "buffers": "reset"}
    yield "buffers without momentum", RING, anew, 'algorithm.buffers: "reset" is for those of'
    fed = {"name": "fedavg", "local_steps": [1, 2]}
    yield "a number of steps for each client", RING, fed, "has 2 numbers, the topology 8 nodes"
    fed = {"name": "fedavg", "local_steps": 2, "local_epochs": 1}
    yield "steps or epochs of clients", RING, fed, "give one of them"
    fed = {"name": "fedavg", "local_steps": [0] * 8}
    yield "no client without a step", RING, fed, "an integer, or a list of integers, from 1 to"
    for what, more, text in (
        ("no client beyond the nodes", {"clients": [[0], [1, 8]]}, "clients[1]: rank 8 is no node"),
        ("no client twice", {"clients": [[2, 2]]}, "clients[0]: rank 2 is there twice"),
        ("no empty turn", {"clients": [[2], []]}, "lists of ranks, or a number from 1e-09 to 1"),
        ("a weight for each client", {"client_weights": [1, 2]}, "has 2 numbers, the topology 8"),
        ("not all weights 0", {"client_weights": [0] * 8}, "8 are 0, and a turn may have just 8"),
        ("no negative weight", {"client_weights": [-1] * 8}, "or a list of numbers from 0 to"),
        (
            "no turn of weight 0",
            {"clients": [[0, 1]], "client_weights": [0, 0, 1, 1, 1, 1, 1, 1]},
            "clients[0]: all of its nodes have",
        ),
    ):
        yield what, RING, {"name": "fedavg", **more}, text
    gossip = {"name": "d-psgd", "local_steps": [1] * 8}
    yield "steps of each node for fedavg only", RING, gossip, "exchange together; give one number"
    yield "noloco takes no directed graph", "digraph", noloco(0.5, 0), "doubly stochastic"


def check_refusal(starling, graph, settings, text):
    try:
        Case("", settings, graph, PLAIN, SAME).found(starling)
    except Refused as error:
        return (None if text and text in str(error) else str(error)), 0
    return (f"it was taken, without {text!r}" if text else None), 0


def all_checks(starling):
    for case in [*optimizers(), *outer_steps(), *federated(), *adam_with_messages()]:
        yield case.name, lambda case=case: compare(starling, case)
    for name, *what in identities():
        yield name, lambda what=what: check_identity(starling, *what)
    yield "noloco keeps the mean", lambda: check_mean(starling)
    yield "d-amsgrad on uneven data", lambda: check_uneven(starling)
    for name, *what in refusals():
        yield name, lambda what=what: check_refusal(starling, *what)


def main():
    starling, only = _simulate.arguments(__doc__)
    return run_all([(name, check) for name, check in all_checks(starling) if only in name])


if __name__ == "__main__":
    sys.exit(main())
