#!/usr/bin/env python3
"""Agents with keys: they train as without, whoever has no key stays outside, and what is on the
wire says nothing.

usage: secure.py STARLING [TEST ...]
"""
import base64
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from _scene import check, run_tests
from _robber import CHANGES, Robber
from _tap import Tap
from _ports import free_ports
from by_hand import PAIR
from status import ask
from strangers import MODES, Strangers, check_models, listening_ports, start, wait_listening

SEALED = {"security__seal": "on"}
RUN_ID = 0x5EC2E75EC2E75EC2


def make_keys(scene, *names):
    for name in names:
        scene.call("keys", "make", "-o", scene.path(name)).check_well()


def make_nodes(scene, count):
    """The fingerprints of node-0, node-1, ..."""
    made = [
        scene.call("keys", "make", "--node", "-o", scene.path(f"node-{rank}"))
        for rank in range(count)
    ]
    return [one.out.strip() for one in made]


def with_key(name):
    return ("--set", f"security.key={name}")


def with_pair(name):
    return (*with_key(name), "--set", "security.mode=certificates")


def write_roster(scene, name, ports, fingerprints=("", "")):
    rows = zip(ports, fingerprints)
    return scene.write(name, "".join(f"127.0.0.1:{port} {pin}\n" for port, pin in rows))


def train(scene, experiment, extra, pins=("", ""), tap=None, run_id=RUN_ID):
    """Two agents, of which rank 1 may go through a tap to rank 0, as they ended."""
    ports = free_ports(2) if tap is None else (tap.target, free_ports(1)[0])
    rosters = [write_roster(scene, "roster", ports, pins)] * 2
    if tap is not None:
        rosters[1] = write_roster(scene, "roster-1", (tap.port, ports[1]), pins)
    running = [
        start(scene, experiment, i, rosters[i], f"out{i}", "--run-id", str(run_id), *extra[i])
        for i in range(2)
    ]
    return [one.wait(120) for one in running]


def check_both(scene, experiment, ended):
    for one in ended:
        one.check_well()
    check_models(scene, experiment, ["out0", "out1"])


def check_edges(scene, *words):
    """Each agent's log says once how its one edge is protected."""
    for rank, word in enumerate(words):
        with open(scene.path(f"out{rank}/events-{rank}.jsonl")) as file:
            events = [json.loads(line) for line in file]
        edges = [(e["peer"], e["protection"]) for e in events if e["event"] == "edge"]
        check(edges == [(1 - rank, word)], f"{edges}, not {word!r}")


def a_key_changes_no_number(scene):
    make_keys(scene, "run.key")
    experiment = scene.experiment(**PAIR, **SEALED)
    check_both(scene, experiment, train(scene, experiment, [with_key("run.key")] * 2))
    check_edges(scene, *["TLS 1.3, key, AES-256-GCM"] * 2)


def certificates_change_no_number(scene):
    pins = make_nodes(scene, 2)
    experiment = scene.experiment(**PAIR, **SEALED)
    pairs = [with_pair("node-0"), with_pair("node-1")]
    check_both(scene, experiment, train(scene, experiment, pairs, pins))
    check_edges(scene, *[f"TLS 1.3, certificate {pin}, AES-256-GCM" for pin in reversed(pins)])


def check_apart(scene, first, second, words, pins=("", ""), **changes):
    """They do not meet. words: of the first one's notice, and the second one's error."""
    experiment = scene.experiment(**{**PAIR, "transport__connect_timeout_s": 8, **changes})
    ended = train(scene, experiment, [first, second], pins)
    for rank in range(2):
        shutil.rmtree(scene.path(f"out{rank}"))
    for one in ended:
        check(one.code == 1, f"exit code {one.code}: {one.err!r}")
    for text, word in zip((ended[0].out, ended[1].err), words):
        check(word in text, f"{word!r} is missing in {text!r}")


def without_the_same_key_nobody_comes_in(scene):
    make_keys(scene, "run.key", "other.key")
    own, other = with_key("run.key"), with_key("other.key")
    foreign = "it has another key, or another run id"
    check_apart(scene, own, other, (foreign, foreign))
    none = "it shows no key, and this agent asks for one"
    check_apart(scene, own, (), (none, none))
    shown = "it shows a key, and this agent has none"
    check_apart(scene, (), own, (shown, shown))
    sealed = (*own, "--set", "security.seal=on")
    check_apart(scene, sealed, own, ("a frame's seal is broken", "did not come up"))


