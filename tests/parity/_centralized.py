"""Centralized algorithms whose messages are compressed or late: what tests run of them."""

SAME, RING, IRREGULAR = "same", "ring", "irregular"
FIXED = [RING, IRREGULAR]
PLAIN = {"learning_rate": 0.2}
DECAY = {"learning_rate": 0.1, "weight_decay": 0.05}
NESTEROV = {"learning_rate": 0.03, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}
HEAVY = {"learning_rate": 0.03, "momentum": 0.9, "weight_decay": 0.01}
COSINE = {"learning_rate": 0.2, "schedule": {"name": "cosine", "minimum": 0.05, "warmup_rounds": 5}}
NONE = {"identity": {"name": "identity"}}
TOP4 = {"top-k": {"name": "top-k", "k": 4}}
SIGN = {"scaled-sign": {"name": "scaled-sign"}}
LOSSY = {**TOP4, **SIGN}
TWO_BITS = {"name": "threshold", "threshold": 0.3}


def compressed(cases):
    """C-SGD and local SGD whose messages are compressed, through servers and without them."""
    none, both = {"error_feedback": False}, {"directions": "both"}
    quick = {"nesterov": NESTEROV, "cosine": COSINE}
    for what, more in (("", {}), (" no feedback", none), (" both", both)):
        for server in (5, "sharded"):
            by = {"name": "parameter-server", "server": server, **more}
            lossy = LOSSY if server == 5 else {"top-1": {"name": "top-k", "k": 1}, **SIGN}
            yield from cases(f"parameter-server{what} {server}", by, lossy, FIXED, quick, [SAME])
        local = {"name": "local-sgd", "period": 3, **more}
        yield from cases(f"local-sgd{what}", local, LOSSY, FIXED, quick, [SAME])
    server = {"name": "parameter-server"}
    yield from cases("bit-sgd", server, {"2-bit": TWO_BITS}, FIXED, quick, [SAME])
    for by, config in (
        (server, {"bin": 5}),
        ({**server, "server": "sharded"}, {"bin": 2}),
        ({"name": "all-reduce"}, {"bin": 7}),
        ({"name": "local-sgd", "period": 3}, {"bin": 5}),
        ({**server, **none}, {"bin": 5}),
    ):
        bins = {"adacomp": {"name": "adacomp", **config}}
        name = " ".join(map(str, by.values()))
        yield from cases(f"{name} bins of {config['bin']}", by, bins, FIXED, quick, [SAME])
    neither = {"name": "parameter-server", **none, **both}
    yield from cases("parameter-server both, no feedback", neither, TOP4, FIXED, quick, [SAME])
    for what, more in (
        ("", {}),
        (" no feedback", none),
        (" sparse", {"all_reduce": "recursive-doubling"}),
    ):
        to_all = {"name": "all-reduce", **more}
        yield from cases(f"all-reduce{what}", to_all, LOSSY, FIXED, quick, [SAME])
    plain = {"sgd": PLAIN, "decay": DECAY}
    for server in (0, "sharded"):
        ecq = {"name": "ecq-sgd", "alpha": 0.4, "beta": 0.7, "server": server}
        lossy = {"top-1": {"name": "top-k", "k": 1}, **SIGN}
        yield from cases(f"ecq-sgd {server}", ecq, lossy, FIXED, plain, [SAME])
    ball = {"sgd": PLAIN, "heavy ball": HEAVY, "cosine": {**COSINE, "momentum": 0.5}}
    yield from cases("gmc", {"name": "gmc"}, {**LOSSY, **NONE}, FIXED, ball, [SAME])
    # The v's of a long momentum meet in magnitude where rounding decides; a warm-up has edges, too.
    swift = {**NESTEROV, "momentum": 0.5, "learning_rate": 0.1}
    slow = {"sgd": {"learning_rate": 0.05}, "momentum": {**swift, "nesterov": False}}
    slow["nesterov"] = swift
    for what, more in (
        ("", {}),
        (" clip", {"clip": 2}),
        (" warm-up", {"warmup_k": [20, 20, 10, 6]}),
        (" epochs", {"warmup": [0.5, 0.25], "clip": 5}),
    ):
        yield from cases(f"dgc{what}", {"name": "dgc", **more}, TOP4, FIXED, slow, [SAME])
    yield from cases("dgc", {"name": "dgc", "clip": 3}, NONE, FIXED, quick, [SAME])
    yield from cases("gtop-k", {"name": "gtop-k"}, {**TOP4, **NONE}, FIXED, quick, [SAME])
    for server in (5, "sharded"):
        few = LOSSY if server == 5 else {"top-1": {"name": "top-k", "k": 1}, **SIGN}
        by = {"server": server}
        yield from cases(f"ef21 {server}", {"name": "ef21", **by}, few, FIXED, quick, [SAME])
        for trigger in (1, 5):
            lazy = {"trigger": trigger, **by}
            lag, clag = {"name": "lag-3pc", **lazy}, {"name": "clag", **lazy}
            yield from cases(f"lag-3pc {trigger} {server}", lag, None, FIXED, quick, [SAME])
            yield from cases(f"clag {trigger} {server}", clag, few, FIXED, quick, [SAME])
        for more in ({}, {"depth": 3, "xi": 0.1}):
            lag = {"name": "lag-wk", **more, **by}
            yield from cases(f"lag-wk {more.get('xi')} {server}", lag, None, FIXED, quick, [SAME])
        for more in ({}, {"depth": 3, "bits": 2, "clock": 3}):
            laq = {"name": "laq", **more, **by}
            yield from cases(f"laq {more.get('bits')} {server}", laq, None, FIXED, quick, [SAME])
        moved = {"name": "diana", "alpha": 0.7, "beta": 0.5, **by}
        slow = {"sgd": {"learning_rate": 0.05}, "decay": {**DECAY, "learning_rate": 0.05}}
        yield from cases(f"diana {server}", moved, few, FIXED, slow, [SAME])
    small = {"sgd": {"learning_rate": 0.02}, "decay": {**DECAY, "learning_rate": 0.02}}
    for server in (0, 5, "sharded"):
        signed = {"name": "sign-vote", "server": server}
        yield from cases(f"sign-vote {server}", signed, None, FIXED, small, [SAME])
        signum = {**signed, "beta": 0.9}
        yield from cases(f"sign-vote signum {server}", signum, None, FIXED, small, [SAME])
    for delay in (1, 3):
        slow = {"sgd": {"learning_rate": 0.05}, "nesterov": {**NESTEROV, "learning_rate": 0.005}}
        late = {"name": "all-reduce", "delay": delay}
        yield from cases(f"all-reduce delay {delay}", late, None, FIXED, slow, [SAME])


FORMS = (
    *("tree", "recursive-doubling", "halving-doubling", "hierarchical"),
    *("torus-2d", "two-rings", "double-tree", "star"),
)


def sparse_sums(cases):
    """Sums of sparse vectors on their way to all, by each form."""
    few, bins = {"top-3": {"name": "top-k", "k": 3}}, {"bins": {"name": "adacomp", "bin": 5}}
    heavy = {"heavy": HEAVY}
    for form in FORMS:
        by = {"name": "all-reduce", "all_reduce": form}
        yield from cases(f"sparse sums by {form}", by, few, [RING], heavy, [SAME])
    yield from cases("sparse sums", {**by, "all_reduce": "tree"}, bins, [RING], heavy, [SAME])
    doubling = {"all_reduce": "recursive-doubling"}
    for settings in ({"name": "gmc"}, {"name": "dgc", "warmup_k": [20, 8], "clip": 3}):
        label = f"sparse sums of {settings['name']}"
        yield from cases(label, {**settings, **doubling}, few, [RING], heavy, [SAME])
