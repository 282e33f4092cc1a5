#!/usr/bin/env python3
"""A key stays in its file; test_keys has how that is made and read."""
import base64
import os
import re
import signal
import socket
import subprocess
import struct

from _scene import check, needs, read_bytes, run_tests
from _keyed import RUN_ID, make_keys, with_key, check_both
from _ports import free_ports
from by_hand import PAIR
from watchers import page
from strangers import start, wait_listening


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
    roster = scene.roster(ports)
    first = start(scene, experiment, 0, roster, "out0", *with_key("run.key"))
    wait_listening(ports[0])
    check_process(first.process.pid, forms)
    first.wait_for("come up: 1 (")  # its monitor is open by then
    status, said = page(scene.path("out0/status-0.sock"))
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
    agent.ends(-signal.SIGSEGV, 60)
    cores = [name for name in set(os.listdir(scene.folder)) - before if name.startswith("core")]
    return scene.path(cores[0]) if cores else None


def who_has_a_key_leaves_no_core(scene):
    make_keys(scene, "run.key")
    experiment = scene.experiment(**PAIR, transport__connect_timeout_s=60)
    roster = scene.roster(free_ports(2))
    core = dump_core(scene, experiment, roster, "open")
    needs(core is not None, "no core files appear here")
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
    port = 0  # anywhere
    ours.sendall(struct.pack("@QHxxxxxx", RUN_ID, port) + key)
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


def a_roster_holds_what_was_printed(scene):
    lines, places = [], []
    for rank in range(3):
        name, place = scene.path(f"node-{rank}"), f"10.0.0.{rank + 1}:7400"
        made = scene.call("keys", "make", "--node", "-o", name)
        check(re.fullmatch("sha256:[0-9a-f]{64}\n", made.out), repr(made.out))
        lines.append(f"{rank} {place} {made.out}")
        places.append(f"{place}={name}.crt")
    printed = scene.call("keys", "roster", *places)
    check(printed.out == "".join(lines), f"{printed.out!r}, {printed.err!r}")
    places[2] = f"10.0.0.1:7400={scene.path('node-2')}.crt"
    scene.call("keys", "roster", *places).check_refused("ranks 0 and 2")
    scene.call("keys", "roster", "10.0.0.1:7400").check_refused("HOST:PORT=CERTIFICATE")
    for wrong in ("node-0.key", "none.crt"):
        scene.call("keys", "roster", "h:1=" + scene.path(wrong)).check_refused(wrong)


WITHOUT_TLS_1_3 = """openssl_conf = all
[all]
ssl_conf = ssl
[ssl]
system_default = versions
[versions]
Protocol = ALL, -TLSv1.3
"""


def an_openssl_without_tls_1_3_is_named(scene):
    """Here its configuration forbids it. One that was built without says the same."""
    make_keys(scene, "run.key")
    experiment = scene.experiment(**PAIR)
    roster = scene.roster(free_ports(2))
    less = ("env", "OPENSSL_CONF=" + scene.write("less.cnf", WITHOUT_TLS_1_3))
    words = ("OpenSSL 3", "does not offer TLS 1.3", "openssl.cnf", 'security.mode "none"')
    ended = start(scene, experiment, 0, roster, "out0", *with_key("run.key"), wrapper=less)
    ended.wait(60).check_refused(*words)
    run = ("run", experiment, "--out")
    ended = scene.start(*run, scene.path("run"), wrapper=less).wait(60)
    check(ended.code == 1 and all(word in ended.err for word in words), ended.err)
    without = (scene.path("without"), "--set", "security.mode=none")
    scene.start(*run, *without, wrapper=less).wait(60).check_well()


if __name__ == "__main__":
    run_tests()
