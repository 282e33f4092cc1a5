#!/usr/bin/env python3
"""Agents started one by one with a roster, as on several hosts: they train, or say why not.

usage: by_hand.py STARLING [TEST ...]
"""
import os
import shutil
import signal
import socket
import threading
import time

from _ports import free_ports
from _scene import check, run_tests

PAIR = {"rounds": 30, "record__every": 10, "topology": {"nodes": 2, "family": "ring"}}


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


def what_a_loss_does_differs(scene):
    for name in ("d-psgd", "choco-sgd"):  # which of the two has other replicas then
        stops, goes_on = (
            {"algorithm": {"name": name}, "membership__on_loss": does}
            for does in ("stop", "continue")
        )
        refused(scene, "membership.on_loss", stops, goes_on)
        for rank in range(2):
            shutil.rmtree(scene.path(f"out{rank}"))


def run_id_differs(scene):
    pair = [
        running.wait(30)
        for running in start_pair(scene, {}, {}, (("--run-id", "1"), ("--run-id", "2")))
    ]
    for running in pair:
        running.check_refused("run id", "refused", code=1)


def rosters_differ(scene):
    """Another agent at one of the places: which run is meant?"""
    ports = free_ports(3)
    path = scene.experiment(**{**PAIR, "transport__connect_timeout_s": 15})
    pair = []
    for rank, places in enumerate((ports[:2], [ports[0], ports[2]])):
        roster = scene.write(f"r{rank}", "".join(f"127.0.0.1:{port}\n" for port in places))
        command = ["agent", path, "--rank", str(rank), "--roster", roster]
        pair.append(scene.start(*command, "--out", scene.path(f"out{rank}")))
    for running in pair:
        running.wait(60)
    pair[1].check_refused("run id", "rosters differ", "STARLING_RUN_ID", code=1)
    check(pair[0].code == 1, pair[0].err)


def name_and_record_may_differ(scene):
    pair = [
        running.wait(60) for running in start_pair(scene, {"name": "left"}, {"record__every": 5})
    ]
    for running in pair:
        check(running.code == 0, f"exit code {running.code}: {running.err!r}")


class SlowProxy:
    """Passes connections to `port` on to its own, each way at `rate` bytes a second."""

    def __init__(self, port, rate):
        self.target, self.rate, self.open = port, rate, True
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self.pump, args=pair, daemon=True).start()

    def pump(self, source, sink):
        source.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        try:
            while data := source.recv(self.rate // 20):
                sink.sendall(data)
                time.sleep(len(data) / self.rate)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            source.close()
            sink.close()

    def close(self):
        self.listener.close()


def a_long_frame_on_a_slow_link_is_no_death(scene):
    """A frame takes several times transport.timeout_s; its bytes keep coming."""
    ports = free_ports(2)
    proxy = SlowProxy(ports[0], 100000)
    slow = {
        **PAIR,
        "rounds": 1,
        "record__every": 1,
        "model__hidden": [400],
        "transport": {"timeout_s": 4, "connect_timeout_s": 60, "chunk_bytes": 1 << 20},
    }
    path = scene.experiment(**slow)
    pair = []
    try:
        for rank, first in ((0, ports[0]), (1, proxy.port)):
            roster = scene.write(f"r{rank}", f"127.0.0.1:{first}\n127.0.0.1:{ports[1]}\n")
            command = ["agent", path, "--rank", str(rank), "--roster", roster, "--run-id", "1"]
            pair.append(scene.start(*command, "--out", scene.path(f"out{rank}")))
        for running in pair:
            running.wait(60)
            check(running.code == 0, f"exit code {running.code}: {running.err!r}")
            check(running.seconds > 8, f"the link was not slow: {running.seconds:.1f} s")
    finally:
        proxy.close()


def a_mute_neighbour_is_named_while_it_is_waited_for(scene):
    """Within transport.timeout_s a stopped agent is as one that only says that it lives."""
    long = {"rounds": 2000000, "record__every": 50}
    waiting, stopped = start_pair(
        scene, {**long, "transport__timeout_s": 60}, {**long, "transport__timeout_s": 60}
    )
    waiting.wait_for("round 50/")
    os.kill(stopped.process.pid, signal.SIGSTOP)
    waiting.wait_for("waiting: edge 1->0, round ", 30)
    check("s left (transport.round_timeout_s)" in waiting.said, f"how long still: {waiting.said!r}")
    for running in (waiting, stopped):
        running.process.kill()
        running.wait(10)


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
            what_a_loss_does_differs,
            run_id_differs,
            rosters_differ,
            name_and_record_may_differ,
            a_long_frame_on_a_slow_link_is_no_death,
            a_mute_neighbour_is_named_while_it_is_waited_for,
        ]
    )
