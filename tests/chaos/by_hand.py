#!/usr/bin/env python3
"""Agents started one by one with a roster, as on several hosts: they train together, or refuse each other by name.

usage: by_hand.py STARLING [TEST ...]
"""
import os
import signal
import socket

from _scene import check, run_tests

PAIR = {"rounds": 30, "record__every": 10, "topology": {"nodes": 2, "family": "ring"}}


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def start_pair(scene, first, second, extra=((), ())):
    """Two agents, each with its own experiment file, as two hosts have."""
    roster = scene.write("roster", "".join(f"127.0.0.1:{port}\n" for port in free_ports(2)))
    paths = [
        scene.experiment("a.json", **{**PAIR, **first}),
        scene.experiment("b.json", **{**PAIR, **second}),
    ]
    return [
        scene.start(
            "agent",
            paths[rank],
            "--rank",
            str(rank),
            "--roster",
            roster,
            "--out",
            scene.path(f"out{rank}"),
            *extra[rank],
        )
        for rank in (0, 1)
    ]


def two_shells(scene):
    pair = [running.wait(60) for running in start_pair(scene, {}, {})]
    for running in pair:
        check(running.code == 0, f"exit code {running.code}: {running.err!r}")
    simulated = scene.call("sim", scene.path("a.json"), "--out", scene.path("sim"))
    check(simulated.code == 0, f"sim: exit code {simulated.code}: {simulated.err!r}")
    for rank in (0, 1):
        with open(scene.path(f"out{rank}/model-{rank}.npy"), "rb") as real, open(
            scene.path(f"sim/model-{rank}.npy"), "rb"
        ) as sim:
            check(
                real.read() == sim.read(), f"the model of rank {rank} differs from the simulator's"
            )
        check(
            os.path.exists(scene.path(f"out{rank}/summary.json")), f"rank {rank} wrote no summary"
        )


def one_shell_is_killed(scene):
    """The other keeps the model that it recorded last, and no final one."""
    long = {"rounds": 2000000}
    survivor, victim = start_pair(scene, long, long)
    survivor.wait_for("round 20/")
    os.kill(victim.process.pid, signal.SIGKILL)
    victim.wait(10)
    survivor.wait(20)
    check(
        survivor.code == 1 and "model-0-last.npy" in survivor.err,
        f"exit code {survivor.code}: {survivor.err!r}",
    )
    check(
        os.path.exists(scene.path("out0/model-0-last.npy"))
        and not os.path.exists(scene.path("out0/model-0.npy")),
        "its folder",
    )


def one_shell_only(scene):
    """The other never comes up."""
    roster = scene.write("roster", "".join(f"127.0.0.1:{port}\n" for port in free_ports(2)))
    path = scene.experiment(**{**PAIR, "transport__connect_timeout_s": 2})
    ended = scene.call(
        "agent", path, "--rank", "0", "--roster", roster, "--out", scene.path("out"), timeout=15
    )
    ended.check_refused("edge", code=1)
    check(ended.seconds < 8, f"took {ended.seconds:.1f} s")


def refused(scene, word, first, second):
    pair = [running.wait(30) for running in start_pair(scene, first, second)]
    for running in pair:
        running.check_refused(word, "refused", "0", "1", code=1)


def optimizer_differs(scene):
    refused(scene, "optimizer", {}, {"optimizer__learning_rate": 0.02})


def topology_differs(scene):
    refused(
        scene,
        "topology",
        {},
        {
            "topology": {
                "nodes": 2,
                "edges": [[0, 0, 0.75], [0, 1, 0.25], [1, 0, 0.25], [1, 1, 0.75]],
            }
        },
    )


def model_differs(scene):
    refused(scene, "model", {}, {"model__hidden": [17]})


def data_differs(scene):
    refused(scene, "data", {}, {"data__batch": 9})


def run_id_differs(scene):
    pair = [
        running.wait(30)
        for running in start_pair(scene, {}, {}, (("--run-id", "1"), ("--run-id", "2")))
    ]
    for running in pair:
        running.check_refused("run id", "refused", code=1)


def name_and_record_may_differ(scene):
    pair = [
        running.wait(60) for running in start_pair(scene, {"name": "left"}, {"record__every": 5})
    ]
    for running in pair:
        check(running.code == 0, f"exit code {running.code}: {running.err!r}")


if __name__ == "__main__":
    run_tests(
        [
            two_shells,
            one_shell_is_killed,
            one_shell_only,
            optimizer_differs,
            topology_differs,
            model_differs,
            data_differs,
            run_id_differs,
            name_and_record_may_differ,
        ]
    )
