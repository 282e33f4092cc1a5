#!/usr/bin/env python3
"""`starling status`: what agents do, and the one that all wait for in the end."""

import json
import os
import re
import signal
import socket

from _answers import Answerer, reply
from _scene import check, run_tests, wait_until
from _ports import free_ports, free_range
from watchers import page

N = 16


def named(scene, place, words, what):
    """Whoever is asked there names the agent that all wait for."""
    line = re.compile(rf"^{words}; [\d, ]+ waits? for it$", re.M)
    wait_until(lambda: line.search(scene.call("status", place).out), f"{what} at {place}", 30)


def who_stands_still_is_the_root(scene):
    """All agents of a run answer; when one is stopped, or computes for long, the others wait for it
    along the ring. At a port it may be what it said last, until it is silent."""
    stalls, port = scene.path("stalls"), free_ports(1)[0]
    os.mkdir(stalls)
    scene.take_time()
    scene.environment["STARLING_STALLS"] = stalls
    path = scene.experiment(
        rounds=10**6,
        topology={"nodes": 6, "family": "ring"},
        record={"every": 10**6},
        transport={"timeout_s": 120},
        monitor={"listen": f"127.0.1.{{rank}}:{port}"},
    )
    folder = scene.path("a" * 120)  # longer than the address of a socket may be
    running = scene.start("run", path, "--out", folder)
    scene.environment = {}
    sockets = [os.path.join(folder, f"status-{rank}.sock") for rank in range(6)]

    def lines():
        return scene.call("status", folder).out.splitlines()

    def train():
        return len([line for line in lines() if "computes" in line or "exchanges" in line]) == 6

    wait_until(train, "all agents train")
    here = os.open(folder, os.O_PATH)
    near = f"/proc/self/fd/{here}/status-2.sock"
    status, content = page(near)
    said = json.loads(content)
    check(status == 200 and said["rank"] == 2 and said["nodes"] == 6, content)
    check([edge["rank"] for edge in said["neighbours"]] == [1, 3], content)
    check(all(edge["connected"] for edge in said["neighbours"]), content)
    check(said["neighbours"][0]["protection"] == "TLS 1.3, key, handshake-only", content)
    said_of_all = "all edges: TLS 1.3, key, handshake-only, data in memory"
    check(said_of_all in lines(), "it is not said of all")
    victim = scene.agents()[3]
    os.kill(victim, signal.SIGSTOP)
    try:
        wait_until(lambda: "rank 3 does not answer; " in lines()[-1], "the root is named", 30)
        wait_until(lambda: lines()[-1].count(",") == 4, "all wait", 30)
        words = lines()[-1]
        whole = r"rank 3 does not answer; [24], [24], [15], [15], 0 wait for it"
        check(re.fullmatch(whole, words), words)
        named(scene, f"127.0.1.5:{port}", r"rank 3 .* since \d+ s", "the stopped one")
        os.kill(victim, signal.SIGCONT)
        wait_until(train, "all agents train again")
        scene.write(f"stalls/{scene.agents()[2]}", "")
        for place in (folder, f"127.0.1.5:{port}"):
            named(scene, place, r"rank 2 computes round \d+ since \d+ s", "who computes")
    finally:
        os.kill(victim, signal.SIGCONT)
        for name in os.listdir(stalls):
            os.remove(os.path.join(stalls, name))
        running.process.send_signal(signal.SIGINT)
    running.wait(60)
    os.close(here)
    check(not any(map(os.path.exists, sockets)), os.listdir(folder))
    for place in (folder, f"127.0.1.5:{port}"):
        scene.call("status", place).check_refused("no agent runs there")


def say(rank, doing, number, still_s, edges, awaited, root=None):
    neighbours = [{"rank": j, "connected": True, "awaited": j in awaited} for j in edges]
    keys = {"rank": rank, "nodes": N, "doing": doing, "round": number, "still_s": still_s}
    return {**keys, "waits_for": "", "root": root, "neighbours": neighbours}


def odd_answers(scene):
    """Who says nothing, or something else, does not answer; who is not there is named too, and the
    one that others wait for, at first and through others."""
    away = {"rank": 4, "doing": "is not connected", "round": 0, "still_s": 9.2}
    words = {
        0: say(0, "exchanges", 5, 9, [1, 3, 4], [1, 3, 4], away),
        1: None,
        2: b"SSH-2.0-x\r\n",
        3: [1, 2],
        5: reply(b"{" + b"x" * 5000),
        6: say(6, "exchanges", 5, 0.2, [0], [0]),
        7: say(8, "computes", 5, 0.2, [0], []),
        9: say(9, "computes", 812, 41.3, [10, 12], []),
        10: say(10, "exchanges", 814, 39, [11, 12], [11, 12]),
        11: say(11, "exchanges", 813, 40, [9, 10], [9]),
        12: say(12, "exchanges", 813, 40, [9, 10], [9]),
    }
    os.makedirs(scene.path("odd"))
    agents = [Answerer(said, scene.path(f"odd/status-{r}.sock")) for r, said in words.items()]
    with open(scene.path("odd/status-x.sock"), "w", encoding="ascii"):
        pass
    got = scene.call("status", scene.path("odd"))
    for agent in agents:
        agent.close()
    check(got.code == 1, f"{got.code} {got.err}")
    for rank in (1, 2, 3, 5, 7):
        check(re.search(rf"^ +{rank} +- +does not answer$", got.out, re.M), got.out)
    for line in (
        "rank 1 does not answer; 0 waits for it",
        "rank 3 does not answer; 0 waits for it",
        "rank 4 is not connected since 9 s; 0 waits for it",
        "rank 9 computes round 812 since 41 s; 11, 12, 10 wait for it",
    ):
        check(line in got.out.splitlines(), got.out)
    check(got.out.count("for it") == 4, got.out)


