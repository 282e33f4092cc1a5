#!/usr/bin/env python3
"""Peers that mix arrays: processes against the simulator, bit for bit, and against a float64
program; and how a peer's end, or wrong input, reaches the others.

usage: test_arrays.py STARLING [TEST ...]
"""
import functools
import json
import os
import sys

import _package
import numpy

import _peers
import starling
from _keyed import make_keys, make_nodes
from _package import refused
from _peers import EXPERIMENT, ONES, Peers
from _scene import check, run_tests

sys.path.insert(0, os.path.join(os.path.dirname(_package.HERE), "reference"))
import algorithms  # noqa: E402
import dpsgd  # noqa: E402

ROUNDS, RATE = 12, 0.1
RING = {"nodes": 8, "family": "ring", "weights": "lazy"}
TOP = {"compressor": {"name": "top-k", "k": 4}}
CASES = {
    "d-psgd": ({"name": "d-psgd"}, RING, "mix"),
    "combine-while-adapt": (
        {"name": "d-psgd", "variant": "combine-while-adapt"},
        RING,
        "mix",
    ),
    "exchange": ({"name": "d-psgd"}, RING, "exchange"),
    "exchange, combine-while-adapt": (
        {"name": "d-psgd", "variant": "combine-while-adapt"},
        RING,
        "exchange",
    ),
    "dcd-psgd": ({"name": "dcd-psgd", "compressor": {"name": "top-k", "k": 15}}, RING, "mix"),
    "choco-sgd": ({"name": "choco-sgd", "consensus_step": 0.3, **TOP}, RING, "mix"),
    "deep-squeeze": ({"name": "deep-squeeze", "eta": 0.2, **TOP}, RING, "mix"),
    "sgp": ({"name": "sgp"}, {"nodes": 8, "family": "one-peer-exponential"}, "mix"),
    "gradient-tracking": ({"name": "gradient-tracking"}, RING, "mix"),
}
A, B, X0 = dpsgd.problem(8, 12, 20, False, 41)


def experiment_of(case):
    algorithm, topology, _ = CASES[case]
    return {"topology": topology, "algorithm": algorithm}


def loop(case, rank, roster=None):
    """What rank's loop leaves in x, and the average."""
    x, how = X0[rank].astype("f4"), CASES[case][2]

    def gradient():
        return A[rank].T @ (A[rank] @ x.astype("f8") - B[rank])

    peer = starling.join(experiment_of(case), x, rank=rank, roster=roster)
    for _ in range(ROUNDS):
        if how == "exchange":
            with peer.exchange(x):
                g = gradient()
            x -= RATE * g
        else:
            x -= RATE * gradient()
            peer.mix(x)
    average = peer.average()
    check((peer.rank, peer.size, peer.round) == (rank, 8, ROUNDS), peer.metrics())
    peer.leave()
    return x, average


def reference(case):
    """Models of a float64 program."""
    algorithm, _, how = CASES[case]
    if how == "exchange":
        algorithm = {"name": "d-psgd", "variant": "combine-while-adapt"}
    ring = (numpy.eye(8) + dpsgd.metropolis(8, dpsgd.ring(8))) / 2
    slots = dpsgd.one_peer_exponential(8) if algorithm["name"] == "sgp" else [ring]
    problem = algorithms.Quadratic(A, B)
    settings = {"learning_rate": RATE}
    return algorithms.history(ROUNDS, slots, algorithm, settings, problem, X0)[0][-1]


def simulated(case):
    return starling.simulate(8, lambda rank: loop(case, rank), experiment_of(case))


def test_simulation_is_near_a_float64_program(scene):
    for case in CASES:
        found = numpy.array([x for x, _ in simulated(case)])
        expected = reference(case)
        distance = abs(found - expected).max() / max(1, abs(expected).max())
        check(distance < 1e-4, f"{case}: off by {distance}")


def test_average_is_the_mean(scene):
    for case in ("d-psgd", "sgp"):
        results = simulated(case)
        averages = [average for _, average in results]
        check(all((a == averages[0]).all() for a in averages), f"{case}: {averages}")
        if case == "d-psgd":
            mean = numpy.mean([x for x, _ in results], axis=0, dtype="f8")
            check(abs(averages[0] - mean).max() < 1e-6, f"{averages[0] - mean}")


