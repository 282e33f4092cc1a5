#!/usr/bin/env python3
"""What is around a step: optimizers other than SGD, outer steps from exchange to exchange, Adam
with messages; and gossip whose messages are not models: against an independent float64 program
(tests/reference/algorithms.py), on quadratic problems. Then how long Moniqua's messages are, and
what is warned of."""
import sys

import _simulate
from _cases import BINARY, BOTH, D, DIGRAPH, EXPONENTIAL, FIXED, IRREGULAR, MATCHINGS, MOMENTUM
from _cases import COSINE, NESTEROV, OWN, PATH, PLAIN, RING, SAME, STAR, STILL, TOP4
from _cases import Case, cases, compare
from _simulate import of

OPTIMIZERS = {
    "adamw": {"name": "adamw", "learning_rate": 0.02, "weight_decay": 0.05},
    "adamw beta": {"name": "adamw", "learning_rate": 0.02, "beta1": 0.5, "epsilon": 0.01},
    "lars": {"name": "lars", "learning_rate": 4, "momentum": 0.5, "weight_decay": 0.05},
    "lamb": {"name": "lamb", "learning_rate": 0.02, "weight_decay": 0.05},
    "clip": {**MOMENTUM, "clip_norm": 3},
    "clip lamb": {"name": "lamb", "learning_rate": 0.02, "trust": 0.5, "clip_norm": 3},
}
HEAVY = {"momentum": MOMENTUM, "nesterov": NESTEROV}
STEPS = {**HEAVY, "adamw": OPTIMIZERS["adamw"]}
FALLING = {"cosine": {**MOMENTUM, "schedule": COSINE["schedule"]}}
ADAM = {"sgd": {"learning_rate": 0.02}, "decay": {"learning_rate": 0.02, "weight_decay": 0.05}}
SLOW = {
    "sgd": {"learning_rate": 0.03},
    "nesterov": {**NESTEROV, "learning_rate": 0.003},
    "still": STILL,
}  # gradients come as late as they are far


# ---- the tables: what cases() takes ----


def optimizers():
    for settings in (
        of("d-psgd"),
        of("d-psgd", variant="combine-while-adapt", local_steps=3),
        of("sgp"),
        of("all-reduce"),
        of("local-sgd", period=3),
        of("choco-sgd", consensus_step=0.3, compressor=TOP4["top-k"]),
    ):
        yield settings, FIXED, OPTIMIZERS, [OWN]


def outer_steps():
    for settings in (
        of("slowmo", period=3),
        of("slowmo", period=4, beta=0.8, slow_rate=0.5),
        of("diloco", period=3),
        of("diloco", period=5, outer={"nesterov": False, "momentum": 0.6}),
    ):
        yield settings, [IRREGULAR], STEPS, BOTH
    for base, graphs in (("d-psgd", [RING, EXPONENTIAL]), ("sgp", [DIGRAPH, EXPONENTIAL])):
        yield of("slowmo", period=3, base=base), graphs, STEPS, BOTH
    for rule in ("average", "reset"):
        for base in ("local-sgd", "d-psgd", "sgp"):
            yield of("slowmo", period=3, base=base, buffers=rule), [RING], HEAVY, [OWN]
        yield of("local-sgd", period=3, buffers=rule), [IRREGULAR], HEAVY, [OWN]
    for settings in (of("gossip-pga"), of("gossip-pga", average_period=4, local_steps=2)):
        yield settings, [IRREGULAR, EXPONENTIAL], STEPS, BOTH
    yield of("gossip-pga", all_reduce="halving-doubling"), [IRREGULAR, EXPONENTIAL], STEPS, BOTH
    for more in ({"period": 3}, {"period": 2, "outer": {"momentum": 0.3}, "consensus_step": 0.4}):
        yield of("noloco", **more), [*FIXED, MATCHINGS], STEPS, BOTH
    for more in ({"period": 3}, {"period": 1, "elastic": 0.05, "server": "sharded"}):
        yield of("easgd", **more), [IRREGULAR], STEPS, [SAME]


