"""Network namespaces, one for each process, joined by slow links (links.c); and agents there."""

import json
import os
import subprocess
import sys

import _bench

sys.path.insert(0, os.path.join(_bench.ROOT, "tests", "chaos"))
from _ports import free_ports  # noqa: E402
from _walls import Net, ip  # noqa: E402


class Links(Net):
    """`with Links(...) as links`: count namespaces; what it makes is gone afterwards."""

    network = "10.82.0"

    def __init__(self, build, count, mbit, delay_ms):
        super().__init__(count)
        self._command = [_bench.needed(build, "links"), str(count), str(mbit), str(delay_ms)]
        self._program = None
        if os.geteuid() != 0:
            raise SystemExit("slow links need root, iproute2 and /dev/net/tun")

    def __exit__(self, *_):
        if self._program is not None:
            self._program.communicate()  # the end of its input
        super().__exit__()

    def open_switch(self):
        self._program = subprocess.Popen(
            ["ip", "netns", "exec", self.switch, *self._command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self._program.stdout.readline() != "ready\n":
            raise SystemExit("links: did not start")

    def plug_in(self, rank, space, card):
        ip("-n", self.switch, "link", "set", card, "netns", space)
        ip("-n", space, "link", "set", card, "address", f"02:00:00:00:00:{rank + 1:02x}")

    def card(self, rank):
        return f"tap{rank + 1}"


class Loopback:
    """The same without namespaces and slow links."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def card(self, rank):
        return "lo"

    def address(self, rank):
        return "127.0.0.1"

    def wrapper(self, rank):
        return []


def torch_processes(links, build, script, tasks, port):
    """What each `SCRIPT --work TASK` has written to its task's "out", as JSON. tasks: one for each
    rank, which is added. port: torch.distributed's, with Gloo."""
    processes = []
    for rank, task in enumerate(tasks):
        environment = {
            **_bench.package_environment(build),
            "MASTER_ADDR": links.address(0),
            "MASTER_PORT": str(port),
            "GLOO_SOCKET_IFNAME": links.card(rank),
        }
        command = [*links.wrapper(rank), sys.executable, os.path.abspath(script), "--work"]
        command.append(json.dumps({**task, "rank": rank}))
        processes.append(subprocess.Popen(command, env=environment))
    try:
        codes = [process.wait() for process in processes]
    finally:
        for process in processes:
            process.kill()
    if any(codes):
        sys.exit(f"{script}: processes ended with {codes}")
    return [json.load(open(task["out"])) for task in tasks]


def agents(build, links, experiment, folder, environment=lambda rank: {}):
    """Trains: of each agent its lines of metrics. environment: what a rank's has beside."""
    path, nodes = os.path.join(folder, "experiment.json"), experiment["topology"]["nodes"]
    with open(path, "w") as file:
        json.dump(experiment, file)
    roster = ",".join(f"{links.address(r)}:{port}" for r, port in enumerate(free_ports(nodes)))
    starling = os.path.join(os.path.abspath(build), "tools", "starling")
    command = [starling, "agent", path, "--roster", roster]
    outs = [os.path.join(folder, str(rank)) for rank in range(nodes)]
    processes = [
        subprocess.Popen(
            [*links.wrapper(rank), *command, "--rank", str(rank), "--out", outs[rank]],
            env={**os.environ, **environment(rank)},
            stdout=subprocess.DEVNULL,
        )
        for rank in range(nodes)
    ]
    if any([process.wait(_bench.LIMIT_S) for process in processes]):
        sys.exit(f"an agent of {experiment['algorithm']} failed")
    lines = []
    for rank, out in enumerate(outs):
        with open(os.path.join(out, f"metrics-{rank}.jsonl")) as file:
            lines.append([json.loads(line) for line in file])
    return lines


def slow_gradients(build, pause_us):
    """What an agent's environment has whose products of matrices take so long."""
    library = os.path.join(os.path.abspath(build), "tests", "libslow_gradient.so")
    return {"LD_PRELOAD": library, "STARLING_PAUSE_US": str(pause_us)}
