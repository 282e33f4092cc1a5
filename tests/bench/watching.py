#!/usr/bin/env python3
"""What it costs an agent to be looked at: by nobody, by three viewers of its page, by 1,000 slow
clients, which make 100,000 requests in all turns together. They take turns. Of each, medians:
rounds a second, what a round takes of the agent's processor (all threads but HTTP's), the HTTP
thread's share of a core, open descriptors, and how long /metrics takes. Then how the requests
ended, and descriptors and memory before and after; the page's bytes, and with --browser what
64 nodes take to be shown: ms until the first paint, and of a core with two changes a second.

usage: watching.py [--build BUILD] [--seconds N] [--turns N] [--requests N] [--browser]
"""

import collections
import gzip
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import _bench

sys.path.insert(0, os.path.join(_bench.ROOT, "tests", "chaos"))
from _slow import SlowClients, costs  # noqa: E402

NODES, SLOW, FILES = 8, 1000, ("/", "/page.css", "/page.js", "/icon.svg")


def fetch(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return answer.read()


def rounds_of(port):
    for line in fetch(port, "/metrics").decode().splitlines():
        if line.startswith("starling_rounds_total"):
            return float(line.split()[-1])
    return 0.0


def thread_seconds(pid):
    """Of a core, by the thread that answers, and by all others."""
    used = [0, 0]
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/comm") as name:
            with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                used[name.read() != "starling-http\n"] += 1e-9 * int(file.read().split()[0])
    return used


def connects(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def viewers(port, count):
    all_of_them = []
    for _ in range(count):
        client = socket.create_connection(("127.0.0.1", port))
        client.sendall(b"GET /events HTTP/1.0\r\n\r\n")
        client.setblocking(False)
        all_of_them.append(client)
    return all_of_them


def take_all(clients):
    for client in clients:
        try:
            while client.recv(1 << 16):
                pass
        except OSError:
            pass


def watch(port, pid, act):
    """[rounds a second, microseconds of a round, share of a core, descriptors, ms of /metrics],
    while `act` looks, and says how many descriptors there were."""
    took = []
    time.sleep(1)
    begun, rounds, used = time.monotonic(), rounds_of(port), thread_seconds(pid)
    descriptors = act()
    past = time.monotonic() - begun
    rounds = rounds_of(port) - rounds
    http, own = (now - then for now, then in zip(thread_seconds(pid), used))
    for _ in range(9):
        at = time.monotonic()
        fetch(port, "/metrics")
        took.append(1000 * (time.monotonic() - at))
    return [rounds / past, 1e6 * own / rounds, 100 * http / past, descriptors,
            statistics.median(took)]


def look_for(port, pid, count, seconds):
    """So many viewers."""
    clients, until = viewers(port, count), time.monotonic() + seconds
    while time.monotonic() < until:
        take_all(clients)
        time.sleep(1)
    descriptors = costs(pid)[0]
    for client in clients:
        client.close()
    return descriptors


def crowd(port, pid, requests, over):
    """Slow clients, until so many requests are over. over: how, which is counted."""
    most, clients = 0, SlowClients(port, SLOW, requests, gap_s=0.8)
    clients.start()
    while clients.is_alive():
        most = max(most, costs(pid)[0])
        clients.join(1)
    over.update(clients.over)
    return most


# Each update is parsed and drawn as one that comes from an agent.
REPLAY = """const whole = JSON.parse(JSON.stringify(board)), texts = [], any = Math.random;
const cut = (of, n) => Object.fromEntries(Object.entries(of).map(([name, list]) =>
    [name, Array.isArray(list) && name !== "down" ? list.slice(0, list.length - n) : list]));
for (let n = 0; n < 6; n++) texts.push(JSON.stringify({
    nodes: whole.nodes.map((node) => ({...node, round: 10 * n, still_s: any(),
        state: any() < 0.5 ? "computes" : "exchanges", waits_for: any() < 0.2 ? [0] : []})),
    links: whole.links.map((link) => ({...link, lag: n % 3, mb_s: any(), reconnects: 0,
        round_trip_s: any() / 100, wait_share: any() / 10, protection: "TLS 1.3"})),
    curves: cut(whole.curves, n), strip: whole.strip.map((row) => cut(row, n))}));
let tick = 0;
setInterval(() => {
    const part = JSON.parse(texts[tick++ % 6]);
    Object.assign(board, part);
    draw(Object.keys(part));
}, 500);"""


def family_seconds(pid):
    """Of a core, by a process and all that it has begun."""
    with open(f"/proc/{pid}/stat") as file:
        used = sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))
    children = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            children += file.read().split()
    return used / os.sysconf("SC_CLK_TCK") + sum(map(family_seconds, children))