def another_certificate_is_named(scene):
    pins = make_nodes(scene, 3)
    words = ("is not the one that the roster names", "does not accept this agent's")
    # rank 1's own roster agrees with its pair; rank 0's names another one
    experiment = scene.experiment(**PAIR, transport__connect_timeout_s=8)
    ports = free_ports(2)
    rosters = [
        write_roster(scene, "roster-0", ports, pins[:2]),
        write_roster(scene, "roster-1", ports, (pins[0], pins[2])),
    ]
    running = [
        start(scene, experiment, 0, rosters[0], "out0", *with_pair("node-0")),
        start(scene, experiment, 1, rosters[1], "out1", *with_pair("node-2")),
    ]
    first, second = [one.wait(60) for one in running]
    check(words[0] in first.out and pins[2] in first.out, repr(first.out))
    check(words[1] in second.err, repr(second.err))
    wrong = start(scene, experiment, 1, rosters[0], "out2", *with_pair("node-2")).wait(60)
    check(pins[2] in wrong.err and pins[1] in wrong.err, repr(wrong.err))
    bare = write_roster(scene, "bare", ports)
    start(scene, experiment, 1, bare, "out3", *with_pair("node-1")).wait(60).check_refused(
        "names no certificate of agent 0", code=1
    )


def write_expired(scene, name):
    """The pair's certificate with an end in 2020, and its fingerprint. Agents do not look at its
    signature, which is its own."""
    with open(scene.path(name + ".crt")) as file:
        whole = base64.b64decode("".join(file.read().splitlines()[1:-1]))
    at = whole.rindex(b"\x17\x0d")  # the second time, as YYMMDDHHMMSSZ
    whole = whole[: at + 2] + b"201120000000Z" + whole[at + 15 :]
    text = base64.encodebytes(whole).decode()
    scene.write(name + ".crt", f"-----BEGIN CERTIFICATE-----\n{text}-----END CERTIFICATE-----\n")
    return "sha256:" + hashlib.sha256(whole).hexdigest()


def an_expired_certificate_is_refused(scene):
    pins = make_nodes(scene, 2)
    pins[1] = write_expired(scene, "node-1")
    words = (f"its certificate {pins[1]} has expired", "does not accept this agent's")
    check_apart(scene, with_pair("node-0"), with_pair("node-1"), words, pins)


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def is_heard(tap, secret):
    return any(secret in heard for heard in tap.heard)


def model_pieces(scene):
    """Runs of 16 bytes of the model that stand in its last message, and are not all zeros."""
    model = read_bytes(scene.path("out1/model-1.npy"))[128:]  # behind its header
    pieces = {model[i : i + 16] for i in range(0, len(model) - 15, 16)}
    return [piece for piece in pieces if len(set(piece)) > 4]


def hashes_of(tap, run_id):
    """What a HELLO in the clear says behind its run id: hashes of topology, layout and data, and
    of the first sections of the configuration."""
    heard = next(bytes(heard) for heard in tap.heard if run_id in heard)
    hello = heard[heard.index(run_id) :]
    return [hello[i : i + 8] for i in (8, 16, 24, 80, 88, 96)]


def what_is_on_the_wire_says_nothing(scene):
    """With learning rate 0 the model on the wire is the model in the file."""
    make_keys(scene, "run.key")
    run_id = RUN_ID.to_bytes(8, "little")
    experiment = scene.experiment(**PAIR, **SEALED, optimizer__learning_rate=1e-30)
    hashes = []
    for extra, heard in (((), True), (with_key("run.key"), False)):
        tap = Tap(free_ports(1)[0])
        tap.start()
        ended = train(scene, experiment, [extra] * 2, tap=tap)
        tap.end()
        for one in ended:
            one.check_well()
        pieces = model_pieces(scene)
        check(len(pieces) > 100, f"{len(pieces)} pieces of the model to look for")
        count = sum(is_heard(tap, piece) for piece in pieces)
        check((count > 0) == heard, f"{count} of {len(pieces)} pieces of the model are heard")
        check(is_heard(tap, run_id) == heard, f"the run id is heard: {not heard}")
        hashes = hashes or hashes_of(tap, run_id)
        check(all(len(set(one)) > 4 for one in hashes), f"these are no hashes: {hashes}")
        found = [is_heard(tap, one) for one in hashes]
        check(found == [heard] * len(hashes), f"hashes that are heard: {found}")
        for rank in range(2):
            os.rename(scene.path(f"out{rank}"), scene.path(f"out{rank}-{heard}"))


