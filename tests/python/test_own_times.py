#!/usr/bin/env python3
"""Peers that go at their own times: in a simulation, on its clock, and as processes."""
import copy
import json

import _package  # noqa: F401: finds the package
import numpy

import starling
from _package import imported, refused
from _peers import EXPERIMENT, Peers, read_line
from _scene import check, run_tests

RING = {"family": "ring", "nodes": 4}
PAIRS = {"topology": RING, "algorithm": "ad-psgd"}
STALE = {"topology": RING, "algorithm": {"name": "d-psgd", "staleness": 2}}
LATE = {"topology": RING, "algorithm": {"name": "sgp", "overlap_rounds": 2}}
SLOW_3 = {"network": {"compute_ms": [10, 10, 10, 40]}}
ROUNDS = 6


def start_of(rank):
    return numpy.arange(5, dtype="f4") * (rank + 1)


def train(rank, rounds=ROUNDS, saved_after=None, **options):
    """(models after each round, metrics after each, average before leaving)"""
    x, models, metrics = start_of(rank), [], []
    with starling.join(None, x, same_start=False, **options) as peer:
        for count in range(rounds):
            x += numpy.float32(rank + 1)
            peer.mix()
            if count == saved_after:
                peer.state_dict()
            models.append(x.copy())
            metrics.append(peer.metrics())
        average = peer.average()
    return models, metrics, average


def simulate(experiment, work=train, **options):
    return starling.simulate(4, work, experiment, **options)


def last_of(found):
    return [models[-1] for models, _, _ in found]


def test_a_fast_peer_does_not_wait_for_a_slow_one(scene):
    for experiment in (PAIRS, STALE):
        ends = [metrics[-1]["virtual_s"] for _, metrics, _ in simulate({**experiment, **SLOW_3})]
        check(max(ends) >= 0.24, ends)
        if experiment is PAIRS:
            check(max(ends[:3]) < 0.07, ends)


def test_ahead_and_staleness_are_told(scene):
    found = simulate({**STALE, **SLOW_3})
    ahead = max(m["ahead"] for _, metrics, _ in found for m in metrics)
    stale = max(m["staleness"] for _, metrics, _ in found for m in metrics)
    check(ahead == 3 and stale == 2, (ahead, stale))
    check(all(m["ahead"] == 0 for m in found[3][1]), found[3][1])
    found = simulate({**LATE, **SLOW_3})
    check(all(metrics[-1]["staleness"] == 2 for _, metrics, _ in found), found)


def test_at_equal_speeds_stale_models_are_those_of_rounds(scene):
    apart = simulate(STALE)
    together = simulate({**STALE, "algorithm": "d-psgd"})
    check(all((a == b).all() for a, b in zip(last_of(apart), last_of(together))), apart)


def test_the_average_is_kept(scene):
    """What averages keep: the mean of all starts and steps."""
    expected = sum(start_of(rank) + ROUNDS * (rank + 1) for rank in range(4)) / 4
    for experiment in (STALE, LATE):
        averages = [average for _, _, average in simulate(experiment)]
        check(all((a == averages[0]).all() for a in averages), averages)
    found = simulate(STALE)
    check(numpy.allclose(found[0][2], expected), (found[0][2], expected))


def test_sums_and_averages_between_rounds(scene):
    """Who has fewer rounds before one waits for the others."""

    def work(rank):
        x, found = start_of(rank), []
        with starling.join(None, x, same_start=False) as peer:
            for count in range(3):
                for _ in range(1 + (rank + count) % 3):
                    x += 1
                    peer.mix()
                found += [peer.mean(float(rank)), peer.average().tolist()]
        return found

    for experiment in (PAIRS, STALE, LATE):
        found = simulate({**experiment, **SLOW_3}, work)
        check(all(f == found[0] for f in found), found)
        check(found[0][::2] == [1.5] * 3, found)


FAR = {"network": {**SLOW_3["network"], "latency_ms": 7, "bandwidth_mbit": 0.1, "jitter": 0.4}}


