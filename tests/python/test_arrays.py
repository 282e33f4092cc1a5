#!/usr/bin/env python3
"""Peers that mix arrays: what they take and give, and how wrong input reaches the others.
tests/chaos/launchers.py and test_saving.py hold processes against the simulator's bits."""
import _package  # noqa: F401: finds the package
import numpy

import _peers
import starling
from _keyed import make_keys, make_nodes
from _package import refused
from _peers import EXPERIMENT, ONES, Peers
from _scene import check, run_tests


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


def test_long_lists_of_arrays_that_change_in_an_exchange(scene):
    """So long that a call and the agent's thread share the work."""
    body = """
    import numpy
    x = [numpy.full(size, RANK, "f4") for size in ((1, 5), (1 << 19) - 4005, 4077)]
    with join(x) as peer:
        for k in range(3):
            with peer.exchange():
                for part in x:
                    part += k + RANK
        mean, distance = peer.average(), peer.distance
    print([(float(part.min()), float(part.max())) for part in mean], mean[0].shape, distance)
    """
    found = "[(5.0, 5.0), (5.0, 5.0), (5.0, 5.0)] (1, 5) "
    for said in Peers(scene, body).all_well():
        check(said.startswith(found), said)
        check(abs(float(said[len(found) :]) - 0.5 * ((1 << 19) + 77) ** 0.5) < 1e-3, said)


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


def test_calls_in_the_wrong_order_are_refused(scene):
    def train(rank):
        x = numpy.zeros(4, dtype="f4")
        peer = starling.join(None, x)
        peer.mix()
        refused(lambda: peer.begin(numpy.zeros(3, dtype="f4")), "3 numbers", "4")
        refused(lambda: peer.attach(None), "torch module")
        peer.leave()
        refused(lambda: peer.mix(), "has left")
        refused(lambda: peer.average(), "has left")
        check(peer.round == 1 and not peer.active, peer.metrics())
        peer.leave()

    starling.simulate(2, train, EXPERIMENT)


def test_layouts_that_differ_are_named(scene):
    def train(rank):
        second = numpy.zeros((4, 2) if rank else (2, 4), dtype="f4")
        starling.join(None, [numpy.zeros(3, dtype="f4"), second]).leave()

    refused(lambda: starling.simulate(2, train, EXPERIMENT), "[2, 4]", "[4, 2]")


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


if __name__ == "__main__":
    run_tests()
