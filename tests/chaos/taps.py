#!/usr/bin/env python3
"""Somebody on the way between agents with keys: what he hears says nothing; any byte that he alters
on sealed edges, from the first one on, costs connections, which come back, and never a process or a
bit. How often: STARLING_CHANGES."""
import os

from _forger import Forger
from _keyed import RUN_ID, SEALED, make_keys, make_nodes, train, with_key, with_pair
from _ports import free_ports
from _scene import check, read_bytes, run_tests
from _tap import Tap
from by_hand import PAIR

QUICK = {
    "model": {"name": "mlp", "hidden": [32]},
    "data": {"name": "digits", "train_samples": 200, "test_samples": 50, "batch": 8},
    "record": {"every": 1000000},
    "optimizer": {"learning_rate": 0.02},
    "transport__chunk_bytes": 4096,
    "transport__window_chunks": 3,
    "transport__timeout_s": 1,
    "transport__connect_timeout_s": 60,
    "transport__reconnect_s": 60,
}
COUNT = 4
RING = {**QUICK, **SEALED, "topology": {"nodes": COUNT, "family": "ring"}}
RING["transport__memory"] = "off"  # else there is little on the wire
CHANGES = int(os.environ.get("STARLING_CHANGES", "12"))


def train_altered(scene, extra, pins, seed):
    """Four agents, which reach each other through a wire only, for so many rounds that all changes
    are made: all end well, with the simulator's bits. extra, pins: how each proves who it is."""
    ports, path = free_ports(COUNT), scene.experiment(**RING, rounds=25 * CHANGES)
    wire = Forger(seed, ports, CHANGES)
    roster = scene.roster(wire.ports, "roster", pins)
    wire.start()
    try:
        agents = []
        for rank in range(COUNT):
            options = ("--listen", f"127.0.0.1:{ports[rank]}", "--run-id", "1")
            agents.append(scene.agent(path, rank, roster, *options, *extra[rank]))
        for agent in agents:
            agent.wait(300)
    finally:
        wire.stop()
    for rank, agent in enumerate(agents):
        check(agent.code == 0, f"agent {rank} ended with {agent.code}: {agent.err[-800:]!r}")
    scene.check_models([f"out{rank}" for rank in range(COUNT)], experiment=path)
    made = sum(wire.made.values())
    check(made >= 2 * CHANGES // 3, f"few changes were made: {wire.made}")


def between_agents_with_a_key(scene):
    make_keys(scene, "run.key")
    train_altered(scene, [with_key("run.key")] * COUNT, [""] * COUNT, 1)


def between_agents_with_certificates(scene):
    pins = make_nodes(scene, COUNT)
    train_altered(scene, [with_pair(f"node-{rank}") for rank in range(COUNT)], pins, 2)


# ---- what he hears ----


def is_heard(tap, secret):
    return any(secret in heard for heard in tap.heard)


def model_pieces(scene, rank=1):
    """Runs of 16 bytes of the model that stand in its last message, and are not all zeros."""
    model = read_bytes(scene.path(f"out{rank}/model-{rank}.npy"))[128:]  # behind its header
    pieces = {model[i : i + 16] for i in range(0, len(model) - 15, 16)}
    return [piece for piece in pieces if len(set(piece)) > 4]


def hashes_of(tap, run_id):
    """What a HELLO in the clear says behind its run id: hashes of topology, layout and data, and
    of the first sections of the configuration."""
    heard = next(bytes(heard) for heard in tap.heard if run_id in heard)
    hello = heard[heard.index(run_id) :]
    return [hello[i : i + 8] for i in (8, 16, 24, 80, 88, 96)]


def what_is_on_the_wire_says_nothing(scene):
    """With learning rate 0 the model on the wire is the model in the file, and so is its average.
    Where data is open, only data is, and where it stays in memory, nothing."""
    make_keys(scene, "run.key")
    run_id = RUN_ID.to_bytes(8, "little")
    hashes = []
    rows = (
        *((None, "off", True, True), ("on", "off", False, False), ("off", "off", True, False)),
        (None, "auto", False, True),
    )
    for seal, memory, models, heard in rows:
        experiment = scene.experiment(
            **PAIR, optimizer__learning_rate=1e-30, transport__memory=memory, final_average=True
        )
        extra = (*with_key("run.key"), "--set", f"security.seal={seal}") if seal else ()
        tap = Tap(free_ports(1)[0])
        tap.start()
        ended = train(scene, experiment, [extra] * 2, tap=tap)
        tap.stop()
        for one in ended:
            one.check_well()
        pieces = model_pieces(scene)
        check(len(pieces) > 100, f"{len(pieces)} pieces of the model to look for")
        count = sum(is_heard(tap, piece) for piece in pieces)
        check((count > 0) == models, f"{count} of {len(pieces)} pieces of the model are heard")
        check(is_heard(tap, run_id) == heard, f"the run id is heard: {not heard}")
        hashes = hashes or hashes_of(tap, run_id)
        check(all(len(set(one)) > 4 for one in hashes), f"these are no hashes: {hashes}")
        found = [is_heard(tap, one) for one in hashes]
        check(found == [heard] * len(hashes), f"hashes that are heard: {found}")
        for rank in range(2):
            os.rename(scene.path(f"out{rank}"), scene.path(f"out{rank}-{seal}-{memory}"))


if __name__ == "__main__":
    run_tests()