def test_a_simulation_goes_on_from_states(scene):
    """Saved twice, after other counts of rounds and with messages on their way, and between two
    averages, with rounds that the others wait for."""

    def train(peer, x, rounds):
        for _ in range(rounds):
            x += peer.rank + 1
            peer.mix()

    def go_on(peer, x, saved):
        found = [peer.round]
        for rounds in (5, 2 * peer.rank, 3):
            train(peer, x, rounds)
            found.append(peer.average().tolist())
        saved.append((x.copy(), peer.state_dict()))
        train(peer, x, 4)
        return found, x.tolist(), saved

    def begin(rank):
        x, saved = start_of(rank), []
        with starling.join(None, x, same_start=False) as peer:
            train(peer, x, 3 + rank)
            peer.state_dict()
            saved.append((x.copy(), peer.state_dict()))
            return go_on(peer, x, saved)

    def begin_again(rank, saved):
        x = saved[rank][0].copy()
        with starling.join(None, x, start=False) as peer:
            peer.load_state_dict(saved[rank][1])
            return go_on(peer, x, [])

    for experiment in (PAIRS, STALE, LATE):
        for network in ({}, SLOW_3, FAR):
            whole = simulate({**experiment, **network}, begin)
            firsts = [saved[0] for _, _, saved in whole]
            again = simulate({**experiment, **network}, lambda rank: begin_again(rank, firsts))
            for (found, x, saved), (other, y, states) in zip(whole, again):
                check((found, x) == (other, y), (experiment, network, found, other, x, y))
                same = saved[1][1]["session"] == states[0][1]["session"]
                check(same.all(), f"{experiment}, {network}: other states")


def test_what_it_cannot_do(scene):
    for name in ("ssp", "round-robin"):
        refused(lambda: simulate({**PAIRS, "algorithm": name}), "algorithm.name", name, "session")
    refused(
        lambda: simulate({**PAIRS, "network": {"compute_ms": [[1, 2]]}}), "compute_ms", "2", "4"
    )


def test_a_failure_ends_all(scene):
    def work(rank):
        x = start_of(rank)
        with starling.join(None, x) as peer:
            for count in range(5):
                peer.mix()
                if rank == 2 and count == 3:
                    raise ValueError("boom")

    refused(lambda: simulate({**PAIRS, **SLOW_3}, work), "boom", kind=ValueError)


