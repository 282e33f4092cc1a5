#!/usr/bin/env python3
"""Peers that save their state, end, and go on with the bits of a run that was never stopped: loops
of numpy and scripts of torch, in processes and simulated."""
import io
import os
import pickle

import _package
import numpy
import starling
from _each import CASES, links_for
from _listed import unnamed
from _loops import SAVED, STEPS, Script, first_x, overlaps, train_array
from _package import imported, refused
from _peers import EXPERIMENT, HEAD, Peers, read_line
from _scene import check, run_tests

TOP_K = {"compressor": {"name": "top-k", "fraction": 0.25}}
OVERLAP = {"name": "d-psgd"}
BLOCKING = {"name": "d-psgd", "variant": "adapt-then-combine"}
CHOCO = {"name": "choco-sgd", "variant": "mix-then-compress", **TOP_K}
ALGORITHMS = (
    OVERLAP,
    {"name": "d-psgd", "variant": "combine-while-adapt"},
    BLOCKING,
    {"name": "dcd-psgd", "compressor": {"name": "qsgd", "levels": 64}},
    {"name": "choco-sgd", **TOP_K},
    CHOCO,
    {"name": "deep-squeeze", **TOP_K},
    {"name": "sgp"},
    {"name": "gradient-tracking"},
)
LOOPS = HEAD + f"\nsys.path.insert(0, {_package.HERE!r})\nfrom _loops import *\n"


def of(algorithm, nodes=4):
    transport = {**EXPERIMENT["transport"], "connect_timeout_s": 60, "chunk_bytes": 4096}
    ring = {"nodes": nodes, "family": "ring" if nodes > 2 else "complete"}
    links = links_for(algorithm)
    return {"seed": 3, "topology": ring, "algorithm": algorithm, "transport": transport, **links}


# ---- arrays ----

ARRAY = """
x = first_x(RANK)
peer = join(x)

def save():
    with open(f"state-{RANK}", "wb") as file:
        pickle.dump((x, peer.state_dict()), file)
    print("saved", flush=True)

train_array(peer, x, EXPERIMENT, 0, save, 10 ** 9)
"""
ARRAY_GOES_ON = """
with open(f"state-{RANK}", "rb") as file:
    x, state = pickle.load(file)
peer = join(x, start=False)
peer.load_state_dict(state)
train_array(peer, x, EXPERIMENT, SAVED)
peer.leave()
print(x.tobytes().hex())
"""


def array_that_is_not_stopped(experiment):
    def work(rank):
        x = first_x(rank)
        with starling.join(None, x) as peer:
            train_array(peer, x, experiment, 0)
        return x

    return starling.simulate(experiment["topology"]["nodes"], work, experiment)


def test_loops_of_numpy_are_killed_and_go_on(scene):
    """Simulated, all algorithms go on; what processes save is what those do."""
    for algorithm in (OVERLAP, CHOCO, {"name": "gradient-tracking"}):
        experiment = of(algorithm)
        peers = Peers(scene, ARRAY, experiment, LOOPS)
        for process in peers.processes:
            check(read_line(process) == "saved", "")
        for process in peers.processes:
            process.kill()
            process.communicate()
        goes_on = Peers(scene, ARRAY_GOES_ON, experiment, LOOPS)
        found = [out.strip() for out in goes_on.all_well(120)]
        expected = [x.tobytes().hex() for x in array_that_is_not_stopped(experiment)]
        check(found == expected, f"{algorithm}: other bits")


def test_simulated_arrays_go_on(scene):
    # A peer of d-psgd could overlap, and so it takes no mask; its momentum is its own.
    for_peers = [case for name, case in CASES.items() if "masked" not in name]
    each = {case["name"]: case for case in for_peers}
    every = [{k: v for k, v in case.items() if k != "buffers"} for case in each.values()]
    every = [*ALGORITHMS, *every]
    missing = unnamed(scene.starling, every)
    check(not missing, f"no case of {missing}")
    for algorithm in every:
        experiment, saved = of(algorithm, 5), {}

        def begin(rank):
            x = first_x(rank)
            with starling.join(None, x) as peer:

                def save():
                    saved[rank] = pickle.dumps((x, peer.state_dict()))

                train_array(peer, x, experiment, 0, save)
            return x

        def go_on(rank):
            x, state = pickle.loads(saved[rank])
            check(state["session"].dtype == "u1" and state["rank"] == rank, state)
            check(state["round"] == SAVED, state)
            with starling.join(None, x, start=False) as peer:
                peer.load_state_dict(state)
                check(peer.round == SAVED and peer.exchanging == overlaps(experiment), f"{peer}")
                train_array(peer, x, experiment, SAVED)
            return x

        expected = array_that_is_not_stopped(experiment)
        for work in (begin, go_on):
            for x, other in zip(starling.simulate(5, work, experiment), expected):
                check(x.tobytes() == other.tobytes(), f"{algorithm}, {work.__name__}: other bits")


