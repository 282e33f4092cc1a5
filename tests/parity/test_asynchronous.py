#!/usr/bin/env python3
"""Algorithms whose nodes go at their own times, in the simulator, against an independent float64
program with the same order of events (tests/reference/asynchronous.py); and what they have in
common with those that go in rounds.

usage: test_asynchronous.py STARLING [TEST ...]
"""
import functools
import itertools
import shutil

import numpy as np

import _simulate
from _here import check, read_json, read_lines, run_tests
from _simulate import apart_by_rank, dpsgd, irregular, of, schedule
from _listed import AT_OWN_TIMES
import asynchronous
from algorithms import modular, modulus_of, rest_of, scaled_sign, top_k
from expect import digraph, exponential, ring

ROUNDS, TOLERANCE, SEED = 30, 1e-4, 1
PLAIN = {"learning_rate": 0.2}
NESTEROV = {"learning_rate": 0.03, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}


def problem_of(graph, same_start=False):
    return dpsgd.problem(graph.n, 12, 20, same_start, 41)


def run(scene, graph, algorithm, optimizer, network=None, seed=SEED, same_start=False, **more):
    """{round: {rank: model}}, weights, and the summary."""
    what = graph, algorithm, optimizer, *problem_of(graph, same_start), ROUNDS
    recorded = list(range(ROUNDS + 1))
    found = _simulate.simulate(scene.starling, *what, recorded, network, seed=seed, **more)
    return found.by_rank, found.weight_of, found.summary


def train(scene, nodes, algorithm, **more):
    """A softmax regression on digits; the run's folder."""
    experiment = {
        "topology": {"nodes": nodes, "family": "path" if nodes == 2 else "ring"},
        "algorithm": algorithm,
        "model": "softmax",
        "data": {"name": "digits", "train_samples": 640, "test_samples": 100, "batch": 8},
        **more,
    }
    return _simulate.run_experiment(scene.starling, scene.folder, experiment)[0]


def ends_of(summary):
    """When each node had done its last gradient, in virtual seconds."""
    return {line["node"]: line["virtual_s"] for line in summary["per_node"]}


def same(found, expected, what):
    """expected: of each node its models."""
    rows = {r: {i: own[r] for i, own in enumerate(expected)} for r in range(ROUNDS + 1)}
    worst = apart_by_rank(found, rows)
    check(not isinstance(worst, str) and worst <= TOLERANCE, f"{what}: differs by {worst}")


def times_of(rows, n):
    """Of compute_ms: for each node, nanoseconds of its k-th gradient."""
    if rows is None:
        return [lambda k: 1] * n
    return [lambda k, i=i: max(1, round(1e6 * rows[(k - 1) % len(rows)][i])) for i in range(n)]


def neighbours_of(graph):
    w = graph.slots[0]
    return [[j for j in np.flatnonzero(w[i]).tolist() if j != i] for i in range(graph.n)]


def drawn_times(n, rows, seed):
    return np.random.default_rng(seed).integers(1, 9, (rows, n)).tolist()


# ---- AD-PSGD ----


def path(n):
    graph = schedule(n, [[i, i + 1] for i in range(n - 1)])
    graph.topology = {"nodes": n, "family": "path", "weights": "metropolis"}
    return graph


def check_ad_psgd(scene, graph, optimizer, compute, keys, pairing="random", **options):
    """keys: of the algorithm; options: those of the reference that say the same."""
    network = {"compute_ms": compute} if compute else None
    found, _, _ = run(scene, graph, of("ad-psgd", **keys), optimizer, network)
    expected = asynchronous.ad_psgd(
        neighbours_of(graph), problem_of(graph), optimizer, ROUNDS, times_of(compute, graph.n),
        pairing, **options,
    )
    same(found, expected, f"{graph.topology} {optimizer} {compute} {keys}")


def test_ad_psgd_is_the_papers(scene):
    for graph, optimizer, rows in itertools.product(
        (ring(8), irregular(), path(6)), (PLAIN, NESTEROV), (None, 1, 3)
    ):
        compute = drawn_times(graph.n, rows, 7) if rows else None
        pairing = "random" if rows == 3 else "cyclic"
        check_ad_psgd(scene, graph, optimizer, compute, {"pairing": pairing}, pairing)


def test_who_asks_when_and_beside_what(scene):
    for graph, keys, options in (
        (path(6), {"initiators": "bipartite"}, {"asks": (0, 2, 4)}),
        (ring(8), {"local_steps": 3}, {"every": 3}),
        (ring(8), {"average": "beside"}, {"beside": True}),
    ):
        check_ad_psgd(scene, graph, PLAIN, drawn_times(graph.n, 2, 3), keys, **options)


