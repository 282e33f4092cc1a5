#!/usr/bin/env python3
"""Agents with keys: they train as without, and who has another one is refused, by name."""
import os
import shutil

from _scene import check, run_tests, read_lines
from _ca import Authority
from _keyed import SEALED, check_both, make_keys, make_nodes, train, with_key, with_pair
from _ports import free_ports
from by_hand import PAIR
from strangers import start


def check_edges(scene, *words):
    """Each agent's log says once how its one edge is protected."""
    for rank, word in enumerate(words):
        events = read_lines(scene.path(f"out{rank}/events-{rank}.jsonl"))
        edges = [(e["peer"], e["protection"]) for e in events if e["event"] == "edge"]
        check(edges == [(1 - rank, word)], f"{edges}, not {word!r}")


def what_proves_an_agent_changes_no_number(scene):
    make_keys(scene, "run.key")
    pins, ca = make_nodes(scene, 2), Authority(scene, "ca")
    for rank in range(2):
        ca.make(rank, f"signed-{rank}")
    signed = [(*with_pair(f"signed-{rank}"), *ca.trusted()) for rank in range(2)]
    experiment = scene.experiment(**PAIR, **SEALED)
    for extra, named, words in (
        ([with_key("run.key")] * 2, ("", ""), ["key"] * 2),
        ([with_pair("node-0"), with_pair("node-1")], pins, [f"certificate {p}" for p in pins]),
        (signed, ("", ""), ["certificate of the CA"] * 2),
    ):
        check_both(scene, experiment, train(scene, experiment, extra, named))
        check_edges(scene, *(f"TLS 1.3, {word}, AES-256-GCM" for word in reversed(words)))
        for rank in range(2):
            shutil.rmtree(scene.path(f"out{rank}"))


def check_apart(scene, first, second, words):
    """They do not meet. words: of the first one's notice and error, and the second one's error."""
    experiment = scene.experiment(**{**PAIR, "transport__connect_timeout_s": 8})
    ended = train(scene, experiment, [first, second])
    for rank in range(2):
        shutil.rmtree(scene.path(f"out{rank}"))
    for one in ended:
        check(one.code == 1, f"exit code {one.code}: {one.err!r}")
    said = (ended[0].said, ended[0].err, ended[1].err)
    for text, word in zip(said, (words[0], *words)):
        check(word in text, f"{word!r} is missing in {text!r}")


def without_the_same_key_nobody_comes_in(scene):
    make_keys(scene, "run.key", "other.key")
    own, other = with_key("run.key"), with_key("other.key")
    foreign = "it has another key, or another run id"
    check_apart(scene, own, other, (foreign, foreign))
    none = "it shows no key, and this agent asks for one"
    check_apart(scene, own, (), (none, none))
    shown = "it shows a key, and this agent has none"
    check_apart(scene, (), own, (shown, shown))
    sealed = (*own, "--set", "security.seal=on")
    check_apart(scene, sealed, own, ("a frame's seal is broken", "did not come up"))


def off_stays_on_loopback(scene):
    """There it is what auto is. Beyond it agents refuse, as they do `on` where there is no key."""
    make_keys(scene, "run.key")
    experiment, own = scene.experiment(**PAIR), with_key("run.key")
    off = (*own, "--set", "security.seal=off")
    check_both(scene, experiment, train(scene, experiment, [off, own]))
    check_edges(scene, *["TLS 1.3, key, handshake-only"] * 2)
    ports = free_ports(2)
    roster = scene.roster(ports)
    everywhere = ("--listen", f"0.0.0.0:{ports[0]}")
    for extra, words in (
        ((*off, *everywhere), ("security.seal", "0.0.0.0", '"off"', '"on"', '"handshake-only"')),
        (("--set", "security.seal=on"), ("security.seal", '"on" needs a key', "keys make")),
    ):
        start(scene, experiment, 0, roster, "out2", *extra).wait(60).check_refused(*words)
        check(not os.path.exists(scene.path("out2")), "it has left a run folder")


def another_certificate_is_named(scene):
    pins = make_nodes(scene, 3)
    words = "is not the one that the roster names"
    # rank 1's own roster agrees with its pair; rank 0's names another one
    experiment = scene.experiment(**PAIR, transport__connect_timeout_s=8)
    ports = free_ports(2)
    rosters = [
        scene.roster(ports, "roster-0", pins[:2]),
        scene.roster(ports, "roster-1", (pins[0], pins[2])),
    ]
    running = [
        start(scene, experiment, 0, rosters[0], "out0", *with_pair("node-0")),
        start(scene, experiment, 1, rosters[1], "out1", *with_pair("node-2")),
    ]
    first, second = [one.wait(60) for one in running]
    for one in (first.said, second.err):
        check(words in one and pins[2] in one, repr(one))
    wrong = start(scene, experiment, 1, rosters[0], "out2", *with_pair("node-2")).wait(60)
    check(pins[2] in wrong.err and pins[1] in wrong.err, repr(wrong.err))
    bare = scene.roster(ports, "bare")
    start(scene, experiment, 1, bare, "out3", *with_pair("node-1")).wait(60).check_refused(
        "bare:1", "rank 0", "sha256:", "`starling keys roster`"
    )


def check_says_who_may_take_part(scene):
    make_keys(scene, "run.key")
    bare, sealed = scene.experiment(**PAIR), scene.experiment("s.json", **PAIR, **SEALED)
    for experiment, extra, words in (
        (bare, (), "starling run        makes a key of its own"),
        (bare, with_key("run.key"), "AES-256-GCM beyond loopback"),
        (sealed, with_key("run.key"), "TLS 1.3 with the run's key"),
    ):
        said = scene.call("check", experiment, *extra)
        found = " ".join(words.split()) in " ".join(said.out.split())
        check(said.code == 0 and found, f"{words!r} is missing in {said.out!r}")
    os.chmod(scene.path("run.key"), 0o604)
    scene.call("check", bare, *with_key("run.key")).check_refused("chmod 600")


if __name__ == "__main__":
    run_tests()
