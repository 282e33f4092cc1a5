"""Messages that say nothing, and sums of sparse vectors on their way, which send what is not 0 of
them, or all: who sends when, and how much, is counted as in the reference."""
import numpy as np

from _cases import ROUNDS
from _simulate import of
import algorithms

HEADER = 64  # bytes of a frame's


def run_of(case, a, b, x0, **more):
    what = case.graph.slots, case.settings, case.optimizer, algorithms.Quadratic(a, b), x0
    run = algorithms.Run(*what, **more)
    for _ in range(ROUNDS):
        run.step()
    return run


# ---- silence ----

CHOCO = {"consensus_step": 0.3}
MIX_FIRST = {"variant": "mix-then-compress", **CHOCO}
SILENT = {
    "silent lag-3pc 1": of("lag-3pc", server=0),
    "silent lag-3pc 5": of("lag-3pc", trigger=5, server=0),
    "silent lag-wk": of("lag-wk", server=0),
    "silent lag-wk short": of("lag-wk", depth=3, xi=0.2, server=0),
    "silent laq": of("laq", server=0),
    "silent laq clock": of("laq", clock=2, bits=3, server=0),
    "silent choco-sgd": of("choco-sgd", trigger=20, **CHOCO),
    "silent choco-sgd growing": of("choco-sgd", trigger=5, trigger_growth=0.5, **MIX_FIRST),
    "silent clag 3": of("clag", trigger=3, server=0),
}


def payload_of(settings, d):
    """Bytes of a message that says something."""
    if settings["name"] == "laq":
        return (settings.get("bits", 4) * d + 7) // 8 + 4
    return 4 * d


def check_silences(starling, case):
    """(reason or None, 0), of messages to a server at rank 0, or along a ring."""
    problem, *_ = case.expected()
    silences = run_of(case, *problem).state.silent.ravel()
    payload, traffic = payload_of(case.settings, problem[2].shape[1]), case.found(starling, problem)
    rounds = ROUNDS - (case.settings.get("variant") == "mix-then-compress")  # the first has none
    by_server = "server" in case.settings
    for i in range(int(by_server), case.graph.n):
        to, silent = 1 if by_server else 2, int(silences[i])
        expected = {
            "messages_sent": to * (rounds - silent),
            "messages_silent": to * silent,
            "bytes_sent": to * (HEADER * rounds + payload * (rounds - silent)),
        }
        found = {key: traffic.traffic[i][key] for key in expected}
        if found != expected:
            return f"node {i}: {found}, expected {expected}", None
    some = (silences[1:] > 0).any() and (silences < rounds).all()
    return None if some else f"of {rounds} messages silent: {silences}", 0


# ---- sparse sums ----

SPARSE = {
    f"sparse sums of top-{k}": of(
        "all-reduce", all_reduce="recursive-doubling", compressor=of("top-k", k=k)
    )
    for k in (2, 7)
}


def message(held):
    """Bytes of a message of one part."""
    entries = int(held.sum())
    index = int(np.ceil(np.log2(len(held))))
    return HEADER + min(4 * entries + (entries * index + 7) // 8, 4 * len(held))


def sent(held):
    """Bytes that each place sends in recursive doubling, with a fold."""
    n = len(held)
    p = 2 ** int(np.log2(n))
    held, total = held.copy(), np.zeros(n, dtype=int)
    for i in range(p, n):
        total[i] += message(held[i])
        held[i - p] |= held[i]
    for h in (2**k for k in range(int(np.log2(p)))):
        before = held.copy()
        for i in range(p):
            total[i] += message(before[i])
            held[i] |= before[i ^ h]
    for i in range(n - p):
        total[i] += message(held[i])
    return total


def check_sparse(starling, case):
    """(reason or None, 0)"""
    problem, *_ = case.expected()
    chosen = []

    def watch(compress):
        def watched(v):
            chosen.append(compress(v))
            return chosen[-1]

        return watched

    run_of(case, *problem, watch=watch)
    expected = sum(sent(q != 0) for q in chosen)
    found = np.array([node["bytes_sent"] for node in case.found(starling, problem).traffic])
    return (None if (found == expected).all() else f"{found}, expected {expected}"), 0