# As experiments have them, and who goes and comes then.
FAULTS = [
    {"round": 4, "kill": [2, 5]},
    {"round": 9, "join": [2]},
    {"round": 12, "partition": [[0, 1, 2, 3], [4, 6, 7]], "rounds": 6},
    {"round": 22, "leave": [0]},
]
BEYOND = {"round": 23, "partition": [[0, 1, 3, 4], [6, 7]], "rounds": 3}  # after the last round
MEMBERS = [(4, [2, 5], []), (9, [], [2]), (12, [4, 6, 7], []), (18, [], [4, 6, 7]), (22, [0], [])]


def rings(members):
    """Of each change, with all ranks' neighbours after it."""
    there = set(range(8))
    for first, gone, come in members:
        there = (there - set(gone)) | set(come)
        around = sorted(there)
        near = [[] for _ in range(8)]
        for k, i in enumerate(around):
            near[i] = sorted({around[k - 1], around[(k + 1) % len(around)]} - {i})
        yield first, gone, come, near


def test_faults_of_ad_psgd(scene):
    """A round comes when the first node has ended the one before."""
    graph, compute = ring(8), drawn_times(8, 3, 23)
    for average in ("after", "beside"):
        algorithm, network = of("ad-psgd", average=average), {"compute_ms": compute}
        for optimizer in (PLAIN, NESTEROV):
            found, _, _ = run(scene, graph, algorithm, optimizer, network, faults=FAULTS)
            expected = asynchronous.ad_psgd(
                neighbours_of(graph), problem_of(graph), optimizer, ROUNDS, times_of(compute, 8),
                "random", beside=average == "beside", changes=rings(MEMBERS),
            )
            rows = {r: {i: m[r] for i, m in enumerate(expected) if r in m} for r in found}
            worst = apart_by_rank(found, rows)
            check(not isinstance(worst, str) and worst <= TOLERANCE, f"{average}: {worst}")


def test_nothing_but_what_is_lost_is_lost(scene):
    """Of node i's first model every 24th element is 1, which averages spread. What is far from the
    change is still all there, whatever was under way on slow links."""
    far, n, d = range(9, 16), 24, 24 * 128
    x0 = (np.arange(d) % n == np.arange(n)[:, None]).astype(float)
    given = np.zeros((n, 1, d)), np.zeros((n, 1)), x0
    each = {"chunk_bytes": 4096}
    for seed, fault in itertools.product(
        range(1, 3),
        (
            {"kill": [0]},
            {"leave": [0]},
            {"restart": [0, 1], "rounds": 1},
            {"partition": [[0, 1, 2], list(range(3, n))], "rounds": 1},
        ),
    ):
        for algorithm, graph in (
            (of("ad-psgd"), ring(n)),
            (of("ad-psgd", average="beside"), ring(n)),
            (of("sgp", overlap_rounds=2), one_way(n)),
        ):
            if algorithm["name"] == "sgp" and "leave" not in fault:
                continue  # its weights are 1 again
            network = {"gradient_ms": 4, "jitter": 0.9, "latency_ms": 1, "bandwidth_mbit": 20}
            found = _simulate.simulate(
                scene.starling, graph, algorithm, {"learning_rate": 0}, *given, 8, [8], network,
                seed=seed, faults=[{"round": 3, **fault}], transport=each,
                final_average=True,  # of the models as they are when all is over
            )
            sums = sum(found.by_rank[8].values()).reshape(-1, n)[:, far]
            all_of_it = sums.mean() if algorithm["name"] == "sgp" else 1
            lost = abs(sums / all_of_it - 1).max()
            check(lost < 1e-5, f"{algorithm} seed {seed} {fault}: {lost} of it")


def test_who_leaves_tears_no_commit(scene):
    """All elements of each gradient are equal, and come in three parts. So are those of the model
    that the last node gets."""
    d, asp = 3072, of("ssp", staleness="unbounded")
    given = np.full((8, 1, d), d**-0.5), np.arange(8.0)[:, None], np.zeros((8, d))
    network = {"gradient_ms": 4, "jitter": 0.9, "latency_ms": 1, "bandwidth_mbit": 100}
    for seed, faults in itertools.product(range(3), ([3], [5])):
        found = _simulate.simulate(
            scene.starling, ring(8), asp, PLAIN, *given, 8, [8], network, seed=seed,
            faults=[{"round": r, "leave": [3]} for r in faults], transport={"chunk_bytes": 4096},
        )
        last = max(found.traffic, key=lambda line: line["virtual_s"])["node"]
        x = found.by_rank[8][last]
        check(np.ptp(x) < 1e-4 * abs(x).max(), f"from {x.min()} to {x.max()}")