def test_attach_steps_and_mixes(scene):
    torch = imported("torch")

    def work(rank):
        torch.manual_seed(0)
        model, target = torch.nn.Linear(4, 1), torch.full((8, 1), float(rank))
        inputs = torch.ones(8, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        with starling.join(None, model) as peer:
            peer.attach(optimizer)
            for _ in range(40):
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(model(inputs), target).backward()
                optimizer.step()
            mean = peer.average()
        model.load_state_dict(mean)
        return model(inputs)[0].item()

    for experiment in (PAIRS, STALE):
        found = simulate({**experiment, **SLOW_3}, work)
        check(all(abs(value - 1.5) < 0.4 for value in found), found)


# ---- processes ----

BODY = """
import numpy
x = numpy.arange(5, dtype="f4") * (RANK + 1)
told = []
with join(x, same_start=False) as peer:
    for count in range(ROUNDS):
        x += RANK + 1
        peer.mix()
        told.append([peer.metrics()["ahead"], peer.metrics()["staleness"]])
    mean = peer.mean(float(RANK))
    average = peer.average()
print(json.dumps({"x": x.tolist(), "told": told, "mean": mean, "average": average.tolist()}))
"""


def run_peers(scene, experiment, body=BODY, rounds="6", codes=(0, 0, 0, 0), strike=None):
    settings = {**copy.deepcopy(EXPERIMENT), **experiment, "membership": {"on_loss": "continue"}}
    peers = Peers(scene, body.replace("ROUNDS", rounds), settings)
    if strike is not None:
        strike(peers)
    ended = peers.wait(60)
    check(tuple(code for code, _, _ in ended) == tuple(codes), ended)
    return [json.loads(out.splitlines()[-1]) for code, out, _ in ended if code == 0]


def test_nothing_is_said_before_the_first_model_is_there(scene):
    """It is on its way to the agent while others train: without a step, what a round mixes lies
    between the starts, and one round of d-psgd keeps their mean."""
    still = BODY.replace("        x += RANK + 1\n", "")
    for experiment in (PAIRS, STALE):
        found = run_peers(scene, experiment, still, rounds="1")
        check(all((numpy.array(f["x"]) >= start_of(0)).all() for f in found), found)
    expected = sum(start_of(rank) for rank in range(4)) / 4
    check(all(numpy.allclose(f["average"], expected) for f in found), found)


def test_late_sgp_has_the_bits_of_the_simulation(scene):
    """Where a state is saved, too, which adds up what is on its way."""

    def work(rank):
        return train(rank, rounds=3 + 2 * rank, saved_after=1)

    saving = BODY.replace("peer.mix()\n", "peer.mix()\n        if count == 1: peer.state_dict()\n")
    simulated = simulate({**LATE, **SLOW_3}, work)
    found = run_peers(scene, LATE, saving, rounds="3 + 2 * RANK")
    for (models, _, average), real in zip(simulated, found):
        check(models[-1].tolist() == real["x"], (models[-1], real))
        check(average.tolist() == real["average"], (average, real))


def test_processes_do_not_wait_for_a_slow_one(scene):
    pause = "        time.sleep(0.8 if RANK == 3 else 0.1)\n        peer.mix()\n"
    found = run_peers(scene, PAIRS, BODY.replace("        peer.mix()\n", pause), rounds="8")
    check(max(a for f in found[:3] for a, _ in f["told"]) >= 2, found)


JOINING = """
import numpy
joins = len(sys.argv) > 4
x = numpy.full(5, RANK, dtype="f4")
with join(x, same_start=False, joins=joins) as peer:
    began = peer.round
    while peer.round < 100 or (len(peer.members) < 4 and peer.round < 3000):
        time.sleep(0.01)
        peer.mix()
        if RANK == 2 and not joins and peer.round == 10:
            os.kill(os.getpid(), 9)
    members = len(peer.members)
    average = peer.average()
print(json.dumps({"began": began, "members": members, "average": average.tolist()}))
"""


def test_a_new_process_takes_the_place_of_a_killed_one(scene):
    for experiment in (PAIRS, STALE):

        def strike(peers):
            peers.processes[2].wait()
            peers.start(2, "joins")

        found = run_peers(scene, experiment, JOINING, codes=(0, 0, -9, 0, 0), strike=strike)
        check(found[-1]["began"] > 0 and all(f["members"] == 4 for f in found), found)
        check(all(f["average"] == found[0]["average"] for f in found), found)


def test_the_others_go_on_without_a_killed_one(scene):
    body = BODY.replace(
        "        x += RANK + 1\n",
        "        x += RANK + 1\n        if RANK == 2 and count == 4: os.kill(os.getpid(), 9)\n",
    )
    for experiment in (PAIRS, STALE, LATE):
        found = run_peers(scene, experiment, body, rounds="20", codes=(0, 0, -9, 0))
        check(len(found) == 3 and all(f["mean"] == 4 / 3 for f in found), found)
        check(all(f["average"] == found[0]["average"] for f in found), found)


SAVES = """
x = numpy.arange(5, dtype="f4") * (RANK + 1)

def train(rounds):
    for _ in range(rounds):
        x[:] += RANK + 1
        peer.mix()

def tell():
    print(json.dumps([peer.round, peer.average().tolist(), x.tolist()]), flush=True)
"""
KILLED = f"""import numpy
{SAVES}
peer = join(x, same_start=False)
train(3 + RANK)
with open(f"state-{{RANK}}", "wb") as file:
    pickle.dump((x, peer.state_dict()), file)
tell()
train(4)
tell()
train(10 ** 9)
"""
GOES_ON = f"""import numpy
{SAVES}
with open(f"state-{{RANK}}", "rb") as file:
    x, state = pickle.load(file)
peer = join(x, start=False)
peer.load_state_dict(state)
tell()
train(4)
tell()
peer.leave()
"""


def killed_and_goes_on(scene, experiment):
    """What peers of both runs tell, by rank."""
    settings = {**copy.deepcopy(EXPERIMENT), **experiment, "membership": {"on_loss": "continue"}}
    peers = Peers(scene, KILLED, settings)
    before = [[json.loads(read_line(p)) for _ in range(2)] for p in peers.processes]
    for process in peers.processes:
        process.kill()
        process.communicate()
    after = [out.splitlines() for out in Peers(scene, GOES_ON, settings).all_well(60)]
    return before, [[json.loads(line) for line in lines] for lines in after]


def test_killed_processes_go_on(scene):
    """What sgp mixes hangs on nobody's speed."""
    for experiment in (LATE, PAIRS, STALE):
        before, after = killed_and_goes_on(scene, experiment)
        for (saved, ended), (loaded, ended_again) in zip(before, after):
            check(loaded == saved, (experiment, loaded, saved))
            check(ended_again == ended or experiment is not LATE, (ended_again, ended))
        averages = [told[1] for _, told in after]
        check(all(a == averages[0] for a in averages), averages)
    others = {**copy.deepcopy(EXPERIMENT), **PAIRS, "membership": {"on_loss": "continue"}}
    for code, _, errors in Peers(scene, GOES_ON, others).wait():
        check(code == 1 and "load: the state: is of another" in errors, errors)


if __name__ == "__main__":
    run_tests([value for name, value in list(globals().items()) if name.startswith("test_")])