def test_eight_processes_equal_the_simulation(scene):
    rosters = {case: _peers.roster(8) for case in CASES}
    body = f"""
    sys.path[:0] = [{_package.HERE!r}]
    rosters = {rosters!r}
    sys.argv[1:] = [{scene.starling!r}]
    import test_arrays
    results = [test_arrays.loop(case, RANK, rosters[case]) for case in rosters]
    print(json.dumps([[x.tobytes().hex(), average.tobytes().hex()] for x, average in results]))
    """
    said = Peers(scene, body, {"topology": {"nodes": 8}}).all_well(120)
    results = [json.loads(out) for out in said]
    for c, case in enumerate(CASES):
        for rank, (x, average) in enumerate(simulated(case)):
            expected = [x.tobytes().hex(), average.tobytes().hex()]
            check(results[rank][c] == expected, f"{case}: rank {rank} differs")


def test_arrays_of_all_kinds(scene):
    import array

    def train(rank):
        values = numpy.full((2, 3), rank, dtype="f4")
        buffer = array.array("f", [rank] * 6)
        several = [numpy.full(2, rank, dtype="f4"), array.array("f", [rank] * 4)]
        flat = []
        for x in (values, buffer, several):
            if not flat:
                peer = starling.join(None, x)
            peer.mix(x)
            flat.append(
                numpy.concatenate([numpy.ravel(part) for part in (x if x is several else [x])])
            )
        peer.leave()
        return numpy.array(flat)

    first = starling.simulate(2, train, EXPERIMENT)[0]
    check((first == 0.5).all(), first)


def test_arrays_that_are_made_anew_in_each_step(scene):
    """What join() got is not what is trained."""

    def train(rank):
        x = numpy.zeros(4, "f4")
        peer = starling.join(None, x)
        for _ in range(3):
            x = x + numpy.float32(1 + rank)
            peer.mix(x)
        mixed = peer.average()
        x = x + numpy.float32(rank)
        found = peer.average(x), peer.distance
        peer.leave()
        return mixed, *found

    for mixed, average, distance in starling.simulate(2, train, EXPERIMENT):
        check((mixed == 4.5).all() and (average == 5).all(), (mixed, average))
        check(abs(distance - 1) < 1e-6, distance)


def test_average_has_the_form_of_what_was_given(scene):
    def train(rank):
        x = [numpy.full((2, 2), rank, dtype="f4"), numpy.zeros(3, dtype="f4")]
        with starling.join(None, x) as peer:
            average = peer.average()
            check(peer.distance == numpy.sqrt(4 * 0.25), peer.distance)
        return average

    matrix, vector = starling.simulate(2, train, EXPERIMENT)[1]
    check(matrix.shape == (2, 2) and (matrix == 0.5).all() and vector.shape == (3,), matrix)


def test_what_is_known_of_a_peer(scene):
    experiment = {
        "topology": {"nodes": 4, "family": "ring", "weights": "lazy"},
        "record": {"every": 1},
        "algorithm": "d-psgd",
    }

    def train(rank):
        x = numpy.full(3, rank, dtype="f4")
        with starling.join(None, x) as peer:
            check(numpy.isnan(peer.neighbour_distance) and peer.round == 0, peer.metrics())
            peer.mix()
            return peer.metrics(), peer.neighbour_distance

    results = starling.simulate(4, train, experiment)
    w = starling.topology(experiment["topology"]).matrix
    for rank, (metrics, distance) in enumerate(results):
        expected = numpy.sqrt(sum(w[rank, j] * 3 * (j - rank) ** 2 for j in range(4)))
        check(abs(distance - expected) < 1e-6, f"{rank}: {distance}, {expected}")
        found = [metrics[name] for name in ("rank", "nodes", "round", "waiting_for")]
        check(found == [rank, 4, 1, ""], metrics)
        check(metrics["bytes_sent"] == metrics["bytes_received"] > 2 * 12, metrics)


def test_same_start(scene):
    def train(rank):
        x = numpy.full(5, rank + 1.0, dtype="f4")
        starling.join(None, x, same_start=True).leave()
        return x

    for x in starling.simulate(2, train, EXPERIMENT):
        check((x == 1).all(), x)


