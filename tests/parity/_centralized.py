"""Centralized algorithms whose messages are compressed or late: what test_algorithms.py runs of
them. A row is what cases() takes."""
from _cases import COSINE, DECAY, FIXED, NESTEROV, NONE, PLAIN, RING, SAME, SIGN, TOP4
from _simulate import of

HEAVY = {"learning_rate": 0.03, "momentum": 0.9, "weight_decay": 0.01}
QUICK = {"nesterov": NESTEROV, "cosine": COSINE}
LOSSY = {**TOP4, **SIGN}
FEW = {"top-1": of("top-k", k=1), **SIGN}  # of a shard
SERVERS = ((5, LOSSY), ("sharded", FEW))


def rows():
    for settings, optimizers, *compressors in [*sent(), *of_momentum(), *lazy(), *late()]:
        yield settings, FIXED, optimizers, [SAME], *compressors


def sent():
    """C-SGD and local SGD, through servers and without them."""
    none, both = {"error_feedback": False}, {"directions": "both"}
    for more in ({}, none, both):
        for server, lossy in SERVERS:
            yield of("parameter-server", server=server, **more), QUICK, lossy
        yield of("local-sgd", period=3, **more), QUICK, LOSSY
    yield of("parameter-server"), QUICK, {"2-bit": of("threshold", threshold=0.3)}
    yield of("parameter-server", **none, **both), QUICK, TOP4
    for settings, size in (
        (of("parameter-server"), 5),
        (of("parameter-server", server="sharded"), 2),
        (of("all-reduce"), 7),
        (of("local-sgd", period=3), 5),
        (of("parameter-server", **none), 5),
    ):
        yield settings, QUICK, {f"bins of {size}": of("adacomp", bin=size)}
    for more in ({}, none, {"all_reduce": "recursive-doubling"}):
        yield of("all-reduce", **more), QUICK, LOSSY


def of_momentum():
    for server in (0, "sharded"):
        ecq = of("ecq-sgd", alpha=0.4, beta=0.7, server=server)
        yield ecq, {"sgd": PLAIN, "decay": DECAY}, FEW
    ball = {"sgd": PLAIN, "heavy ball": HEAVY, "cosine": {**COSINE, "momentum": 0.5}}
    yield of("gmc"), ball, {**LOSSY, **NONE}
    # The v's of a long momentum meet in magnitude where rounding decides; a warm-up has edges, too.
    swift = {**NESTEROV, "momentum": 0.5, "learning_rate": 0.1}
    slow = {"sgd": {"learning_rate": 0.05}, "momentum": {**swift, "nesterov": False}}
    slow["nesterov"] = swift
    warm = ({"warmup_k": [20, 20, 10, 6]}, {"warmup": [0.5, 0.25], "clip": 5})
    for more in ({}, {"clip": 2}, *warm):
        yield of("dgc", **more), slow, TOP4
    yield of("dgc", clip=3), QUICK, NONE
    yield of("gtop-k"), QUICK, {**TOP4, **NONE}
    small = {"sgd": {"learning_rate": 0.02}, "decay": {**DECAY, "learning_rate": 0.02}}
    for server in (0, 5, "sharded"):
        yield of("sign-vote", server=server), small
        yield of("sign-vote", server=server, beta=0.9), small


def lazy():
    """Differences to what is known, which may not be worth a message."""
    slow = {"sgd": {"learning_rate": 0.05}, "decay": {**DECAY, "learning_rate": 0.05}}
    for server, few in SERVERS:
        yield of("ef21", server=server), QUICK, few
        for trigger in (1, 5):
            yield of("lag-3pc", trigger=trigger, server=server), QUICK
            yield of("clag", trigger=trigger, server=server), QUICK, few
        for more in ({}, {"depth": 3, "xi": 0.1}):
            yield of("lag-wk", **more, server=server), QUICK
        for more in ({}, {"depth": 3, "bits": 2, "clock": 3}):
            yield of("laq", **more, server=server), QUICK
        yield of("diana", alpha=0.7, beta=0.5, server=server), slow, few


def late():
    slow = {"sgd": {"learning_rate": 0.05}, "nesterov": {**NESTEROV, "learning_rate": 0.005}}
    for delay in (1, 3):
        yield of("all-reduce", delay=delay), slow


FORMS = (
    *("tree", "recursive-doubling", "halving-doubling", "hierarchical"),
    *("torus-2d", "two-rings", "double-tree", "star"),
)


def sums():
    """Sums of sparse vectors on their way to all, by each form."""
    few, bins = {"top-3": of("top-k", k=3)}, {"bins": of("adacomp", bin=5)}
    doubling = {"all_reduce": "recursive-doubling"}
    for settings, compressors in (
        *((of("all-reduce", all_reduce=form), few) for form in FORMS),
        (of("all-reduce", all_reduce="tree"), bins),
        (of("gmc", **doubling), few),
        (of("dgc", warmup_k=[20, 8], clip=3, **doubling), few),
    ):
        yield settings, [RING], {"heavy": HEAVY}, [SAME], compressors