# Of its last load: since it was asked for, in ms.
PAINTED = "performance.getEntriesByName('first-contentful-paint').map((one) => one.startTime)[0]"


def first_paint(browser, address):
    """The least, which is that of a core that is free, and the median, in ms."""
    took = []
    for _ in range(9):
        browser.driver.get("about:blank")
        browser.driver.get(address)
        while (at := browser.look(PAINTED)) is None:
            time.sleep(0.05)
        took.append(at)
    return min(took), statistics.median(took)


def show_in_browser(starling, seconds):
    from _browser import Browser

    keys = ["topology.family=torus", "topology.sides=[8,8]", "model=softmax", "rounds=1100",
            "data.train_samples=640", "data.test_samples=20", "data.batch=1", "record.every=10"]
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "e.json"), os.path.join(folder, "run")
        with open(path, "w") as file:
            json.dump({"topology": {"nodes": 64, "family": "ring"}}, file)
        sets = [word for key in keys for word in ("--set", key)]
        subprocess.run([starling, "sim", path, "--out", out, *sets], check=True,
                       stdout=subprocess.DEVNULL)
        shown = subprocess.Popen([starling, "show", out, "--listen", "127.0.0.1:0"],
                                 stdout=subprocess.PIPE, text=True)
        with Browser(1200, 900) as browser:
            least, median = first_paint(browser, shown.stdout.readline().split()[0])
            while not browser.look("board.curves !== undefined"):
                time.sleep(0.2)
            browser.driver.execute_script(REPLAY)
            time.sleep(5)
            pid = browser.driver.service.process.pid
            begun, used = time.monotonic(), family_seconds(pid)
            time.sleep(seconds)
            share = (family_seconds(pid) - used) / (time.monotonic() - begun)
        shown.terminate()
    print(f"64 nodes in a browser: {100 * share:.1f} % of a core; first paint after "
          f"{least:.0f} ms, median {median:.0f}")


def main():
    parser = _bench.parser_of(__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--requests", type=int, default=100000)
    parser.add_argument("--browser", action="store_true")
    o = parser.parse_args()
    base = next(base for base in range(9100, 30000, 10)
                if not any(connects(base + rank) for rank in range(NODES)))
    experiment = {
        "rounds": 10**9,
        "topology": {"nodes": NODES, "family": "ring"},
        "monitor": {"listen": f"127.0.0.1:{base // 10}{{rank}}"},
        "record": {"every": 500, "models": "none", "evaluate": 1},
    }
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "e.json")
        with open(path, "w") as file:
            json.dump(experiment, file)
        starling = os.path.join(o.build, "tools", "starling")
        run = subprocess.Popen([starling, "run", path, "--out", os.path.join(folder, "run")],
                               stdout=subprocess.DEVNULL)
        while not connects(base) or rounds_of(base) == 0:
            time.sleep(0.5)
        pids = subprocess.run(["pgrep", "-P", str(run.pid)], capture_output=True, text=True).stdout
        pid = min(map(int, pids.split()))
        over, each = collections.Counter(), o.requests // o.turns
        works = {
            "nobody": lambda: look_for(base, pid, 0, o.seconds),
            "3 viewers": lambda: look_for(base, pid, 3, o.seconds),
            "1,000 slow clients": lambda: crowd(base, pid, each, over),
        }
        crowd(base, pid, SLOW, collections.Counter())  # what is kept for the next ones
        time.sleep(6)  # until who is left behind is sent away
        before = costs(pid)
        turns = _bench.in_turns(
            {name: lambda act=act: watch(base, pid, act) for name, act in works.items()}, o.turns
        )
        time.sleep(6)
        after = costs(pid)
        rows = [(name, *map(statistics.median, zip(*values))) for name, values in turns.items()]
        page = [fetch(base, file) for file in FILES]
        run.terminate()
        run.wait()
    _bench.print_heads("looked at by", "rounds/s", "us a round", "% of a core", "descriptors",
                       "/metrics, ms")
    for name, rate, us, *others in rows:
        _bench.print_row(name, f"{rate:.0f}", f"{us:.0f}", *(f"{value:.2f}" for value in others))
    ends = ", ".join(f"{count} {how}" for how, count in over.most_common())
    print(f"{over.total()} requests: {ends}")
    print("descriptors and bytes before: {} {}, after: {} {}".format(*before, *after))
    print(f"page: {sum(map(len, page)) / 1e3:.1f} kB, "
          f"{sum(len(gzip.decompress(file)) for file in page) / 1e3:.1f} kB unpacked")
    if o.browser:
        show_in_browser(starling, o.seconds)


main()
