#!/usr/bin/env python3
"""Connections between living agents are cut at random: the run ends with the simulator's bits. Real
sockets; fault_world and session_world draw algorithm and cuts."""
from _cutter import Cutter
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


def start_cutter(scene, nodes, seed, cuts, mean):
    """A cutter, the roster that goes through it, and the ports behind it."""
    ports = free_ports(nodes)
    cutter = Cutter(seed, ports, cuts, mean)
    cutter.start()
    return cutter, scene.roster(cutter.ports), ports


def start_agents(scene, path, nodes, *cuts):
    """Agents that reach each other through a cutter only."""
    cutter, roster, ports = start_cutter(scene, nodes, *cuts)
    agents = [
        scene.agent(path, rank, roster, "--listen", f"127.0.0.1:{ports[rank]}")
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


def cut_eight_times(scene, memory, mean):
    changes = {"topology": {"nodes": 4, "family": "ring"}, "rounds": 12}
    path = scene.experiment(**QUICK, **changes, transport__memory=memory)
    cutter, agents = start_agents(scene, path, 4, 1, 8, mean)
    wait_for_all(cutter, agents, 8, 200)
    scene.check_models([f"out{rank}" for rank in range(4)], experiment=path)


def d_psgd(scene):
    cut_eight_times(scene, "off", 60000)


def d_psgd_by_reference(scene):
    """Where data does not go over the connections."""
    cut_eight_times(scene, "auto", 1000)


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


if __name__ == "__main__":
    run_tests()