def who_flips_bits_on_the_way_costs_connections_only(scene):
    make_keys(scene, "run.key")
    experiment = scene.experiment(**{**PAIR, **SEALED, "transport__reconnect_s": 30})
    tap = Tap(free_ports(1)[0], flips=(20000, 30000, 50000))
    tap.start()
    ended = train(scene, experiment, [with_key("run.key")] * 2, tap=tap)
    tap.end()
    check(tap.flipped == 3, f"{tap.flipped} bits were flipped")
    check_both(scene, experiment, ended)
    told = ended[0].out + ended[1].out
    check("a frame's seal is broken" in told, repr(told))
    check("is back after" in told, repr(told))


def who_holds_the_wire_costs_connections_only(scene):
    """Frames repeated, swapped, left out, cut and altered, and an ABORT and a BYE put in."""
    make_keys(scene, "run.key")
    experiment = scene.experiment(**{**PAIR, **SEALED, "rounds": 60, "transport__reconnect_s": 30})
    robber = Robber(free_ports(1)[0], after=4)
    robber.start()
    ended = train(scene, experiment, [with_key("run.key")] * 2, tap=robber)
    robber.end()
    check_both(scene, experiment, ended)
    check(not robber.left, f"not tried: {list(robber.left)}")
    broken = sum(one.out.count("a frame's seal is broken") for one in ended)
    check(broken >= len(CHANGES), f"{broken} broken seals: {ended[0].out!r} {ended[1].out!r}")


def who_was_heard_is_not_repeated(scene):
    """All that rank 1 sent, sent again by somebody else, to an agent that opens, and trains."""
    make_keys(scene, "run.key")
    experiment = scene.experiment(**PAIR, **SEALED)
    port = free_ports(1)[0]
    tap = Tap(port)
    tap.start()
    extra = [with_key("run.key")] * 2
    ended = train(scene, experiment, extra, tap=tap)
    tap.end()
    check_both(scene, experiment, ended)
    roster = write_roster(scene, "roster", (port, free_ports(1)[0]))
    for name in ("out0", "out1", "sim"):
        os.rename(scene.path(name), scene.path(name + "-before"))
    first = start(scene, experiment, 0, roster, "out0", "--run-id", str(RUN_ID), *extra[0])
    wait_listening(port)
    for heard in tap.heard:
        with socket.create_connection(("127.0.0.1", port)) as again:
            again.settimeout(120)
            try:
                again.sendall(heard)
                while again.recv(1 << 16):
                    pass
            except OSError:
                pass
    check(first.process.poll() is None, f"the agent ended: {first.err!r}")
    second = start(scene, experiment, 1, roster, "out1", "--run-id", str(RUN_ID), *extra[1])
    check_both(scene, experiment, [second.wait(60), first.wait(60)])


def strangers_get_no_word_of_the_run(scene):
    make_keys(scene, "run.key")
    experiment = scene.experiment(**PAIR, transport__connect_timeout_s=60)
    ports = free_ports(2)
    roster = write_roster(scene, "roster", ports)
    first = start(scene, experiment, 0, roster, "out0", *with_key("run.key"))
    wait_listening(ports[0])
    strangers = Strangers(scene)
    try:
        for mode in MODES:
            process = strangers.send(ports[0], mode, 1, 0)
            said, why = process.communicate(timeout=120)
            check("connected" not in said, f"{mode} was accepted: {said!r} {why!r}")
        second = start(scene, experiment, 1, roster, "out1", *with_key("run.key"))
        ended = [second.wait(60), first.wait(60)]
    finally:
        strangers.end()
    check_both(scene, experiment, ended)
    check("shows no key" in first.out, repr(first.out))