def one_way(n):
    graph = schedule(n)
    graph.topology = {"nodes": n, "family": "directed-ring", "weights": "push-sum"}
    return graph


def bytes_of(summary):
    return sum(node["bytes_sent"] for node in summary["per_node"])


def test_quantized_averages(scene):
    """SwarmSGD: with 24 bits to rounding as with whole numbers, of which it sends less."""
    graph, compute = ring(8), drawn_times(8, 2, 5)
    swarm = of("ad-psgd", local_steps=2, bits=24, theta=8)
    found, _, summary = run(scene, graph, swarm, PLAIN, {"compute_ms": compute})
    expected = asynchronous.ad_psgd(
        neighbours_of(graph), problem_of(graph), PLAIN, ROUNDS, times_of(compute, 8), "random",
        every=2,
    )
    same(found, expected, "24 bits")
    few = {**swarm, "bits": 2}
    _, _, less = run(scene, graph, few, PLAIN, {"compute_ms": compute})
    check(bytes_of(less) < bytes_of(summary), (bytes_of(less), bytes_of(summary)))


def test_one_quantized_average(scene):
    """Moniqua's, with weight one half, on both sides."""
    pair = schedule(2, [[0, 1]])
    pair.topology = {"nodes": 2, "family": "path"}
    x = problem_of(pair)[2]
    theta = 1.5 * abs(x[0] - x[1]).max()
    swarm = of("ad-psgd", bits=5, theta=theta, initiators="bipartite")
    found, _, _ = run(scene, pair, swarm, {"learning_rate": 0})
    sent, modulus = modular(x, 5, theta), modulus_of(5, theta)
    for i, j in (0, 1), (1, 0):
        moved = rest_of(sent[j] - x[i], modulus) - rest_of(sent[i] - x[i], modulus)
        check(abs(found[1][i] - (x[i] + moved / 2)).max() < 1e-5, (i, found[1][i], x))
    check(abs(found[1][0] - found[1][1]).max() > 1e-3, "it is not quantized")


def test_averages_agree(scene):
    """On links that are as slow as gradients, so that asks cross and are refused."""
    network = {"gradient_ms": 1, "latency_ms": 0.4, "bandwidth_mbit": 10, "jitter": 0.3}
    for average in ("after", "beside"):
        algorithm = of("ad-psgd", average=average)
        found, _, summary = run(scene, ring(8), algorithm, {"learning_rate": 0}, network)
        first, last = ([np.array(list(found[r].values())) for r in (0, ROUNDS)])
        spread = [np.linalg.norm(x - x.mean(axis=0)) for x in (first, last)]
        check(spread[1] < 0.1 * spread[0], f"{average}: from {spread[0]} to {spread[1]} apart")
        asked = sum(node["messages_sent"] for node in summary["per_node"])
        check(asked > 8 * ROUNDS, f"{asked} messages of {8 * ROUNDS} asks")


def spans_of(scene, algorithm, **network):
    """What trace.json of a run with two nodes says: (name, node, begin, end) in seconds; and the
    summary."""
    network = {"gradient_ms": 10, "coding": False, **network}
    out = train(scene, 2, algorithm, rounds=5, network=network, record={"trace": True})
    events = [e for e in read_json(out, "trace.json") if e["ph"] == "X"]
    spans = [(e["name"], e["pid"], 1e-6 * e["ts"], 1e-6 * (e["ts"] + e["dur"])) for e in events]
    summary = read_json(out, "summary.json")
    shutil.rmtree(out)
    return spans, summary


def test_an_ask_and_its_answer_take_two_ways(scene):
    """A vector is one part here: bytes / bandwidth and a latency each way, and then a gradient."""
    one_way = 1e-3 + 8e-8 * (4 * 7850 + 64)
    bipartite = of("ad-psgd", initiators="bipartite")
    spans, summary = spans_of(scene, bipartite, latency_ms=1, bandwidth_mbit=100)
    asks = [(end - begin) for name, node, begin, end in spans if (name, node) == ("wait", 0)]
    check(max(abs(wait - 2 * one_way) for wait in asks) < 1e-6 and len(asks) == 5, asks)
    end = ends_of(summary)[0]
    check(abs(end - 5 * (0.01 + 2 * one_way)) < 1e-6, f"node 0 ended after {end} s")


