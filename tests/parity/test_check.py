#!/usr/bin/env python3
"""`starling check` says on one page of a screen what will run, what it means, what it needs and
what to watch; and with --resolved the experiment itself."""
import glob
import json
import os
import re
import struct

from _here import ROOT, check, read_json, run_tests

LINES, COLUMNS = 40, 100
HEADINGS = ["what will run", "what it means", "what it needs", "what to watch"]


def idx(magic, sizes, content):
    return struct.pack(f">I{len(sizes)}I", magic, *sizes) + content


def write_data(scene, count=400):
    """Files of the forms that examples name; returns where they are, by data.name."""
    for folder in ("mnist", "cifar10"):
        os.mkdir(scene.path(folder))
    labels = bytes(i % 10 for i in range(count))
    for part in ("train", "t10k"):
        images = idx(0x803, (count, 28, 28), bytes(count * 784))
        scene.write(f"mnist/{part}-images-idx3-ubyte", images)
        scene.write(f"mnist/{part}-labels-idx1-ubyte", idx(0x801, (count,), labels))
    batch = b"".join(bytes([i % 10]) + bytes(3072) for i in range(count))
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        scene.write(f"cifar10/{name}.bin", batch)
    plays = [f"SPEAKER {i}:\n{'To be, or not to be. ' * 400}\n\n" for i in range(40)]
    scene.write("plays.txt", "".join(plays))
    for name in ("digits.tra", "digits.tes"):
        lines = ["0.5," * 64 + f"{i % 10}\n" for i in range(40)]
        scene.write(name, "".join(lines))
    return {
        "mnist": scene.path("mnist"),
        "cifar10": scene.path("cifar10"),
        "text": scene.path("plays.txt"),
    }


def is_experiment(content):
    return isinstance(content, dict) and "topology" in content


def experiments_of_docs():
    """(page and line, text) of what pages show as a whole experiment."""
    pages = glob.glob(os.path.join(ROOT, "docs", "*.md")) + [os.path.join(ROOT, "README.md")]
    for page in sorted(pages):
        with open(page) as file:
            text = file.read()
        for block in re.finditer(
            r"^\$ cat \S+\n(\{.*?^\})|^```json[^\n]*\n(\{.*?^\})\n```", text, re.M | re.S
        ):
            body = block[1] or block[2]
            try:
                content = json.loads(body)
            except ValueError:
                continue  # shortened, with ...
            if is_experiment(content):
                line = text[: block.start()].count("\n") + 1
                yield f"{os.path.basename(page)}:{line}", body, content


def experiments():
    for path in sorted(glob.glob(os.path.join(ROOT, "examples", "*.json"))):
        content = read_json(path)
        if is_experiment(content):
            yield os.path.basename(path), open(path).read(), content
    yield from experiments_of_docs()


def check_page(what, text, lines=LINES):
    said = text.splitlines()
    check(len(said) <= lines, f"{what}: {len(said)} lines:\n{text}")
    wide = [line for line in said if len(line) > COLUMNS]
    check(not wide, f"{what}: more than {COLUMNS} columns: {wide}")


def settings(content, places):
    """Where the data are; few of those that are made, and of large models one sample, as check
    computes a gradient."""
    data = content.get("data", {})
    name = data if isinstance(data, str) else data.get("name", "digits")
    if name == "digits":
        return ["data.train_samples=1600", "data.test_samples=200"]
    small = ["data.batch=1"] if name in ("cifar10", "text") else []
    return [f"data.path={places[name]}", *small] if name in places else []


def test_every_experiment_fits_a_page(scene):
    places, seen = write_data(scene), 0
    scene.call("keys", "make", "-o", "run.key").check_well()
    for what, text, content in experiments():
        path = os.path.join(ROOT, "examples", what)
        if not os.path.exists(path):
            path = scene.write("e.json", text)
        if "rounds" not in content and "epochs" not in content and "variants" not in content:
            ended = scene.call("check", path, "--session", "mix", "--set", "topology.nodes=8")
        else:
            words = [w for s in settings(content, places) for w in ("--set", s)]
            ended = scene.call("check", path, *words)
        check(ended.code == 0, f"{what}: {ended.err}")
        check_page(what, ended.out)
        few = len(content.get("variants", [])) < 16
        check(not few or "more lines: --all" not in ended.out, f"{what}:\n{ended.out}")
        seen += 1
    check(seen >= 25, f"only {seen} experiments were found")


