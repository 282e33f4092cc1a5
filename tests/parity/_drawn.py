"""Settings of what draws or rotates, whose numbers tests/reference/drawn.py knows. Nodes' messages
of a round differ, and those of a node from exchange to exchange."""

DRAWN = {
    "qsgd": {"name": "qsgd", "levels": 7, "bucket": 8},
    "terngrad": {"name": "terngrad"},
    "terngrad clipped": {"name": "terngrad", "bucket": 10, "clip_sigma": 1.5},
    "natural": {"name": "natural"},
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
CHOCO = {"name": "choco-sgd", "consensus_step": 0.1}


def cases(places):
    """(name, settings, place): each compressor in three places, in the last one shrunk, so that it
    contracts."""
    for what, config in DRAWN.items():
        shrunk = config if what == "1-bit" else {**config, "contractive": True}
        for base, compressor, place in zip(
            [ALL_REDUCE, ALL_REDUCE, CHOCO], [config, config, shrunk], places
        ):
            name = f"{base['name']} {what} {place[0]}"
            yield name, {**base, "compressor": compressor}, place