def test_a_trace_has_all_that_nodes_did(scene):
    for algorithm in (of("ad-psgd"), of("ssp"), of("sgp", overlap_rounds=1), of("d-psgd")):
        spans, summary = spans_of(scene, algorithm, latency_ms=1, bandwidth_mbit=100)
        for node in range(2):
            mine = sorted((begin, end) for name, i, begin, end in spans
                          if i == node and name != "message")
            busy = [end - begin for begin, end in mine]
            gradients = [1 for name, i, *_ in spans if (name, i) == ("gradient", node)]
            check(len(gradients) == 5, f"{algorithm}: {len(gradients)} gradients of node {node}")
            gaps = [later[0] - before[1] for before, later in zip(mine, mine[1:])]
            check(min(gaps) > -1e-9, f"{algorithm}: node {node} did two things at once")
            last = mine[-1][1]
            check(abs(sum(busy) - last) < 0.02, f"{algorithm}: {sum(busy)} s of {last} are shown")
        end = max(end for name, _, _, end in spans if name != "message")
        said = summary["predicted_seconds"]
        check(abs(end - said) < 1e-6, f"{algorithm}: ends at {end}, predicted {said}")


# ---- D-PSGD with staleness ----


def test_stale_d_psgd_takes_the_newest_versions(scene):
    for graph, staleness, latency, rows in (
        (ring(8), 1, 0, 2),
        (ring(8), 3, 2, 2),
        (irregular(), 2, 0, 3),
        (irregular(), 4, 7, 1),
        (digraph_of_rows(), 2, 3, 2),
    ):
        compute = drawn_times(graph.n, rows, 11)
        network = {"compute_ms": compute, "latency_ms": latency}
        for optimizer in (PLAIN, NESTEROV):
            found, _, _ = run(scene, graph, of("d-psgd", staleness=staleness), optimizer, network)
            expected = asynchronous.stale_d_psgd(
                graph.slots[0], problem_of(graph), optimizer, ROUNDS, times_of(compute, graph.n),
                staleness, round(1e6 * latency),
            )
            same(found, expected, f"{graph.topology} staleness {staleness} latency {latency}")


def digraph_of_rows():
    """A directed ring of five with weights that sum to 1 both ways."""
    edges = [[i, (i + 1) % 5, 0.5] for i in range(5)] + [[i, i, 0.5] for i in range(5)]
    topology = {"nodes": 5, "directed": True, "edges": edges}
    graph = schedule(5)
    graph.topology, graph.slots, graph.n = topology, [dpsgd.weighted(5, edges)], 5
    return graph


def test_a_slow_node_stops_others_at_the_bound_only(scene):
    """On a path 0-1-...-7, whose node 0 is slow, a node may be s + 1 rounds ahead of the one before
    it."""
    network = {"gradient_ms": 1, "speeds": [0.001] + 7 * [1]}
    _, _, summary = run(scene, path(8), of("d-psgd", staleness=2), PLAIN, network)
    ends = ends_of(summary)
    for node in range(1, 8):
        # with its last version but 2, the node before it had come to that of its own neighbour
        waits_for = max(0, ROUNDS - 2 - 3 * (node - 1))
        late = ends[node] - waits_for
        check(0 <= late < 0.1, f"node {node} ended after {ends[node]} s, and not {waits_for}")


# ---- SGP with overlap ----


def test_overlapping_sgp_adds_what_was_sent_before(scene):
    for graph, tau in ((digraph(), 0), (digraph(), 1), (exponential(8), 2), (ring(8), 5)):
        compute = drawn_times(graph.n, 2, 13)
        for network in (None, {"compute_ms": compute, "latency_ms": 1, "bandwidth_mbit": 5}):
            algorithm = of("sgp", overlap_rounds=tau)
            found, weights, _ = run(scene, graph, algorithm, PLAIN, network)
            expected, weight, on_its_way = asynchronous.overlapping_sgp(
                graph.slots, problem_of(graph), PLAIN, ROUNDS, tau
            )
            same(found, expected, f"{graph.topology} overlap {tau} {network}")
            apart = max(abs(weights[ROUNDS][i] - weight[i]) for i in range(graph.n))
            check(apart < 1e-6, f"weights differ by {apart}")
            check(abs(weight.sum() + on_its_way - graph.n) < 1e-9, "the reference loses weight")