def who_has_the_key_and_misbehaves_changes_nothing(scene):
    """In each manner that stranger.c knows, as either agent, before its neighbour comes, while both
    train, and until both have ended."""
    make_keys(scene, "run.key")
    long = {"rounds": 4000, "record__every": 1000, "transport__connect_timeout_s": 60}
    experiment = scene.experiment(**{**PAIR, **SEALED, **long})
    ports = free_ports(2)
    roster = write_roster(scene, "roster", ports)
    own = ("--run-id", str(RUN_ID), *with_key("run.key"))
    key = (scene.path("run.key"), str(RUN_ID))
    agents = [start(scene, experiment, 0, roster, "out0", *own)]
    wait_listening(ports[0])
    strangers = Strangers(scene)
    try:
        sent = [strangers.send(ports[0], "keyed", 1, 0, *key)]
        check(sent[0].stdout.readline() == "connected\n", "the agent does not let greet")
        agents[0].wait_for("HELLO names another incarnation than its greeting")
        agents[0].wait_for("unsupported protocol")  # TLS 1.2
        agents.append(start(scene, experiment, 1, roster, "out1", *own))
        wait_listening(ports[1])
        sent.append(strangers.send(ports[1], "keyed", 0, 1, *key))
        ended = [agent.wait(120) for agent in agents]
        for process in sent:
            said, why = process.communicate(timeout=120)
            check(" frames" in said, f"{said!r} {why!r}")
    finally:
        strangers.end()
    check_both(scene, experiment, ended)
    for words in ("its clock is 120 s behind", "another run id", "did not prove itself"):
        check(words in ended[0].out, f"{words!r} is missing in {ended[0].out!r}")


def start_as(scene, experiment, rank, ports, out, pins, extra):
    roster = write_roster(scene, f"roster-{out}", ports, pins)
    return start(scene, experiment, rank, roster, out, "--run-id", str(RUN_ID), *extra)


def who_has_a_living_ranks_key_does_not_replace_it(scene):
    """A second process of rank 1, with its key or its pair, while the first one trains."""
    make_keys(scene, "run.key")
    pins = make_nodes(scene, 2)
    long = {**PAIR, **SEALED, "rounds": 6000, "record__every": 2000}
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
        agents[0].wait_for("round 2000/")
        places = (ports[0], other)
        second = start_as(scene, impatient, 1, places, f"{way}-again", fingerprints, extra[1])
        second.wait(60).check_refused("did not come up", code=1)
        for agent in agents:
            agent.wait(60).check_well()
        check_models(scene, experiment, [f"{way}0", f"{way}1"])
        shutil.rmtree(scene.path("sim"))


def forms_of(key):
    """A run's key as text, as bytes, and as base64 would have it, however it begins."""
    secret = re.search("[0-9a-f]{64}", key).group().encode()
    raw = bytes.fromhex(secret.decode())
    shifted = [base64.b64encode(raw[i:])[:24] for i in range(3)]
    return [secret, secret.upper(), raw, *shifted]


def check_nowhere(where, text, forms):
    for form in forms:
        check(form not in text, f"the key is in {where}")


def check_process(pid, forms):
    for name in ("cmdline", "environ"):
        check_nowhere(name, read_bytes(f"/proc/{pid}/{name}"), forms)


def check_files(scene, forms, but=""):
    for folder, _, files in os.walk(scene.folder):
        for name in files:
            path = os.path.join(folder, name)
            if name != but and os.path.isfile(path):
                check_nowhere(name, read_bytes(path), forms)


def keys_are_in_their_files_only(scene):
    make_keys(scene, "run.key")
    forms = forms_of(read_bytes(scene.path("run.key")).decode())
    experiment = scene.experiment(**PAIR, transport__connect_timeout_s=60, checkpoint__every=10)
    ports = free_ports(2)
    roster = write_roster(scene, "roster", ports)
    first = start(scene, experiment, 0, roster, "out0", *with_key("run.key"))
    wait_listening(ports[0])
    check_process(first.process.pid, forms)
    status, said = ask(scene.path("out0/status-0.sock"))
    check(status == 200 and b"neighbours" in said, said)
    check_nowhere("what its monitor answers", said, forms)
    second = start(scene, experiment, 1, roster, "out1", *with_key("run.key"))
    check_both(scene, experiment, [second.wait(60), first.wait(60)])
    check_files(scene, forms, but="run.key")


