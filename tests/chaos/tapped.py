#!/usr/bin/env python3
"""Somebody on the way between agents with keys: what he hears says nothing. taps.py has what he
changes."""
import os

from _scene import check, read_bytes, run_tests
from _keyed import RUN_ID, make_keys, with_key, train
from _tap import Tap
from _ports import free_ports
from by_hand import PAIR


def is_heard(tap, secret):
    return any(secret in heard for heard in tap.heard)


def model_pieces(scene, rank=1):
    """Runs of 16 bytes of the model that stand in its last message, and are not all zeros."""
    model = read_bytes(scene.path(f"out{rank}/model-{rank}.npy"))[128:]  # behind its header
    pieces = {model[i : i + 16] for i in range(0, len(model) - 15, 16)}
    return [piece for piece in pieces if len(set(piece)) > 4]


def hashes_of(tap, run_id):
    """What a HELLO in the clear says behind its run id: hashes of topology, layout and data, and
    of the first sections of the configuration."""
    heard = next(bytes(heard) for heard in tap.heard if run_id in heard)
    hello = heard[heard.index(run_id) :]
    return [hello[i : i + 8] for i in (8, 16, 24, 80, 88, 96)]


def what_is_on_the_wire_says_nothing(scene):
    """With learning rate 0 the model on the wire is the model in the file, and so is its average.
    Where data is open, only data is, and where it stays in memory, nothing."""
    make_keys(scene, "run.key")
    run_id = RUN_ID.to_bytes(8, "little")
    hashes = []
    rows = (
        *((None, "off", True, True), ("on", "off", False, False), ("off", "off", True, False)),
        (None, "auto", False, True),
    )
    for seal, memory, models, heard in rows:
        experiment = scene.experiment(
            **PAIR, optimizer__learning_rate=1e-30, transport__memory=memory, final_average=True
        )
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
            os.rename(scene.path(f"out{rank}"), scene.path(f"out{rank}-{seal}-{memory}"))


if __name__ == "__main__":
    run_tests()
