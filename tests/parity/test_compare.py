#!/usr/bin/env python3
"""`starling compare`: its table says what the run folders say, its predicted times are the closed
forms, and one bad variant does not spoil the others."""
import csv
import json
import math
import os

from _here import check, read_json, read_lines, run_tests

QUICK = "STARLING_QUICK" in os.environ  # under sanitizers
ROUNDS, NODES, HEADER = (20 if QUICK else 60), 8, 64
DIMENSION = 784 * 10 + 10
TOP_K = {"name": "top-k", "fraction": 0.01}
BASE = {
    "name": "compare",
    "seed": 7,
    "rounds": ROUNDS,
    "topology": {"nodes": NODES, "family": "ring"},
    "optimizer": {"learning_rate": 0.05},
    "model": "softmax",
    "data": {"name": "digits", "train_samples": 640, "test_samples": 100, "batch": 8},
    "record": {"every": 5},
    "transport": {"timeout_s": 10, "connect_timeout_s": 20},
}
GOSSIP = {"name": "gossip", "set": {"algorithm": "d-psgd"}}
CHOCO = {"name": "choco", "set": {"algorithm": {"name": "choco-sgd", "compressor": TOP_K}}}
REDUCE = {"name": "reduce", "set": {"algorithm.name": "all-reduce"}}
WILD = {"name": 'wild, "very"', "set": {"optimizer": {"learning_rate": 1e5}, "loss_limit": 1000}}


def write(scene, variants, file="compare.json", **changes):
    return scene.write(file, json.dumps({**BASE, **changes, "variants": variants}))


def compare(scene, *arguments, code=0, out="out"):
    """Runs it; the rows of the CSV by name, and the ended command."""
    ended = scene.call("compare", *arguments, "--out", scene.path(out), timeout=300)
    check(ended.code == code, f"exit code {ended.code}: {ended.err!r} {ended.out[-600:]!r}")
    return {row["name"]: row for row in rows_of(scene, out)}, ended


def rows_of(scene, out="out", name="compare"):
    with open(scene.path(f"{out}/{name}.csv"), newline="") as file:
        return list(csv.DictReader(file))


def close(value, expected, what, tolerance=1e-6):
    near = math.isclose(float(value), expected, rel_tol=tolerance)
    check(near, f"{what}: {value}, expected {expected}")


def test_rows_say_what_the_run_folders_say(scene):
    rows, ended = compare(scene, write(scene, [GOSSIP, REDUCE, CHOCO]))
    check(list(rows) == ["gossip", "reduce", "choco"], f"rows {list(rows)}")
    target = sorted(float(row["loss"]) for row in rows.values())[1]  # the median
    for name, row in rows.items():
        out = scene.path(f"out/{name}")
        consensus, summary = read_lines(out, "consensus.jsonl"), read_json(out, "summary.json")
        metrics = [read_lines(out, f"metrics-{i}.jsonl") for i in range(NODES)]
        close(row["accuracy"], summary["mean_model"]["accuracy"], f"{name}: accuracy")
        close(row["loss"], summary["mean_model"]["loss"], f"{name}: loss")
        apart = float(row["consensus_distance"]) - summary["consensus_distance"]
        check(abs(apart) <= 1e-8, f"{name}: consensus distance")
        sent = [sum(line["bytes_sent"] for line in rows) / NODES / 1e6 for rows in zip(*metrics)]
        close(row["mb_total"], sent[-1], f"{name}: megabytes")
        close(row["target_loss"], target, f"{name}: target")
        limit = target * (1 + 1e-8)
        first = next((i for i, line in enumerate(consensus) if line["test_loss"] <= limit), None)
        if first is None:
            check(float(row["loss"]) > target and row["rounds_to_target"] == "", f"{name}: {row}")
            continue
        close(row["rounds_to_target"], consensus[first]["round"], f"{name}: rounds to the target")
        close(row["mb_to_target"], sent[first], f"{name}: megabytes to the target")
        check(name in ended.out and row["wait_s"] == "", f"{name}: {row}")
        gradient = sum(m[-1]["seconds"]["gradient"] for m in metrics) / NODES
        close(row["gradient_s"], gradient, f"{name}: gradient")
    names = rows["choco"]["compressor"], rows["reduce"]["algorithm"]
    check(names == ("top-k 1 %", "all-reduce"), f"{rows}")
    heads = "name ", "gossip ", "reduce ", "choco "
    table = [line for line in ended.out.splitlines() if line.startswith(heads)][:4]
    aligned = len(table) == 4 and len({len(line) for line in table}) == 1
    check(aligned, f"the table is not aligned: {table}")


