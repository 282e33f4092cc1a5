#!/usr/bin/env python3
"""MNIST by eight agents on a ring, of which three are killed; two of them return, the third is
killed again each time that it is started. Beside it the same run without losses. The folders can
be drawn (tools/plot).

usage: mnist_losses.py STARLING DATA OUT [KEY=VALUE ...]    DATA: a folder with the four IDX files
"""
import json
import os
import re
import signal
import subprocess
import sys
import time

EXAMPLE = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "mnist.json")
KILLS = {2: 100, 5: 250, 7: 400}  # rank: in this round
GONE = 7
SETTINGS = [
    "record.every=10",
    "data.test_samples=2000",
    "membership.on_loss=continue",
    "membership.grace_s=5",
    "membership.restart=on-failure",
    "transport.round_timeout_s=300",
    "transport.connect_timeout_s=120",
]


def agents_of(run):
    """rank -> pid of the agents that this process has started."""
    found = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
            with open(f"/proc/{entry}/cmdline") as file:
                words = file.read().split("\0")
        except OSError:
            continue
        if parent == run.pid and "--rank" in words:
            found[int(words[words.index("--rank") + 1])] = int(entry)
    return found


def last_round(folder):
    try:
        with open(os.path.join(folder, "consensus.jsonl")) as file:
            return max([json.loads(line)["round"] for line in file if line.endswith("\n")] or [0])
    except FileNotFoundError:
        return 0


def kill(run, folder):
    """Each once, and the one that is to stay away as often as it is started."""
    left, last = dict(KILLS), None
    while run.poll() is None:
        agents, now = agents_of(run), last_round(folder)
        for rank, pid in agents.items():
            if (rank in left and now >= left[rank]) or (rank == GONE and last not in (None, pid)):
                os.kill(pid, signal.SIGKILL)
                last = pid if rank == GONE else last
                left.pop(rank, None)
        time.sleep(0.1)


def train(starling, data, folder, settings, losses):
    words = [word for one in [*settings, f"data.path={data}"] for word in ("--set", one)]
    command = [starling, "run", EXAMPLE, "--out", folder, *words]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    if losses:
        kill(run, folder)
    out, _ = run.communicate()
    if run.returncode != 0:
        sys.exit(f"mnist_losses.py: {folder}: exit code {run.returncode}")
    for line in out.splitlines():
        if re.match("averaged|lost|returned|started", line):
            print(f"{os.path.basename(folder)}: {line}", flush=True)


def main():
    starling, data, out = sys.argv[1:4]
    os.makedirs(out)
    for name in ("clean", "three-killed"):
        train(starling, data, os.path.join(out, name), SETTINGS + sys.argv[4:], name != "clean")


main()