def test_calls_in_the_wrong_order_are_refused(scene):
    def train(rank):
        x = numpy.zeros(4, dtype="f4")
        peer = starling.join(None, x)
        with peer.exchange():
            refused(lambda: peer.begin(), "under way")
            refused(lambda: peer.mix(), "under way")
        refused(lambda: peer.begin(numpy.zeros(3, dtype="f4")), "3 numbers", "4")
        refused(lambda: peer.attach(None), "torch module")
        peer.leave()
        refused(lambda: peer.mix(), "has left")
        refused(lambda: peer.average(), "has left")
        check(peer.round == 1 and not peer.active, peer.metrics())
        peer.leave()

    starling.simulate(2, train, EXPERIMENT)


def test_exchange_needs_an_algorithm_that_overlaps(scene):
    def train(rank):
        x = numpy.zeros(4, dtype="f4")
        with starling.join(None, x) as peer:
            refused(lambda: peer.begin(), "overlap", "mix")
            peer.mix()

    for algorithm in ("choco-sgd", {"name": "d-psgd", "variant": "adapt-then-combine"}):
        starling.simulate(2, train, {**EXPERIMENT, "algorithm": algorithm})


def test_simulation_raises_what_train_raised(scene):
    def train(rank):
        peer = starling.join(None, numpy.zeros(4, dtype="f4"))
        peer.mix()
        if rank == 1:
            raise ValueError("boom")
        peer.mix()

    try:
        starling.simulate(2, train, EXPERIMENT)
    except ValueError as error:
        return check(str(error) == "boom", error)
    check(False, "nothing raised")


def test_fewer_batches(scene):
    body = f"""
    {ONES}
    with join(x) as peer:
        for _ in range(3 if RANK else 9):
            peer.mix(x)
    print(peer.round)
    """
    said = Peers(scene, body).all_well()
    check(int(said[0]) == 9, said)


def test_not_a_number_is_named_everywhere(scene):
    body = f"""
    {ONES}
    peer = join(x)
    try:
        for round in range(1, 9):
            if RANK == 1 and round == 4:
                x[2] = float("nan")
            peer.mix(x)
    except starling.Error as error:
        print(error.code, error.round, str(error))
    """
    other, own = Peers(scene, body).all_well()
    check(own.startswith("SL_EDIVERGED 4 node 1, round 4: x is nan at element 2"), own)
    check("node 1, round 4: x is nan" in other, other)


def test_layouts_that_differ_are_named(scene):
    def train(rank):
        second = numpy.zeros((4, 2) if rank else (2, 4), dtype="f4")
        starling.join(None, [numpy.zeros(3, dtype="f4"), second]).leave()

    refused(lambda: starling.simulate(2, train, EXPERIMENT), "[2, 4]", "[4, 2]")
    body = """
    import numpy
    try:
        join([numpy.zeros(3, dtype="f4"), numpy.zeros((2, 4) if RANK else 8, dtype="f4")])
    except starling.Error as error:
        print(error)
    """
    said = Peers(scene, body).all_well()
    check("[8]" in said[0] + said[1] and "[2, 4]" in said[0] + said[1], said)


def test_a_peer_that_does_not_call_is_named(scene):
    body = f"""
    {ONES}
    peer = join(x)
    peer.mix(x)
    while RANK == 1 and not os.path.exists("named"):
        time.sleep(0.1)
    if RANK == 1:
        sys.exit(0)
    try:
        peer.mix(x)
    except starling.Error as error:
        print(error.code, error.edge, error.round, str(error))
        open("named", "w").close()
    """
    experiment = {**EXPERIMENT, "transport": {**EXPERIMENT["transport"], "round_timeout_s": 5}}
    said = Peers(scene, body, experiment).all_well()[0]
    check("SL_EPEER" in said and "(1, 0) 2" in said, said)


def test_other_threads_run_while_a_call_waits(scene):
    body = f"""
    {ONES}
    import threading
    count = 0
    def work():
        global count
        while True:
            count += 1
            time.sleep(0.001)
    threading.Thread(target=work, daemon=True).start()
    with join(x) as peer:
        if RANK == 1:
            time.sleep(1)
        before = count
        peer.mix(x)
        if RANK == 0:
            print(count - before)
    """
    check(int(Peers(scene, body).all_well()[0]) > 5, "the GIL is held")