def spread(values):
    mean = sum(values) / len(values)
    return mean, math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1))


def test_seeds_give_mean_and_deviation(scene):
    path = write(scene, [GOSSIP, CHOCO])
    rows, ended = compare(scene, path, "--seeds", "1..2,5", "--wide")
    for name, row in rows.items():
        losses, accuracies, megabytes = [], [], []
        for seed in (1, 2, 5):
            folder = scene.path(f"out/{name}/seed-{seed}")
            summary = read_json(folder, "summary.json")
            check(read_json(folder, "config.json")["seed"] == seed, f"{folder}: another seed")
            losses.append(summary["mean_model"]["loss"])
            accuracies.append(summary["mean_model"]["accuracy"])
            megabytes.append(sum(node["bytes_sent"] for node in summary["per_node"]) / NODES / 1e6)
        check(len(set(losses)) == 3, f"{name}: seeds end alike: {losses}")
        for key, values in (("loss", losses), ("accuracy", accuracies), ("mb_total", megabytes)):
            mean, deviation = spread(values)
            close(row[key], mean, f"{name}: mean {key}")
            apart = abs(float(row[key + "_sd"]) - deviation)
            check(apart <= 1e-6 * abs(mean), f"{name}: deviation of {key}: off by {apart}")
        check(row["n"] == "3" and row["seeds"] == "1 2 5" and row["outcome"] == "done", f"{row}")
        mean, deviation = spread(losses)
        decimals = max(0, 1 - math.floor(math.log10(deviation)))
        told = f"{mean:.{decimals}f} ± {deviation:.{decimals}f}"
        check(told in ended.out, f"{name}: {told} is not told: {ended.out}")
        ordered = sorted(losses)
        close(row["loss_median"], ordered[1], f"{name}: median")
        close(row["loss_q1"], (ordered[0] + ordered[1]) / 2, f"{name}: quartile")
    check("over the seeds 1 2 5" in ended.out, f"{ended.out}")
    one, _ = compare(scene, path, "--set", "seed=5", out="one")
    summary = read_json(scene.path("out/gossip/seed-5"), "summary.json")
    close(one["gossip"]["loss"], summary["mean_model"]["loss"], "the same seed alone")
    check(one["gossip"]["loss_sd"] == "" and one["gossip"]["n"] == "1", f"{one['gossip']}")


def test_wrong_seeds_are_refused(scene):
    path = write(scene, [GOSSIP])
    for seeds in ("", "x", "5..1", "1,1", "1,", "1..500", "-1", "1...3", "9007199254740993"):
        ended = scene.call("compare", path, "--seeds", seeds, "--out", scene.path("out"))
        ended.check_refused("--seeds", "1..5")
    own = write(scene, [GOSSIP, {"name": "own", "set": {"seed": 9}}])
    ended = scene.call("compare", own, "--seeds", "1..2", "--out", scene.path("out"))
    ended.check_refused("own", "seed is 9", "--seeds")
    check(not os.path.exists(scene.path("out")), "something was started")


