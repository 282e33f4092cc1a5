#!/usr/bin/env python3
"""Algorithms, compressors, data and models that do not suit each other are refused; a run that
diverges ends on all nodes.

usage: wrong_training.py STARLING [TEST ...]
"""
import os
import shutil
import struct

from _refusals import SHORT, refuse_everywhere
from _scene import check, run_tests


ONE_WAY = {"nodes": 3, "directed": True, "edges": [[0, 1, 0.5], [1, 2, 0.5], [2, 0, 0.5]]}
MATCHINGS = {
    "nodes": 4,
    "schedule": [{"edges": [[0, 1], [2, 3]]}, {"edges": [[1, 2], [3, 0]]}],
    "weights": "metropolis",
}
ROWS_ONLY = {"nodes": 3, "edges": [[0, 1], [1, 2]], "weights": "uniform"}


def of(name, **parameters):
    """The key `algorithm` of an experiment."""
    return {"algorithm": {"name": name, **parameters}}


def packed(name, compressor, **parameters):
    return of(name, compressor={"name": compressor, **parameters})


# Words of the error, and changes of an experiment with four nodes on a ring.
WRONG_ALGORITHMS = (
    ('algorithm.name chocosgd "choco-sgd"', of("chocosgd")),
    ('algorithm.compressor.name topk "top-k"', of("choco-sgd", compressor="topk")),
    ("algorithm.compressor.fractoin fraction", packed("choco-sgd", "top-k", fractoin=0.1)),
    (
        "algorithm.variant mix-then-compress combine-while-adapt",
        of("d-psgd", variant="mix-then-compress"),
    ),
    ("algorithm.compressor.k 1000000000", packed("choco-sgd", "top-k", k=1000000000)),
    ("algorithm.compressor.fraction 1.5", packed("choco-sgd", "random-k", fraction=1.5)),
    ("algorithm.compressor.levels 0", packed("dcd-psgd", "qsgd", levels=0)),
    ("algorithm.compressor top-k d-psgd choco-sgd", of("d-psgd", compressor="top-k")),
    ("algorithm.compressor contractive scaled=false", packed("choco-sgd", "random-k", scaled=True)),
    ("choco-sgd symmetric sgp", {**of("choco-sgd"), "topology": ONE_WAY}),
    (
        "dcd-psgd schedule deep-squeeze algorithm.replicas",
        {**of("dcd-psgd"), "topology": MATCHINGS},
    ),
    ("ecd-psgd schedule deep-squeeze", {**of("ecd-psgd"), "topology": MATCHINGS}),
    ("algorithm.replicas d-psgd", of("d-psgd", replicas="per-neighbour")),
    ("algorithm.replicas each per-neighbour", of("choco-sgd", replicas="each")),
    ("sgp column push-sum", {**of("sgp"), "topology": ROWS_ONLY}),
    ("algorithm.server 4 0..3 sharded", of("parameter-server", server=4)),
    ("algorithm.local_steps dcd-psgd", of("dcd-psgd", local_steps=3)),
    (
        "optimizer.momentum gradient-tracking",
        {**of("gradient-tracking"), "optimizer__momentum": 0.9},
    ),
    (
        "optimizer.nesterov gmc ball",
        {**of("gmc"), "optimizer__momentum": 0.9, "optimizer__nesterov": True},
    ),
    ("algorithm.compressor.name scaled-sign dgc top-k", packed("dgc", "scaled-sign")),
    ("algorithm.compressor.name random-k gtop-k top-k", packed("gtop-k", "random-k")),
    ("algorithm.compressor.name adacomp choco-sgd local-sgd", packed("choco-sgd", "adacomp")),
    (
        "algorithm.directions both adacomp up",
        of("parameter-server", compressor="adacomp", directions="both"),
    ),
    ("algorithm.compressor.order falling cyclic", packed("d-psgd", "shared-mask", order="falling")),
    ("algorithm.compressor.bin 0 1", packed("all-reduce", "adacomp", bin=0)),
    ("algorithm.rank 5000 from", of("powersgd", rank=5000)),
    (
        "algorithm.warmup algorithm.warmup_k leave",
        of("dgc", compressor="top-k", warmup=[0.5], warmup_k=[20]),
    ),
    ("algorithm.warmup_k 2000000000 1..", of("dgc", compressor="top-k", warmup_k=[2000000000])),
    ("algorithm.warmup all first", of("dgc", compressor="top-k", warmup=[0.5, 1])),
    ("algorithm.warmup first algorithm.compressor", of("dgc", warmup=[0.5])),
    ('optimizer.name adamw gmc "sgd"', {**of("gmc"), "optimizer__name": "adamw"}),
)


def wrong_algorithms(scene):
    """All of them by check, the first ones by sim and run too, which ask the library as it does."""
    for number, (words, changes) in enumerate(WRONG_ALGORITHMS):
        commands = ("check", "sim", "run") if number < 2 else ("check",)
        ring = {"nodes": 4, "family": "ring"}
        refuse_everywhere(scene, *words.split(), commands=commands, **{"topology": ring, **changes})


def divergence_ends_the_run_on_all_nodes(scene):
    """And the model that was recorded last is kept. The rate grows, so that there are such
    rounds."""
    path = scene.experiment(
        rounds=400,
        optimizer__learning_rate=1e3,
        loss_limit=25,
        record__every=1,
        optimizer__schedule={"name": "constant", "warmup_rounds": 400},
    )
    for command in ("sim", "run"):
        ended = scene.call(command, path, "--out", scene.path(command))
        check(ended.code == 1, f"{command}: exit code {ended.code}: {ended.err!r}")
        for word in ("diverged", "round", "node", "model-last.npy"):
            check(word in ended.err, f"{command}: no {word!r} in {ended.err!r}")
        found = set(os.listdir(scene.path(command)))
        check("model-last.npy" in found and "model.npy" not in found, f"{command}: {found}")