# ---- a server whose model nodes change one by one ----

TOP_4 = functools.partial(top_k, k=4)
FOUR = {"compressor": {"name": "top-k", "k": 4}}
DECAY = {"learning_rate": 0.1, "weight_decay": 0.05}


def test_ssp_and_round_robin_are_the_papers(scene):
    graph = ring(8)
    for more, options in (
        ({"name": "ssp", "staleness": 0}, {"staleness": 0}),
        ({"name": "ssp", "staleness": 2}, {"staleness": 2}),
        ({"name": "ssp", "staleness": 1, "staleness_max": 6}, {"staleness": 1, "most": 6}),
        ({"name": "ssp", "staleness": "unbounded", "server": 3}, {"staleness": None, "server": 3}),
        ({"name": "round-robin"}, {"staleness": None, "in_turn": True}),
        ({"name": "ssp", "staleness": 1, "local_steps": 3}, {"staleness": 1, "every": 3}),
        (of("parameter-server", backup=2), {"staleness": None, "backup": 2}),
        (of("ssp", staleness=2, **FOUR), {"staleness": 2, "compress": TOP_4}),
        (
            of("ssp", staleness=2, error_feedback=False, **FOUR),
            {"staleness": 2, "compress": TOP_4, "feedback": False},
        ),
        (
            of("ssp", staleness=1, local_steps=3, **FOUR),
            {"staleness": 1, "every": 3, "compress": TOP_4},
        ),
        (
            of("round-robin", compressor="scaled-sign"),
            {"staleness": None, "in_turn": True, "compress": scaled_sign},
        ),
        (
            of("parameter-server", backup=2, **FOUR),
            {"staleness": None, "backup": 2, "compress": TOP_4},
        ),
        (of("parameter-server", backup=5, server=3), {"staleness": None, "backup": 5, "server": 3}),
    ):
        for optimizer, latency in ((PLAIN, 0), (DECAY, 2)):
            compute = drawn_times(8, 2, 17)
            network = {"compute_ms": compute, "latency_ms": latency}
            found, _, _ = run(scene, graph, more, optimizer, network)
            expected = asynchronous.served(
                problem_of(graph), optimizer, ROUNDS, times_of(compute, 8),
                latency=round(1e6 * latency), **options,
            )
            same(found, expected, f"{more} latency {latency}")


