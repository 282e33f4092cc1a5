"""An experiment's key `algorithm` for each algorithm and form: what tests run of all of them."""
from _simulate import of

TOP = of("top-k", fraction=0.01)
TOP_TENTH = of("top-k", fraction=0.1)
DROPPING = of("magnitude-dropping", fraction=0.3, contractive=True)
QSGD = of("qsgd", levels=127, bucket=512)
SIGN = of("scaled-sign")
MASK = of("shared-mask", fraction=0.3)
TERNARY = of("terngrad", bucket=0, share_scale=True)
EACH = {"replicas": "per-neighbour"}
CLIENTS = {"local_steps": 2, "clients": 0.5}

GOSSIP = {
    "d-psgd adapt-then-combine": of("d-psgd"),
    "d-psgd combine-while-adapt": of("d-psgd", variant="combine-while-adapt"),
    "d-psgd local steps": of("d-psgd", local_steps=2),
    "d-psgd masked": of("d-psgd", compressor=MASK),
    "d-psgd masked in order": of("d-psgd", compressor={**MASK, "order": "cyclic"}),
    "dcd-psgd": of("dcd-psgd", compressor=QSGD),
    "dcd-psgd plain": of("dcd-psgd"),
    "dcd-psgd replicas": of("dcd-psgd", **EACH, compressor=QSGD),
    "ecd-psgd": of("ecd-psgd", compressor=of("natural")),
    "choco-sgd top-k": of("choco-sgd", compressor=TOP),
    "choco-sgd top-k dense": of("choco-sgd", compressor=of("top-k", fraction=0.3)),
    "choco-sgd replicas": of("choco-sgd", **EACH, compressor=DROPPING),
    "choco-sgd sign": of("choco-sgd", compressor=SIGN),
    "choco-sgd mix-then-compress": of(
        "choco-sgd", variant="mix-then-compress", compressor=of("random-k", fraction=0.1)
    ),
    "choco-sgd plain": of("choco-sgd", consensus_step=1),
    "choco-sgd plain per tensor": of(
        "choco-sgd", consensus_step=1, compressor=of("identity", per="tensor")
    ),
    "choco-sgd schedule": of(
        "choco-sgd", compressor=of("top-k", fraction=0.3, schedule=[[3, 0.1], [6, 0.02]])
    ),
    "choco-sgd per tensor": of("choco-sgd", compressor=of("1-bit", per="tensor")),
    "choco-sgd by link": of("choco-sgd", budget={"round_ms": "median"}, compressor=TOP_TENTH),
    "deep-squeeze": of("deep-squeeze", compressor=of("terngrad", clip_sigma=2.5)),
    "deep-squeeze plain": of("deep-squeeze"),
    "deep-squeeze float16": of("deep-squeeze", compressor=of("float16")),
    "sgp": of("sgp"),
    "gradient-tracking": of("gradient-tracking"),
    "gradient-tracking combine-while-adapt": of("gradient-tracking", variant="combine-while-adapt"),
    "exact-diffusion": of("exact-diffusion"),
    "d2": of("exact-diffusion", matrix="plain"),
    "qgm": of("qgm", nesterov=True),
    "decentlam": of("decentlam"),
    "gossip-pga": of("gossip-pga", average_period=2),
    "clipped-gossip": of("clipped-gossip"),
    "clipped-gossip median": of("clipped-gossip", variant="median"),
    "beer": of("beer", compressor=of("top-k", fraction=0.05)),
    "lead": of("lead", compressor=QSGD),
    "moniqua": of("moniqua", theta=0.5),
    "relaysum": of("relaysum"),
    "power-gossip": of("power-gossip", rank=2),
    "d-adam": of("d-adam"),
    "d-amsgrad": of("d-amsgrad"),
    "naive-compression": of("naive-compression", compressor=of("strom", threshold=0.1)),
}
TO_ALL = {
    "all-reduce": of("all-reduce"),
    "all-reduce doubling": of("all-reduce", all_reduce="recursive-doubling"),
    "all-reduce top-k": of("all-reduce", compressor=TOP),
    "all-reduce shared scale": of("all-reduce", compressor=TERNARY),
    "all-reduce of sparse sums": of("all-reduce", all_reduce="recursive-doubling", compressor=TOP),
    "all-reduce delayed": of("all-reduce", delay=2),
    "parameter-server": of("parameter-server"),
    "parameter-server sharded": of("parameter-server", server="sharded"),
    "parameter-server both": of(
        "parameter-server", directions="both", error_feedback=True, compressor=TOP
    ),
    "parameter-server sharded qsgd": of("parameter-server", server="sharded", compressor=QSGD),
    "ef21": of("ef21", server="sharded", compressor=TOP),
    "lag-3pc": of("lag-3pc"),
    "clag": of("clag", trigger=2, server="sharded", compressor=TOP),
    "lag-wk": of("lag-wk", depth=3),
    "laq": of("laq", depth=3),
    "diana": of("diana", beta=0.5, compressor=QSGD),
    "ecq-sgd": of("ecq-sgd", compressor=of("natural")),
    "gmc": of("gmc", compressor=TOP),
    "dgc": of("dgc", clip=1, warmup_k=[1500, 500], compressor=of("top-k", k=30)),
    "gtop-k": of("gtop-k", compressor=TOP),
    "powersgd": of("powersgd", rank=2),
    "fetch-sgd": of("fetch-sgd", sketch={"rows": 3, "k": 50}),
    "sign-vote": of("sign-vote", beta=0.9),
    "double-squeeze": of("double-squeeze", compressor=of("bfloat16")),
    "double-squeeze sharded": of(
        "double-squeeze", server="sharded", compressor=of("random-dropping", probability=0.3)
    ),
    "cd-sgd": of("cd-sgd", correction_period=3),
    "one-bit-adam": of(
        "one-bit-adam", beta2=0.5, warmup_ratio=0.3, warmup_rounds=4, compressor=SIGN
    ),
}
LOCAL = {
    "local-sgd": of("local-sgd", period=2),
    "local-sgd double-tree": of("local-sgd", period=2, all_reduce="double-tree"),
    "local-sgd sign": of("local-sgd", period=2, compressor=SIGN),
    "post-local": of("local-sgd", period=2, switch_round=3),
    "adaptive period": of("local-sgd", period=6, period_schedule="adaptive"),
    "growing period": of("local-sgd", period=6, period_schedule="growing"),
    "slowmo": of("slowmo", period=2, buffers="average"),
    "slowmo on d-psgd": of("slowmo", period=2, base="d-psgd", buffers="reset"),
    "diloco": of("diloco", period=2),
    "noloco": of("noloco", period=2),
    "fedavg": of("fedavg", **CLIENTS),
    "fedavg top-k": of("fedavg", **CLIENTS, directions="both", compressor=TOP_TENTH),
    "easgd": of("easgd", period=2),
}
CASES = {**GOSSIP, **TO_ALL, **LOCAL}


def links_for(settings):
    """What an experiment has beside, where messages follow the links."""
    network = {"bandwidth_mbit": 100, "links": [[0, 1, 40]]}
    return {"network": network} if "budget" in settings else {}


WITHOUT_MOMENTUM = (
    *("gradient-tracking", "exact-diffusion", "double-squeeze", "cd-sgd", "qgm", "decentlam"),
    *("beer", "lead", "ecq-sgd", "diana", "fetch-sgd", "sign-vote"),
    *("d-adam", "d-amsgrad", "one-bit-adam"),
)
# They read vectors themselves, or their compressor has no GPU kernel.
HOST_ONLY = (
    *("d-amsgrad", "moniqua", "power-gossip", "d-psgd masked in order", "clipped-gossip median"),
    *("all-reduce shared scale", "all-reduce of sparse sums"),
    *("laq", "powersgd", "fetch-sgd", "sign-vote"),
)
