#!/usr/bin/env python3
"""Algorithms, compressors, data and models that do not suit each other are refused; a run that
diverges ends on all nodes.

usage: wrong_training.py STARLING [TEST ...]
"""
import gzip
import os
import shutil
import struct

from _refusals import SHORT, refuse, refuse_everywhere
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


# What is refused: test -> words of the error, changes of an experiment with four nodes on a ring.
WRONG_ALGORITHMS = {
    "unknown_algorithm": (["algorithm.name", "chocosgd", '"choco-sgd"'], of("chocosgd")),
    "unknown_compressor": (
        ["algorithm.compressor.name", "topk", '"top-k"'],
        of("choco-sgd", compressor="topk"),
    ),
    "unknown_parameter_of_a_compressor": (
        ["algorithm.compressor.fractoin", "fraction"],
        packed("choco-sgd", "top-k", fractoin=0.1),
    ),
    "variant_of_another_algorithm": (
        ["algorithm.variant", "mix-then-compress", "combine-while-adapt"],
        of("d-psgd", variant="mix-then-compress"),
    ),
    "k_beyond_the_vector": (
        ["algorithm.compressor.k", "1000000000"],
        packed("choco-sgd", "top-k", k=1000000000),
    ),
    "fraction_above_one": (
        ["algorithm.compressor.fraction", "1.5"],
        packed("choco-sgd", "random-k", fraction=1.5),
    ),
    "no_levels": (["algorithm.compressor.levels", "0"], packed("dcd-psgd", "qsgd", levels=0)),
    "compressor_where_none_is_taken": (
        ["algorithm.compressor", "top-k", "d-psgd", "choco-sgd"],
        of("d-psgd", compressor="top-k"),
    ),
    "compressor_that_does_not_contract": (
        ["algorithm.compressor", "not contractive", "scaled=false"],
        packed("choco-sgd", "random-k", scaled=True),
    ),
    "directed_graph_where_symmetry_is_needed": (
        ["choco-sgd", "symmetric", "sgp"],
        {**of("choco-sgd"), "topology": ONE_WAY},
    ),
    "schedule_where_a_sum_of_replicas_is_kept": (
        ["dcd-psgd", "schedule", "deep-squeeze", "algorithm.replicas"],
        {**of("dcd-psgd"), "topology": MATCHINGS},
    ),
    "schedule_where_a_sum_is_kept": (
        ["ecd-psgd", "schedule", "deep-squeeze"],
        {**of("ecd-psgd"), "topology": MATCHINGS},
    ),
    "replicas_where_none_are_kept": (
        ["algorithm.replicas", "d-psgd"],
        of("d-psgd", replicas="per-neighbour"),
    ),
    "replicas_of_an_unknown_kind": (
        ["algorithm.replicas", "each", "per-neighbour"],
        of("choco-sgd", replicas="each"),
    ),
    "rows_only_under_push_sum": (
        ["sgp", "column", "push-sum"],
        {**of("sgp"), "topology": ROWS_ONLY},
    ),
    "server_that_does_not_exist": (
        ["algorithm.server", "4", "0..3", "sharded"],
        of("parameter-server", server=4),
    ),
    "local_steps_where_messages_follow_the_model": (
        ["algorithm.local_steps", "dcd-psgd"],
        of("dcd-psgd", local_steps=3),
    ),
    "momentum_where_there_is_none": (
        ["optimizer.momentum", "gradient-tracking"],
        {**of("gradient-tracking"), "optimizer__momentum": 0.9},
    ),
    "nesterov_with_heavy_ball": (
        ["optimizer.nesterov", "gmc", "heavy ball"],
        {**of("gmc"), "optimizer__momentum": 0.9, "optimizer__nesterov": True},
    ),
    "dgc_with_signs": (
        ["algorithm.compressor.name", "scaled-sign", "dgc", "top-k"],
        packed("dgc", "scaled-sign"),
    ),
    "merged_random_entries": (
        ["algorithm.compressor.name", "random-k", "gtop-k", "top-k"],
        packed("gtop-k", "random-k"),
    ),
    "two_inputs_where_there_is_one": (
        ["algorithm.compressor.name", "adacomp", "choco-sgd", "local-sgd"],
        packed("choco-sgd", "adacomp"),
    ),
    "two_inputs_of_servers": (
        ["algorithm.directions", "both", "adacomp", "up"],
        of("parameter-server", compressor="adacomp", directions="both"),
    ),
    "an_order_of_no_kind": (
        ["algorithm.compressor.order", "falling", "cyclic"],
        packed("d-psgd", "shared-mask", order="falling"),
    ),
    "bins_of_nothing": (
        ["algorithm.compressor.bin", "0", "1"],
        packed("all-reduce", "adacomp", bin=0),
    ),
    "rank_beyond_matrices": (
        ["algorithm.rank", "5000", "from 1 to"],
        of("powersgd", rank=5000),
    ),
    "two_warm_ups": (
        ["algorithm.warmup", "algorithm.warmup_k", "leave one"],
        of("dgc", compressor="top-k", warmup=[0.5], warmup_k=[20]),
    ),
    "warm_up_beyond_the_model": (
        ["algorithm.warmup_k", "2000000000", "1.."],
        of("dgc", compressor="top-k", warmup_k=[2000000000]),
    ),
    "all_entries_after_some": (
        ["algorithm.warmup", "all", "first only"],
        of("dgc", compressor="top-k", warmup=[0.5, 1]),
    ),
    "no_compressor_after_a_warm_up": (
        ["algorithm.warmup", "first only", "algorithm.compressor"],
        of("dgc", warmup=[0.5]),
    ),
    "adam_with_sparse_momentum": (
        ["optimizer.name", "adamw", "gmc", '"sgd"'],
        {**of("gmc"), "optimizer__name": "adamw"},
    ),
}