def test_what_changes_in_an_exchange_is_kept(scene):
    body = f"""
    {ONES}
    peer = join(x)
    for _ in range(3):
        with peer.exchange(x):
            if RANK == 1:
                x[1] += 1
    print(x.tolist())
    peer.leave()
    """
    said = [json.loads(line) for line in Peers(scene, body).all_well()]
    check(said[0][0] == said[1][0] == 0.5, said)
    check(abs(said[0][1] + said[1][1] - 4) < 1e-6, said)  # 1 and three times 1 more


def test_a_borrowed_x_that_changes_is_found(scene):
    body = f"""
    {ONES}
    peer = join(x, borrow=True)
    try:
        for _ in range(3):
            with peer.exchange(x):
                if RANK == 1:
                    x[1] += 1
    except starling.Error as error:
        print(error)
    """
    said = Peers(scene, body).all_well()
    check("changed" in said[1], said)


def test_nothing_wrong_of_a_borrowed_x_is_mixed(scene):
    """It changes while its parts leave, at another moment in each try: the others never have a
    number of it, and one of them hears why."""
    three = {"topology": {"nodes": 3, "family": "complete"}}
    three = {**EXPERIMENT, **three, "membership": {"on_loss": "continue", "grace_s": 5}}
    body = """
    import numpy
    x = numpy.full(1 << 21, RANK, "f4")
    peer = join(x, borrow=True)
    try:
        for k in range(4):
            with peer.exchange(x):
                if RANK == 1 and k == 2:
                    time.sleep(TRY * 0.002)
                    x[::-1] = 1e9
        print(x.max())
        peer.leave()
    except starling.Error as error:
        print(error)
    """
    for attempt in range(4):
        said = Peers(scene, body.replace("TRY", str(attempt)), three).all_well()
        check("x [2097152] was changed between begin and end" in said[1], said)
        for each in (said[0], said[2]):
            check(float(each.split()[0]) <= 2, said)


def test_keys_without_effect_are_warned_of(scene):
    body = f"""
    {ONES}
    import logging
    logging.basicConfig(level=logging.WARNING)
    join(x).leave()
    """
    experiment = {**EXPERIMENT, "model": "mlp", "data": "digits"}
    ended = Peers(scene, body, experiment).wait()
    for code, _, err in ended:
        check(code == 0 and "WARNING:starling:" in err and "data" in err, ended)


def test_keys_in_place_of_the_experiments(scene):
    """A run's, and a pair for each peer, although the experiment names none."""
    make_keys(scene, "run.key")
    pins = make_nodes(scene, 2)
    for mode, keys, fingerprints in (
        ("auto", ["run.key"] * 2, ["", ""]),
        ("certificates", ["node-0", "node-1"], pins),
    ):
        addresses = [f"{place} {pin}" for place, pin in zip(_peers.roster(2), fingerprints)]
        body = f"""
        {ONES}
        with join(x, key={[scene.path(key) for key in keys]!r}[RANK]) as peer:
            peer.mix()
        print(x)
        """
        experiment = {**EXPERIMENT, "security": {"mode": mode, "seal": "on"}}
        said = Peers(scene, body, experiment, addresses=addresses).all_well()
        check(said == ["[0.5 0.5 0.5 0.5 0.5 0.5]\n"] * 2, said)


def test_a_key_that_is_none_is_refused(scene):
    text = "starling run key 1 " + "0" * 64 + "\n"
    for name, content, mode, *words in (
        ("none.key", None, 0, "No such file"),
        ("short.key", text[:50], 0o600, "is not a run's key", "it has 50"),
        ("open.key", text, 0o644, "chmod 600"),
    ):
        if content is not None:
            os.chmod(scene.write(name, content), mode)
        key, roster = scene.path(name), "127.0.0.1:1,127.0.0.1:2"
        join = functools.partial(starling.join, EXPERIMENT, numpy.zeros(4, dtype="f4"))
        refused(functools.partial(join, rank=0, size=2, roster=roster, key=key), name, *words)


if __name__ == "__main__":
    run_tests([value for name, value in list(globals().items()) if name.startswith("test_")])
