#!/usr/bin/env python3
"""What is around a step: optimizers other than SGD, outer steps from exchange to exchange, Adam
with messages; against an independent float64 program (tests/reference/algorithms.py), on quadratic
problems. Then what is refused."""
import functools
import sys

import _simulate
from _simulate import check_refusal, of
from test_algorithms import DIGRAPH, EXPONENTIAL, IRREGULAR, MATCHINGS, MOMENTUM, NESTEROV
from test_algorithms import OWN, PLAIN, RING, SAME, TOP4
from test_algorithms import Case, cases, compare

OPTIMIZERS = {
    "adamw": {"name": "adamw", "learning_rate": 0.02, "weight_decay": 0.05},
    "adamw beta": {"name": "adamw", "learning_rate": 0.02, "beta1": 0.5, "epsilon": 0.01},
    "lars": {"name": "lars", "learning_rate": 4, "momentum": 0.5, "weight_decay": 0.05},
    "lamb": {"name": "lamb", "learning_rate": 0.02, "weight_decay": 0.05},
    "clip": {**MOMENTUM, "clip_norm": 3},
    "clip lamb": {"name": "lamb", "learning_rate": 0.02, "trust": 0.5, "clip_norm": 3},
}


def optimizers():
    top = of("top-k", k=4)
    for settings in (
        of("d-psgd"),
        of("d-psgd", variant="combine-while-adapt", local_steps=3),
        of("sgp"),
        of("all-reduce"),
        of("local-sgd", period=3),
        of("choco-sgd", consensus_step=0.3, compressor=top),
    ):
        label = " ".join(["optimizers", *map(str, list(settings.values())[:2])])
        yield from cases(label, settings, None, [RING, IRREGULAR], OPTIMIZERS, [OWN])


HEAVY = {"momentum": MOMENTUM, "nesterov": NESTEROV}
COSINE = {"name": "cosine", "minimum": 0.05, "warmup_rounds": 5}
FALLING = {"cosine": {**MOMENTUM, "schedule": COSINE}}
STEPS = {"momentum": MOMENTUM, "nesterov": NESTEROV, "adamw": OPTIMIZERS["adamw"]}
ADAM = {"sgd": {"learning_rate": 0.02}, "decay": {"learning_rate": 0.02, "weight_decay": 0.05}}


def labelled(settings, *factors):
    return cases(" ".join(map(str, settings.values())), settings, *factors)


def outer_steps():
    both = [SAME, OWN]
    for settings in (
        of("slowmo", period=3),
        of("slowmo", period=4, beta=0.8, slow_rate=0.5),
        of("diloco", period=3),
        of("diloco", period=5, outer={"nesterov": False, "momentum": 0.6}),
    ):
        yield from labelled(settings, None, [IRREGULAR], STEPS, both)
    for base, graphs in (("d-psgd", [RING, EXPONENTIAL]), ("sgp", [DIGRAPH, EXPONENTIAL])):
        settings = of("slowmo", period=3, base=base)
        yield from cases(f"slowmo {base}", settings, None, graphs, STEPS, both)
    for rule in ("average", "reset"):
        for base in ("local-sgd", "d-psgd", "sgp"):
            settings = of("slowmo", period=3, base=base, buffers=rule)
            yield from cases(f"slowmo {base} {rule}", settings, None, [RING], HEAVY, [OWN])
        settings = of("local-sgd", period=3, buffers=rule)
        yield from cases(f"local-sgd {rule}", settings, None, [IRREGULAR], HEAVY, [OWN])
    for more in ({"switch_round": 4}, {"switch_round": 7, "buffers": "average"}):
        settings = of("local-sgd", period=3, **more)
        yield from labelled(settings, None, [RING, IRREGULAR], HEAVY, both)
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
        yield from labelled(settings, None, [IRREGULAR], how, both)
    for more in (
        {"period": 8},
        {"period": 30, "first_period": 2, "growth": 0.75, "buffers": "average"},
        {"period": 5, "first_period": 3, "growth": 0, "buffers": "reset"},
    ):
        settings = of("local-sgd", period_schedule="growing", **more)
        yield from labelled(settings, None, [IRREGULAR], HEAVY, both)
    for settings in (
        of("gossip-pga"),
        of("gossip-pga", average_period=4, local_steps=2),
        of("gossip-pga", all_reduce="halving-doubling"),
    ):
        yield from labelled(settings, None, [IRREGULAR, EXPONENTIAL], STEPS, both)
    for settings in (
        of("noloco", period=3),
        of("noloco", period=2, outer={"momentum": 0.3}, consensus_step=0.4),
    ):
        yield from labelled(settings, None, [RING, IRREGULAR, MATCHINGS], STEPS, both)
    for settings in (
        of("easgd", period=3),
        of("easgd", period=1, elastic=0.05, server="sharded"),
    ):
        yield from labelled(settings, None, [IRREGULAR], STEPS, [SAME])


SETS, WEIGHTS = [[0, 3], [6, 1, 2], [5]], [1, 0.5, 2, 0, 3, 1, 7]


def federated():
    for more in (
        {},
        {"local_steps": 3, "server": 2},
        {"local_steps": 3, "clients": 0.5, "server": "sharded"},
        {"local_steps": 2, "clients": 0.3, "server": 2},
        {"clients": 0.01, "client_weights": "uniform"},
        {"local_steps": [1, 4, 2, 3, 3, 1, 2], "clients": 0.6},
        {"local_epochs": 3, "clients": 0.4},
        {"local_steps": 2, "clients": SETS},
        {"clients": SETS, "client_weights": WEIGHTS, "server": "sharded"},
        {"clients": 0.5, "client_weights": WEIGHTS},
    ):
        yield from labelled(of("fedavg", **more), None, [IRREGULAR], HEAVY, [SAME, OWN])
    few = {**TOP4, "sign": {"name": "scaled-sign"}, "stc": {"name": "stc", "k": 4}}
    one = {**few, "top-k": {"name": "top-k", "k": 1}, "stc": {"name": "stc", "k": 1}}
    for more in (
        {},
        {"error_feedback": False, "clients": 0.4},
        {"directions": "both", "clients": 0.6},
        {"directions": "both", "error_feedback": False},
    ):
        for server in (2, "sharded"):
            settings = of("fedavg", local_steps=3, server=server, **more)
            lossy = few if server == 2 else one
            yield from labelled(settings, lossy, [IRREGULAR], HEAVY, [SAME])
    listed = {"name": "fedavg", "local_steps": 2, "clients": SETS, "client_weights": WEIGHTS}
    yield from cases("fedavg listed", listed, few, [IRREGULAR], HEAVY, [SAME])
    uneven = {"name": "fedavg", "local_steps": [3, 1, 2, 3, 1, 2, 3]}
    yield from cases("fedavg uneven", uneven, few, [IRREGULAR], HEAVY, [SAME])
    settings = {"name": "fedavg", "local_steps": 2, "clients": 0.5}
    bins = {"adacomp": {"name": "adacomp", "bin": 5}}
    yield from cases("fedavg", settings, bins, [IRREGULAR], HEAVY, [SAME])


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


def all_checks(starling):
    for case in [*optimizers(), *outer_steps(), *federated(), *adam_with_messages()]:
        yield case.name, lambda case=case: compare(starling, case)
    for name, graph, settings, text in refusals():
        run = functools.partial(Case("", settings, graph, PLAIN, SAME).found, starling)
        yield name, functools.partial(check_refusal, run, text)


if __name__ == "__main__":
    sys.exit(_simulate.main(__doc__, all_checks))