def test_a_range_of_bounds_is_used(scene):
    """Of eight nodes one after the other is slow for a while. Others get further ahead than the
    lower bound, never further than the upper one, and all end sooner than with the lower one."""
    graph = ring(8)
    compute = [[40 if i == k // 6 else 10 + i for i in range(8)] for k in range(ROUNDS)]
    network, leads, ends = {"compute_ms": compute}, [], []
    for keys, most in (({}, None), ({"staleness_max": 9}, 9)):
        algorithm = of("ssp", staleness=2, server=3, **keys)
        found, _, summary = run(scene, graph, algorithm, PLAIN, network)
        expected = asynchronous.served(
            problem_of(graph), PLAIN, ROUNDS, times_of(compute, 8), 2, server=3, most=most,
            leads=leads,
        )
        same(found, expected, f"{keys}")
        ends.append(summary["predicted_seconds"])
    check(2 < max(leads) <= 9, f"at most {max(leads)} ahead")
    check(ends[1] < 0.97 * ends[0], f"they ended after {ends} s")


def test_each_shard_has_a_clock_of_its_own(scene):
    graph = ring(5)
    for staleness, optimizer, latency in ((0, PLAIN, 0), (2, DECAY, 0), (1, PLAIN, 3)):
        compute = drawn_times(5, 3, 19)
        network = {"compute_ms": compute, "latency_ms": latency}
        algorithm = of("ssp", staleness=staleness, server="sharded")
        found, _, _ = run(scene, graph, algorithm, optimizer, network)
        expected = asynchronous.sharded(
            problem_of(graph), optimizer, ROUNDS, times_of(compute, 5), staleness,
            round(1e6 * latency),
        )
        same(found, expected, f"{staleness} latency {latency}")


# ---- all of them ----

EACH = (
    (of("ad-psgd"), ring(8)),
    (of("ad-psgd", bits=6, theta=20), ring(8)),
    (of("d-psgd", staleness=2), ring(8)),
    (of("sgp", overlap_rounds=2), digraph()),
    (of("ssp", staleness=3), ring(8)),
    (of("ssp", staleness=1, server="sharded"), ring(8)),
    (of("round-robin"), ring(8)),
    (of("ssp", compressor="qsgd", error_feedback=False), ring(8)),
    (of("parameter-server", backup=2), ring(8)),
)


def test_final_average_takes_in_what_is_on_its_way(scene):
    """Without steps the average of all models is that of the first ones; push-sum's too."""
    network = {"gradient_ms": 1, "jitter": 0.5, "latency_ms": 0.7}
    for algorithm, graph in EACH:
        still = {"learning_rate": 0}
        found, _, _ = run(scene, graph, algorithm, still, network, final_average=True)
        mean = problem_of(graph)[2].mean(axis=0)
        apart = max(abs(x - mean).max() for x in found[ROUNDS].values())
        if algorithm["name"] in ("ad-psgd", "sgp"):  # others do not keep the mean
            check(apart < 1e-5, f"{algorithm}: the average is {apart} off")
        rows = np.array(list(found[ROUNDS].values()))
        check(abs(rows - rows[0]).max() == 0, f"{algorithm}: models are not equal")


def test_records_by_virtual_time_are_of_all_models_as_they_are(scene):
    """Seven nodes do a gradient in 10 ms, and one in 40. A record has gradients that end at its
    instant, under the mean number of all. The last one is the run's end."""
    network = {"gradient_ms": 10, "speeds": [0.25] + 7 * [1]}
    out = train(scene, 8, "ad-psgd", rounds=20, network=network, record={"every_ms": 40})
    lines, one = read_lines(out, "consensus.jsonl"), read_lines(out, "metrics-3.jsonl")
    done = [min(20, 4 * k) * 7 + k for k in range(1, 20)]  # gradients of all after 40 k ms
    expected = [(n // 8, 0.04 * k) for k, n in enumerate(done, 1)] + [(20, 0.8)]
    firsts = [(r, t) for i, (r, t) in enumerate(expected) if r not in [r for r, _ in expected[:i]]]
    found = [(line["round"], round(line["virtual_s"], 9)) for line in lines]
    check(found == [(r, round(t, 9)) for r, t in firsts], f"{found}, not {firsts}")
    check([line["round"] for line in one] == [r for r, _ in found], f"{one}")


def test_what_is_recorded_where_nodes_go_and_come(scene):
    """By time all goes on. Who is lost before its first record has no line."""
    network = {"gradient_ms": 10, "jitter": 0.5, "latency_ms": 3}
    for record, faults, rounds, nodes in (
        ({"every_ms": 5}, FAULTS, list(range(1, 25)), list(range(8))),
        ({"every": 15}, [FAULTS[0], BEYOND], [15, 24], [0, 1, 3, 4, 6, 7]),
    ):
        out = train(scene, 8, "ad-psgd", rounds=24, network=network, record=record, faults=faults)
        found = [line["round"] for line in read_lines(out, "consensus.jsonl")]
        check(found == rounds, f"{record}: {found}")
        summary = read_json(out, "summary.json")
        lost = [(one["round"], one["node"]) for one in summary["lost"]]
        known = MEMBERS if faults is FAULTS else [MEMBERS[0], (23, [6, 7], [])]
        expected = [(r, i) for r, gone, _ in known for i in gone]
        check(lost == expected, f"{record}: {lost}")
        found = [line["node"] for line in summary["per_node"]]
        check(found == nodes, f"{record}: {found}")
        shutil.rmtree(out)


def test_all_of_them_have_tests(scene):
    check({a["name"] for a, _ in EACH} >= set(AT_OWN_TIMES), "EACH lacks some")


def test_the_same_seed_is_the_same_run(scene):
    network = {"gradient_ms": 1, "jitter": 0.5, "straggler_share": 0.1, "latency_ms": 0.3}
    for algorithm, graph in EACH:
        more = {"faults": FAULTS} if graph.n == 8 else {}
        first, _, one = run(scene, graph, algorithm, PLAIN, network, **more)
        second, _, two = run(scene, graph, algorithm, PLAIN, network, **more)
        check(apart_by_rank(first, second) == 0, f"{algorithm}: two runs differ")
        check(one["predicted_seconds"] == two["predicted_seconds"], "they take other times")
        _, _, other = run(scene, graph, algorithm, PLAIN, network, seed=2)
        check(one["predicted_seconds"] != other["predicted_seconds"], "the seed draws no times")


if __name__ == "__main__":
    run_tests()
