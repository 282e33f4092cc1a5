#!/usr/bin/env python3
"""Somebody on the way of sealed edges alters any byte, from the first one on: that costs
connections, which come back, and never a process or a bit. How often: STARLING_CHANGES."""
import os

from _forger import Forger
from _keyed import SEALED, make_keys, make_nodes, with_key, with_pair
from _ports import free_ports
from _scene import check, run_tests

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


def train(scene, extra, pins, seed):
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
    train(scene, [with_key("run.key")] * COUNT, [""] * COUNT, 1)


def between_agents_with_certificates(scene):
    pins = make_nodes(scene, COUNT)
    train(scene, [with_pair(f"node-{rank}") for rank in range(COUNT)], pins, 2)


if __name__ == "__main__":
    run_tests()
