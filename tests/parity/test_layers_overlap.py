#!/usr/bin/env python3
"""What leaves layer by layer, while the rest of the gradient is computed, has the bits of what
leaves when all of it is there: in the simulator and with agents. test_said.py has what is
refused."""
import functools
import os
import sys

from _simulate import QUICK, main, of
from parity import EXPONENTIAL, GOSSIP, MLP, MOMENTUM, PLAIN, RING, SIX
from parity import compare, in_folder, network, train, written

LAYERS = "transport.overlap=layers"


def experiment(settings, topology=GOSSIP, optimizer=MOMENTUM, **more):
    """26 thousand parameters in three layers, of which the first has most, in frames of 4 KiB."""
    e = network(MLP, topology, settings, optimizer)
    return {**e, "rounds": 8, "record": {"every": 2, "parameters_at": [1, 8]}, **more}


def compressed(name, compressor, **more):
    return experiment(of(name, compressor=compressor, **more))


def optimized(name, **more):
    return experiment(of("d-psgd"), RING, of(name, learning_rate=0.01, weight_decay=0.01, **more))


BUCKETS = of("qsgd", levels=4, bucket=256)
SAME = {
    "d-psgd": experiment(of("d-psgd"), RING),
    "d-psgd plain": experiment(of("d-psgd"), SIX, PLAIN),
    "d-psgd schedule": experiment(of("d-psgd"), EXPONENTIAL),
    "d-psgd local steps": experiment(of("d-psgd", local_steps=3)),
    "d-psgd adamw": optimized("adamw"),
    "d-psgd lars": optimized("lars", momentum=0.9),
    "d-psgd lamb": optimized("lamb"),
    "one server": experiment(of("parameter-server", server=2)),
    "shards": experiment(of("parameter-server")),
    "shards qsgd": compressed("parameter-server", BUCKETS),
    "one server qsgd both": compressed("parameter-server", BUCKETS, server=2, directions="both"),
    "to all float16": compressed("all-reduce", of("float16")),
    "to all qsgd elias": compressed("all-reduce", {**BUCKETS, "coding": "elias"}),
    "to all random-dropping": compressed("all-reduce", of("random-dropping", probability=0.25)),
    "to all natural": compressed("all-reduce", of("natural")),
    **{
        f"to all {name} per tensor": compressed("all-reduce", of(name, per="tensor", **more))
        for name, more in {
            "top-k": {"fraction": 0.02},
            "random-k": {"fraction": 0.1},
            "1-bit": {},
            "stc": {"fraction": 0.1},
            "strom": {"threshold": 0.01},
            "adacomp": {},
            "3lc": {},
            "magnitude-dropping": {"fraction": 0.1},
        }.items()
    },
    "to all eden": {
        **compressed("all-reduce", of("eden")),
        "transport": {"chunk_bytes": 8192},
    },
    **{
        f"all-reduce {form}": experiment(of("all-reduce", all_reduce=form), SIX)
        for form in ("ring", "tree", "recursive-doubling", "halving-doubling", "hierarchical")
        + ("torus-2d", "two-rings", "double-tree", "star")
    },
}


def same_bits(starling, folder, settings):
    path = written(folder, settings)
    whole = train(starling, "sim", path, os.path.join(folder, "none"))
    for command in ("sim", "run"):
        compare(whole, train(starling, command, path, os.path.join(folder, command), LAYERS))


def all_checks(starling):
    for name in list(SAME)[:: 4 if QUICK else 1]:
        run = functools.partial(in_folder, same_bits, starling, SAME[name])
        yield f"layers overlap, {name}", run


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks, 1))
