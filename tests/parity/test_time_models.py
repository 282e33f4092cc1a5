#!/usr/bin/env python3
"""What `starling compare` and `check` say of the time of a round: the models of CD-SGD's authors
are the closed forms. test_timeline has which form of all-reduce is the fastest."""
import json
import math
import re

from _here import check, run_tests
from test_compare import BASE, DIMENSION, GOSSIP, HEADER, NODES, compare, rows_of, write


def test_models_of_a_round_are_those_of_the_paper(scene):
    bits = {"name": "parameter-server", "compressor": "threshold"}
    variants = [
        {"name": "s-sgd", "set": {"algorithm": {"name": "all-reduce"}}},
        {"name": "od-sgd", "set": {"algorithm": {"name": "cd-sgd", "correction_period": 1}}},
        {"name": "late", "set": {"algorithm": {"name": "all-reduce", "delay": 1}}},
        {"name": "bit-sgd", "set": {"algorithm": bits}},
        {"name": "cd-sgd", "set": {"algorithm": {"name": "cd-sgd", "correction_period": 4}}},
        GOSSIP,
    ]
    path = write(scene, variants, rounds=9, network={"gradient_ms": 30, "coding": True})
    out = compare(scene, path, "--link", "100:1", "--wide")[1].out
    lines_of = out[out.index("time of a round") :].split("\n")[3:]
    found = {}
    for line in lines_of[: lines_of.index(next(x for x in lines_of if x.startswith("model:")))]:
        name, rest = line.split(maxsplit=1)
        found[name] = [math.nan if x == "-" else float(x) for x in rest.split(" ms ")[1].split()]
    second = 8e-3 / 100  # ms a byte
    dense = second * (4 * DIMENSION + HEADER)
    ring = 2 * (NODES - 1) * (1 + second * (4 * DIMENSION / NODES + HEADER))
    server = 2 * (1 + (NODES - 1) * dense)
    coded = (1 + (NODES - 1) * second * (DIMENSION / 4 + HEADER)) + (1 + (NODES - 1) * dense)
    check(set(found) == {v["name"] for v in variants} - {"gossip"}, f"{found}")
    for name, model, exchanges in (
        ("s-sgd", lambda t, d, p, s: t + p, (ring, math.nan)),
        ("late", lambda t, d, p, s: max(t, p), (ring, math.nan)),
        ("od-sgd", lambda t, d, p, s: max(t, p), (server, math.nan)),
        ("bit-sgd", lambda t, d, p, s: t + d + s, (math.nan, coded)),
        ("cd-sgd", lambda t, d, p, s: (3 * max(t, d + s) + max(t, p)) / 4, (server, coded)),
    ):
        tau, delta, phi, psi, total, _ = found[name]
        check(tau == 30 and (delta > 0 or name in ("s-sgd", "late", "od-sgd")), f"{found}")
        for said, expected in zip((phi, psi), exchanges):
            check(
                math.isnan(said) == math.isnan(expected) and not abs(said / expected - 1) > 2e-3,
                f"{name}: {said} ms, expected {expected}",
            )
        expected = model(tau, delta, phi, psi)
        check(abs(total / expected - 1) < 1e-3, f"{name}: {total} ms, expected {expected}")


def alone(scene, network):
    """Without variants."""
    return scene.write("alone.json", json.dumps({**BASE, "rounds": 5, "network": network}))


def test_check_says_the_same_before_anything_runs(scene):
    network = {"bandwidth_mbit": 100, "latency_ms": 1, "gradient_ms": 30}
    variants = [{"name": "s-sgd", "set": {"algorithm": "all-reduce"}}, GOSSIP]
    ring = 2 * (NODES - 1) * (1 + 8e-3 / 100 * (4 * DIMENSION / NODES + HEADER))
    words = ("--set", "algorithm=all-reduce")
    ended = scene.call("check", alone(scene, network), *words)
    for words in (
        "S-SGD: tau + phi",
        f"a round             {30 + ring:.4g} ms\n",
        f"ring {ring:.4g} ms",
    ):
        check(words in ended.out, f"no {words!r} in {ended.out}")
    check(ended.out.count("the fastest form") == 1, ended.out)
    words = ("--set", "algorithm=parameter-server", "--set", "transport.chunk_bytes=4096")
    words += ("--set", "transport.overlap=layers", "--set", 'model={"name":"mlp","hidden":[8,999]}')
    early = scene.call("check", alone(scene, network), *words)
    found = re.search(r"  a round +([0-9.]+) ms; messages leave beside", early.out)
    phi = re.search(r"phi, an exchange, ([0-9.]+) ms", early.out)
    check(30 < float(found[1]) < 30 + float(phi[1]) - 5, early.out)
    ended = scene.call("check", write(scene, variants, rounds=5, network=network))
    check("  a round, an agent," in ended.out, ended.out)
    for name, words in (
        ("s-sgd", ["all-reduce", "identity", str(4 * DIMENSION), f"{30 + ring:.4g}"]),
        ("gossip", ["d-psgd", "identity", str(4 * DIMENSION)]),
    ):
        said = re.search(rf"^  {name} +(.*) +\S+  (?:ends|goes on)$", ended.out, re.M)
        check(said is not None and said[1].split() == words, f"{words}: {ended.out}")
    ended = scene.call("check", write(scene, variants[:1], rounds=5))
    check("a round," not in ended.out, "there are no links")
    network = {"latency_ms": 2, "links": [[5, 0, 1.5]]}
    ended = scene.call("check", alone(scene, network))
    check("slower links        nodes 5 and 0: 1.5 Mbit/s, 2 ms\n" in ended.out, ended.out)


def test_times_are_drawn_from_each_seed(scene):
    network = {"gradient_ms": 1, "coding": False, "jitter": 0.5}
    path = write(scene, [{"name": "d-psgd", "set": {}}], rounds=5, network=network)
    compare(scene, path, "--seeds", "1..2", "--link", "100:1")
    seconds = [float(row["predicted_s_100_mbit_1_ms"]) for row in rows_of(scene, "out", "runs")]
    check(len(seconds) == 2 and seconds[0] != seconds[1], f"{seconds}")


if __name__ == "__main__":
    run_tests()
