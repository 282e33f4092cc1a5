#!/usr/bin/env python3
"""What leaves while the rest of the gradient is computed, whatever the order, has the bits of what
leaves when all of it is there: in the simulator and with agents. Where a vector is exchanged in
buckets, of what is exchanged in the same ones. test_said.py has what is refused."""
import functools
import os
import sys

from _here import check
from _simulate import QUICK, call, main, of
from parity import EXPONENTIAL, GOSSIP, MLP, MOMENTUM, PLAIN, RING, SIX
from parity import compare, in_folder, network, train, written

WAYS = ("layers", "merged", "partitioned")
# A third of the layers' biases wait; pieces leave in another order than they are there.
LINKS = {"bandwidth_mbit": 20, "latency_ms": 0.2, "gradient_ms": 30, "coding": False}


def experiment(settings, topology=GOSSIP, optimizer=MOMENTUM, **more):
    """26 thousand parameters in three layers, of which the first has most, in frames of 4 KiB."""
    e = network(MLP, topology, settings, optimizer)
    record = {"every": 2, "parameters_at": [1, 8]}
    return {**e, "rounds": 8, "record": record, "network": LINKS, **more}


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
    "to all eden": {**compressed("all-reduce", of("eden")), "transport": {"chunk_bytes": 8192}},
    **{
        f"all-reduce {form}": experiment(of("all-reduce", all_reduce=form), SIX)
        for form in ("ring", "tree", "recursive-doubling", "halving-doubling", "hierarchical")
        + ("torus-2d", "two-rings", "double-tree", "star")
    },
}


# Each layer sends what its links carry beside the one below.
BY_LAYER = of("top-k", fraction=0.3, fraction_min=0.002, per="tensor")
BY_LAYERS = {
    f"by layer, {name}": {
        **compressed(name, BY_LAYER, **more),
        "transport": {"overlap": "layers", "chunk_bytes": 4096},
    }
    for name, more in {"all-reduce": {}, "parameter-server": {"server": 2}}.items()
}
# Of neighbours that read each other's models.
IN_BUCKETS = {**SAME["d-psgd"], "transport": {"buckets": "layers", "chunk_bytes": 4096}}


def as_agents(starling, folder, settings):
    path = written(folder, settings)
    outs = [os.path.join(folder, command) for command in ("sim", "run")]
    compare(*(train(starling, os.path.basename(out), path, out) for out in outs))


def has_shards(settings):
    algorithm = settings["algorithm"]
    return algorithm["name"] != "d-psgd" and "compressor" not in algorithm


def same_bits(starling, folder, settings, commands):
    """commands: of each way."""
    path = written(folder, settings)

    def trained(command, name, *changes):
        pieces = "transport.partition_bytes=4096"
        return train(starling, command, path, os.path.join(folder, name), pieces, *changes)

    whole = trained("sim", "none")
    for way, of_way in zip(WAYS, commands):
        sharded = has_shards(settings) and way != "layers"
        base = trained("sim", f"{way}-b", f"transport.buckets={way}") if sharded else whole
        for command in of_way:
            compare(base, trained(command, f"{way}-{command}", f"transport.overlap={way}"))


def same_on_a_device(starling, folder, settings):
    """Of the emulated GPU, where a network's gradient is there layer by layer, and each range is a
    message."""
    plugin = os.path.join(os.path.dirname(os.path.dirname(starling)), "gpu")
    env = {"STARLING_PLUGIN": os.path.join(plugin, "libstarling-emulated.so")}
    path = written(folder, {**settings, "device": "cuda:0"})

    def trained(command, key):
        out = os.path.join(folder, f"{command}-{key}")
        sets = ["--set", f"transport.{key}", "--set", "transport.partition_bytes=4096"]
        ended = call(starling, command, path, "--out", out, *sets, env=env)
        check(ended.returncode == 0, ended.stderr)
        return out

    def parameters(out):
        with open(os.path.join(out, "parameters.jsonl")) as file:
            return file.read()

    whole = trained("sim", "buckets=whole")
    for way in WAYS:
        base = trained("sim", f"buckets={way}")
        check(has_shards(settings) or parameters(base) == parameters(whole), f"not as whole: {way}")
        for command in ("sim", "run"):
            compare(base, trained(command, f"overlap={way}"))


def all_checks(starling):
    for name in ("d-psgd", "d-psgd lamb", "d-psgd schedule", "shards", "one server") + (
        "all-reduce ring",
        "all-reduce double-tree",
    ):
        run = functools.partial(in_folder, same_on_a_device, starling, SAME[name])
        yield f"overlap on a device, {name}", run
    for name, settings in {**BY_LAYERS, "in buckets, d-psgd": IN_BUCKETS}.items():
        yield f"overlap, {name}", functools.partial(in_folder, as_agents, starling, settings)
    for i, name in list(enumerate(SAME))[:: 4 if QUICK else 1]:
        commands = [("sim", "run") if k == i % len(WAYS) else ("sim",) for k in range(len(WAYS))]
        yield f"overlap, {name}", functools.partial(
            in_folder, same_bits, starling, SAME[name], commands
        )


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks, 1))
