#!/usr/bin/env python3
"""starling.Callback in the loops of Hugging Face's Trainer, Lightning and accelerate, of which
there are stand-ins here."""
import copy
import pickle
import sys

import _package  # noqa: F401: finds the package
import _torch  # noqa: F401: skips where torch is absent

import _frameworks
import starling
from _models import EXPERIMENT, LAZY, STEPS, by_hand, flat, near, network, sgd, simulate
from _models import take_steps
from _package import refused
from _scene import check, run_tests

NOWHERE = {"topology": {"nodes": 2, "family": "ring"}}


def hugging_face(rank, callback, model, steps=STEPS):
    _frameworks.HuggingFace(model, rank, [callback], steps).train()


def lightning(rank, callback, model, steps=STEPS):
    _frameworks.Lightning(rank, [callback], steps).fit(model)


def accelerate(rank, callback, model, steps=STEPS):
    optimizer = _frameworks.Accelerated(sgd(model.parameters()))
    with callback.training(model, optimizer) as peer:
        take_steps(model, optimizer, rank, steps)
        check(peer is callback.peer and peer.active, peer)


def form_of(train):
    """Lightning takes the gradient in the step's closure, when the exchange has ended."""
    return train is not lightning, LAZY


def with_frameworks(test):
    def installed(scene):
        _frameworks.install()
        try:
            return test(scene)
        finally:
            _frameworks.remove()

    installed.__name__ = test.__name__
    return installed


@with_frameworks
def test_each_framework_ends_with_the_average_or_each_peers_model(scene):
    for train in (hugging_face, lightning, accelerate):
        own = by_hand(*form_of(train))
        for average, expected in ((True, [sum(own) / 2] * 2), (False, own)):

            def work(rank):
                model, callback = network(), starling.Callback(None, average=average)
                train(rank, callback, model)
                check(not callback.peer.active and callback.peer.round == STEPS + 1, callback.peer)
                return flat(model)

            for x, exact in zip(simulate(work), expected):
                near(x, exact)


@with_frameworks
def test_training_twice(scene):
    def work(rank):
        model, callback = network(), starling.Callback(None)
        hugging_face(rank, callback, model, 2)
        first = callback.peer
        hugging_face(rank, callback, model, 3)
        check(callback.peer is not first and callback.peer.round == 4, callback.peer)

    simulate(work)


@with_frameworks
def test_it_is_a_callback_of_those_that_were_imported(scene):
    callback = starling.Callback(EXPERIMENT)
    for base in (starling.Callback, _frameworks.TrainerCallback, _frameworks.LightningCallback):
        check(isinstance(callback, base), base)
    for again in (copy.deepcopy(callback), pickle.loads(pickle.dumps(callback))):
        check(type(again).__mro__[1] is starling.Callback and again.peer is None, again)


def test_without_frameworks(scene):
    callback = starling.Callback(EXPERIMENT)
    check(type(callback) is starling.Callback, type(callback))
    callback.on_some_moment_of_later(1, 2, three=3)
    check(not hasattr(callback, "state"), "an attribute that is not there")


@with_frameworks
def test_an_exception_is_told(scene):
    told = []

    class Fails(_frameworks.LightningCallback):
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            if batch_idx == 2:
                raise ValueError("boom")

    def work(rank):
        callbacks = [starling.Callback(None)] + [Fails()] * rank
        try:
            _frameworks.Lightning(rank, callbacks, STEPS).fit(network())
        except starling.Error as error:
            told.append(str(error))
        check(not callbacks[0].peer.active, "it has not ended")

    refused(lambda: simulate(work), "boom", kind=ValueError)
    check(len(told) == 1 and "ValueError: boom" in told[0], told)


@with_frameworks
def test_what_is_refused(scene):
    callback = starling.Callback(NOWHERE)
    refused(
        lambda: callback.on_train_begin(None, None, None, model=network()), "without its optimizer"
    )
    refused(lambda: callback.on_train_begin(None, None, None, optimizer=1), "without its model")
    lightning = _frameworks.Lightning(0, [callback], 1, optimizers=2)
    refused(lambda: lightning.fit(network()), "Sequential has 2 optimizers", "peer.mix()")
    refused(lambda: hugging_face(0, starling.Callback(NOWHERE, rank=7), network()), "rank")
    refused(lambda: hugging_face(0, starling.Callback({"rounds": -1}), network()), "experiment")

    def other(rank):
        callback = starling.Callback(None)
        foreign = sgd(network().parameters())
        refused(lambda: callback.begin(network(), foreign), "not one of those that join() got")
        check(not callback.peer.active, "it has not ended")

    try:
        starling.simulate(1, other, {"topology": {"nodes": 1, "family": "complete"}})
    except starling.Error:
        pass  # of the peer that was aborted


@with_frameworks
def test_processes_that_are_one_run_already(scene):
    class Distributed:
        is_available = is_initialized = staticmethod(lambda: True)
        get_world_size = staticmethod(lambda: 4)

    before = sys.modules["torch.distributed"]
    sys.modules["torch.distributed"] = Distributed
    try:
        refused(
            lambda: hugging_face(0, starling.Callback(NOWHERE), network()),
            *("4 processes are one run", "STARLING_RANK", "STARLING_MASTER", "group="),
        )
    finally:
        sys.modules["torch.distributed"] = before


if __name__ == "__main__":
    run_tests()
