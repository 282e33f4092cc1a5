#!/usr/bin/env python3
"""A researcher's own data: csv, npz, npy, lists of nodes, and linear models, whose training is
compared with numpy's in float64."""
import functools
import os
import sys
import tempfile

import numpy as np

from _here import check, read_lines
from _simulate import Refused, Result, call, main, run_experiment, within, write

N, SAMPLES, FEATURES, ROUNDS, RATE, L2 = 4, 80, 5, 60, 0.2, 0.05
W = np.array([[0 if (i - j) % N == 2 else 1 / 3 for j in range(N)] for i in range(N)])  # ring


def data(loss):
    rng = np.random.default_rng(7)
    a = rng.normal(size=(SAMPLES, FEATURES)).astype(np.float32)
    y = a @ rng.normal(size=FEATURES) + 1 + 0.1 * rng.normal(size=SAMPLES)
    return a, (y.astype(np.float32) if loss == "squared" else np.where(y > 0, 3, -2))


def experiment(loss, **of_data):
    return {
        "name": "own",
        "rounds": ROUNDS,
        "topology": {"nodes": N, "family": "ring"},
        "optimizer": {"learning_rate": RATE},
        "model": {"name": "linear", "loss": loss, "l2": L2},
        "data": {"batch": SAMPLES, **of_data},
        "record": {"every": ROUNDS, "parameters_at": [1, 10, ROUNDS]},
    }


def gradient(x, a, y, loss):
    z = a @ x[:-1] + x[-1]
    s = np.where(y == 3, 1.0, -1.0)
    slope = z - y if loss == "squared" else -s / (1 + np.exp(s * z))
    return np.append(a.T @ slope, slope.sum()) / len(y) + L2 * x


def held_out_loss(x, a, y, loss):
    z = a @ x[:-1] + x[-1]
    s = np.where(y == 3, 1.0, -1.0)
    return np.mean((z - y) ** 2 / 2 if loss == "squared" else np.log1p(np.exp(-s * z)))


def trained(a, y, loss, nodes):
    """D-PSGD's models in float64, by round."""
    x, models = np.zeros((N, FEATURES + 1)), {}
    for r in range(1, ROUNDS + 1):
        g = [gradient(x[i], a[nodes == i], y[nodes == i], loss) for i in range(N)]
        models[r] = x = W @ (x - RATE * np.array(g))
    return models


# ---- the same data in each format ----


def as_csv(folder, a, y, separator=",", header=False, first=False):
    columns = [y, *a.T] if first else [*a.T, y]
    names = [f"c{i}" for i in range(len(columns))]
    lines = [separator.join(names)] if header else []
    lines += [separator.join(repr(float(v)) for v in row) for row in zip(*columns)]
    with open(os.path.join(folder, "data.csv"), "w") as file:
        file.write("\n".join(lines))
    return {"name": "csv", "path": "data.csv"}


def as_named_csv(folder, a, y):
    return {**as_csv(folder, a, y, ";", header=True, first=True), "label": "c0"}


def as_numbered_csv(folder, a, y):
    return {**as_csv(folder, a, y, "\t", first=True), "label": "1"}


def as_libsvm(folder, a, y):
    with open(os.path.join(folder, "data"), "w") as file:
        for row, label in zip(a, y):
            pairs = " ".join(f"{i + 1}:{float(v)!r}" for i, v in enumerate(row))
            file.write(f"{float(label)!r} {pairs}\n")
    return {"name": "libsvm", "path": "data"}


def as_npz(folder, a, y):
    np.savez(os.path.join(folder, "data.npz"), x=a, y=y)
    return {"name": "numpy", "path": "data.npz"}


def as_packed_npz(folder, a, y):
    """In parts, in float64 and column by column, as a matrix of labels."""
    parts = dict(X_train=np.asfortranarray(a[:64], np.float64), y_train=y[:64, None])
    np.savez_compressed(os.path.join(folder, "data.npz"), **parts, X_test=a[64:], y_test=y[64:])
    return {"name": "numpy", "path": "data.npz"}


def as_npy(folder, a, y):
    for name, part in (("x_train", a[:64]), ("y_train", y[:64]), ("x_test", a[64:])):
        np.save(os.path.join(folder, name + ".npy"), part)
    np.save(os.path.join(folder, "y_test.npy"), y[64:])
    return {"name": "numpy", "path": "."}


