"""Settings that between them hold every compressor, family of schedules, optimizer, schedule of the
learning rate and partition: what a test crosses that cannot run all products of them."""
from _listed import allowed, families

COMPRESSORS = [
    {"name": "identity", "per": "tensor"},
    {"name": "float16"},
    {"name": "bfloat16"},
    {"name": "float8"},
    {"name": "top-k", "fraction": 0.1},
    {"name": "top-k", "k": 5, "per": "tensor", "coding": "elias"},
    {"name": "random-k", "fraction": 0.1},
    {"name": "random-k", "k": 400, "scaled": True, "contractive": True},
    {"name": "qsgd", "levels": 127, "bucket": 512},
    {"name": "qsgd", "levels": 64, "norm": "max", "bucket": 100, "per": "tensor"},
    {"name": "scaled-sign", "bucket": 100},
    {"name": "1-bit", "per": "tensor"},
    {"name": "1-bit", "bucket": 64},
    {"name": "terngrad", "bucket": 64},
    {"name": "terngrad", "coding": "huffman", "clip_sigma": 2.5},
    {"name": "qsgd", "levels": 40, "bucket": 512, "coding": "elias"},
    {"name": "natural", "contractive": False},
    {"name": "random-dropping", "probability": 0.3},
    {"name": "random-dropping", "probability": 0.5, "scaled": True, "contractive": True},
    {"name": "stc", "fraction": 0.1, "coding": "golomb"},
    {"name": "sbc", "k": 100},
    {"name": "pos-neg", "fraction": 0.05, "per": "tensor"},
    {"name": "drive"},
    {"name": "rotated-qsgd", "levels": 127, "bucket": 512, "per": "tensor"},
    {"name": "rotated-terngrad", "bucket": 64},
    *[{"name": "eden", "bits": bits} for bits in (1, 2, 3, 4)],
    {"name": "threshold", "threshold": 0.01},
    {"name": "strom", "threshold": 0.01},
    {"name": "3lc", "multiplier": 1.2},
    {"name": "magnitude-dropping", "fraction": 0.3, "contractive": True},
    {"name": "shared-mask", "fraction": 0.2},
    {"name": "adacomp", "bin": 50, "per": "tensor"},
]
NO_ERROR_FEEDBACK = ("threshold", "strom")  # nothing bounds what they leave out
TWO_INPUTS = ("adacomp",)  # what is new stands beside what is left
UNBIASED = ("identity", "float16", "bfloat16", "qsgd", "natural", "random-k", "random-dropping")
NO_GPU_KERNELS = (
    *("sbc", "pos-neg", "drive", "eden", "rotated-qsgd", "rotated-terngrad"),
    *("3lc", "adacomp"),
)
ANY = [
    {"name": "choco-sgd", "replicas": "per-neighbour"},
    {"name": "deep-squeeze"},
    {"name": "choco-sgd", "variant": "mix-then-compress"},
    {"name": "double-squeeze", "server": "sharded"},
    {"name": "choco-sgd", "local_steps": 2},
    {"name": "naive-compression"},
    {"name": "double-squeeze"},
]
TAKES_UNBIASED = [{"name": "dcd-psgd"}, {"name": "ecd-psgd"}]