def test_every_topology_fits_a_page(scene):
    for path in sorted(glob.glob(os.path.join(ROOT, "topologies", "*.json"))):
        ended = scene.call("check", path)
        check(ended.code == 0, f"{path}: {ended.err}")
        check_page(path, ended.out)


def test_the_page_says_what_a_user_asks(scene):
    ended = scene.call("check", os.path.join(ROOT, "examples", "choco.json"))
    places = [ended.out.find(f"\n{heading}\n") for heading in HEADINGS]
    check(places == sorted(places) and -1 not in places, ended.out)
    for words in (
        "mlp 784-256-10, 203530 parameters; digits, 12000 train, 2000 test, iid",
        "938 rounds of 32 samples a node; sgd, learning rate 0.1, momentum 0.9",
        "choco-sgd, compressor top-k 1 %",
        "ring, weights metropolis: 8 nodes, 8 edges, degree 2",
        "message             12719 bytes, 0.0156 of the vector's; edges of one host and user: in "
        "memory",
        "step in use         0.015 (derived)",
        "spectral gap 0.1953: averaging brings differences down to 1/1000 in 32 rounds",
        "one agent           50.4 MB",
        "the others go on without it",
        "--resolved",
    ):
        check(words in ended.out, f"no {words!r} in {ended.out}")


def test_the_largest_stable_step_is_said(scene):
    """Of a quadratic it is known: a ring of four has the eigenvalue -1/3."""
    example = os.path.join(ROOT, "examples", "quadratic.json")
    chosen = scene.call("check", example, "--set", "optimizer.momentum=0.9")
    check('no weights are named: "lazy-metropolis"' in chosen.out, chosen.out)
    check("learning rate * curvature < 3.797\n" in chosen.out, chosen.out)
    keys = ["--set", "optimizer.momentum=0.9", "--set", "topology.weights=metropolis"]
    ended = scene.call("check", example, *keys)
    text = "learning rate * curvature < 0.3999, by the eigenvalue -0.3333 of W"
    check(text in ended.out, ended.out)
    check('with\n                      topology.weights "lazy" < 3.797' in ended.out, ended.out)
    check("of the largest that is stable\n" not in ended.out, ended.out)
    rate = float(re.search(r"learning rate < ([0-9.]+), at a curvature", ended.out).group(1))
    near = scene.call("check", example, *keys, "--set", f"optimizer.learning_rate={0.9 * rate}")
    check(" is 90 % of the largest that is stable\n" in near.out, near.out)
    far = ("--set", f"optimizer.learning_rate={3 * rate}", "--set", "rounds=500")
    ended = scene.call("sim", example, *keys, *far, "--out", scene.path("far"))
    check(ended.code == 1 and 'topology.weights "lazy" < 3.797' in ended.err, ended.err)


def test_what_does_not_fit_is_counted_and_can_be_had(scene):
    """Everything that there is to say, and more than a page holds."""
    faults = [{"round": 2 + i, "kill": [i]} for i in range(50)]
    faults.append({"round": 55, "nonfinite": [60]})
    links = [[i, i + 1, 1.5] for i in range(6)]
    path = scene.experiment(
        topology={"nodes": 64, "family": "ring"},
        algorithm={"name": "d-psgd", "variant": "combine-while-adapt"},
        membership={"on_loss": "continue"},
        faults=faults,
        rounds=60,
        epochs=0,
        network={"bandwidth_mbit": 100, "latency_ms": 1, "gradient_ms": 30, "links": links},
        transport={"checksums": False},
    )
    short, whole = scene.call("check", path), scene.call("check", path, "--all")
    check(short.code == 0 and whole.code == 0, f"{short.err}{whole.err}")
    check_page("crowded", short.out)
    left_out = re.search(r"^(\d+) more lines: --all$", short.out, re.M)
    check(left_out is not None, short.out)
    check(whole.out.count("\n  from round ") == 50 and "--all" not in whole.out, whole.out)
    check("in round 55         a loss that is not finite: node 60" in whole.out, whole.out)
    check(len(short.out.splitlines()) > LINES - 3, "a page that is not used")
    rows, kept = (len([x for x in said.out.splitlines() if x]) for said in (whole, short))
    check(kept - 1 + int(left_out[1]) == rows, f"{left_out[0]}: {short.out}\n{whole.out}")
    for heading in HEADINGS:
        check(f"\n{heading}\n" in short.out, f"no {heading}")


