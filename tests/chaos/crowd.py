#!/usr/bin/env python3
"""Many strangers at an agent's port, in sequence and at once: what they cost it, and its neighbour.

An agent waits for its neighbour; strangers come; the neighbour comes; both train. How many come in
sequence: STARLING_CROWD, 2,000 without it; a million take ten minutes."""
import os
import socket
import struct
import threading
import time

from _scene import SLOWER, read_bytes, check, run_tests, wait_until
from _greetings import GREETING, KEY, PROOF, WELCOME, Prover, greeting, message
from _ports import free_ports
from _slow import costs
from by_hand import PAIR
from _keyed import check_both, make_keys, with_key
from strangers import start, wait_listening

COUNT = int(os.environ.get("STARLING_CROWD", "2000"))
AT_ONCE = 1000
KINDS = {
    "silence": b"",
    "a byte": b"\1",
    "half a greeting": message(GREETING, greeting(1, 0))[:30],
    "a head alone": message(GREETING, bytes(48))[:3],
    "a short greeting": message(GREETING, greeting(1, 0)[:16]),
    "an empty greeting": message(GREETING, bytes(48)),
    "garbage": bytes(range(256)) * 4,
    "another protocol": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "a foreign greeting": message(GREETING, greeting(1, 0, b"STARLING")),
    "no neighbour's greeting": message(GREETING, greeting(7, 0)),
    "a wrong proof": message(GREETING, greeting(1, 0, kind=KEY)) + message(PROOF, bytes(32)),
}
MEMORY = 4.5 * 2**20  # that they may cost
HANDSHAKES = 1.5 * 2**20  # and 64 that have the key and prove nothing more
DESCRIPTORS = 500  # likewise, of 1,000: 64 that stay, and those that come while nobody looks


class Watched:
    """An agent's process: its descriptors and memory, seen from outside."""

    def __init__(self, pid):
        self.pid, self.descriptors, self.memory, self.open = pid, 0, 0, True
        self.thread = threading.Thread(target=self.watch)
        _, self.first = costs(pid)
        self.thread.start()

    def watch(self):
        """Until it ends, too."""
        while self.open:
            try:
                descriptors, memory = costs(self.pid)
                self.descriptors = max(self.descriptors, descriptors)
                self.memory = max(self.memory, memory - self.first)
            except (OSError, IndexError):
                return
            time.sleep(0.01)

    def end(self):
        self.open = False
        self.thread.join()


class Honest:
    """Greets as the neighbour does, again and again, and waits for the answer."""

    def __init__(self, port, greet):
        self.port, self.say, self.open, self.waits, self.refused = port, greet, True, [], []
        self.thread = threading.Thread(target=self.greet)
        self.thread.start()

    def greet(self):
        while self.open:
            began = time.monotonic()
            while not self.is_let_in():
                pass
            self.waits.append(time.monotonic() - began)
            time.sleep(0.1)

    def is_let_in(self):
        """Else others have taken its place before it could prove itself: it tries again."""
        with socket.socket() as s:
            s.settimeout(30)
            try:
                s.connect(("127.0.0.1", self.port))
                kind, said = self.say(s, 1, 0)
            except ConnectionError:
                return False
            except OSError as error:
                kind, said = 0, error
        if kind != WELCOME:
            self.refused.append(f"{kind}: {said}")
        return True

    def end(self):
        self.open = False
        self.thread.join()
        check(not self.refused, f"honest greetings were not answered: {self.refused}")


def connect(port, says):
    """says: bytes, or what talks over the socket."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    try:
        s.settimeout(30)
        s.connect(("127.0.0.1", port))
        says(s) if callable(says) else s.sendall(says)
    except OSError:
        pass
    return s


def come_in_sequence(port, count):
    """Each says what its kind does; the last 200 are open at a time."""
    kinds, there = list(KINDS.values()), []
    for i in range(count):
        there.append(connect(port, kinds[i % len(kinds)]))
        if len(there) > 200:
            there.pop(0).close()
    for s in there:
        s.close()


def come_at_once(port, says):
    there = [connect(port, says) for _ in range(AT_ONCE)]
    time.sleep(5)
    for s in there:
        s.close()


def measure(pid, port, greet, act):
    """How long an honest greeting waited, and how many descriptors there were, at most."""
    watched, honest = Watched(pid), Honest(port, greet)
    act()
    honest.end()
    watched.end()
    return max(honest.waits), watched.descriptors


def an_agent_with_a_key_waits_in_a_crowd(scene):
    """The pair trains as the simulator does, and the crowd has cost nothing that stays: whoever has
    gone was ended after 3 seconds. fault_world counts places of those who have no key to show."""
    make_keys(scene, "run.key")
    greet, extra = Prover(scene.path("run.key"), run_id=1), with_key("run.key")
    ports = free_ports(2)
    roster = scene.roster(ports)
    experiment = scene.experiment(**PAIR, transport__connect_timeout_s=36000)
    first = start(scene, experiment, 0, roster, "out0", *extra)
    wait_listening(ports[0])
    pid = first.process.pid
    first.wait_for("come up: 1 (")
    memory, (before, _) = Watched(pid), costs(pid)
    acts = [lambda: come_in_sequence(ports[0], COUNT)]
    for says in (*map(KINDS.get, ("silence", "a head alone", "garbage")), lambda s: greet(s, 1, 0)):
        acts.append(lambda says=says: come_at_once(ports[0], says))
    measured = [measure(pid, ports[0], greet, act) for act in acts]
    slowest, most = map(max, zip(*measured))
    wait_until(lambda: costs(pid)[0] <= before + 2, "all are ended", 10)
    memory.end()
    print(f"# memory +{memory.memory / 2**20:.2f} MiB, the slowest {slowest:.3f} s", flush=True)
    second = start(scene, experiment, 1, roster, "out1", *extra)
    check_both(scene, experiment, [second.wait(60), first.wait(60)])
    check(slowest < 3 * SLOWER, f"an honest greeting waited {slowest:.1f} s")
    check(most - before <= DESCRIPTORS, f"{most - before} descriptors for {AT_ONCE} connections")
    if b"__asan" not in read_bytes(scene.starling):
        check(memory.memory < MEMORY + HANDSHAKES, f"memory has grown by {memory.memory} bytes")


if __name__ == "__main__":
    run_tests()