def test_who_waited_for_an_average_goes_on(scene):
    """Higher ranks have fewer rounds before it: the others' move their models meanwhile."""

    def train(rank, saved=None, last=STEPS):
        x = first_x(rank) if saved is None else saved[rank][0]
        with starling.join(None, x, start=saved is None) as peer:
            if saved is None:
                train_array(peer, x, experiment, rank, last=SAVED)
                peer.average()
            else:
                peer.load_state_dict(saved[rank][1])
            state = x.copy(), peer.state_dict()
            train_array(peer, x, experiment, SAVED, last=last)
        return x, state

    for algorithm in (BLOCKING, CHOCO):
        experiment = of(algorithm)
        whole = starling.simulate(4, train, experiment)
        half = [x for _, x in starling.simulate(4, lambda rank: train(rank, last=0), experiment)]
        found = starling.simulate(4, lambda rank: train(rank, half), experiment)
        check(all((x == y).all() for (x, _), (y, _) in zip(found, whole)), f"{algorithm}")


def test_new_arrays_in_each_round_go_on(scene):
    def train(peer, x, steps):
        for _ in range(steps):
            x = x - 0.1 * (x - peer.rank)
            peer.mix(x)
        return x

    def begin(rank, steps):
        with starling.join(None, first_x(rank)) as peer:
            x = train(peer, first_x(rank), steps)
            stepped = x - numpy.float32(0.5)
            return x, peer.state_dict(), stepped, peer.state_dict(stepped)

    def go_on(rank, saved, stepped):
        x, state = saved[rank][2:] if stepped else saved[rank][:2]
        with starling.join(None, x, start=False) as peer:
            peer.load_state_dict(state)
            return train(peer, x + numpy.float32(0.5) if stepped else x, 3)

    experiment = of(CHOCO)
    whole = starling.simulate(4, lambda rank: begin(rank, 7), experiment)
    half = starling.simulate(4, lambda rank: begin(rank, 4), experiment)
    found = starling.simulate(4, lambda rank: go_on(rank, half, False), experiment)
    check(all((x == y[0]).all() for x, y in zip(found, whole)), "other bits")
    starling.simulate(4, lambda rank: go_on(rank, half, True), experiment)


# ---- modules ----


def script_that_is_not_stopped(experiment, **more):
    def work(rank):
        script = Script(rank, **more)
        with starling.join(None, script.model) as peer:
            script.attach(peer)
            script.train()
            peer.end()
        return script.bits()

    return starling.simulate(2, work, experiment)


def go_on_simulated(experiment, **more):
    import torch

    saved = {}

    def begin(rank):
        script = Script(rank, **more)
        with starling.join(None, script.model) as peer:
            script.attach(peer)

            def save():
                peer.state_dict()  # twice is as good as once
                saved[rank] = io.BytesIO(), io.BytesIO()
                for file, part in zip(saved[rank], (script, peer)):
                    torch.save(part.state_dict(), file)
                    file.seek(0)

            script.train(save=save)
            peer.end()
        return script.bits()

    def go_on(rank):
        script = Script(rank, **more)
        with starling.join(None, script.model, start=False) as peer:
            of_script, of_peer = saved[rank]
            script.load_state_dict(torch.load(of_script))
            peer.load_state_dict(torch.load(of_peer, weights_only=True))
            script.attach(peer)
            script.train()
            peer.end()
        return script.bits()

    expected = script_that_is_not_stopped(experiment, **more)
    for work in (begin, go_on):
        found = starling.simulate(2, work, experiment)
        check(found == expected, f"{experiment['algorithm']}, {more}, {work.__name__}")


def test_simulated_modules_go_on(scene):
    torch = imported("torch")

    for algorithm in (OVERLAP, BLOCKING, CHOCO):
        for dtype in (None, torch.bfloat16):
            go_on_simulated(of(algorithm, 2), dtype=dtype)
        go_on_simulated(of(algorithm, 2), skips=(3, SAVED - 1, SAVED, 7))


