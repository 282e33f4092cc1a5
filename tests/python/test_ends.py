#!/usr/bin/env python3
"""How peers end: by exceptions, Ctrl-C, forgotten leave(), forks, other threads; what neighbours
are told, and that nothing crashes."""
import copy
import json
import os
import pickle
import signal
import subprocess
import time

import _package  # noqa: F401
import numpy

import starling
from _package import refused
from _peers import ONES, PYTHON, Peers, read_line
from _scene import check, run_tests

FORGETFUL = f"""
    {ONES}
    peer = join(x)
    for _ in range(3 if RANK else 9):
        try:
            peer.mix(x)
        except starling.Error as error:
            print(error)
            break
    """


def check_told(ended, *words):
    code, out, err = ended[0]
    check(code == 0, f"{ended}"[-2000:])
    for word in words:
        check(word in out, f"{word!r} is missing in {out!r}")


def test_exceptions_are_told_to_the_neighbours(scene):
    for ending in ("work(peer)", "with peer: work(peer)"):
        body = f"""
    {ONES}
    def work(peer):
        for round in range(400):
            peer.mix(x)
            if RANK == 1 and round == 20:
                raise ValueError("boom")
            time.sleep(0.005)
    peer = join(x)
    if RANK == 1:
        {ending}
    try:
        work(peer)
    except starling.Error as error:
        print(error)
    """
        ended = Peers(scene, body).wait()
        check_told(ended, "ValueError: boom")
        check("ValueError: boom" in ended[1][2] and ended[1][0] == 1, ended[1])


def test_a_script_that_ends_without_leave(scene):
    check_told(Peers(scene, FORGETFUL).wait(), "without peer.leave()")


def test_ctrl_c(scene):
    body = f"""
    {ONES}
    with join(x) as peer:
        peer.mix(x)
        print("here", flush=True)
        if RANK == 0:
            time.sleep(600)
        peer.mix(x)
    """
    peers = Peers(scene, body)
    for process in peers.processes:
        read_line(process)
    time.sleep(0.5)
    peers.processes[1].send_signal(signal.SIGINT)  # waits in mix()
    _, err = peers.processes[1].communicate(timeout=120)
    check(
        "KeyboardInterrupt" in err and "starling.Error" not in err,
        (err, _, peers.processes[1].returncode),
    )
    peers.processes[0].send_signal(signal.SIGINT)  # sleeps
    _, err = peers.processes[0].communicate(timeout=120)
    check("KeyboardInterrupt" in err, err)


def test_ctrl_c_alone(scene):
    """While neighbours do not come, and in a simulation."""
    waiting = "join(x)"
    simulating = """
    def train(rank):
        peer = starling.join(None, x.copy())
        while True:
            peer.mix()
    starling.simulate(2, train, EXPERIMENT)
    """
    for calls in (waiting, simulating):
        body = f"""
    {ONES}
    print("here", flush=True)
    {calls}
    """
        (process,) = Peers(scene, body, ranks=[0]).processes
        read_line(process)
        time.sleep(0.7)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
        check("KeyboardInterrupt" in err and "starling.Error" not in err, err)


def test_forked_children_get_an_error(scene):
    body = f"""
    {ONES}
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12's, of any fork beside threads
    peer = join(x)
    peer.mix(x)
    pid = os.fork()
    if pid == 0:
        for call in (peer.mix, peer.average, peer.metrics, peer.leave):
            try:
                call()
            except starling.Error as error:
                print(error, flush=True)
        sys.exit(0)  # runs atexit's functions, and frees the peer
    status = os.waitpid(pid, 0)[1]
    peer.mix(x)
    peer.leave()
    assert status == 0 and os.environ["RDMAV_FORK_SAFE"] == "1"
    """
    for code, out, err in Peers(scene, body).wait():
        check(code == 0 and out.count("forked") == 4 and err == "", (out, err))


