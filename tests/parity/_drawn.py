"""Settings of what draws, rotates or rounds, whose numbers tests/reference/ knows (drawn.py).
Nodes' messages of a round differ, and those of a node from exchange to exchange."""

DRAWN = {
    "qsgd": {"name": "qsgd", "levels": 7, "bucket": 8},
    "terngrad": {"name": "terngrad"},
    "terngrad clipped": {"name": "terngrad", "bucket": 10, "clip_sigma": 1.5},
    "terngrad shared": {"name": "terngrad", "share_scale": True},
    "terngrad shared, clipped": {"name": "terngrad", "share_scale": True, "clip_sigma": 1.5},
    "natural": {"name": "natural"},
    "float16": {"name": "float16"},
    "bfloat16": {"name": "bfloat16"},
    "float8": {"name": "float8"},
    "1-bit": {"name": "1-bit", "bucket": 12},
    "random-k": {"name": "random-k", "k": 6, "scaled": True},
    "random-k, most": {"name": "random-k", "fraction": 0.7},
    "random-dropping": {"name": "random-dropping", "probability": 0.5, "scaled": True},
    "magnitude-dropping": {"name": "magnitude-dropping", "fraction": 0.4},
    "drive": {"name": "drive"},
    "eden 2": {"name": "eden", "bits": 2},
    "eden 4": {"name": "eden", "bits": 4},
    "rotated-qsgd": {"name": "rotated-qsgd", "levels": 7, "bucket": 8},
    "rotated-terngrad": {"name": "rotated-terngrad"},
}
ALL_REDUCE = {"name": "all-reduce", "error_feedback": False}
SERVER = {**ALL_REDUCE, "name": "parameter-server", "server": 2}
CHOCO = {"name": "choco-sgd", "consensus_step": 0.1}
CONTRACT = ("1-bit", "float16", "bfloat16", "float8")


def cases(places):
    """(name, settings, place): each compressor in three places, in the last one shrunk, so that it
    contracts. A scale is shared by servers there."""
    for what, config in DRAWN.items():
        keeps = config["name"] in CONTRACT or "share_scale" in config
        shrunk = config if keeps else {**config, "contractive": True}
        last = SERVER if "share_scale" in config else CHOCO
        for base, compressor, place in zip(
            [ALL_REDUCE, ALL_REDUCE, last], [config, config, shrunk], places
        ):
            name = f"{base['name']} {what} {place[0]}"
            yield name, {**base, "compressor": compressor}, place
