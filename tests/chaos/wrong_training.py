#!/usr/bin/env python3
"""Algorithms, compressors, data and models that do not suit each other are refused; a run that
diverges ends on all nodes."""
import os
import shutil
import struct

from _refusals import refuse_everywhere
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


# Words of the error, and changes of an experiment with four nodes on a ring: one of each kind.
WRONG_ALGORITHMS = (
    ('algorithm.name chocosgd "choco-sgd"', of("chocosgd")),
    ("algorithm.compressor.fractoin fraction", packed("choco-sgd", "top-k", fractoin=0.1)),
    ("algorithm.compressor contractive scaled=false", packed("choco-sgd", "random-k", scaled=True)),
    ("choco-sgd symmetric sgp", {**of("choco-sgd"), "topology": ONE_WAY}),
    ("ecd-psgd schedule deep-squeeze", {**of("ecd-psgd"), "topology": MATCHINGS}),
    ("sgp column push-sum", {**of("sgp"), "topology": ROWS_ONLY}),
    ("algorithm.server 4 0..3 sharded", of("parameter-server", server=4)),
    ("algorithm.rank 5000 from", of("powersgd", rank=5000)),
    ('optimizer.name adamw gmc "sgd"', {**of("gmc"), "optimizer__name": "adamw"}),
)


def wrong_algorithms(scene):
    """All of them by check, the first by sim and run too, which ask the library as it does."""
    for number, (words, changes) in enumerate(WRONG_ALGORITHMS):
        commands = ("check", "sim", "run") if number < 1 else ("check",)
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


if __name__ == "__main__":
    run_tests()