def as_two_npz(folder, a, y):
    np.savez(os.path.join(folder, "train.npz"), x=a[:64], y=y[:64])
    np.savez(os.path.join(folder, "test.npz"), x=a[64:], y=y[64:])
    return {"name": "numpy", "path": "train.npz", "test_path": "test.npz"}


FORMATS = [as_csv, as_named_csv, as_numbered_csv, as_libsvm, as_npz, as_packed_npz, as_npy]
FORMATS += [as_two_npz]


def check_training(starling, form, loss):
    """Models of three rounds, and the held-out loss, are numpy's; agents, which read one of the
    formats here, have the same bits."""
    with tempfile.TemporaryDirectory(prefix="starling-own-") as folder:
        a, y = data(loss)
        nodes = np.arange(64) * 7 % 10 % N
        np.save(os.path.join(folder, "nodes.npy"), nodes)
        partition = {"name": "listed", "path": "nodes.npy"}
        e = experiment(loss, **form(folder, a, y), partition=partition)
        out, _ = run_experiment(starling, folder, e)
        result, expected = Result(out), trained(a[:64], y[:64], loss, nodes)
        worst = max(abs(result.models[r] - expected[r]).max() for r in result.models)
        mean = expected[ROUNDS].mean(axis=0)
        last = read_lines(out, "consensus.jsonl")[-1]
        loss_here = held_out_loss(mean, a[64:].astype(float), y[64:], loss)
        worst = max(worst, abs(last["test_loss"] - loss_here))
        if (last["accuracy"] is None) != (loss == "squared"):
            return f"accuracy {last['accuracy']} with {loss}", worst
        if form is as_npz:
            agents, _ = run_experiment(starling, folder, e, "run")
            ours, theirs = (np.load(os.path.join(o, "model.npy")) for o in (out, agents))
            check(np.array_equal(ours, theirs), "agents have other bits")
        return within(worst, 2e-6)


# ---- what a page of check says ----


def check_page(starling, said, **of_data):
    with tempfile.TemporaryDirectory(prefix="starling-own-") as folder:
        a, y = data("squared")
        np.savetxt(os.path.join(folder, "nodes"), np.arange(64) % 5 % N, "%d")
        e = experiment("squared", **as_npz(folder, a, y), **of_data)
        write(folder, "experiment.json", e)
        ended = call(starling, "check", os.path.join(folder, "experiment.json"))
        text = " ".join(ended.stdout.split())
        return (None if said in text else f"{said!r} is not in {text}{ended.stderr}"), 0


# ---- what is refused ----


def refused(starling, said, loss="squared", files=None, **of_data):
    """files: name -> bytes, text or arrays."""
    with tempfile.TemporaryDirectory(prefix="starling-own-") as folder:
        for name, content in (files or {}).items():
            path = os.path.join(folder, name)
            if isinstance(content, dict):
                np.savez(path, **content)
            elif isinstance(content, np.ndarray):
                np.save(path, content)
            else:
                with open(path, "wb") as file:
                    file.write(content if isinstance(content, bytes) else content.encode())
        try:
            run_experiment(starling, folder, experiment(loss, **of_data))
        except Refused as error:
            check(said in str(error), f"{error}; it should say {said!r}")
        else:
            check(False, f"it was taken, without {said!r}")


def npz(**arrays):
    a, y = data("squared")
    return {"d.npz": {**dict(x=a, y=y), **arrays}}


def bytes_of(arrays):
    with tempfile.TemporaryFile() as file:
        np.savez_compressed(file, **arrays)
        file.seek(0)
        return file.read()


