#!/usr/bin/env python3
"""The simulator's algorithms against an independent float64 program
(tests/reference/algorithms.py), on quadratic problems.

Each algorithm runs on a ring of eight, on an irregular graph, and where it can on directed and
time-varying graphs; with SGD, momentum, Nesterov and weight decay; with each compressor that leaves
nothing to chance; from equal and from different starts. What follows from the formulas, such as
that two algorithms are one, or that the mean stays, is not tried beside them."""
import json
import sys

import _centralized
import _counted
import _drawn
import _listed
import _simulate
from _cases import BOTH, COSINE, DECAY, DIGRAPH, EXPONENTIAL, FIXED, IRREGULAR, LAZY, LISTED
from _cases import MATCHINGS, MOMENTUM, NESTEROV, NONE, OWN, PATH, PLAIN, PROBLEMS, RING, SAME
from _cases import SEED, SIGN, SIX, STAR, STILL, TOP4, TORUS
from _cases import Case, cases, compare
from _simulate import QUICK, of
import algorithms

FIXED_D2 = [LAZY, IRREGULAR]  # the ring of eight has lambda_n = -1/3
VARYING = [*FIXED, MATCHINGS, EXPONENTIAL]

# What has cases in test_low_rank.py, test_sketch.py and test_outer.py.
ELSEWHERE = "powersgd power-gossip fetch-sgd moniqua relaysum slowmo diloco noloco fedavg easgd"
ELSEWHERE = [of(name) for name in f"{ELSEWHERE} d-adam d-amsgrad one-bit-adam".split()]
STEP = {"name": "step", "milestones": [0.4, 0.8], "factor": 0.3, "warmup_rounds": 6}
RATES = {
    "steps": {"learning_rate": 0.3, "momentum": 0.5, "schedule": STEP},
    "cosine": {**NESTEROV, "schedule": COSINE["schedule"]},
    "warm-up": {"learning_rate": 0.6, "schedule": {"name": "constant", "warmup_rounds": 8}},
}
# An exchange of all 20 parameters takes 2 ms over the fastest.
LINKS = {"bandwidth_mbit": 0.5, "latency_ms": 0.25, "links": [[0, 1, 0.3, 0.1], [2, 1, 0.4, 0.5]]}
FORMS = [
    *((form, 0) for form in "tree recursive-doubling halving-doubling double-tree star".split()),
    *(("hierarchical", group) for group in (0, 3)),
    *((form, group) for form in ("torus-2d", "two-rings") for group in (0, 1)),
]  # of an all-reduce, each with the nodes in a group
# no averaging of models to look at where the rate is 0
ALONE = {"sgd": PLAIN, "momentum": MOMENTUM, "nesterov": NESTEROV, "cosine": COSINE}
WITH_MOMENTUM = {**ALONE, "still": STILL}
HALVED = {
    how: {**optimizer, "learning_rate": optimizer["learning_rate"] / 2}
    for how, optimizer in WITH_MOMENTUM.items()
}
SGD = {"sgd": PLAIN, "decay": DECAY}
WITHOUT = {**SGD, "still": STILL}
SLOW = {
    "sgd": {"learning_rate": 0.03},
    "decay": {"learning_rate": 0.02, "weight_decay": 0.05},
    "cosine": {**COSINE, "learning_rate": 0.03},
    "still": STILL,
}  # for algorithms with a momentum of their own

LARGEST = {**NONE, "top-k": of("top-k", k=16)}  # what bears no small delta
MARKS = {
    "stc": of("stc", k=4),
    "sbc": of("sbc", fraction=0.2),
    "pos-neg": of("pos-neg", k=3),
    "3lc": of("3lc"),
    "stc golomb": of("stc", k=4, coding="golomb"),
    "top-k elias": of("top-k", k=4, coding="elias"),
}
STROM = {"strom": of("strom", threshold=0.3)}
BUCKETS = {"sign-in-buckets": of("scaled-sign", bucket=8)}
LOSSY = {**TOP4, "top-fraction": of("top-k", fraction=0.3), **SIGN, **BUCKETS}
ALL = {**NONE, **LOSSY}


# ---- the tables: what cases() takes ----


