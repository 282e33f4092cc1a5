#!/usr/bin/env python3
"""Agents that launchers start: rank and peers from the environment, and the rendezvous at rank 0.

Open MPI, Slurm and torchrun are used where they are; torchrun is made up by its variables too."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import time

import _torchrun
from _walls import Net
from _scene import check, needs, read_json, run_tests
from _ports import free_ports, free_range
from _terminal import Terminal
from strangers import wait_listening

SHORT = {"rounds": 20, "topology": {"nodes": 4, "family": "ring"}, "record": {"every": 20}}
PAIR = {**SHORT, "topology": {"nodes": 2, "family": "ring"}}
TRUSTED = {"security": {"mode": "none", "trusted_network": True}}
# Variables that say what has started this test are not the agents'.
LAUNCHERS = (
    *("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_", "TORCHELASTIC_", "OMPI_", "PMIX_"),
    *("PMI_", "MPI_", "MV2_", "MVP_", "PALS_", "FLUX_", "JSM_", "STARLING_PORT"),
    *("SLURM_", "JOB_COMPLETION_INDEX", "STARLING_RANK", "STARLING_SIZE", "STARLING_ROSTER"),
    *("STARLING_MASTER", "STARLING_LISTEN", "STARLING_RUN_ID"),
)
PORTS = 9  # that a rendezvous tries
EXAMPLE = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "session.json")


def start(scene, path, environment, *extra, out="out", wrapper=()):
    """An agent with variables of a launcher, and no others of its kind."""
    scene.environment = environment
    try:
        return scene.start("agent", path, "--out", scene.path(out), *extra, wrapper=wrapper)
    finally:
        scene.environment = {}


def by_hand(rank, port, size=2, host="127.0.0.1"):
    """MASTER_ADDR and MASTER_PORT as a script sets them."""
    told = {"RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": host, "MASTER_PORT": port}
    return {name: str(value) for name, value in told.items()}


def torchrun(rank, port, host="127.0.0.1", hosts=1):
    """What torchrun sets for four; its store is at MASTER_PORT."""
    more = {"LOCAL_WORLD_SIZE": str(4 // hosts), "TORCHELASTIC_RUN_ID": "none"}
    return {**by_hand(rank, port, 4, host), **more}


def wait_all(agents):
    for running in agents:
        running.wait(60)
    for running in agents:
        running.check_well()


def launchers_here(folder):
    """The commands that start four processes, of the launchers that run on this host; and a shell
    that says who they are."""
    roster = ",".join(f"127.0.0.1:{port}" for port in free_ports(4))
    each = 'for rank in 0 1 2 3; do STARLING_RANK=$rank "$@" & done; wait'
    yield ["env", "STARLING_SIZE=4", f"STARLING_ROSTER={roster}", "sh", "-c", each, "sh"]
    if shutil.which("mpirun") and "Open MPI" in subprocess.getoutput("mpirun --version"):
        yield ["mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "4"]
    if shutil.which("mpiexec.hydra"):  # of MPICH, and of Intel MPI
        yield ["mpiexec.hydra", "-n", "4"]
    try:
        subprocess.run(["sinfo"], timeout=60, check=True, capture_output=True)
        yield ["srun", "-n4", "-D", folder]
    except (OSError, subprocess.SubprocessError):
        pass
    if shutil.which("torchrun"):
        command, variables = _torchrun.torchrun(4, os.path.join(folder, "meeting"), "--no_python")
        yield ["env", *(f"{name}={value}" for name, value in variables.items()), *command]


def agents_of_launchers(scene):
    """But torchrun's, whose variables are made up below, and a shell's."""
    path = scene.experiment(**SHORT, **TRUSTED)
    commands = [command for command in launchers_here(scene.folder) if command[0] != "env"]
    for i, command in enumerate(commands):
        wait_all([start(scene, path, {}, out=f"out{i}", wrapper=command)])
        scene.check_models([f"out{i}"] * 4, experiment=path)
    needs(commands, "none is here")


def a_loop_of_your_own(scene):
    """examples/embed.c finds its peers by every launcher that is here, and learns with them, as in
    one process."""
    embed = scene.built("tests/embed")
    path = scene.write("session.json", json.dumps({**read_json(EXAMPLE), **TRUSTED}))
    expected = subprocess.run(
        [embed, path, "4"], capture_output=True, text=True, timeout=600
    ).stdout
    found = re.findall(r"average ([\d.]+), models are ([\d.e-]+) apart", expected)
    check(len(found) == 4 and len(set(found)) == 1 and float(found[0][0]) > 0.9, expected)
    for launcher in launchers_here(scene.folder):
        call = [*launcher, embed, path]
        got = subprocess.run(call, capture_output=True, text=True, timeout=600, cwd=scene.folder)
        said = f"{launcher}: {got.stdout!r} {got.stderr!r}"
        check(got.returncode == 0, said)
        for line in expected.splitlines():
            check(line in got.stdout, said)


def strangers_have_no_say(scene):
    """At the rendezvous, which is at the first free port; how many may come, test_listener has."""
    first, path = free_range(PORTS), scene.experiment(**SHORT)
    with socket.create_server(("127.0.0.1", first)):
        agents = [start(scene, path, torchrun(rank, first)) for rank in (0, 2, 1)]
        wait_listening(first + 1)
        guests = []
        for words in (b"", b"GET / HTTP/1.0\r\n\r\n", b"STLGmeet" + b"\xff" * 200, b"STLGmeet"):
            guests.append(socket.create_connection(("127.0.0.1", first + 1)))
            guests[-1].sendall(words)
        time.sleep(0.5)
        agents.append(start(scene, path, torchrun(3, first)))
        wait_all(agents)
    for guest in guests:
        with guest, contextlib.suppress(ConnectionResetError):
            check(guest.recv(100) == b"", "a stranger was answered")
    scene.check_models(["out"] * 4, experiment=path)


def who_does_not_come_is_named(scene):
    """Others, and rank 0 where another program is at its port."""
    port, taken = free_range(PORTS), free_range(PORTS)
    path = scene.experiment(**SHORT, transport__connect_timeout_s=10)
    with socket.create_server(("127.0.0.1", taken)):
        agents = [start(scene, path, by_hand(rank, port, size=4)) for rank in (0, 1)]
        lost = start(scene, path, by_hand(1, taken, size=4)).wait(20)
    lost.check_refused("rank 0", f"127.0.0.1 ports {taken}", "10 s", "connect_timeout_s", code=1)
    for running in agents:
        running.wait(20).check_refused("ranks 2, 3 of 4", "10 s", "connect_timeout_s", code=1)
    check(not os.path.exists(scene.path("out")), "it has left a run folder")


def a_terminal_for_all(scene):
    """Under a launcher nobody draws over the others; each line says of whom it is."""
    port, path = free_range(PORTS), scene.experiment(**PAIR)
    command = [scene.starling, "agent", path, "--out", scene.path("out")]
    shows = [Terminal(command, variables=by_hand(rank, port)) for rank in (0, 1)]
    for rank, show in enumerate(shows):
        code, text = show.read_all()
        check(code == 0, text)
        check("\033[" not in text, f"it draws: {text!r}")
        check(f"agent {rank}: round 20/20" in text, text)


# A host of its own: `ip netns exec` with /etc/hosts of its own.
AT_HOME = 'mount --bind "$0" /etc/hosts && exec "$@"'


def two_hosts(scene):
    """Each host's own name is loopback on itself, as Debian writes in /etc/hosts. By variables,
    and by a hostfile: a rank for each slot. test_launch has other forms."""
    with Net(2) as net:
        for own in (0, 1):
            places = ["127.0.1.1" if host == own else net.address(host) for host in (0, 1)]
            lines = [f"{place} node-{host}\n" for host, place in enumerate(places)]
            scene.write(f"hosts{own}", "".join(["127.0.0.1 localhost\n", *lines]))

        def start_on(host, path, variables, *extra, out="out"):
            wrapper = [*net.wrapper(host), "sh", "-c", AT_HOME, scene.path(f"hosts{host}")]
            return start(scene, path, variables, *extra, out=out, wrapper=wrapper)

        path = scene.experiment(**SHORT, **TRUSTED)
        told = [torchrun(rank, 29500, host="node-0", hosts=2) for rank in range(4)]
        wait_all([start_on(rank % 2, path, told[rank]) for rank in range(4)])
        scene.check_models(["out"] * 4, experiment=path)
        peers = ("--roster", scene.write("list", "node-0 slots=2\nnode-1 slots=2\n"))
        peers += ("--port", "7500", "--rank")
        listed = [start_on(k // 2, path, {}, *peers, str(k), out="listed") for k in range(4)]
        wait_all(listed)
        scene.check_models(["listed"] * 4, experiment=path)
        alone = scene.experiment("alone.json", **SHORT)
        refused = start_on(1, alone, told[1], out="alone").wait(20)
        refused.check_refused("beyond loopback", "trusted_network")


if __name__ == "__main__":
    for variable in list(os.environ):
        if variable.startswith(LAUNCHERS) and variable != "SLURM_CONF":
            del os.environ[variable]
    run_tests()
