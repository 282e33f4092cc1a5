#!/usr/bin/env python3
"""Connections between living agents are cut at random: the run ends with the simulator's bits. Real
sockets, of agents and of sessions; fault_world and session_world draw algorithm and cuts.

usage: cuts.py STARLING [TEST ...]
       cuts.py STARLING --many CUTS [SEED]     a run of eight agents, with that many cuts
"""
import os
import sys

from _cutter import Cutter
from _scene import Scene, check, run_tests
from _ports import free_ports

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


def start_cutter(scene, nodes, seed, cuts, mean):
    """A cutter, the roster that goes through it, and the ports behind it."""
    ports = free_ports(nodes)
    cutter = Cutter(seed, ports, cuts, mean)
    cutter.start()
    return cutter, scene.roster(cutter.ports), ports


def start_agents(scene, path, nodes, seed, cuts, mean):
    """Agents that reach each other through a cutter only."""
    cutter, roster, ports = start_cutter(scene, nodes, seed, cuts, mean)
    agents = [
        scene.start(
            *("agent", path, "--rank", str(rank), "--roster", roster),
            *("--listen", f"127.0.0.1:{ports[rank]}", "--out", scene.path(f"out{rank}")),
        )
        for rank in range(nodes)
    ]
    return cutter, agents


def wait_for_all(cutter, agents, cuts, seconds):
    """All end well, and all cuts were made."""
    try:
        for agent in agents:
            agent.wait(seconds).check_well()
    finally:
        cutter.stop()
    made = sum(cutter.made.values())
    check(made == cuts, f"{made} cuts were made, wanted {cuts}")


def train(scene, nodes, seed, cuts, seconds=200, **changes):
    topology = {"nodes": nodes, "family": "ring"}
    path = scene.experiment(**{**QUICK, "topology": topology, **changes})
    cutter, agents = start_agents(scene, path, nodes, seed, cuts, 60000)
    wait_for_all(cutter, agents, cuts, seconds)
    scene.check_models([f"out{rank}" for rank in range(nodes)], experiment=path)
    return cutter.made


def d_psgd(scene):
    train(scene, 4, 1, 8, rounds=12)


def payloads_on_a_device(scene):
    """Frames go to and from memory of the (emulated) device."""
    scene.emulate_device()
    train(scene, 4, 7, 8, rounds=12, device="cuda:0", transport__gpu_direct="on")


def gone_for_longer(scene):
    """A cut that nobody mends ends the run, with edge and round."""
    changes = {"rounds": 2000000, "transport__reconnect_s": 1, "record": {"every": 20}}
    changes["topology"] = {"nodes": 3, "family": "ring"}
    cutter, agents = start_agents(scene, scene.experiment(**{**QUICK, **changes}), 3, 1, 0, 1)
    agents[0].wait_for("round 20/")
    cutter.stop()
    for agent in agents:
        agent.ends(1, 60)
        for word in ("edge", "round", "did not come back within 1 s (transport.reconnect_s)"):
            check(word in agent.err, f"{word!r} is missing in {agent.err!r}")


def many(starling, cuts, seed=1):
    scene = Scene(os.path.abspath(starling))
    try:
        made = train(scene, 8, seed, cuts, 1800, rounds=cuts)
    finally:
        scene.close()
    print(f"8 agents, {cuts} rounds, cuts {made}: bit-equal to the simulator")


if __name__ == "__main__":
    if sys.argv[2:3] == ["--many"]:
        many(sys.argv[1], *map(int, sys.argv[3:]))
    else:
        run_tests()