def uncompressed():
    for variant in ("adapt-then-combine", "combine-while-adapt"):
        d_psgd = of("d-psgd", variant=variant)
        yield d_psgd, VARYING, WITH_MOMENTUM, BOTH
        yield {**d_psgd, "local_steps": 3}, [RING, MATCHINGS, EXPONENTIAL], WITH_MOMENTUM, [OWN]
        yield d_psgd, [LAZY, PATH, STAR, TORUS, LISTED, SIX], RATES, [OWN]
        yield of("gradient-tracking", variant=variant), VARYING, WITHOUT, BOTH
    yield of("sgp"), [DIGRAPH, EXPONENTIAL, RING, IRREGULAR], WITH_MOMENTUM, BOTH
    yield of("sgp", local_steps=3), [DIGRAPH, EXPONENTIAL], WITH_MOMENTUM, [OWN]
    yield of("exact-diffusion"), [*FIXED, MATCHINGS], WITHOUT, BOTH
    yield of("exact-diffusion", matrix="plain"), FIXED_D2, WITHOUT, BOTH
    for clip in ({"clip": 0.5}, {}):
        yield of("clipped-gossip", **clip), [*FIXED, MATCHINGS], WITH_MOMENTUM, [OWN]
    yield of("clipped-gossip", variant="median"), [*FIXED, MATCHINGS], ALONE, [OWN]
    yield of("clipped-gossip", variant="trimmed-mean"), [RING, LAZY], ALONE, [OWN]
    yield of("qgm"), [*FIXED, MATCHINGS], SLOW, BOTH
    yield of("qgm", beta=0.8, nesterov=True), [*FIXED, EXPONENTIAL], SLOW, [OWN]
    yield of("qgm", beta=0.8, mu=0.6), FIXED, SLOW, [OWN]
    yield of("decentlam"), [*FIXED, MATCHINGS], SLOW, BOTH
    yield of("decentlam", beta=0.5), FIXED, SLOW, [OWN]


def compressed():
    masks = {f"{f}": of("shared-mask", order="cyclic", fraction=f) for f in (0.6, 0.3, 0.15)}
    for steps in (1, 2):
        yield of("d-psgd", local_steps=steps), VARYING, WITH_MOMENTUM, BOTH, masks
    for name in ("dcd-psgd", "ecd-psgd"):
        yield of(name), FIXED, HALVED, [SAME], ALL
    each = {"replicas": "per-neighbour"}
    yield of("dcd-psgd", **each), [IRREGULAR, MATCHINGS], HALVED, [SAME], ALL
    for variant, whole in (("compress-then-mix", 1), ("mix-then-compress", 0.8)):
        choco = of("choco-sgd", variant=variant, consensus_step=0.3)
        yield {**choco, "consensus_step": whole}, FIXED, WITH_MOMENTUM, BOTH, NONE
        yield choco, FIXED, WITH_MOMENTUM, BOTH, LOSSY
        yield {**choco, **each}, [IRREGULAR, MATCHINGS], WITH_MOMENTUM, [OWN], ALL
        yield {**choco, "local_steps": 2}, FIXED, WITH_MOMENTUM, [OWN], TOP4
        sparq = {**choco, "trigger": 10, "trigger_growth": 0.4}
        yield sparq, FIXED, ALONE, BOTH, ALL
        yield {**sparq, "local_steps": 3, **each}, [MATCHINGS], ALONE, [OWN], TOP4
    links = {"network": LINKS, "compressor": of("top-k", k=12)}
    for round_ms, more in ((14, {}), (30, {"consensus_step": 0.1}), ("median", {"local_steps": 2})):
        choco = of("choco-sgd", budget={"round_ms": round_ms, "fraction_min": 0.05}, **more)
        yield {**choco, **links}, [*FIXED, TORUS], WITH_MOMENTUM, BOTH
    falling = {
        "falling top": of("top-k", fraction=0.5, schedule=[[4, 0.2], [9, 0.1]]),
        "finer qsgd": of("qsgd", levels=2, contractive=True, schedule=[[2, 3], [7, 9]]),
    }
    yield of("choco-sgd", consensus_step=0.1), FIXED, WITH_MOMENTUM, [OWN], falling
    yield of("choco-sgd", consensus_step=0.1, local_steps=2), [RING], ALONE, [OWN], falling
    yield of("deep-squeeze", eta=1), FIXED, WITH_MOMENTUM, BOTH, NONE
    yield of("deep-squeeze", eta=0.2), FIXED, WITH_MOMENTUM, BOTH, LOSSY
    yield of("deep-squeeze", eta=0.2), [MATCHINGS], WITH_MOMENTUM, [OWN], TOP4
    yield of("deep-squeeze", eta=0.2, local_steps=4), FIXED, WITH_MOMENTUM, [OWN], SIGN
    # With a larger step 3lc's errors grow from round to round, and those of rounding with them.
    for what, config in MARKS.items():
        choco = of("choco-sgd", consensus_step=0.02 if what == "3lc" else 0.2)
        yield choco, FIXED, WITH_MOMENTUM, [SAME], {what: config}
    yield of("deep-squeeze", eta=0.1), FIXED, WITH_MOMENTUM, [OWN], MARKS
    yield of("beer", consensus_step=0.3), FIXED, WITHOUT, [SAME], {**NONE, **TOP4, **SIGN}
    yield of("beer", consensus_step=1), FIXED, WITHOUT, [OWN], NONE
    yield of("lead"), FIXED, WITHOUT, BOTH, LARGEST
    yield of("lead", alpha=0.25, gamma=0.5), FIXED, WITHOUT, [OWN], LARGEST
    yield of("naive-compression"), FIXED, WITH_MOMENTUM, BOTH, {**NONE, **TOP4, **SIGN}
    yield of("naive-compression"), FIXED, ALONE, [OWN], STROM