def refusal(name, words, changes):
    """A test of WRONG_ALGORITHMS."""

    def test(scene):
        ring = {"nodes": 4, "family": "ring"}
        refuse_everywhere(scene, *words, **{"topology": ring, **changes})

    test.__name__ = name
    return test


def divergence_ends_the_run_on_all_nodes(scene):
    """And the model that was recorded last is kept. The rate grows, so that there are such
    rounds."""
    for command in ("sim", "run"):
        path = scene.experiment(
            rounds=400,
            optimizer__learning_rate=1e3,
            loss_limit=25,
            record__every=1,
            optimizer__schedule={"name": "constant", "warmup_rounds": 400},
        )
        ended = scene.call(command, path, "--out", scene.path("diverged-" + command))
        check(
            ended.code == 1
            and "diverged" in ended.err
            and "round" in ended.err
            and "node" in ended.err,
            f"{command}: exit code {ended.code}: {ended.err!r}",
        )
        check(
            "model-last.npy" in ended.err, f"{command}: does not say what was kept: {ended.err!r}"
        )
        check(
            os.path.exists(scene.path(f"diverged-{command}/model-last.npy")),
            f"{command}: nothing was kept",
        )
        check(
            not os.path.exists(scene.path(f"diverged-{command}/model.npy")),
            f"{command}: a final model of a run that diverged",
        )


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
    ended = scene.call("sim", scene.experiment(**SHORT, **MNIST), "--out", scene.path("out"))
    check(ended.code == 0, f"exit code {ended.code}: {ended.err!r}")


def data_folder_missing(scene):
    refuse_everywhere(scene, "data.path", "mnist", "no such file", **MNIST)


def data_file_missing(scene):
    write_mnist(scene)
    os.remove(scene.path("mnist/train-images-idx3-ubyte"))
    refuse_everywhere(scene, "mnist", "train-images", **MNIST)


def data_file_truncated(scene):
    write_mnist(scene, idx(0x803, (40, 28, 28), bytes(39 * 784)))
    refuse_everywhere(scene, "train-images", **MNIST)


def data_file_truncated_gz(scene):
    write_mnist(scene)
    os.remove(scene.path("mnist/train-images-idx3-ubyte"))
    scene.write(
        "mnist/train-images-idx3-ubyte.gz",
        gzip.compress(idx(0x803, (40, 28, 28), os.urandom(40 * 784)))[:-900],
    )
    refuse_everywhere(scene, "train-images", **MNIST)


def data_file_with_wrong_magic(scene):
    write_mnist(scene, idx(0x1234, (40, 28, 28), bytes(40 * 784)))
    refuse_everywhere(scene, "train-images", "magic", **MNIST)


def data_file_that_claims_too_much(scene):
    write_mnist(scene, idx(0x803, (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF), b"1234"))
    refuse_everywhere(scene, "train-images", **MNIST)


def fewer_samples_than_nodes(scene):
    refuse_everywhere(
        scene,
        "8",
        "samples",
        data={"name": "digits", "train_samples": 7, "test_samples": 100, "batch": 1},
    )


def model_that_does_not_fit_the_data(scene):
    refuse(
        scene,
        "model.name",
        "resnet20",
        "32x32x3",
        "digits",
        "28x28x1",
        command="run",
        model__name="resnet20",
    )
    refuse(
        scene, "model.name", "resnet20", "32x32x3", "28x28x1", command="sim", model__name="resnet20"
    )


def augmentation_of_what_is_no_image(scene):
    refuse(scene, "data.augment", "lenet5", command="sim", data__augment=True)


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
    run_tests(
        [
            held_out_samples_that_measure_nothing_are_told,
            a_sorted_data_set_of_images_is_told,
            *(refusal(name, *case) for name, case in WRONG_ALGORITHMS.items()),
            divergence_ends_the_run_on_all_nodes,
            divergence_before_all_have_met,
            mnist_that_is_right_is_taken,
            data_folder_missing,
            data_file_missing,
            data_file_truncated,
            data_file_truncated_gz,
            data_file_with_wrong_magic,
            data_file_that_claims_too_much,
            fewer_samples_than_nodes,
            model_that_does_not_fit_the_data,
            augmentation_of_what_is_no_image,
        ]
    )