def its_code_tells_how_the_run_does(scene):
    """Healthy; degraded from the loss of one on, in folder and at a port; down when too few are
    left, and when nobody answers."""
    scene.take_time()
    ports = free_ports(5)
    roster = scene.roster(ports[:4])
    seen = {"listen": f"127.0.1.{{rank}}:{ports[4]}"}
    path = scene.experiment(
        topology__nodes=4, membership={"on_loss": "continue", "grace_s": 3}, monitor=seen
    )
    agents = [scene.agent(path, rank, roster) for rank in range(4)]
    place = f"127.0.1.1:{ports[4]}"

    def told(where=place):
        got = scene.call("status", where, "--json")
        said = json.loads(got.out)
        check(["healthy", "degraded", "down"].index(said["state"]) == got.code, got.out)
        return got.code, said["members"], said["of"], [row["rank"] for row in said["lost"]]

    wait_until(lambda: told() == (0, 4, 4, []), "all four train")
    check(scene.call("status", place).out.startswith("4 of 4\n"), "the first line")
    agents[2].process.kill()
    wait_until(lambda: told() == (1, 3, 4, [2]), "the loss is told")
    wait_until(lambda: json.loads(page(scene.path("out1/status-1.sock"))[1])["view"] == 2, "a view")
    check(told(scene.path("out0")) == (1, 3, 4, [2]), "it is told in a folder")
    first = scene.call("status", place).out.splitlines()[0]
    check(re.fullmatch(r"3 of 4, lost: 2 since \d+ s", first), first)
    for rank in (0, 3):
        agents[rank].process.send_signal(signal.SIGSTOP)
    wait_until(lambda: told() == (2, 1, 4, [0, 2, 3]), "all three are lost", 30)
    for agent in agents:
        agent.kill()
    check(scene.call("status", place).code == 2, "nobody answers")


def nobody_is_there(scene):
    os.makedirs(scene.path("empty"))
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(scene.path("empty/status-0.sock"))
    dead.close()
    scene.call("status", scene.path("empty")).check_refused("no agent runs there")
    scene.call("status", scene.path("none")).check_refused("none", "no folder that can be read")
    check(scene.call("status").code == 2, "without a folder")


def where_it_listens_is_checked(scene):
    """monitor.listen: each agent of a run at its own port, or the run's page alone; on loopback
    unless it is public."""
    keys = {"rounds": 3, "record": {"every": 1}, "topology": {"nodes": 2, "family": "ring"}}
    first = free_range(9, 10)
    for number, (listen, *words) in enumerate(
        ((f"0.0.0.0:{first}", "0.0.0.0", '"monitor": {"public": true}'), ("127.0.0.1", "HOST:PORT"))
    ):
        path = scene.experiment("wrong.json", **keys, monitor={"listen": listen})
        got = scene.call("run", path, "--out", scene.path(f"wrong{number}"))
        check(got.code != 0, f"{listen}: {got.code}")
        check(all(word in got.err for word in words), f"{listen}: {got.err}")
        check("trusted_network" not in got.err, f"{listen}: {got.err}")
    path = scene.experiment("taken.json", **keys, monitor={"listen": f"127.0.0.1:{first}"})
    with socket.create_server(("127.0.0.1", first)):
        agent = scene.agent(path, 0, scene.roster(free_ports(2))).wait(30)
    agent.check_refused("{rank}", "monitor.listen", "in use")
    path = scene.experiment("one.json", **keys, monitor={"listen": f"127.0.0.1:{first}"})
    got = scene.call("run", path, "--out", scene.path("one"))
    check(got.code == 0 and f"its page: http://127.0.0.1:{first}/\n" in got.out, got.said)
    scene.call("keys", "make", "-o", scene.path("run.key")).check_well()
    everywhere = {"listen": f"0.0.0.0:{first // 10}{{rank}}", "public": True}
    key = {"key": scene.path("run.key")}
    path = scene.experiment("open.json", **keys, monitor=everywhere, security=key)
    scene.call("run", path, "--out", scene.path("open")).check_well()


if __name__ == "__main__":
    run_tests()
