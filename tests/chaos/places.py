#!/usr/bin/env python3
"""Where an agent listens, whom it reaches, where it writes, what it may use: refused or told early.
"""

import os
import resource
import time

from _scene import check, needs, read_bytes, run_tests
from _ports import free_ports
from by_hand import PAIR

# A network on which a name server never answers; needs the right to make name spaces.
NO_ANSWER = """ip link set lo up && ip link add silent type veth peer name sink &&
ip address add 10.79.9.1/24 dev silent && ip link set silent up && ip link set sink up &&
ip neighbour add 10.79.9.2 lladdr 02:00:00:00:00:01 dev silent &&
mount --bind "$0" /etc/resolv.conf && mount --bind "$1" /etc/nsswitch.conf && shift && exec "$@" """


def agent(scene, rank, hosts, out, *extra, experiment=None, wrapper=()):
    path = experiment or scene.experiment(**PAIR)
    return scene.agent(path, rank, hosts, *extra, out=out, wrapper=wrapper)


def refused(scene, running, out, *words):
    running.wait(30).check_refused(*words)
    check(not os.path.exists(scene.path(out)), "it has left a run folder")


def beyond_loopback_only_on_request(scene):
    ports = free_ports(2)
    hosts = scene.roster(ports)
    everywhere = ["--listen", f"0.0.0.0:{ports[0]}"]
    running = agent(scene, 0, hosts, "out0", *everywhere)
    refused(scene, running, "out0", "security", "mode", "trusted_network", "0.0.0.0")
    trusted = scene.experiment("t.json", **PAIR, security={"mode": "none", "trusted_network": True})
    pair = [
        agent(scene, 0, hosts, "out0", *everywhere, experiment=trusted),
        agent(scene, 1, hosts, "out1", experiment=trusted),
    ]
    for running in pair:
        running.wait(60).check_well()


def unknown_providers_are_refused(scene):
    """Before anything is started."""
    path = scene.experiment(**PAIR, transport__provider="nowhere")
    run = scene.start("run", path, "--out", scene.path("run"))
    for running in (run, agent(scene, 0, scene.roster([7, 9]), "run", experiment=path)):
        refused(scene, running, "run", "transport.provider", "'nowhere'")


def agents_meet_over_ipv6(scene):
    known = "/proc/net/if_inet6"
    needs(os.path.exists(known) and read_bytes(known), "no IPv6 here")
    hosts = scene.write("roster", "".join(f"[::1]:{port}\n" for port in free_ports(2)))
    for running in [agent(scene, rank, hosts, f"out{rank}") for rank in (0, 1)]:
        running.wait(60).check_well()


def a_provider_of_libfabrics_has_no_key(scene):
    """`starling run` makes a key of its own."""
    said = scene.call("run", scene.experiment(**PAIR, transport__provider="libfabric-tcp"))
    check(said.code != 0 and "everybody is trusted" in said.err, f"{said.code}: {said.err!r}")


def a_name_server_that_never_answers(scene):
    needs(os.getuid() == 0, "needs root's rights")
    resolv = scene.write("resolv.conf", "nameserver 10.79.9.2\n")
    switch = scene.write("nsswitch.conf", "hosts: dns\n")
    wrapper = ["unshare", "-n", "-m", "sh", "-c", NO_ANSWER, resolv, switch]
    hosts = scene.write("roster", "somewhere.test:7401\n127.0.0.1:7402\n")
    experiment = scene.experiment(**PAIR, transport__connect_timeout_s=3)
    running = agent(scene, 1, hosts, "out", experiment=experiment, wrapper=wrapper).wait(30)
    needs(running.err.startswith("starling"), f"no name spaces here: {running.err.strip()}")
    running.check_refused("somewhere.test", "3 s", "connect_timeout_s")
    experiment = scene.experiment(**PAIR, transport__connect_timeout_s=40)
    running = agent(scene, 1, hosts, "out", experiment=experiment, wrapper=wrapper)
    time.sleep(3)
    check(running.process.poll() is None, f"ended early: {running.err!r}")
    running.interrupt().ends(130, 5)


def little_address_space_ends_with_a_reason(scene):
    """OpenBLAS would try for ever. It takes 136 MB for each thread, so that more than that may be
    enough where it has one."""
    for megabytes in (100, 150, 200):
        for command, kind, option in (("sim", "as", "-v"), ("run", "data", "-d")):
            limit = ["prlimit", f"--{kind}={megabytes << 20}"]
            out = f"{command}-{megabytes}"
            path = scene.experiment(rounds=3)
            running = scene.start(command, path, "--out", scene.path(out), wrapper=limit)
            if megabytes < 136 or running.wait(60).code != 0:
                refused(scene, running, out, f"ulimit {option}", f"{megabytes} MB")


def few_descriptors_end_with_a_reason(scene):
    """However few there are: one line, and it is ours."""
    ports = free_ports(2)
    hosts = scene.roster(ports)
    path = scene.experiment(**PAIR, transport__connect_timeout_s=0.5)
    for count in range(12, 28, 4):
        limit = ["prlimit", f"--nofile={count}:{count}"]
        running = agent(scene, 0, hosts, f"out{count}", experiment=path, wrapper=limit).wait(30)
        lines = running.errors
        told = len(lines) == 1 and lines[0].startswith("starling: ")
        check(running.code in (1, 2) and told, f"of {count}: {running.code} {running.err!r}")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    run_tests()
