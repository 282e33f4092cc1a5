#!/usr/bin/env python3
"""What it costs an agent to be looked at: by nobody, by three viewers of its page, by 1,000 clients
that send a byte a second and take no answer. Of each: rounds a second, the HTTP threads' share of a
core, open descriptors, and how long /metrics takes. Then the page's bytes.

usage: watching.py [--build BUILD] [--seconds N]
"""

import gzip
import json
import os
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request

import _bench

NODES, SLOW, FILES = 8, 1000, ("/", "/page.css", "/page.js", "/icon.svg")


def fetch(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return answer.read()


def rounds_of(port):
    for line in fetch(port, "/metrics").decode().splitlines():
        if line.startswith("starling_rounds_total"):
            return float(line.split()[-1])
    return 0.0


def http_seconds(pid):
    """Of a core, by the threads that answer."""
    ticks = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/stat") as file:
            name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
        if name == "starling-http":
            ticks += sum(map(int, rest.split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


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


def crowd(port, clients):
    """So many that are slow: who was sent away comes again."""
    while len(clients) < SLOW:
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(("127.0.0.1", port))
        clients.append(client)
    kept = []
    for client in clients:
        try:
            client.send(b"G")
            kept.append(client)
        except BlockingIOError:
            kept.append(client)
        except OSError:
            client.close()
    clients[:] = kept


def watch(port, pid, seconds, clients, act):
    """[rounds a second, share of a core, descriptors, ms of /metrics]"""
    took = []
    begun, rounds, used = time.monotonic(), rounds_of(port), http_seconds(pid)
    while time.monotonic() - begun < seconds:
        act(clients)
        time.sleep(1)
    past = time.monotonic() - begun
    row = [(rounds_of(port) - rounds) / past, 100 * (http_seconds(pid) - used) / past]
    row.append(len(os.listdir(f"/proc/{pid}/fd")))
    for _ in range(9):
        at = time.monotonic()
        fetch(port, "/metrics")
        took.append(1000 * (time.monotonic() - at))
    for client in clients:
        client.close()
    return [*row, statistics.median(took)]


def main():
    parser = _bench.parser_of(__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    o = parser.parse_args()
    base = 9100
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
        time.sleep(5)
        pids = subprocess.run(["pgrep", "-P", str(run.pid)], capture_output=True, text=True).stdout
        pid = min(map(int, pids.split()))
        cases = [
            ("nobody", 0, lambda clients: None),
            ("3 viewers", 3, take_all),
            ("1,000 slow clients", 0, lambda clients: crowd(base, clients)),
            ("nobody again", 0, lambda clients: None),
        ]
        rows = [[name, *watch(base, pid, o.seconds, viewers(base, count), act)]
                for name, count, act in cases]
        page = [fetch(base, file) for file in FILES]
        run.terminate()
        run.wait()
    _bench.print_heads("looked at by", "rounds/s", "% of a core", "descriptors", "/metrics, ms")
    for name, rate, share, descriptors, ms in rows:
        _bench.print_row(name, f"{rate:.0f}", f"{share:.2f}", f"{descriptors}", f"{ms:.2f}")
    print(f"page: {sum(map(len, page)) / 1e3:.1f} kB, "
          f"{sum(len(gzip.decompress(file)) for file in page) / 1e3:.1f} kB unpacked")


main()