def test_variants_may_set_seed_and_topology(scene):
    variants = [
        GOSSIP,
        {"name": "other seed", "set": {"seed": 8}},
        {"name": "torus", "set": {"topology": {"family": "torus", "sides": [2, 4]}}},
        {"name": "ring of four", "set": {"topology.nodes": 4}},
        {
            "name": "choco torus",
            "set": {**CHOCO["set"], "topology": {"family": "torus", "sides": [2, 4]}},
        },
    ]
    rows, ended = compare(scene, write(scene, variants), "--link", "5:20", "--wide")
    seeds = {name: row["seeds"] for name, row in rows.items()}
    topologies = {name: row["topology"] for name, row in rows.items()}
    check(seeds["gossip"] == "7" and seeds["other seed"] == "8", f"{seeds}")
    check(topologies["torus"] == "torus 8" and topologies["ring of four"] == "ring 4", topologies)
    check(rows["ring of four"]["nodes"] == "4", f"{rows['ring of four']}")
    for name in rows:
        if name != "gossip":
            check(rows[name]["loss"] != rows["gossip"]["loss"], f"{name}: as the first")
    check("torus 8" in ended.out and "seed" in ended.out, f"{ended.out}")
    said = ended.out.replace("\n", " ").replace("            ", "")
    check("than one of torus" in said, ended.out)
    with open(scene.path("out/ring of four/config.json")) as file:
        alone = scene.write("alone.json", file.read())
    again, _ = compare(scene, alone, out="again")
    check(again["alone"]["loss"] == rows["ring of four"]["loss"], "alone it ends otherwise")


def test_one_bad_variant_does_not_move_the_target(scene):
    bad = {"name": "bad", "set": {"optimizer.learning_rate": 1e-6}}
    rows, _ = compare(scene, write(scene, [bad, GOSSIP, REDUCE]))
    losses = {name: float(row["loss"]) for name, row in rows.items()}
    target = float(rows["gossip"]["target_loss"])
    check(target < losses["bad"] and rows["bad"]["rounds_to_target"] == "", f"{losses}, {target}")
    rows, _ = compare(scene, write(scene, [bad, GOSSIP]), out="two")
    close(rows["gossip"]["target_loss"], losses["gossip"], "target of two")


def test_tables_fit_the_terminal(scene):
    path = write(scene, [GOSSIP, CHOCO], rounds=5)
    scene.environment = {"COLUMNS": "60"}
    _, narrow = compare(scene, path, out="narrow")
    scene.environment = {}
    _, plain = compare(scene, path, out="plain")
    _, wide = compare(scene, path, "--wide", out="wide")
    for ended, width in ((narrow, 60), (plain, 80)):
        table = ended.out[ended.out.index("\n\n") :]
        longest = max(table.splitlines(), key=len)
        check(len(longest) <= width, f"{len(longest)} columns of {width}: {longest!r}")
        check("left out (--wide shows all): " in ended.out, f"{ended.out}")
    check("left out" not in wide.out and "combine" in wide.out, f"{wide.out}")


def test_break_even_is_where_times_are_equal(scene):
    """More bytes in fewer phases pay above a bandwidth. test_timeline has the closed forms."""
    whole = {"name": "choco-sgd", "compressor": {"name": "top-k", "fraction": 1}}
    dense = {"name": "choco dense", "set": {"algorithm": whole}}
    more = "--set network.gradient_ms=1 --link 100:1 --link 100:4"
    rows, _ = compare(scene, write(scene, [REDUCE, dense, CHOCO]), *more.split(), out="given")
    for latency in (1, 4):
        kind, found = rows["choco dense"][f"pays_below_mbit_100_mbit_{latency}_ms"].split()
        bits = {name: 8e6 * float(r["mb_total"]) / ROUNDS for name, r in rows.items()}
        for name in ("choco dense", "choco"):
            round_s = 1e-3 + 1e-3 * latency + bits[name] / 100e6
            said = rows[name][f"predicted_s_100_mbit_{latency}_ms"]
            close(said, ROUNDS * round_s, f"{name}, {latency} ms")
        expected = 1e-6 * (bits["choco dense"] - bits["reduce"]) / (13 * latency * 1e-3)
        check(kind == "above", f"{kind} {found}")
        # Its shards are not all equally long.
        close(found, expected, "break-even with an all-reduce", 1e-2)
        pays = rows["choco"][f"pays_below_mbit_100_mbit_{latency}_ms"]
        check(pays == "always", f"{rows['choco']}")