def to_all():
    late = {"momentum": MOMENTUM}
    yield of("all-reduce"), FIXED, ALONE, [SAME]
    for form, group in FORMS:
        how = {"all_reduce": form, "group": group}
        yield of("all-reduce", **how), FIXED, late, [SAME]
        yield of("local-sgd", period=3, **how), [RING], late, [OWN]
    for period in (1, 3, 10):
        yield of("local-sgd", period=period), FIXED, WITH_MOMENTUM, BOTH
    for server in (0, 5, "sharded"):
        yield of("parameter-server", server=server), FIXED, ALONE, [SAME]
    few = {"top-1": of("top-k", k=1), "top-fraction": of("top-k", fraction=0.4)}
    for server in (0, 5):
        yield of("double-squeeze", server=server), FIXED, SGD, [SAME], ALL
    yield of("double-squeeze", server="sharded"), FIXED, SGD, [SAME], {**NONE, **few, **SIGN}
    for warmup, k in ((0, 4), (5, 3), (7, 1)):
        cd_sgd = of("cd-sgd", warmup_rounds=warmup, correction_period=k, threshold=0.05)
        yield {**cd_sgd, "local_learning_rate": 0.1}, FIXED, SGD, [SAME]
        yield {**cd_sgd, "server": "sharded"}, FIXED, {"sgd": PLAIN, "cosine": COSINE}, [SAME]


def all_cases():
    for rows in (uncompressed(), compressed(), to_all(), _centralized.rows(), _centralized.sums()):
        for row in rows:
            yield from cases(*row)
    on_three = [(RING, PLAIN, SAME), (IRREGULAR, MOMENTUM, SAME), (IRREGULAR, PLAIN, OWN)]
    for count, (label, settings, where) in enumerate(_drawn.cases(on_three)):
        yield Case(label, settings, *where, SEED + 100 * (count % PROBLEMS))


def check_reference():
    """The reference against itself."""
    wrong = [name for name, holds in algorithms.self_check() if not holds]
    return (f"does not hold: {wrong}" if wrong else None), 0


def all_checks(starling):
    """(name, function that returns (reason or None, worst difference))"""
    chosen = list(all_cases())
    named = [*(case.settings for case in chosen), *ELSEWHERE]
    for name in _listed.unnamed(starling, named):
        chosen += cases(of(name), FIXED, {"sgd": PLAIN}, BOTH)
    if QUICK:
        chosen = {json.dumps(case.settings): case for case in chosen}.values()
    for case in chosen:
        yield case.name, lambda case=case: compare(starling, case)
    if QUICK:
        return
    yield "the reference by itself", check_reference
    for name, settings in _counted.SILENT.items():
        case = Case(name, settings, RING, PLAIN, SAME)
        yield f"{name}: counted", lambda case=case: _counted.check_silences(starling, case)
    for name, settings in _counted.SPARSE.items():
        for graph in FIXED:
            case = Case(f"{name} {graph}", settings, graph, PLAIN, SAME)
            yield case.name, lambda case=case: _counted.check_sparse(starling, case)


if __name__ == "__main__":
    sys.exit(_simulate.main(__doc__, all_checks))
