#!/usr/bin/env python3
"""Who connects to agents with keys, without one, or with theirs: the pair trains all the same.
test_verdicts has who proves itself and begins wrongly, fault_world who misbehaves later."""
import concurrent.futures
import os
import signal
import socket
import time

from _greetings import CHALLENGE, GREETING, HELLO, KEY, REFUSAL, WELCOME
from _greetings import frame, greeting, hear, message, visit
from _scene import check, read_bytes, run_tests, wait_until
from _keyed import SEALED, make_keys, make_nodes, start_as, with_key, with_pair
from _ports import free_ports
from by_hand import PAIR
from strangers import listening_ports, start, wait_listening


def strangers_learn_nothing(scene):
    """Neither of the run nor of who has neighbours. Nobody is challenged alike twice, so that no
    proof that was heard fits again; test_secure has what a proof is of."""
    make_keys(scene, "run.key")
    ports, said = free_ports(2), greeting(1, 0, kind=KEY)
    agent = start(
        scene, scene.experiment(**PAIR), 0, scene.roster(ports), "out0", *with_key("run.key")
    )
    wait_listening(ports[0])
    answers = {visit(ports[0], rank, 0) for rank in (1, 7)}
    kind, told = answers.pop()
    check(not answers and kind == REFUSAL and b"shows no key" in told, f"{kind} {told!r} {answers}")
    check("shows no key" in agent.said and "is no neighbour" not in agent.said, agent.said)
    challenges = set()
    for _ in range(8):
        with socket.create_connection(("127.0.0.1", ports[0]), timeout=60) as stranger:
            stranger.sendall(message(GREETING, said))
            kind, challenge = hear(stranger)
            check(kind == CHALLENGE, f"{kind} {challenge!r}")
            challenges.add(challenge)
    check(len(challenges) == 8, f"{len(challenges)} challenges for 8 greetings")
    agent.process.kill()
    agent.wait(10)


def who_has_a_living_ranks_key_does_not_replace_it(scene):
    """A second process of rank 1, with its key or its pair, while the first one trains."""
    make_keys(scene, "run.key")
    pins = make_nodes(scene, 2)
    scene.take_time()
    long = {**PAIR, **SEALED, "rounds": 2000, "record__every": 500}
    experiment = scene.experiment(**long, transport__connect_timeout_s=20)
    impatient = scene.experiment("i.json", **long, transport__connect_timeout_s=2)
    for way, fingerprints, extra in (
        ("key", ("", ""), [with_key("run.key")] * 2),
        ("pair", pins, [with_pair("node-0"), with_pair("node-1")]),
    ):
        ports, other = free_ports(2), free_ports(1)[0]
        agents = [
            start_as(scene, experiment, i, ports, f"{way}{i}", fingerprints, extra[i])
            for i in range(2)
        ]
        agents[0].wait_for("round 500/")
        places = (ports[0], other)
        second = start_as(scene, impatient, 1, places, f"{way}-again", fingerprints, extra[1])
        second.wait(60).check_refused("did not come up", code=1)
        for agent in agents:
            agent.wait(60).check_well()
        scene.check_models([f"{way}0", f"{way}1"], experiment=experiment)


def strangers_get_no_word_of_a_run_without_security(scene):
    """`starling run` makes a key for its agents, and not where security.mode is none."""
    for mode, wanted, word in (
        ("auto", REFUSAL, "shows no key"),
        ("none", WELCOME, "calls itself agent"),
    ):
        experiment = scene.experiment(
            rounds=40, security__mode=mode, transport__connect_timeout_s=60
        )
        running = scene.start("run", experiment, "--out", scene.path(mode))
        wait_until(lambda: len(scene.agents()) == 8, "eight agents", pause_s=0)
        agents = scene.agents()
        os.kill(agents[7], signal.SIGSTOP)  # no roster until it goes on
        wait_until(lambda: listening_ports(agents[0]), "agent 0 listens")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            port = listening_ports(agents[0])[0]
            stranger = pool.submit(visit, port, 1, 0, frame(HELLO))
            time.sleep(1)
            os.kill(agents[7], signal.SIGCONT)
            kind, said = stranger.result()
        running.wait(60).check_well()
        check(kind == wanted, f"{mode}: {kind} {said!r}")
        check(word in running.said, f"{word!r} is missing in {running.said!r}")
    first, second = (read_bytes(scene.path(f"{mode}/model-0.npy")) for mode in ("auto", "none"))
    check(first == second, "the key changes the model")


if __name__ == "__main__":
    run_tests()
