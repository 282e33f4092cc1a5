"""The algorithms of test_outer.py and test_masked.py, for tests that run each one."""

CASES = {
    "d-psgd masked": {"name": "d-psgd", "compressor": {"name": "shared-mask", "fraction": 0.3}},
    "d-psgd masked in order": {
        "name": "d-psgd",
        "compressor": {"name": "shared-mask", "fraction": 0.3, "order": "cyclic"},
    },
    "slowmo": {"name": "slowmo", "period": 2, "buffers": "average"},
    "slowmo on d-psgd": {"name": "slowmo", "period": 2, "base": "d-psgd", "buffers": "reset"},
    "post-local": {"name": "local-sgd", "period": 2, "switch_round": 3},
    "adaptive period": {"name": "local-sgd", "period": 6, "period_schedule": "adaptive"},
    "growing period": {"name": "local-sgd", "period": 6, "period_schedule": "growing"},
    "diloco": {"name": "diloco", "period": 2},
    "noloco": {"name": "noloco", "period": 2},
    "fedavg": {"name": "fedavg", "local_steps": 2, "clients": 0.5},
    "fedavg top-k": {
        "name": "fedavg",
        "local_steps": 2,
        "clients": 0.5,
        "directions": "both",
        "compressor": {"name": "top-k", "fraction": 0.1},
    },
    "easgd": {"name": "easgd", "period": 2},
    "d-adam": {"name": "d-adam"},
    "d-amsgrad": {"name": "d-amsgrad"},
    "moniqua": {"name": "moniqua", "theta": 0.5},
    "relaysum": {"name": "relaysum"},
    "power-gossip": {"name": "power-gossip", "rank": 2},
    "one-bit-adam": {
        "name": "one-bit-adam",
        "beta2": 0.5,
        "warmup_ratio": 0.3,
        "warmup_rounds": 4,
        "compressor": {"name": "scaled-sign"},
    },
}
WITHOUT_MOMENTUM = ("d-adam", "d-amsgrad", "one-bit-adam")
# They read vectors themselves, or their compressor has no GPU kernel.
HOST_ONLY = ("d-amsgrad", "moniqua", "power-gossip", "d-psgd masked in order")