def divergence_before_all_have_met(scene):
    """Who is not connected yet hears of it too, and does not wait for those who are gone."""
    path = scene.experiment(
        rounds=200, optimizer__learning_rate=1e5, transport__connect_timeout_s=30
    )
    ended = scene.call("run", path, "--out", scene.path("early"), timeout=60)
    check(
        ended.code == 1 and ended.err.count("diverged") >= 8 and "did not come up" not in ended.err,
        f"exit code {ended.code}: {ended.err!r}",
    )
    check(ended.seconds < 10, f"took {ended.seconds:.1f} s")


def idx(magic, shape, body):
    return struct.pack(">I", magic) + b"".join(struct.pack(">I", n) for n in shape) + body


def write_mnist(scene, images=None, samples=40):
    os.makedirs(scene.path("mnist"), exist_ok=True)
    labels = bytes(i % 10 for i in range(samples))
    good = idx(0x803, (samples, 28, 28), bytes(samples * 784))
    for part in ("train", "t10k"):
        scene.write(f"mnist/{part}-images-idx3-ubyte", good)
        scene.write(f"mnist/{part}-labels-idx1-ubyte", idx(0x801, (samples,), labels))
    if images is not None:
        scene.write("mnist/train-images-idx3-ubyte", images)


MNIST = {"data": {"name": "mnist", "path": "mnist", "batch": 4}}


def mnist_that_is_right_is_taken(scene):
    write_mnist(scene)
    path = scene.experiment(**SHORT, **MNIST)
    scene.call("sim", path, "--out", scene.path("out")).check_well()


def wrong_data_files(scene):
    """Of each kind one; test_data has the others."""
    refuse_everywhere(scene, "data.path", "mnist", "no such file", **MNIST)
    write_mnist(scene, idx(0x803, (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF), b"1234"))
    refuse_everywhere(scene, "train-images", **MNIST)
    digits = {"name": "digits", "train_samples": 7, "test_samples": 100, "batch": 1}
    refuse_everywhere(scene, "8", "samples", data=digits)


def models_that_do_not_fit_the_data(scene):
    words = ("model.name", "resnet20", "32x32x3", "28x28x1")
    refuse_everywhere(scene, *words, model__name="resnet20")
    refuse_everywhere(scene, "data.augment", "lenet5", data__augment=True)


def check_warned(scene, experiment, *words):
    """By check, sim and run, once each."""
    for command in ("check", "sim", "run"):
        more = [] if command == "check" else ["--out", scene.path(f"{command}-out")]
        ended = scene.call(command, experiment, *more)
        ended.check_well()
        said = " ".join((ended.out + ended.err).split())
        for word in words:
            check(said.count(word) == 1, f"{command}: {word!r} {said.count(word)} times: {said}")
        if more:
            shutil.rmtree(more[1])


def held_out_samples_that_measure_nothing_are_told(scene):
    """Files sorted by label: the held-out part has one that is not trained, or lacks some."""
    lines = [f"{label} 1:{0.1 * i:.1f} 2:{label}" for label in (-1, 7) for i in range(20)]
    files = {"sorted.svm": lines[:28], "half.svm": lines, "only.svm": lines[:25]}
    for name, rows in files.items():
        scene.write(name, "\n".join(rows))
    data = {"name": "libsvm", "batch": 2}
    common = {"rounds": 4, "record": {"every": 4}, "topology__nodes": 2, "model": "softmax"}
    hint = "shuffle the file, or name data.test_path"
    for name, words in (
        ("sorted.svm", ["the held-out fifth, the end of the file, has nothing of label -1", hint]),
        ("half.svm", ["has nothing of label -1; shuffle", hint]),
    ):
        path = scene.experiment(data={**data, "path": name}, **common)
        check_warned(scene, path, *words)
    path = scene.experiment(data={**data, "path": "only.svm"}, **common)
    check_warned(
        scene, path, "has label 7, of which nothing is trained, and has nothing of label -1;"
    )
    scene.write("test.svm", "\n".join(lines[::-4]))
    path = scene.experiment(data={**data, "path": "half.svm", "test_path": "test.svm"}, **common)
    ended = scene.call("sim", path, "--out", scene.path("well"))
    check(ended.code == 0 and "held-out samples" not in ended.err, f"{ended.err!r}")


def a_sorted_data_set_of_images_is_told(scene):
    """Its first samples have three labels, and the held-out ones all ten."""
    samples = 120
    images = idx(0x803, (samples, 28, 28), bytes(samples * 784))
    for part, labels in (
        ("train", bytes(i * 3 // samples for i in range(samples))),
        ("t10k", bytes(i * 10 // samples for i in range(samples))),
    ):
        scene.write(f"{part}-images-idx3-ubyte", images)
        scene.write(f"{part}-labels-idx1-ubyte", idx(0x801, (samples,), labels))
    data = {"name": "mnist", "path": ".", "batch": 8}
    common = {"rounds": 2, "record": {"every": 2}, "topology__nodes": 2, "model": "softmax"}
    check_warned(
        scene,
        scene.experiment(data=data, **common),
        "the held-out samples have labels 3, 4, 5, 6, 7 and 2 more, of which nothing is trained;",
    )


if __name__ == "__main__":
    run_tests()