def test_what_diverges_does_not_stop_the_others(scene):
    """Simulated, and agents, which end alike."""
    path, found = write(scene, [WILD, GOSSIP, CHOCO]), []
    for driver in ([], ["--agents"]):
        rows, ended = compare(scene, path, *driver, out="out" + "".join(driver))
        wild, gossip = rows[WILD["name"]], rows["gossip"]
        check(wild["outcome"].startswith("diverged in round ") and wild["loss"] == "", f"{wild}")
        check(gossip["outcome"] == rows["choco"]["outcome"] == "done", f"{rows}")
        check(gossip["target_loss"] != "" and not ended.err, f"{rows} {ended.err!r}")
        check("diverged in round" in ended.out, f"{ended.out!r}")
        check((gossip["wait_s"] != "") == (driver != []), f"{gossip}")
        keys = "accuracy loss target_loss rounds_to_target mb_to_target mb_total c2c".split()
        found.append([[row[key] for key in keys] for row in (gossip, rows["choco"])])
    check(found[0] == found[1], f"{found}")
    rows, ended = compare(scene, write(scene, [WILD]), out="alone", code=1)
    ended.check_refused("none of the 1 variants", code=1)


def test_files_and_runs_are_variants_too(scene):
    os.mkdir(scene.path("other"))
    plain, other = {**BASE, "algorithm": "d-psgd"}, {**BASE, "algorithm": "exact-diffusion"}
    scene.call("sim", scene.write("a.json", json.dumps(plain)), "--out", scene.path("mine"))
    scene.write("other/a.json", json.dumps(other))
    listed = write(scene, [CHOCO, {"name": "listed", "run": scene.path("mine")}])
    files = scene.path("a.json"), scene.path("other/a.json"), listed, scene.path("mine")
    rows, _ = compare(scene, *files)
    check(list(rows) == ["a", "a-2", "choco", "listed", "mine"], f"rows {list(rows)}")
    check(rows["a"]["loss"] == rows["listed"]["loss"] == rows["mine"]["loss"], f"{rows}")
    check(rows["listed"]["mb_to_target"] != "", f"{rows['listed']}")
    check(os.path.exists(scene.path("out/a-2/model.npy")), "no run folder")
    again, _ = compare(scene, scene.path("out/a/config.json"), "--target-loss", "0", out="again")
    row = again["config"]
    check(row["loss"] == rows["a"]["loss"], "config.json does not repeat a variant")
    check(row["rounds_to_target"] == "" and float(row["target_loss"]) == 0, f"{row}")


def test_quadratics_have_no_accuracy(scene):
    n, d = 4, 3
    problem = {
        "A": [[[float(i == j) for j in range(d)] for i in range(d)]] * n,
        "b": [[float(i + j) for j in range(d)] for i in range(n)],
        "x0": [[0.0] * d] * n,
    }
    model = {"name": "quadratic", "path": "problem.json"}
    scene.write("problem.json", json.dumps(problem))
    topology = {"nodes": n, "family": "ring"}
    rows, _ = compare(scene, write(scene, [GOSSIP, REDUCE], model=model, topology=topology))
    check(rows["gossip"]["accuracy"] == "" and float(rows["gossip"]["loss"]) > 0, f"{rows}")


def test_what_is_scored_on_other_data_has_its_own_target(scene):
    """Rounds, models and batches may differ; losses are compared where held-out data are equal."""
    more = {"name": "more", "set": {"data": {"test_samples": 50}, "rounds": 30}}
    wide = {"name": "wide", "set": {"model": {"name": "mlp", "hidden": [8]}, "data.batch": 16}}
    rows, ended = compare(scene, write(scene, [GOSSIP, more, wide]), "--wide")
    targets = {name: row["target_loss"] for name, row in rows.items()}
    check(targets["gossip"] == targets["wide"] != targets["more"], f"{targets}")
    close(targets["more"], float(rows["more"]["loss"]), "the target of one is its own loss")
    check("different held-out data" in ended.out, ended.out)
    found = {key: [row[key] for row in rows.values()] for key in ("rounds", "data.batch")}
    expected = {"rounds": [str(ROUNDS), "30", str(ROUNDS)], "data.batch": ["8", "8", "16"]}
    check(found == expected, f"{found}")


def test_the_same_experiment_twice_is_refused(scene):
    path = write(scene, [GOSSIP, CHOCO, {**GOSSIP, "name": "again"}])
    ended = scene.call("compare", path, "--out", scene.path("out"))
    ended.check_refused("again", 'the same experiment as "gossip"')
    check(not os.path.exists(scene.path("out")), "something was started")