def test_parameters_that_keep_their_memory_go_on(scene):
    """As on a GPU."""
    imported("torch")
    from starling import _module

    before, _module.stays = _module.stays, lambda parameter, vector: True
    try:
        test_simulated_modules_go_on(scene)
    finally:
        _module.stays = before


def test_the_example_of_the_docs_goes_on(scene):
    imported("torch")
    with open(os.path.join(_package.ROOT, "docs", "python.md")) as file:
        blocks = file.read().split("```")
    (example,) = [block for block in blocks if "load_state_dict(saved[" in block]
    body = f"""
import torch

os.environ.update(STARLING_RANK=str(RANK), STARLING_ROSTER=",".join(ROSTER))
experiment, script, epochs = EXPERIMENT, Script(RANK), EPOCHS
model, optimizer = script.model, script.optimizer

def train(epoch):
    script.step = 2 * epoch
    script.train(2 * epoch + 2)

{example.removeprefix("python")}
print(script.bits())
"""
    experiment = of(OVERLAP, 2)

    def run(epochs):
        return Peers(scene, body, experiment, f"{LOOPS}\nEPOCHS = {epochs}\n").all_well(120)

    run(2)
    found = run(3)
    for rank in range(2):
        os.remove(scene.path(f"saved-{rank}.pt"))
    check(found == run(3), "other bits")


# ---- what is refused ----


def test_what_is_no_state_is_refused(scene):
    experiment, saved = of(BLOCKING, 2), {}

    def begin(rank):
        x = numpy.ones(5, "f4")
        with starling.join(None, x) as peer:
            refused(peer.state_dict, "no round has ended yet")
            refused(peer.start, "has started", "start=False")
            peer.mix()
            saved[rank] = x, peer.state_dict()
            refused(lambda: peer.load_state_dict(saved[rank][1]), "has started", "start=False")
        refused(peer.state_dict, "has left")

    def go_on(rank):
        x, state = saved[rank]
        other = x + 1
        with starling.join(None, other, start=False) as peer:
            for call in (peer.mix, peer.begin, peer.average, peer.state_dict):
                refused(call, "start() or load_state_dict() comes first")
            for wrong in (None, {}, {"session": state["session"]}, state["session"]):
                refused(lambda: peer.load_state_dict(wrong), "no dict that peer.state_dict()")
            for session, text in (
                (None, "state is NULL"),
                (7, "is a int"),
                (state["session"].astype("f4"), "the bytes that were saved"),
                (state["session"][:2000], "cut short"),
                (state["session"][::-1].copy(), "load: the state"),
                (saved[1 - rank][1]["session"], "another rank"),
            ):
                refused(lambda: peer.load_state_dict({**state, "session": session}), text)
            for at in range(0, len(state["session"]), 61):
                damaged = state["session"].copy()
                damaged[at] ^= 4
                refused(lambda: peer.load_state_dict({**state, "session": damaged}), "load: the")
            with_masters = {**state, "masters": {"weight": 1}}
            refused(lambda: peer.load_state_dict(with_masters), "masters of weight")
            refused(lambda: peer.load_state_dict(state), "restore your parameters first")
            other[:] = x
            peer.load_state_dict({**state, "session": bytes(state["session"])})
            peer.mix()
        return peer.round

    starling.simulate(2, begin, experiment)
    check(starling.simulate(2, go_on, experiment) == [2, 2], "")

    def elsewhere(rank):
        x, state = saved[rank]
        with starling.join(None, x, start=False) as peer:
            peer.load_state_dict(state)

    refused(lambda: starling.simulate(2, elsewhere, of(CHOCO, 2)), "section algorithm")
    refused(lambda: starling.simulate(2, elsewhere, {**experiment, "seed": 4}), "another seed")

    def one_of_them(rank):
        return elsewhere(rank) if rank == 1 else begin(rank)

    refused(lambda: starling.simulate(2, one_of_them, experiment), "0 and 1 differs: 0 and 1")


def test_masters_are_those_of_the_module(scene):
    torch = imported("torch")

    experiment, saved = of(BLOCKING, 2), {}

    def begin(rank):
        with starling.join(None, Script(rank, dtype=torch.bfloat16).model) as peer:
            peer.mix()
            saved[rank] = peer.state_dict()

    def go_on(rank):
        with starling.join(None, Script(rank).model, start=False) as peer:
            refused(lambda: peer.load_state_dict(saved[rank]), "masters of ['4.bias', '4.weight']")
            peer.start()

    starling.simulate(2, begin, experiment)
    starling.simulate(2, go_on, experiment)


if __name__ == "__main__":
    run_tests()