A, Y = data("squared")
PACKED = bytes_of({"x": A, "y": Y})
ROWS = "1,2,3\n" * 12
CSV, NUMPY = {"name": "csv", "path": "d.csv"}, {"name": "numpy", "path": "d.npz"}
WRONG = {
    "text as numpy": (NUMPY, {"d.npz": ROWS}, "neither an .npz file nor a folder"),
    "one array": (NUMPY, {"d.npz": b"\x93NUMPY\x01\x00"}, "is one array; name the"),
    "npz as csv": (CSV, {"d.csv": PACKED}, "holds arrays of NumPy; data.name is csv, take numpy"),
    "npz as libsvm": ({"name": "libsvm", "path": "d"}, {"d": PACKED}, "data.name is libsvm, take"),
    "csv as libsvm": ({"name": "libsvm", "path": "d"}, {"d": ROWS}, "commas are data.name csv"),
    "libsvm as csv": (CSV, {"d.csv": "1 1:2 3:4\n"}, "index:value is data.name libsvm"),
    "no x": (NUMPY, {"d.npz": {"z": A}}, "has no x_train.npy, and no x.npy"),
    "no y": (NUMPY, {"d.npz": {"x": A}}, "has no y_train.npy, the labels of"),
    "other counts": (NUMPY, npz(y=Y[:3]), "has 3 labels, and"),
    "nan": (NUMPY, npz(x=np.where(A == A[3, 1], np.nan, A)), "number 2 of sample 4 is not"),
    "nan label": (NUMPY, npz(y=Y * np.nan), "label nan of sample 1 is not a finite float32"),
    "complex": (NUMPY, npz(x=A * 1j), "its numbers are <c8; read are integers"),
    "objects": (NUMPY, npz(y=Y.astype(str)), "its numbers are <U"),
    "test of another shape": (NUMPY, npz(x_test=A[:, :3], y_test=Y), "another shape"),
    "cut off": (NUMPY, {"d.npz": PACKED[:-30]}, "its list of files is missing"),
    "damaged": (
        NUMPY,
        {"d.npz": PACKED[:300] + bytes([PACKED[300] ^ 1]) + PACKED[301:]},
        "is damaged",
    ),
    "ragged": (CSV, {"d.csv": ROWS + "1,2\n"}, "line 13: has 2 columns, and those before it 3"),
    "longer": (CSV, {"d.csv": ROWS + "1,2,3,4\n"}, "line 13: has 4 columns, and those before it 3"),
    "a word": (CSV, {"d.csv": ROWS + "1,a,3\n"}, 'line 13: column 2 is "a"; it must be'),
    "an empty field": (CSV, {"d.csv": ROWS + "1,,3\n"}, 'line 13: column 2 is ""'),
    "a label's word": (CSV, {"d.csv": ROWS + "1,2,b\n"}, 'line 13: label "b", of column 3, is not'),
    "a header alone": (CSV, {"d.csv": "a,b,c\n"}, "holds no samples"),
    "nothing": (CSV, {"d.csv": "\n\n"}, "holds no samples"),
    "one column": (CSV, {"d.csv": "1\n2\n"}, 'line 1: has one column, "1"'),
    "no such column": ({**CSV, "label": "z"}, {"d.csv": "a,b\n" + ROWS}, 'data.label is "z"'),
    "column 9": ({**CSV, "label": "9"}, {"d.csv": ROWS}, "or a number from 1 to 3"),
    "classes wanted": ({"name": "digits"}, {}, "needs labels that are numbers"),
    "shards": ({**NUMPY, "partition": "shards"}, npz(), "shards goes by classes"),
}


def check_images(starling):
    """uint8 images with channels last are those of float32 planes, which lenet5 takes."""
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 256, (40, 32, 32, 3)).astype(np.uint8), np.arange(40) % 4
    planes = np.moveaxis(x, 3, 1).astype(np.float32) / np.float32(255)
    models = []
    for images in x, planes:
        with tempfile.TemporaryDirectory(prefix="starling-own-") as folder:
            np.savez(os.path.join(folder, "d.npz"), x=images, y=y)
            e = {**experiment("squared", **NUMPY), "model": "lenet5", "rounds": 2}
            e["data"]["batch"] = 4
            e["record"] = {"parameters_at": [2]}
            out, _ = run_experiment(starling, folder, e)
            models.append(Result(out).models[2])
    return within(abs(models[0] - models[1]).max(), 0)


def checks(starling):
    for form in FORMATS:
        for loss in "squared", "logistic":
            name = f"{form.__name__[3:]} {loss}"
            yield name, lambda f=form, s=loss: check_training(starling, f, s)
    listed = {"partition": {"name": "listed", "path": "nodes"}}
    yield "check says shares", lambda: check_page(starling, "listed, 13 to 25 a node", **listed)
    yield "check says the model", lambda: check_page(
        starling, "linear 5-1, squared loss with an l2 term, 6 parameters; numpy, 64 train, 16 test"
    )
    for name, (settings, files, said) in WRONG.items():
        yield f"refused: {name}", lambda w=settings, f=files, s=said: refused(
            starling, s, files=f, **w
        )
    for files, said in (
        (npz(), "is not a 32-bit integer"),
        (npz(y=np.arange(80) % 3), "logistic is of two classes"),
    ):
        run = functools.partial(refused, starling, said, "logistic", files, **NUMPY)
        yield f"refused: {said}", run
    yield "images", lambda: check_images(starling)


if __name__ == "__main__":
    sys.exit(main(__doc__, checks))
