#!/usr/bin/env python3
"""Connections between living agents are cut at random: the run ends with the simulator's bits.

usage: cuts.py STARLING [TEST ...]
       cuts.py STARLING --many CUTS [SEED]     a run of eight agents, with that many cuts
       cuts.py STARLING --walls CUTS [SEED]    the same in network namespaces, by nftables (root)
"""
import os
import sys

from _cutter import Cutter
from _scene import Scene, check, run_tests
from _walls import Net, Walls, why_not
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
SPARSE = {"name": "top-k", "fraction": 0.05}


def start_cutter(scene, nodes, seed, cuts, mean):
    """A cutter, the roster that goes through it, and the ports behind it."""
    ports = free_ports(nodes)
    cutter = Cutter(seed, ports, cuts, mean)
    roster = scene.write("roster", "".join(f"127.0.0.1:{port}\n" for port in cutter.ports))
    cutter.start()
    return cutter, roster, ports


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


def check_models(scene, nodes):
    for rank in range(nodes):
        with open(scene.path(f"out{rank}/model-{rank}.npy"), "rb") as real, open(
            scene.path(f"sim/model-{rank}.npy"), "rb"
        ) as simulated:
            check(real.read() == simulated.read(), f"the model of rank {rank} differs from sim's")


def train(scene, nodes, seed, cuts, mean, seconds=200, **changes):
    path = scene.experiment(**{**QUICK, **changes})
    simulated = scene.call("sim", path, "--out", scene.path("sim"), timeout=300)
    check(simulated.code == 0, f"sim: {simulated.err!r}")
    cutter, agents = start_agents(scene, path, nodes, seed, cuts, mean)
    wait_for_all(cutter, agents, cuts, seconds)
    check_models(scene, nodes)
    return cutter.made


def wait_for_all(cutter, agents, cuts, seconds):
    """All end well, and all cuts were made."""
    try:
        for rank, agent in enumerate(agents):
            agent.wait(seconds)
            check(
                agent.code == 0,
                f"agent {rank} ended with {agent.code}: {agent.err[-600:]!r}; {cutter.made}",
            )
    finally:
        cutter.stop()
    made = sum(cutter.made.values())
    check(made == cuts, f"{made} cuts were made, wanted {cuts}")


def gossip(scene, name, seed, **changes):
    parameters = changes.pop("parameters", {})
    train(
        scene,
        4,
        seed,
        8,
        60000,
        rounds=12,
        topology={"nodes": 4, "family": "ring"},
        algorithm={"name": name, **parameters},
        **changes,
    )


def d_psgd(scene):
    gossip(scene, "d-psgd", 1)


def d_psgd_that_combines_while_it_adapts(scene):
    gossip(scene, "d-psgd", 2, parameters={"variant": "combine-while-adapt"})


def choco_sgd(scene):
    gossip(scene, "choco-sgd", 3, parameters={"compressor": SPARSE})


def all_reduce(scene):
    gossip(scene, "all-reduce", 4)


def gradient_tracking(scene):
    gossip(scene, "gradient-tracking", 5)


def push_sum_over_a_directed_schedule(scene):
    train(
        scene,
        4,
        6,
        8,
        40000,
        rounds=12,
        topology={"nodes": 4, "family": "one-peer-exponential"},
        algorithm={"name": "sgp"},
    )


def payloads_on_a_device(scene):
    """Frames go to and from memory of the (emulated) device."""
    build = os.path.dirname(os.path.dirname(scene.starling))
    scene.environment["STARLING_PLUGIN"] = os.path.join(build, "gpu", "libstarling-emulated.so")
    gossip(scene, "d-psgd", 7, device="cuda:0", transport__gpu_direct="on")


def lines_of(text):
    return sorted(text.splitlines())


