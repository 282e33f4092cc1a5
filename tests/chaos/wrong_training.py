#!/usr/bin/env python3
"""Algorithms, compressors, data and models that do not suit each other are refused; a run that
diverges ends on all nodes.

usage: wrong_training.py STARLING [TEST ...]
"""
import gzip
import os
import struct

from _refusals import SHORT, refuse, refuse_everywhere
from _scene import check, run_tests


def algorithm(scene, *words, command=None, topology=None, momentum=0, **parameters):
    changes = {
        "algorithm": parameters,
        "topology": topology or {"nodes": 4, "family": "ring"},
        "optimizer__momentum": momentum,
    }
    for one in [command] if command else ("check", "sim", "run"):
        refuse(scene, *words, command=one, **changes)


def unknown_algorithm(scene):
    algorithm(scene, "algorithm.name", "chocosgd", '"choco-sgd"', name="chocosgd")


def unknown_compressor(scene):
    algorithm(
        scene, "algorithm.compressor.name", "topk", '"top-k"', name="choco-sgd", compressor="topk"
    )


def unknown_parameter_of_a_compressor(scene):
    algorithm(
        scene,
        "algorithm.compressor.fractoin",
        "fraction",
        name="choco-sgd",
        compressor={"name": "top-k", "fractoin": 0.1},
    )


def variant_of_another_algorithm(scene):
    algorithm(
        scene,
        "algorithm.variant",
        "mix-then-compress",
        "combine-while-adapt",
        name="d-psgd",
        variant="mix-then-compress",
    )


def k_beyond_the_vector(scene):
    algorithm(
        scene,
        "algorithm.compressor.k",
        "1000000000",
        name="choco-sgd",
        compressor={"name": "top-k", "k": 1000000000},
    )


def fraction_above_one(scene):
    algorithm(
        scene,
        "algorithm.compressor.fraction",
        "1.5",
        name="choco-sgd",
        compressor={"name": "random-k", "fraction": 1.5},
    )


def no_levels(scene):
    algorithm(
        scene,
        "algorithm.compressor.levels",
        "0",
        name="dcd-psgd",
        compressor={"name": "qsgd", "levels": 0},
    )


def compressor_where_none_is_taken(scene):
    algorithm(
        scene,
        "algorithm.compressor",
        "top-k",
        "d-psgd",
        "choco-sgd",
        name="d-psgd",
        compressor="top-k",
    )


def compressor_that_does_not_contract(scene):
    algorithm(
        scene,
        "algorithm.compressor",
        "not contractive",
        "scaled=false",
        name="choco-sgd",
        compressor={"name": "random-k", "scaled": True},
    )


def directed_graph_where_symmetry_is_needed(scene):
    one_way = {"nodes": 3, "directed": True, "edges": [[0, 1, 0.5], [1, 2, 0.5], [2, 0, 0.5]]}
    algorithm(scene, "choco-sgd", "symmetric", "sgp", name="choco-sgd", topology=one_way)


def schedule_where_sums_are_kept(scene):
    matchings = {
        "nodes": 4,
        "schedule": [{"edges": [[0, 1], [2, 3]]}, {"edges": [[1, 2], [3, 0]]}],
        "weights": "metropolis",
    }
    algorithm(
        scene,
        "dcd-psgd",
        "schedule",
        "deep-squeeze",
        "algorithm.replicas",
        name="dcd-psgd",
        topology=matchings,
    )
    algorithm(scene, "ecd-psgd", "schedule", "deep-squeeze", name="ecd-psgd", topology=matchings)


def replicas_where_none_are_kept(scene):
    algorithm(scene, "algorithm.replicas", "d-psgd", name="d-psgd", replicas="per-neighbour")
    algorithm(
        scene, "algorithm.replicas", "each", "per-neighbour", name="choco-sgd", replicas="each"
    )


def rows_only_under_push_sum(scene):
    rows = {"nodes": 3, "edges": [[0, 1], [1, 2]], "weights": "uniform"}
    algorithm(scene, "sgp", "column", "push-sum", name="sgp", topology=rows)


def server_that_does_not_exist(scene):
    algorithm(scene, "algorithm.server", "4", "0..3", "sharded", name="parameter-server", server=4)


def local_steps_where_messages_follow_the_model(scene):
    algorithm(scene, "algorithm.local_steps", "dcd-psgd", name="dcd-psgd", local_steps=3)


def momentum_where_there_is_none(scene):
    algorithm(
        scene, "optimizer.momentum", "gradient-tracking", name="gradient-tracking", momentum=0.9
    )


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


if __name__ == "__main__":
    run_tests(
        [
            unknown_algorithm,
            unknown_compressor,
            unknown_parameter_of_a_compressor,
            variant_of_another_algorithm,
            k_beyond_the_vector,
            fraction_above_one,
            no_levels,
            compressor_where_none_is_taken,
            compressor_that_does_not_contract,
            directed_graph_where_symmetry_is_needed,
            schedule_where_sums_are_kept,
            replicas_where_none_are_kept,
            rows_only_under_push_sum,
            server_that_does_not_exist,
            local_steps_where_messages_follow_the_model,
            momentum_where_there_is_none,
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
