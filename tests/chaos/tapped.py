#!/usr/bin/env python3
"""Somebody on the way between agents with keys: what he hears says nothing, and what he changes
costs connections only.

usage: tapped.py STARLING [TEST ...]
"""
import os
import re
import socket

from _scene import check, run_tests
from _keyed import RUN_ID, SEALED, make_keys, with_key, write_roster, train, check_both, read_bytes
from _robber import CHANGES, HEADER, KIND, MAGIC, Robber
from _tap import Tap
from _ports import free_ports
from by_hand import PAIR
from strangers import start, wait_listening


def is_heard(tap, secret):
    return any(secret in heard for heard in tap.heard)


def heads_of(heard):
    """Of the sealed frames of one direction."""
    places = [at.start() for at in re.finditer(MAGIC, heard)]
    return [heard[at : at + HEADER] for at in places if heard[at + KIND + 1] & 2]


def model_pieces(scene):
    """Runs of 16 bytes of the model that stand in its last message, and are not all zeros."""
    model = read_bytes(scene.path("out1/model-1.npy"))[128:]  # behind its header
    pieces = {model[i : i + 16] for i in range(0, len(model) - 15, 16)}
    return [piece for piece in pieces if len(set(piece)) > 4]


def hashes_of(tap, run_id):
    """What a HELLO in the clear says behind its run id: hashes of topology, layout and data, and
    of the first sections of the configuration."""
    heard = next(bytes(heard) for heard in tap.heard if run_id in heard)
    hello = heard[heard.index(run_id) :]
    return [hello[i : i + 8] for i in (8, 16, 24, 80, 88, 96)]


def what_is_on_the_wire_says_nothing(scene):
    """With learning rate 0 the model on the wire is the model in the file. Where data is open, only
    data is."""
    make_keys(scene, "run.key")
    run_id = RUN_ID.to_bytes(8, "little")
    experiment = scene.experiment(**PAIR, optimizer__learning_rate=1e-30)
    hashes = []
    for seal, models, heard in ((None, True, True), ("on", False, False), ("off", True, False)):
        extra = (*with_key("run.key"), "--set", f"security.seal={seal}") if seal else ()
        tap = Tap(free_ports(1)[0])
        tap.start()
        ended = train(scene, experiment, [extra] * 2, tap=tap)
        tap.stop()
        for one in ended:
            one.check_well()
        pieces = model_pieces(scene)
        check(len(pieces) > 100, f"{len(pieces)} pieces of the model to look for")
        count = sum(is_heard(tap, piece) for piece in pieces)
        check((count > 0) == models, f"{count} of {len(pieces)} pieces of the model are heard")
        check(is_heard(tap, run_id) == heard, f"the run id is heard: {not heard}")
        hashes = hashes or hashes_of(tap, run_id)
        check(all(len(set(one)) > 4 for one in hashes), f"these are no hashes: {hashes}")
        found = [is_heard(tap, one) for one in hashes]
        check(found == [heard] * len(hashes), f"hashes that are heard: {found}")
        for rank in range(2):
            os.rename(scene.path(f"out{rank}"), scene.path(f"out{rank}-{seal}"))


def who_holds_the_wire_costs_connections_only(scene):
    """Frames repeated, swapped, left out, cut and altered, and an ABORT and a BYE put in."""
    make_keys(scene, "run.key")
    experiment = scene.experiment(**{**PAIR, **SEALED, "rounds": 60, "transport__reconnect_s": 30})
    robber = Robber(free_ports(1)[0], after=4)
    robber.start()
    ended = train(scene, experiment, [with_key("run.key")] * 2, tap=robber)
    robber.stop()
    check_both(scene, experiment, ended)
    check(not robber.left, f"not tried: {list(robber.left)}")
    broken = sum(one.said.count("a frame's seal is broken") for one in ended)
    check(broken >= len(CHANGES), f"{broken} broken seals: {ended[0].out!r} {ended[1].out!r}")
    check("is back after" in ended[0].said + ended[1].said, repr(ended[0].said))


def keys_change_while_agents_train(scene):
    """Their clocks say that hours pass; each frame says which of two keys it is sealed with."""
    make_keys(scene, "run.key")
    patience = {"timeout_s": 86400, "connect_timeout_s": 86400, "round_timeout_s": 86400}
    long = {**PAIR, **SEALED, "rounds": 2000, "record__every": 2000, "transport": patience}
    experiment = scene.experiment(**long)
    library = os.path.dirname(os.path.dirname(scene.starling))
    scene.environment["LD_PRELOAD"] = os.path.join(library, "tests", "libfast_clock.so")
    tap = Tap(free_ports(1)[0])
    tap.start()
    ended = train(scene, experiment, [with_key("run.key")] * 2, tap=tap)
    tap.stop()
    del scene.environment["LD_PRELOAD"]
    check_both(scene, experiment, ended)
    for heard in sorted(tap.heard, key=len)[-2:]:  # both directions of the last connection
        said = [head[KIND + 1] & 4 for head in heads_of(bytes(heard))]
        changes = sum(one != other for one, other in zip(said, said[1:]))
        check(changes > 0, f"the key of {len(said)} frames does not change")


def who_was_heard_is_not_repeated(scene):
    """All that rank 1 sent, sent again by somebody else, to an agent that opens, and trains."""
    make_keys(scene, "run.key")
    experiment = scene.experiment(**PAIR, **SEALED)
    port = free_ports(1)[0]
    tap = Tap(port)
    tap.start()
    extra = [with_key("run.key")] * 2
    ended = train(scene, experiment, extra, tap=tap)
    tap.stop()
    check_both(scene, experiment, ended)
    roster = write_roster(scene, "roster", (port, free_ports(1)[0]))
    for name in ("out0", "out1", "sim"):
        os.rename(scene.path(name), scene.path(name + "-before"))
    first = start(scene, experiment, 0, roster, "out0", "--run-id", str(RUN_ID), *extra[0])
    wait_listening(port)
    for heard in tap.heard:
        with socket.create_connection(("127.0.0.1", port)) as again:
            again.settimeout(120)
            try:
                again.sendall(heard)
                while again.recv(1 << 16):
                    pass
            except OSError:
                pass
    check(first.process.poll() is None, f"the agent ended: {first.err!r}")
    second = start(scene, experiment, 1, roster, "out1", "--run-id", str(RUN_ID), *extra[1])
    check_both(scene, experiment, [second.wait(60), first.wait(60)])


if __name__ == "__main__":
    run_tests(
        [
            what_is_on_the_wire_says_nothing,
            who_holds_the_wire_costs_connections_only,
            keys_change_while_agents_train,
            who_was_heard_is_not_repeated,
        ]
    )