def meet_in_sessions(scene, seed, algorithm, form):
    """Loops in sessions, which average every few rounds."""
    nodes, cuts, rounds, dimension = 4, 8, 12, 20000
    build = os.path.dirname(os.path.dirname(scene.starling))
    scene.starling = os.path.join(build, "tests", "session_loop")
    topology = {"nodes": nodes, "family": "ring"}
    path = scene.experiment(**{**QUICK, "topology": topology, "algorithm": algorithm})
    loop = [path, form, str(rounds), str(dimension)]
    simulated = scene.call(*loop, str(nodes), timeout=300)
    check(simulated.code == 0, f"simulated: {simulated.err!r}")
    cutter, roster, ports = start_cutter(scene, nodes, seed, cuts, 100000)
    peers = []
    for rank in range(nodes):
        scene.environment = {
            "STARLING_RANK": str(rank),
            "STARLING_ROSTER": roster,
            "STARLING_LISTEN": f"127.0.0.1:{ports[rank]}",
        }
        peers.append(scene.start(*loop))
    wait_for_all(cutter, peers, cuts, 200)
    found = lines_of("".join(peer.out for peer in peers))
    check(found == lines_of(simulated.out), f"other bits than simulated; seed {seed}")


def sessions_that_average(scene):
    meet_in_sessions(scene, 8, {"name": "d-psgd"}, "begin")


def sessions_that_average_and_compress(scene):
    meet_in_sessions(scene, 14, {"name": "choco-sgd", "compressor": SPARSE}, "mix")


def gone_for_longer(scene):
    """A cut that nobody mends ends the run, with edge and round."""
    changes = {"rounds": 2000000, "transport__reconnect_s": 1, "record": {"every": 20}}
    changes["topology"] = {"nodes": 3, "family": "ring"}
    cutter, agents = start_agents(scene, scene.experiment(**{**QUICK, **changes}), 3, 1, 0, 1)
    agents[0].wait_for("round 20/")
    cutter.stop()
    for agent in agents:
        agent.wait(60)
        check(agent.code == 1, f"exit code {agent.code}")
        for word in ("edge", "round", "did not come back within 1 s (transport.reconnect_s)"):
            check(word in agent.err, f"{word!r} is missing in {agent.err!r}")


def many(starling, cuts, seed):
    scene = Scene(os.path.abspath(starling))
    try:
        made = train(scene, 8, seed, cuts, 60000, 1800, rounds=cuts)
    finally:
        scene.close()
    print(f"8 agents, {cuts} rounds, cuts {made}: bit-equal to the simulator")


def behind_walls(starling, cuts, seed):
    """Rounds outlast the cuts."""
    nodes, rounds = 8, 4 * cuts
    why = why_not()
    if why is not None:
        sys.exit(f"skip: {why}")
    scene = Scene(os.path.abspath(starling))
    topology = {"nodes": nodes, "family": "ring"}
    security = {"mode": "none", "trusted_network": True}
    changes = {**QUICK, "rounds": rounds, "topology": topology, "security": security}
    changes["record"] = {"every": 20}
    try:
        path = scene.experiment(**changes)
        simulated = scene.call("sim", path, "--out", scene.path("sim"), timeout=900)
        check(simulated.code == 0, f"sim: {simulated.err!r}")
        with Net(nodes) as net:
            roster = "".join(f"{net.address(rank)}:7000\n" for rank in range(nodes))
            roster = scene.write("roster", roster)
            walls = Walls(net, seed, cuts)
            agents = [
                scene.start(
                    *("agent", path, "--rank", str(rank), "--roster", roster),
                    *("--out", scene.path(f"out{rank}")),
                    wrapper=net.wrapper(rank),
                )
                for rank in range(nodes)
            ]
            agents[0].wait_for("round 20/")
            walls.start()
            wait_for_all(walls, agents, cuts, 3000)
        check_models(scene, nodes)
        back = 0
        for rank in range(nodes):
            with open(scene.path(f"out{rank}/events-{rank}.jsonl")) as events:
                back += events.read().count('"event":"up"')
    finally:
        scene.close()
    print(f"{nodes} agents, {rounds} rounds, cuts {walls.made}: bit-equal to the simulator")
    print(f"ends of connections that broke and came back: {back}")


if __name__ == "__main__":
    for option, run in (("--many", many), ("--walls", behind_walls)):
        if option in sys.argv:
            numbers = [int(word) for word in sys.argv[3:]]
            run(sys.argv[1], *(numbers + [1])[:2])
            sys.exit(0)
    run_tests(
        [
            d_psgd,
            d_psgd_that_combines_while_it_adapts,
            choco_sgd,
            all_reduce,
            gradient_tracking,
            push_sum_over_a_directed_schedule,
            payloads_on_a_device,
            sessions_that_average,
            sessions_that_average_and_compress,
            gone_for_longer,
        ]
    )