def test_wrong_variants_are_refused(scene):
    def x(**more):
        return [{"name": "x", **more}]

    scaled = {"name": "choco-sgd", "compressor": {"name": "random-k", "scaled": True}}
    for variants, words in (
        ([], "variants"),
        ({}, "variants"),
        ([{"set": {}}], "variants[0]"),
        ([{"name": "../x"}], "variants[0]"),
        ([{"name": ".x"}], "variants[0]"),
        (x(set=3), '"set" must be an object'),
        (x(sets={}), 'unknown key "sets"'),
        (x(skip=""), '"skip" must be a text'),
        (x(skip="slow"), "nothing would be run"),
        (x(published=[["high"]]), "published[0]: must be a list"),
        (x(set={"a." * 30000 + "b": 1}), "more than 16 parts"),
        ([GOSSIP, GOSSIP], "there is another one"),
        (x(set={"algorithm.compresor": 1}), 'variant "x"'),
        (x(set={"algorithm": "choco"}), "choco-sgd"),
        (x(set={"algorithm": scaled}), "scaled"),
    ):
        ended = scene.call("compare", write(scene, variants), "--out", scene.path("out"))
        ended.check_refused("compare.json", words)
    path = write(scene, [GOSSIP])
    for arguments, words in [
        ((), "which EXPERIMENT?"),
        ((path, "--link", "5"), "MBIT:MS"),
        ((path, "--link", "0:5"), "MBIT:MS"),
        ((path, "--link", "5:-1"), "MBIT:MS"),
        ((path, "--target-loss", "low"), "--target-loss low"),
        ((scene.path("none.json"),), "none.json"),
    ]:
        scene.call("compare", *arguments).check_refused(words)
    nowhere = scene.call("compare", path, "--out", "/proc/nowhere")
    nowhere.check_refused("/proc/nowhere", "cannot be made")
    scene.call("sim", path).check_refused("variants", "starling compare")
    compare(scene, path)
    other = write(scene, [GOSSIP], file="other.json", rounds=ROUNDS + 1)
    scene.call("compare", other, "--out", scene.path("out")).check_refused(
        "gossip", "another experiment", "rounds differs", "--out"
    )
    scene.call("compare", scene.path("out"), "--seeds", "1,2").check_refused("only looked at")


def test_published_numbers_stand_beside(scene):
    keys = ["topology.nodes", "optimizer.learning_rate"]
    rows = [[NODES, 1, 11.0], [NODES, 0.05, 56.28, 0.5], [4, 0.05, 22.0]]
    absent = {"name": "later", "skip": "asynchronous", "published": [[NODES, 0.05, 3.04]]}
    named = {**WILD, "published": [[NODES, 1e5, 10.0]]}
    path = write(scene, [{**GOSSIP, "published": rows}, absent, named, REDUCE], published=keys)
    table, ended = compare(scene, path)
    check(list(table) == ["gossip", "later", WILD["name"], "reduce"], f"rows {list(table)}")
    close(table["gossip"]["published"], 0.5628, "published")
    close(table["gossip"]["published_sd"], 0.005, "its deviation")
    check(table["later"]["outcome"] == "not run: asynchronous", f"{table['later']}")
    check(table["later"]["algorithm"] == "-", f"{table['later']}")
    check(table[WILD["name"]]["outcome"].startswith("diverged"), f"{table[WILD['name']]}")
    close(table[WILD["name"]]["published"], 0.1, "published of one that diverges")
    check(table["reduce"]["published"] == "", f"{table['reduce']}")
    shown = {line.split("  ")[0]: line for line in ended.out.splitlines()}
    check("56.28 ± 0.50" in shown["gossip"], shown["gossip"])
    check("3.04" in shown["later"] and "not run: asynchronous" in shown["later"], shown["later"])
    check(not os.path.exists(scene.path("out/later")), "a skipped variant was run")


def test_too_many_agents_are_refused(scene):
    path = write(scene, [GOSSIP], topology={"nodes": 80, "family": "ring"})
    scene.call("compare", path, "--agents").check_refused("80 nodes", "at most 64")


if __name__ == "__main__":
    tests = [value for name, value in list(globals().items()) if name.startswith("test_")]
    run_tests(tests[:: 3 if QUICK else 1])