FIXED = (
    "ring path grid torus hypercube star wheel complete complete-bipartite k-ary-tree barbell "
    "lollipop circulant symmetric-exponential clusters random-regular erdos-renyi watts-strogatz "
    "random-geometric directed-ring static-exponential de-bruijn kautz d-equistatic u-equistatic"
).split()
SLOTS = {
    "nodes": 4,
    "schedule": [{"edges": [[0, 1], [2, 3]]}, {"edges": [[1, 2], [3, 0]]}, {"edges": [[0, 2]]}],
}
COMBINING = {"name": "d-psgd", "variant": "combine-while-adapt"}
REPLICAS = [
    {"name": "choco-sgd", "replicas": "per-neighbour", "compressor": {"name": "drive"}},
    {"name": "dcd-psgd", "replicas": "per-neighbour", "compressor": {"name": "natural"}},
]
# Schedules, each with an algorithm that takes it.
SCHEDULES = [
    ({"family": "one-peer-exponential", "nodes": 5}, {"name": "sgp"}),
    ({"family": "one-peer-exponential", "nodes": 8}, COMBINING),
    ({"family": "one-peer-hypercube", "nodes": 4}, REPLICAS[0]),
    ({"family": "hyper-cuboid", "nodes": 6}, REPLICAS[1]),
    ({"family": "alternating-matchings", "nodes": 6}, REPLICAS[0]),
    ({"family": "base-k", "nodes": 5, "peers": 1}, REPLICAS[1]),
    ({"family": "od-equidyn", "nodes": 6}, {"name": "sgp"}),
    ({"family": "ou-equidyn", "nodes": 6}, {"name": "deep-squeeze"}),
    ({"family": "matcha", "nodes": 6, "base": "ring"}, REPLICAS[0]),
    ({"family": "matcha", "nodes": 6, "base": "complete"}, {"name": "d-psgd"}),
    (SLOTS, {"name": "gradient-tracking"}),
    ({"family": "random-matching", "nodes": 6, "period": 12}, {"name": "noloco", "period": 2}),
    ({"family": "epidemic", "nodes": 7, "degree": 3}, {"name": "d-psgd"}),
    ({"family": "epidemic", "nodes": 6, "degree": 2}, REPLICAS[0]),
]

OPTIMIZERS = [
    {"momentum": 0.9},
    {},
    {"momentum": 0.8, "nesterov": True, "weight_decay": 1e-3},
    {"weight_decay": 1e-2},
    {"name": "adamw", "momentum": 0, "weight_decay": 1e-3, "clip_norm": 1},
    {"name": "lars", "momentum": 0.5, "weight_decay": 1e-3},
    {"name": "lamb", "momentum": 0, "trust": 0.1},
]
RATES = [
    {"name": "cosine", "warmup_rounds": 3},
    {"name": "step", "milestones": [0.3, 0.6]},
    {"name": "constant", "warmup_rounds": 8},
    {"name": "cosine", "minimum": 0.1},
]
PARTITIONS = [
    {"name": "shards"},
    {"name": "dirichlet", "alpha": 0.5},
    {"name": "iid"},
]


def without_scale(compressor):
    return {k: v for k, v in compressor.items() if k not in ("scaled", "contractive")}


def with_compressors():
    """An algorithm's settings for each of COMPRESSORS, and one more that needs it unbiased."""
    for i, compressor in enumerate(COMPRESSORS):
        name = compressor["name"]
        algorithm = ANY[i % len(ANY)]
        if name in NO_ERROR_FEEDBACK:
            algorithm = {"name": "naive-compression"}
        if name in TWO_INPUTS:
            algorithm = {"name": "all-reduce"}
        yield {**algorithm, "compressor": compressor}
        if name in UNBIASED:
            yield {**TAKES_UNBIASED[i % 2], "compressor": without_scale(compressor)}


def combinations():
    """topology or None, algorithm, optimizer, partition. The numbers of optimizers, rates and
    partitions have no common divisor, so that all pairs of them come, too."""
    pairs = [(None, algorithm) for algorithm in with_compressors()] + SCHEDULES
    for i, (topology, algorithm) in enumerate(pairs):
        optimizer = {**OPTIMIZERS[i % 7], "schedule": RATES[i % 4]}
        yield topology, algorithm, optimizer, PARTITIONS[i % 3]


def forgotten(starling, partitions=()):
    """What the program allows and nothing here holds."""
    held = {
        "algorithm.compressor.name": [c["name"] for c in COMPRESSORS],
        "algorithm.compressor.coding": ["none", *(c.get("coding") for c in COMPRESSORS)],
        "optimizer.name": ["sgd", *(optimizer.get("name") for optimizer in OPTIMIZERS)],
        "optimizer.schedule.name": [rate["name"] for rate in RATES],
        "data.partition.name": [p["name"] for p in PARTITIONS] + list(partitions),
    }
    missing = [n for key, names in held.items() for n in allowed(starling, key) if n not in names]
    known = [*FIXED, *(topology.get("family") for topology, _ in SCHEDULES)]
    return missing + [family for family in families(starling) if family not in known]
