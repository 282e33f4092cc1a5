#!/usr/bin/env python3
"""Agents with a CA: rosters name nobody's certificate, and its list shuts out whom it revokes."""
import os
import shutil

from _ca import Authority
from _keyed import start_as, with_pair
from _ports import free_ports
from _scene import check, run_tests, read_json
from by_hand import PAIR
from trust import Run, check_reloaded

FOUR = {"topology": {"nodes": 4, "family": "complete"}, "membership__grace_s": 30}


def begin(scene, **changes):
    """Four agents, each with a pair that the CA has signed."""
    ca = Authority(scene, "ca")
    run = Run(scene, [""] * 4, **{**FOUR, **changes})
    for rank in range(4):
        ca.make(rank)
        run.start(rank, with_pair(f"node-{rank}"), *ca.trusted())
    run.train(range(4))
    return ca, run


def a_new_certificate_needs_no_roster(scene):
    """A pair is replaced and the old certificate revoked: nobody is lost."""
    ca, run = begin(scene)
    shutil.copy(scene.path("node-1.crt"), scene.path("old.crt"))
    ca.make(1, "new")
    for end in ("key", "crt"):
        os.replace(scene.path(f"new.{end}"), scene.path(f"node-1.{end}"))
    check_reloaded(run.reload("out1"), "the roster is as before; this agent has another pair")
    ca.revoke("old.crt")
    for rank in (0, 2, 3):
        ended = run.reload(f"out{rank}")
        check_reloaded(ended, "the key is as before; the list of security.revoked is another one")
        run.agents[rank].wait_for("the connection to agent 1 is back after")
    for rank in range(4):
        check("lost" not in run.agents[rank].said, run.agents[rank].said)
    run.end(range(4))


def who_is_revoked_is_out_also_when_the_list_has_ended(scene):
    """At once. A list that ends holds on: nobody else is shut out, and who starts then is told."""
    ca, run = begin(scene, membership__grace_s=3)
    ca.revoke("node-2.crt")
    ca.list("-crlsec", "5")
    for rank in (0, 1, 3):
        check_reloaded(run.reload(f"out{rank}"), "the list of security.revoked is another one")
    for rank in (0, 1, 2, 3):
        run.agents[rank].wait_for("is revoked (security.revoked)", 20)
    ended = "the list of security.revoked has ended; it holds on"
    for rank in (0, 1, 3):
        run.agents[rank].wait_for(f"warning rank {rank}: {ended}", 20)
        run.agents[rank].wait_for("3 of 4 nodes go on", 20)
    run.agents[3].kill()
    late = run.start(3, with_pair("node-3"), *ca.trusted(), "--join", out="late").wait(60)
    late.check_refused("security.revoked: ", "its list 1 has ended, 20")
    ca.list()
    run.start(3, with_pair("node-3"), *ca.trusted(), "--join", out="again")
    run.agents[3].wait_for("3 of 4 nodes go on", 30)
    run.agents[2].kill()
    run.end((0, 1, 3))


def others_are_refused_by_name(scene):
    """Rank 1 takes rank 0 by its fingerprint, and shows what the CA of rank 0 does not take;
    test_authority has what else that is."""
    ca, other = Authority(scene, "ca"), Authority(scene, "other")
    ca.make(0)
    ca.make(1, "revoked")
    ca.revoke("revoked.crt")
    other.make(1, "of-another")
    experiment = scene.experiment(**{**PAIR, "transport__connect_timeout_s": 4})
    for name, words in (
        ("revoked", "is revoked (security.revoked)"),
        ("of-another", "is not of a CA of security.ca"),
    ):
        ports = free_ports(2)
        files = [f"127.0.0.1:1={scene.path(one)}.crt" for one in ("node-0", name)]
        pins = [scene.call("keys", "roster", each).out.split()[-1] for each in files]
        trusted = (*with_pair("node-0"), *ca.trusted())
        listens = start_as(scene, experiment, 0, ports, f"{name}-0", ("", ""), trusted)
        dials = start_as(scene, experiment, 1, ports, f"{name}-1", pins, with_pair(name))
        for one in (listens, dials):
            ended = one.wait(60)
            check(ended.code == 1 and words in ended.err, f"{name}: {words}: {ended.err!r}")
        alone = start_as(
            scene, experiment, 1, ports, f"{name}-2", ("", ""), (*with_pair(name), *ca.trusted())
        )
        alone.wait(60).check_refused("others would refuse agent 1: its certificate", words, code=1)


def a_run_of_this_host_takes_it(scene):
    """`starling run`, whose agents each have a pair; and `check` says when the CA's files end."""
    ca = Authority(scene, "ca")
    for rank in range(2):
        ca.make(rank)
    security = {
        "mode": "certificates",
        "key": "node-{rank}",
        "ca": "ca/ca.crt",
        "revoked": "ca/revoked.pem",
    }
    experiment = scene.experiment(**PAIR, security=security)
    page = scene.call("check", experiment)
    page.check_well()
    for words in ("TLS 1.3 with certificates of the CA", "ends 20", "revoked certificates 20"):
        check(words in page.out, f"{words}: {page.out}")
    scene.call("run", experiment, "--out", scene.path("run"), timeout=120).check_well()
    kept = read_json(scene.path("run/config.json"))["security"]
    check(kept["ca"] == os.path.realpath(scene.path("ca/ca.crt")), f"{kept}")
    ca.list("-crl_lastupdate", "20200101000000Z", "-crl_nextupdate", "20200201000000Z")
    for command in (("check",), ("run", "--out", scene.path("again"))):
        scene.call(*command, experiment).check_refused(
            "security.revoked: ", "has ended, 2020-02-01"
        )


if __name__ == "__main__":
    run_tests()
