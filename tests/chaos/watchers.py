#!/usr/bin/env python3
"""Watchers at an agent's pages: who dribbles, says something else, or comes from a browser that was
misled, costs little, learns nothing, and keeps nobody out."""
import json
import os
import resource
import socket

from _scene import SLOWER, check, run_tests, wait_until
from _forger import CUTS, Forger
from _keyed import check_both
from _ports import free_ports
from _slow import SlowClients, costs
from by_hand import PAIR
from crowd import Watched
from strangers import start

WATCHERS, DESCRIPTORS = 1000, 1024
LOG_BYTES = 64 * 1024
RUN = {
    **PAIR,
    "rounds": 1500,
    "record__every": 500,
    "checkpoint": {"every": 100, "keep": 3},
    "transport__connect_timeout_s": 600,
    "transport__reconnect_s": 60,
}


def say(place, request):
    """All that is answered, until the other end closes. place: of TCP, or the path of a socket."""
    family = socket.AF_UNIX if isinstance(place, str) else socket.AF_INET
    with socket.socket(family) as one:
        one.settimeout(SLOWER * 10)
        one.connect(place)
        one.sendall(request)
        answer = b""
        while piece := one.recv(4096):
            answer += piece
    return answer


def ask(method="GET", path="/status", host="localhost", more=b""):
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n".encode() + more + b"\r\n"


def page(place, *asked):
    """What is answered: status and content."""
    head, _, content = say(place, ask(*asked)).partition(b"\r\n\r\n")
    return int(head.split()[1]), content


def see(port, rank):
    status, content = page(("127.0.0.1", port))
    check(status == 200 and json.loads(content)["rank"] == rank, f"{status} {content}")


def allow_descriptors():
    """To this process, which holds the other ends."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4 * DESCRIPTORS, most), most))


def bytes_of(*paths):
    return sum(os.path.getsize(path) for path in paths)


def a_run_goes_on_under_a_crowd_of_watchers(scene):
    """They come before it trains; it saves, loses a connection, and ends as without them."""
    allow_descriptors()
    ports, look = free_ports(2), free_ports(1)[0]
    cutter = Forger(5, ports, 1, first=60000, changes={"cut": CUTS["cut"]})
    cutter.start()
    roster = scene.roster(cutter.ports)
    experiment = scene.experiment(**RUN)

    def begin(rank, *extra):
        listen = ("--listen", f"127.0.0.1:{ports[rank]}")
        few = ("prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}")
        return start(scene, experiment, rank, roster, f"out{rank}", *listen, *extra, wrapper=few)

    first = begin(0, "--set", f"monitor.listen=127.0.0.1:{look}")
    first.wait_for("come up: 1 (")
    watched = Watched(first.process.pid)
    watchers = SlowClients(look, WATCHERS, gap_s=2, pieces=(1,))
    logs = (first.out_path, first.err_path)
    try:
        watchers.start()
        wait_until(lambda: watchers.begun >= WATCHERS, "all watchers come")
        before = bytes_of(*logs)
        see(look, 0)
        second = begin(1)
        first.wait_for("round 500/")
        see(look, 0)
        check_both(scene, experiment, [second.wait(120), first.wait(120)])
    finally:
        watchers.end()
        watched.end()
        cutter.stop()
    grown = bytes_of(*logs) - before
    with open(scene.path("out0/events-0.jsonl")) as events:
        said = events.read()
    print(
        f"# {watchers.begun} watchers came; at most {watched.descriptors} descriptors, "
        f"memory +{watched.memory / 2**20:.2f} MiB, log +{grown} bytes",
        flush=True,
    )
    check(cutter.made["cut"] == 1 and '"event":"up"' in said, f"no cut was mended: {said[-500:]}")
    check(grown + len(said) < LOG_BYTES, f"the log has grown by {grown} bytes")
    check(watched.descriptors < 100, f"{watched.descriptors} descriptors")
    saved = os.listdir(scene.path("out0/checkpoints"))
    check(any("round-1500-" in name for name in saved), f"checkpoints: {saved}")


def slow_clients_leave_nothing_behind(scene):
    """2,000 requests of 200 clients: descriptors and memory are what they were after the first 400,
    and each has been answered, or closed for somebody else."""
    scene.take_time()
    look = free_ports(1)[0]
    roster, experiment = scene.roster(free_ports(2)), scene.experiment(**{**RUN, "rounds": 10**7})
    listen = ("--set", f"monitor.listen=127.0.0.1:{look}")
    agents = [start(scene, experiment, 0, roster, "out0", *listen),
              start(scene, experiment, 1, roster, "out1")]  # fmt: skip
    agents[0].wait_for("round 500/")
    pid, taken = agents[0].process.pid, []
    few = costs(pid)[0]
    for requests in (400, 2000):
        clients = SlowClients(look, 200, requests, gap_s=0.1)
        clients.start()
        clients.join()
        check(clients.over.total() == requests and clients.over["200"] > 0, clients.over)
        check(set(clients.over) <= {"200", "503", "closed"}, clients.over)
        wait_until(lambda: costs(pid)[0] <= few, "descriptors are closed")
        taken.append(costs(pid)[1])
    print(f"# {dict(clients.over)}; memory {taken[0]}, then {taken[1]} bytes", flush=True)
    check(taken[1] - taken[0] < 2**20, f"memory {taken}")
    for agent in agents:
        agent.process.terminate()
        agent.wait(60)


def others_are_refused_and_who_is_slow_is_ended(scene):
    """Each gets its status at once; test_request has all of them. A browser that was misled has to
    name this host; who may use the folder has not. Who sends a byte again and again is ended."""
    look, trusted = free_ports(1)[0], ("security.trusted_network=true", "security.mode=none")
    sets = [word for key in (f"monitor.listen=0.0.0.0:{look}", *trusted) for word in ("--set", key)]
    roster = scene.roster(free_ports(2))
    agent = start(scene, scene.experiment(**RUN), 0, roster, "out0", *sets)
    agent.wait_for("come up: 1 (")
    slow = SlowClients(look, 1, gap_s=2, pieces=(1,))
    slow.start()
    rows = (
        (200, ask(host=f"127.0.0.1:{look}")),
        (200, ask("HEAD")),
        (200, ask(host=socket.gethostname())),
        (403, ask(host="evil.example")),
        (413, ask(more=b"Content-Length: 1000000\r\n") + b"a" * 10000),
    )
    for code, request in rows:
        answer = say(("127.0.0.1", look), request)
        check(answer.startswith(b"HTTP/1.1 %d " % code), f"{request[:80]}: {answer[:80]}")
        has_body = answer.partition(b"\r\n\r\n")[2] != b""
        check(has_body == (not request.startswith(b"HEAD")), f"{request[:80]}: {answer}")
    answer = say(scene.path("out0/status-0.sock"), ask(host="agent"))
    check(answer.startswith(b"HTTP/1.1 200 "), f"at the socket: {answer[:80]}")
    wait_until(lambda: slow.over["closed"] > 0, "who is slow is ended", 30)
    slow.end()
    agent.process.terminate()
    agent.wait(60)


if __name__ == "__main__":
    run_tests()