def test_many_variants_fit_a_page(scene):
    variants = [
        {"name": f"v{i}", "set": {"optimizer": {"learning_rate": 0.01 * (i + 1)}}}
        for i in range(60)
    ]
    path = scene.experiment(variants=variants)
    short, whole = scene.call("check", path), scene.call("check", path, "--all")
    check_page("60 variants", short.out)
    check("optimizers differ" in short.out and "more lines: --all" in short.out, short.out)
    for i in range(60):
        check(re.search(rf"^  v{i} +d-psgd +identity +\d+ +\d", whole.out, re.M), f"no v{i}")


READ = "algorithm.name algorithm.local_steps optimizer.momentum topology.family".split()
READ += ["algorithm.trigger", "algorithm.compressor.fraction"]  # of some algorithms


def keys_of(value, prefix=""):
    for name, inner in value.items():
        if isinstance(inner, dict):
            yield from keys_of(inner, f"{prefix}{name}.")
        else:
            yield prefix + name


def test_the_resolved_experiment_is_the_experiment(scene):
    """What is of another algorithm or model would be warned of: it has no effect."""
    places, seen, lacks = write_data(scene), 0, set(READ)
    for what, _, content in experiments():
        path = os.path.join(ROOT, "examples", what)
        if "rounds" not in content and "epochs" not in content or not os.path.exists(path):
            continue
        words = [w for s in settings(content, places) for w in ("--set", s)]
        first = scene.call("check", path, "--resolved", *words)
        check(first.code == 0, f"{what}: {first.err}")
        value = json.loads(first.out)
        for one in value[-1:] if isinstance(value, list) else [value]:
            body = json.dumps(one, indent=2)
            again = scene.call("check", scene.write("again.json", body), "--resolved")
            check(again.code == 0 and not again.err, f"{what}: {again.err}")
            check(json.loads(again.out) == one, f"{what}: {again.out}\n{body}")
            seen, lacks = seen + 1, lacks - set(keys_of(one))
    check(seen >= 20 and not lacks, f"{seen} experiments were found; none has {lacks}")


SESSION = os.path.join(ROOT, "examples", "session.json")


def test_resolved_is_for_experiments(scene):
    ring = scene.write("ring.json", '{"nodes": 8, "family": "ring"}')
    scene.call("check", ring, "--resolved").check_refused("--resolved", "ring.json")
    scene.call("check", SESSION, "--session", "mix", "--resolved").check_refused("--resolved")


def test_what_is_said_of_sessions(scene):
    masked = 'algorithm={"name": "d-psgd", "compressor": "shared-mask"}'
    data = "data.name=mnist", "model.name=mlp"
    lazy, linear = 'no weights are named: "lazy', "linear in the gradient"
    unread = [f"warning: {key} has no effect in a session" for key in ("data.name", "model.name")]
    stable = "stable for          learning rate * curvature < 2 min W_ii = 1\n"
    for form, keys, code, words in (
        ("overlap", [], 0, ["1 + lambda_n = 1.333", lazy]),
        ("mix", [], 0, [lazy]),
        ("other", [], 2, ["mix"]),
        ("overlap", ["topology.family=one-peer-exponential"], 0, [stable]),
        ("mix", ["algorithm.name=gradient-tracking", *data], 0, [linear, *unread]),
        ("mix", ["algorithm.name=exact-diffusion", *data], 0, [linear, *unread]),
        ("mix", [masked, "final_average=true"], 0, ["final_average has no effect in a session"]),
        ("overlap", ["optimizer.momentum=0.9"], 2, ["momentum"]),
        ("overlap", ["algorithm.name=sgp"], 2, ["d-psgd"]),
        ("overlap", [masked], 2, ["sends vectors as they are"]),
    ):
        sets = [word for key in ("topology.nodes=8", *keys) for word in ("--set", key)]
        ended = scene.call("check", SESSION, *sets, "--session", form)
        check(ended.code == code, f"{form}, {keys}: {ended.code}, {ended.said}")
        check(all(word in ended.said for word in words), f"{form}, {keys}: {ended.said}")
        check(form == "overlap" or "1 + lambda_n" not in ended.said, ended.said)


if __name__ == "__main__":
    run_tests()