def dump_core(scene, experiment, roster, out, *extra):
    """Rank 0 listens, and crashes. The core file, if there is one."""
    before = set(os.listdir(scene.folder))
    limit = ("sh", "-c", 'ulimit -c unlimited && exec "$@"', "sh")
    agent = start(scene, experiment, 0, roster, out, *extra, wrapper=limit)
    wait_listening(int(read_bytes(roster).split()[0].split(b":")[1]))
    os.kill(agent.process.pid, signal.SIGSEGV)
    check(agent.wait(60).code == -signal.SIGSEGV, f"exit code {agent.code}")
    cores = [name for name in set(os.listdir(scene.folder)) - before if name.startswith("core")]
    return scene.path(cores[0]) if cores else None


def who_has_a_key_leaves_no_core(scene):
    make_keys(scene, "run.key")
    experiment = scene.experiment(**PAIR, transport__connect_timeout_s=60)
    roster = write_roster(scene, "roster", free_ports(2))
    core = dump_core(scene, experiment, roster, "open")
    if core is None:
        return "no core files appear here"
    os.remove(core)
    core = dump_core(scene, experiment, roster, "keyed", *with_key("run.key"))
    check(core is None, "an agent with a key has left a core file")


def hand_over(scene, experiment, rank, key):
    """An agent as `starling run` starts it, which is told its run id and its key; and the pipe."""
    ours, theirs = socket.socketpair()
    os.set_inheritable(theirs.fileno(), True)
    agent = subprocess.Popen(
        [scene.starling, "agent", experiment, "--rank", str(rank), "--report-fd"]
        + [str(theirs.fileno()), "--out", scene.path("run")],
        cwd=scene.folder,
        pass_fds=[theirs.fileno()],
        start_new_session=True,
    )
    theirs.close()
    ours.sendall(RUN_ID.to_bytes(8, sys.byteorder) + key)
    ours.settimeout(60)
    ours.recv(1)  # it has begun to say where it listens
    return agent, ours


def what_run_hands_over_stays_with_its_agents(scene):
    key = b"starling run key 1 " + os.urandom(32).hex().encode() + b"\n"
    forms = forms_of(key.decode())
    experiment = scene.experiment(**PAIR)
    os.mkdir(scene.path("run"))
    agent, pipe = hand_over(scene, experiment, 0, key)
    try:
        check_process(agent.pid, forms)
        check_nowhere("what it reports", pipe.recv(1 << 16), forms)
    finally:
        pipe.close()
        agent.kill()
        agent.wait()
    check_files(scene, forms)


def strangers_get_no_word_of_a_run_without_security(scene):
    """`starling run` makes a key for its agents, and not where security.mode is none."""
    for mode, word in (("auto", "shows no key"), ("none", "calls itself agent")):
        experiment = scene.experiment(
            rounds=40, security__mode=mode, transport__connect_timeout_s=60
        )
        running = scene.start("run", experiment, "--out", scene.path(mode))
        until = time.monotonic() + 120
        while 7 not in (agents := scene.agents()):
            check(time.monotonic() < until, "no agents")
        os.kill(agents[7], signal.SIGSTOP)  # no roster until it goes on
        strangers = Strangers(scene)
        try:
            while not (ports := listening_ports(agents[0])):
                check(time.monotonic() < until, "agent 0 does not listen")
                time.sleep(0.02)
            stranger = strangers.send(ports[0], "hello", 1, 0)
            time.sleep(1)
            os.kill(agents[7], signal.SIGCONT)
            running.wait(60).check_well()
            said, why = stranger.communicate(timeout=120)
        finally:
            strangers.end()
        accepted = "connected" in said
        check(accepted == (mode == "none"), f"{mode}: {said!r} {why!r}")
        check(word in running.out, f"{word!r} is missing in {running.out!r}")
    first, second = (read_bytes(scene.path(f"{mode}/model-0.npy")) for mode in ("auto", "none"))
    check(first == second, "the key changes the model")