def periods():
    for more in ({"switch_round": 4}, {"switch_round": 7, "buffers": "average"}):
        yield of("local-sgd", period=3, **more), FIXED, HEAVY, BOTH
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
        yield settings, [IRREGULAR], how, BOTH
    for more in (
        {"period": 8},
        {"period": 30, "first_period": 2, "growth": 0.75, "buffers": "average"},
        {"period": 5, "first_period": 3, "growth": 0, "buffers": "reset"},
    ):
        yield of("local-sgd", period_schedule="growing", **more), [IRREGULAR], HEAVY, BOTH


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
        yield of("fedavg", **more), [IRREGULAR], HEAVY, BOTH
    few = {**TOP4, "sign": of("scaled-sign"), "stc": of("stc", k=4)}
    one = {**few, "top-k": of("top-k", k=1), "stc": of("stc", k=1)}
    for more in (
        {},
        {"error_feedback": False, "clients": 0.4},
        {"directions": "both", "clients": 0.6},
        {"directions": "both", "error_feedback": False},
    ):
        for server, lossy in ((2, few), ("sharded", one)):
            fedavg = of("fedavg", local_steps=3, server=server, **more)
            yield fedavg, [IRREGULAR], HEAVY, [SAME], lossy
    for more, lossy in (
        ({"local_steps": 2, "clients": SETS, "client_weights": WEIGHTS}, few),
        ({"local_steps": [3, 1, 2, 3, 1, 2, 3]}, few),
        ({"local_steps": 2, "clients": 0.5}, {"adacomp": of("adacomp", bin=5)}),
    ):
        yield of("fedavg", **more), [IRREGULAR], HEAVY, [SAME], lossy


def adam_with_messages():
    for name in ("d-adam", "d-amsgrad"):
        yield of(name), [RING, MATCHINGS], ADAM, BOTH
    sign, top = {"sign": of("scaled-sign")}, {"top": of("top-k", fraction=0.5)}
    for server in (2, "sharded"):
        adam = of("one-bit-adam", warmup_rounds=20, server=server)
        yield adam, [IRREGULAR], ADAM, [SAME], {**sign, **top}
    for beta2, more in ((0.9, {}), (0.95, {}), (0.8, {"warmup_rounds": 12})):
        adam = of("one-bit-adam", beta2=beta2, warmup_ratio=0.96, **more)
        yield adam, [IRREGULAR], ADAM, [SAME], sign


FAR = 16  # no two elements of these problems' models are ever so far apart


def not_models():
    steps = {"sgd": PLAIN, "nesterov": NESTEROV, "cosine": COSINE}
    for bits in (2, 6, 8, 20, 24):  # between, rounding decides too often
        moniqua = of("moniqua", theta=FAR, bits=bits)
        yield moniqua, [*FIXED, MATCHINGS, EXPONENTIAL], steps, BOTH
    yield of("moniqua", theta=FAR, bits=8, local_steps=3), [RING, MATCHINGS], steps, [OWN]
    yield of("relaysum"), [*FIXED, PATH, STAR, BINARY], SLOW, BOTH
    yield of("relaysum", tree="topology"), [PATH, STAR, BINARY], SLOW, [SAME]


# ---- a run, and what it says ----


def check_bytes(starling, bits):
    """Each of six rounds of a ring sends two messages of so many bytes, a frame each."""
    case = Case("", of("moniqua", theta=FAR, bits=bits), RING, PLAIN, SAME)
    sent = {node["bytes_sent"] for node in case.found(starling, None, 6, []).traffic}
    expected = 6 * 2 * (64 + (bits * D + 7) // 8)
    return (None if sent == {expected} else f"{sent}, expected {expected}"), 0


def check_doubts(starling, theta, doubted):
    """Elements that lie too far apart are counted, and warned of once a node."""
    found = Case("", of("moniqua", theta=theta), RING, STILL, OWN).found(starling, None, 6, [])
    counts = [node["doubtful"] for node in found.traffic]
    warnings = found.said.count("raise algorithm.theta")
    expected = sum(count > 0 for count in counts)
    good = warnings == expected and (expected == 8 if doubted else expected == 0)
    return (None if good else f"counts {counts}, {warnings} warnings"), 0


def all_checks(starling):
    tables = optimizers(), outer_steps(), periods(), federated(), adam_with_messages(), not_models()
    for rows in tables:
        for row in rows:
            for case in cases(*row):
                yield case.name, lambda case=case: compare(starling, case)
    for bits in (1, 7, 8, 20):
        yield f"moniqua of {bits} bits: bytes", lambda bits=bits: check_bytes(starling, bits)
    for theta, doubted in ((0.2, True), (FAR, False)):
        what = theta, doubted
        yield f"moniqua counts, theta {theta}", lambda what=what: check_doubts(starling, *what)


if __name__ == "__main__":
    sys.exit(_simulate.main(__doc__, all_checks))
