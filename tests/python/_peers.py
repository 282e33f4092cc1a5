"""Peers as processes of their own, each with a script."""

import json
import subprocess
import sys
import textwrap
import time

from _ports import free_ports
from _scene import SLOWER, check

PYTHON = "/usr/bin/python3"
EXPERIMENT = {
    "topology": {"nodes": 2, "family": "complete"},
    "algorithm": "d-psgd",
    "transport": {
        "timeout_s": 30,
        "connect_timeout_s": 60,
        "reconnect_s": 1,
        "round_timeout_s": 60,
    },
    "membership": {"on_loss": "stop"},
}
HEAD = """
import json, os, pickle, sys, time
import starling
RANK = int(sys.argv[1])
EXPERIMENT = json.loads(sys.argv[2])
ROSTER = json.loads(sys.argv[3])

def join(x, experiment=EXPERIMENT, **more):
    return starling.join(experiment, x, rank=RANK, roster=ROSTER, **more)
"""
ONES = "import numpy; x = numpy.full(6, RANK, dtype='f4')"


def roster(count):
    return [f"127.0.0.1:{port}" for port in free_ports(count)]


def nodes(experiment):
    return experiment["topology"]["nodes"]


class Peers:
    """A process for each rank; body: the script of all, after HEAD."""

    def __init__(
        self,
        scene,
        body,
        experiment=EXPERIMENT,
        head=HEAD,
        ranks=None,
        addresses=None,
        name="peer.py",
    ):
        count = nodes(experiment)
        self.folder = scene.folder
        self.path = scene.write(name, head + textwrap.dedent(body))
        self.told = [json.dumps(experiment), json.dumps(addresses or roster(count))]
        self.processes = []
        for rank in range(count) if ranks is None else ranks:
            self.start(rank)

    def start(self, rank, *more):
        process = subprocess.Popen(
            [PYTHON, self.path, str(rank), *self.told, *more],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)

    def wait(self, seconds=60):
        """[(code, output, errors)] by rank."""
        until, ended = time.monotonic() + SLOWER * seconds, []
        for process in self.processes:
            try:
                out, err = process.communicate(timeout=max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                for each in self.processes:
                    each.kill()
                said = [each.communicate() for each in self.processes]
                check(False, f"still running after {seconds} s: {said}"[-1500:])
            ended.append((process.returncode, out, err))
        return ended

    def all_well(self, seconds=60):
        """What each wrote; all must have ended with 0."""
        ended = self.wait(seconds)
        check(all(code == 0 for code, _, _ in ended), f"{ended}"[-2500:])
        return [out for _, out, _ in ended]


def read_line(process):
    line = process.stdout.readline()
    check(line, f"ended: {process.stderr.read()[-800:]}" if process.poll() is not None else "")
    return line.strip()


if __name__ == "__main__":
    sys.exit("a module for tests")