def key_files_that_others_may_read_are_refused(scene):
    make_keys(scene, "run.key")
    experiment = scene.experiment(**PAIR)
    roster = write_roster(scene, "roster", free_ports(2))
    os.symlink("run.key", scene.path("link.key"))
    scene.write("short.key", read_bytes(scene.path("run.key")).decode()[:50])
    scene.write("other.key", "another program's key".ljust(83, ".") + "\n")
    form = ("is not a run's key of 84 bytes", "starling keys make")
    for name, mode, words in (
        ("short.key", 0o600, ("short.key", *form, "it has 50")),
        ("other.key", 0o600, ("other.key", "is not a run's key")),
        ("run.key", 0o644, ("run.key", "chmod 600")),
        ("link.key", 0o600, ("link.key", "symbolic link")),
        ("none.key", None, ("none.key", "No such file")),
    ):
        if mode is not None:
            os.chmod(scene.path(name), mode)
        ended = start(scene, experiment, 0, roster, "out0", *with_key(name)).wait(60)
        ended.check_refused(*words)


def check_says_who_may_take_part(scene):
    make_keys(scene, "run.key")
    bare, sealed = scene.experiment(**PAIR), scene.experiment("s.json", **PAIR, **SEALED)
    for experiment, extra, words in (
        (bare, (), "every process of this host"),
        (bare, (), "starling run        makes a key of its own"),
        (bare, ("--set", "security.trusted_network=true"), "whoever reaches"),
        (bare, with_key("run.key"), "AES-256-GCM beyond loopback"),
        (sealed, with_key("run.key"), "TLS 1.3 with the run's key"),
    ):
        said = scene.call("check", experiment, *extra)
        check(said.code == 0 and words in said.out, f"{words!r} is missing in {said.out!r}")
    os.chmod(scene.path("run.key"), 0o604)
    scene.call("check", bare, *with_key("run.key")).check_refused("chmod 600")


def neighbours_of_one_address_all_come_in_at_once(scene):
    """Six dial an agent that is stopped; it hears of all in one moment, before any has proved
    itself."""
    count = 7
    pins, ports = make_nodes(scene, count), free_ports(count)
    roster = write_roster(scene, "roster", ports, pins)
    star = {**PAIR, "topology": {"nodes": count, "family": "star"}}
    experiment = scene.experiment(**star, transport__connect_timeout_s=60)
    agents = [start(scene, experiment, 0, roster, "out0", *with_pair("node-0"))]
    wait_listening(ports[0])
    os.kill(agents[0].process.pid, signal.SIGSTOP)
    for i in range(1, count):
        agents.append(start(scene, experiment, i, roster, f"out{i}", *with_pair(f"node-{i}")))
        agents[i].wait_for("listening")
    time.sleep(1)
    os.kill(agents[0].process.pid, signal.SIGCONT)
    for agent in agents:
        agent.wait(60).check_well()
    check("have not proved themselves" not in agents[0].out, agents[0].out)


def many_connections_keep_nobody_out(scene):
    """One after the other, as fast as one process can, while two agents meet."""
    make_keys(scene, "run.key")
    experiment = scene.experiment(**PAIR, transport__connect_timeout_s=60)
    ports = free_ports(2)
    roster = write_roster(scene, "roster", ports)
    first = start(scene, experiment, 0, roster, "out0", *with_key("run.key"))
    wait_listening(ports[0])
    second, count, until = None, 0, time.monotonic() + 120
    while (second is None or second.process.poll() is None) and time.monotonic() < until:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", ports[0])) == 0 and count % 3 > 0:
                one.send(b"garbage" * (count % 3))
        count += 1
        if count == 300:
            second = start(scene, experiment, 1, roster, "out1", *with_key("run.key"))
    check_both(scene, experiment, [second.wait(60), first.wait(60)])


if __name__ == "__main__":
    run_tests(
        [
            a_key_changes_no_number,
            certificates_change_no_number,
            without_the_same_key_nobody_comes_in,
            another_certificate_is_named,
            an_expired_certificate_is_refused,
            what_is_on_the_wire_says_nothing,
            who_flips_bits_on_the_way_costs_connections_only,
            who_holds_the_wire_costs_connections_only,
            who_was_heard_is_not_repeated,
            strangers_get_no_word_of_the_run,
            who_has_the_key_and_misbehaves_changes_nothing,
            who_has_a_living_ranks_key_does_not_replace_it,
            keys_are_in_their_files_only,
            who_has_a_key_leaves_no_core,
            what_run_hands_over_stays_with_its_agents,
            strangers_get_no_word_of_a_run_without_security,
            key_files_that_others_may_read_are_refused,
            check_says_who_may_take_part,
            many_connections_keep_nobody_out,
            neighbours_of_one_address_all_come_in_at_once,
        ]
    )