def test_rdma_learns_of_forks_before_libfabric_opens(scene):
    code = """
import ctypes, os, sys
saw = []
real = ctypes.CDLL
def opened(name, *more):
    saw.append((os.path.basename(str(name)), os.environ.get("RDMAV_FORK_SAFE")))
    return real(name, *more)
ctypes.CDLL = opened
import starling
print(saw, "libfabric" in open("/proc/self/maps").read())
"""
    environment = {k: v for k, v in os.environ.items() if k != "RDMAV_FORK_SAFE"}
    done = subprocess.run(
        [PYTHON, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    check(done.stdout.startswith("[('libstarling.so.0', '1')"), done.stdout)


def test_a_peer_that_is_dropped_in_an_exchange(scene):
    body = f"""
    {ONES}
    def lose():
        x = numpy.zeros(1 << 21, "f4")  # freed when this function ends, while it is sent
        join(x).begin(x)
    if RANK == 1:
        lose()
        time.sleep(0.5)
        print("alive")
        sys.exit(0)
    try:
        peer = join(numpy.zeros(1 << 21, "f4"))
        time.sleep(1)
        peer.mix()
        peer.mix()
    except starling.Error as error:
        print(error)
    """
    ended = Peers(scene, body).wait()
    check_told(ended, "dropped without peer.leave()")
    check(ended[1][:2] == (0, "alive\n"), ended[1])


def test_calls_from_another_thread(scene):
    body = f"""
    {ONES}
    import threading
    said = []
    def call(calls):
        for each in calls:
            try:
                each()
            except starling.Error as error:
                said.append("another thread" in str(error))
    def elsewhere(*calls):
        other = threading.Thread(target=call, args=[calls])
        other.start()
        other.join()
    peer = join(x)
    peer.begin(x)
    elsewhere(peer.end, peer.leave)
    peer.end()
    elsewhere(peer.mix, peer.average, peer.leave)
    peer.mix()
    peer.leave()
    print(said, peer.round)
    """
    for out in Peers(scene, body).all_well():
        check(out == f"{[True] * 5} 2\n", out)


def test_status_from_another_thread(scene):
    body = f"""
    {ONES}
    import threading
    seen, ended = set(), False
    def look():
        while not ended:
            seen.add(peer.waiting_for)
            assert peer.metrics()["rank"] == RANK and str(RANK) in repr(peer)
            time.sleep(0.002)
    peer = join(x)
    other = threading.Thread(target=look)
    other.start()
    peer.mix()
    time.sleep(2 * RANK)  # rank 0 waits
    peer.mix()
    peer.leave()
    ended = True
    other.join()
    print(json.dumps(sorted(seen)))
    """
    first = json.loads(Peers(scene, body).all_well()[0])
    check(any("edge 1->0, round 2" in text for text in first), first)


def test_a_second_join_on_the_same_port(scene):
    body = f"""
    {ONES}
    with join(x) as peer:
        try:
            join(x)
        except starling.Error as error:
            print(error.code, error)
        peer.mix()
    """
    for out in Peers(scene, body).all_well():
        check("SL_ENET" in out and "peer.leave() comes first" in out, out)


def test_an_old_exception_of_a_prompt_is_not_the_reason(scene):
    # As an interactive interpreter has them.
    prompt = '\n    sys.ps1, sys.last_value = ">>> ", ValueError("old")'
    check_told(Peers(scene, prompt + FORGETFUL).wait(), "without peer.leave()")


def test_peers_are_not_copied(scene):
    def train(rank):
        with starling.join(None, numpy.zeros(4, dtype="f4")) as peer:
            for copied in (pickle.dumps, copy.copy, copy.deepcopy):
                refused(lambda: copied(peer), "peer stays with its process")

    starling.simulate(1, train, {"topology": {"nodes": 1, "family": "complete"}})


def test_errors_keep_their_places(scene):
    error = pickle.loads(pickle.dumps(starling.Error("gone", "SL_EPEER", 1, (0, 1), 3)))
    check((error.code, error.rank, error.edge, error.round) == ("SL_EPEER", 1, (0, 1), 3), error)


if __name__ == "__main__":
    run_tests()
