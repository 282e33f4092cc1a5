#!/usr/bin/env python3
"""`starling doctor`: what goes wrong in the field is planted, one thing at a time, and named, and
nothing else is; of a healthy host nothing is.

Networks are namespaces; packets are lost by what iproute2 alone can do."""
import json
import os
import platform
import socket
import subprocess
import threading
import time

from _ca import Authority
from _keyed import make_keys, make_nodes, with_key, with_pair
from _limits import few_cores, little_memory, set_clock
from _ports import free_ports, free_range
from _scene import check, needs, run_tests
from _walls import Net, has_net, ip

ALONE = {"rounds": 2, "topology": {"nodes": 1, "family": "complete"}}
PAIR = {"rounds": 2, "topology": {"nodes": 2, "family": "ring"}}
LARGE = {"model": {"name": "mlp", "hidden": [8000, 8000]}}
LINK = {"bandwidth_mbit": 1, "gradient_ms": 1}
DAY_S = 86400
with open("/proc/cpuinfo") as cpuinfo:
    OLD = [] if " avx2" in cpuinfo.read() or platform.machine() != "x86_64" else ["warn processor"]
if not OLD:  # a processor that is newer than OpenBLAS is no fault of this host
    os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")
REFUSED = "warn reach"  # nobody else is there yet
TRUSTED = ("--set", "security.trusted_network=true")


def doctor(scene, *extra, wrapper=(), **changes):
    path = scene.experiment(**{**ALONE, **changes})
    return scene.start("doctor", path, *extra, wrapper=wrapper)


def expect(running, names, *words):
    """It names these, and no others: "FAIL key", "warn clock". `words` are in what it says."""
    running.wait(60)
    rows = [line for line in running.out.splitlines() if line.startswith(("warn ", "FAIL "))]
    said = sorted(row.split(": ")[0] for row in rows)
    names = [*names, *OLD]
    check(said == sorted(names), f"{names} was planted, {said} is named: {running.said!r}")
    for word in words:
        check(any(word in row for row in rows), f"{word!r} is missing: {rows}")
    code = int(any(name.startswith("FAIL") for name in names))
    check(running.code == code, f"exit code {running.code}: {running.said!r}")


def places(scene, *hosts, ports=None, pins=("", "")):
    rows = zip(hosts, ports or free_ports(len(hosts)), pins)
    rows = [f"{host}:{port} {pin}\n" for host, port, pin in rows]
    return "--roster", scene.write("roster", "".join(rows))


def here(scene, **more):
    """Two ranks that share no host's name."""
    return places(scene, "127.0.0.1", "127.0.0.2", **more)


def start_pair(scene, roster, *extra, wrappers=((), ()), before_second=None, **changes):
    both = []
    for rank in (0, 1):
        if rank == 1 and before_second:
            before_second()
        words = (*roster, "--rank", str(rank), "--wait", "20", *extra)
        both.append(doctor(scene, *words, wrapper=wrappers[rank], **{**PAIR, **changes}))
    return both


# ---- healthy ----


def a_healthy_host_has_nothing_named(scene):
    expect(scene.start("doctor"), [])
    expect(doctor(scene), [])
    make_keys(scene, "run.key")
    for running in start_pair(scene, here(scene), *with_key("run.key"), network=LINK):
        expect(running, [])
    told = scene.call("doctor", "--json")
    all_of_it = json.loads(told.out)
    check(all_of_it["healthy"] and told.code == 0, told.out)
    check({row["verdict"] for row in all_of_it["checks"]} == {"ok"}, told.out)


def launched(scene, rank, *extra):
    """As a launcher says it, without a roster."""
    scene.port = getattr(scene, "port", None) or free_ports(1)[0]
    master = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(scene.port)}
    scene.environment = {"RANK": str(rank), "WORLD_SIZE": "2", **master}
    return doctor(scene, *extra, **PAIR)


def launchers(scene):
    """Rank 0 tells the others where all are."""
    for running in [launched(scene, rank, "--wait", "30") for rank in (0, 1)]:
        expect(running, [])
    expect(launched(scene, 1, "--wait", "1"), ["FAIL rendezvous"], "rank 0")


def an_agent_in_its_place_is_no_fault(scene):
    """It says nothing to a stranger."""
    ports = free_ports(2)
    roster = here(scene, ports=ports)
    agent = scene.agent(scene.experiment(**PAIR), 1, roster[1])
    agent.wait_for("listening on port")
    expect(doctor(scene, *roster, "--rank", "0", **PAIR), [])
    own = doctor(scene, *roster, "--rank", "1", **PAIR)
    expect(own, ["FAIL listen", REFUSED], "in use", "ss -ltnp")
    agent.process.terminate()
    agent.wait(20)


def strangers_hold_nobody_up(scene):
    """More than it hears at a time, silent or not, and no word of theirs is believed."""
    ports = free_ports(2)
    roster = here(scene, ports=ports)
    first = doctor(scene, *roster, "--rank", "0", "--wait", "60", **PAIR)
    first.wait_for("ok   listen")
    crowd = [socket.create_connection(("127.0.0.1", ports[0])) for _ in range(80)]
    for i, one in enumerate(crowd[:40]):
        one.sendall((b"starling doctor 1 rank 99999999999 time 1 ", b"\n", b"x" * 4000)[i % 3])
    expect(doctor(scene, *roster, "--rank", "1", "--wait", "60", **PAIR), [])
    expect(first, [])
    for one in crowd:
        one.close()


# ---- faults of a host ----

FAULTS = (  # what is named, a word of it, what is planted: keys, or variables, or a wrapper
    ("FAIL provider", "RDMA", {"transport__provider": "verbs"}),
    ("FAIL device", "nowhere.so", {"device": "cuda:0", "STARLING_PLUGIN": "nowhere.so"}),
    ("FAIL descriptors", "ulimit -n", {"wrapper": ["prlimit", "--nofile=30:30"]}),
    (
        "FAIL address space",
        "ulimit -v",
        {"wrapper": ["prlimit", f"--as={400 << 20}"], "OPENBLAS_NUM_THREADS": "1", **LARGE},
    ),
    (
        "warn cores",
        "2 agents will share 1",
        {"wrapper": ["taskset", "-c", str(min(os.sched_getaffinity(0)))], **PAIR},
    ),
    ("warn processor", "STARLING_KERNELS=plain", {"STARLING_KERNELS": "plain"}),
    ("warn OpenBLAS", "OPENBLAS_CORETYPE=Prescott", {"OPENBLAS_CORETYPE": "Prescott"}),
    (
        "FAIL disk",
        "Input/output error",
        {
            "preload": "failing_disk",
            "STARLING_DISK": "doctor",
            "STARLING_DISK_CALL": "sync",
            "STARLING_DISK_AT": "1",
            "STARLING_DISK_WHY": "5",
        },
    ),
    (
        "warn disk",
        "checkpoint.every",
        {
            "checkpoint": {"every": 1},
            "network": {"bandwidth_mbit": 1e6, "gradient_ms": 0.001},
            "model": {"name": "mlp", "hidden": [2000]},
        },
    ),
    (
        "FAIL deadlines",
        "round_timeout_s",
        {"network": {**LINK, "gradient_ms": 900}, "transport__round_timeout_s": 0.5},
    ),
    (
        "FAIL silence",
        "chunk_bytes",
        {"network": {**LINK, "latency_ms": 400}, "transport__timeout_s": 0.5},
    ),
    ("FAIL experiment", "nowhere", {"data": {"name": "mnist", "path": "nowhere"}}),
    ("FAIL key", "no.key", {"security__key": "no.key"}),
    ("FAIL key", "chmod 600", {"security__key": "open.key"}),
    ("FAIL loopback", "ip link set lo up", {"wrapper": ["unshare", "-n"]}),
)


def each_fault_of_a_host_is_named(scene):
    make_keys(scene, "open.key")
    os.chmod(scene.path("open.key"), 0o644)
    for name, word, planted in FAULTS:
        if planted.get("wrapper") == ["unshare", "-n"] and not has_net():
            continue
        if name in ("warn processor", "warn OpenBLAS") and (OLD or platform.machine() != "x86_64"):
            continue
        changes = dict(planted)
        scene.environment = {key: changes.pop(key) for key in planted if key.isupper()}
        if "preload" in changes:
            scene.preload(changes.pop("preload"))
        expect(doctor(scene, **changes), [name], word)


def locked_memory(scene):
    """Of a provider that needs it, and is not here either."""
    wrapper = ["prlimit", "--memlock=4096:4096"]
    if os.geteuid() == 0:
        wrapper = ["setpriv", "--bounding-set=-ipc_lock", *wrapper]
    running = doctor(scene, transport__provider="verbs", wrapper=wrapper)
    expect(running, ["FAIL provider", "FAIL locked memory"], "ulimit -l")


def limits_of_a_nested_group(scene):
    with few_cores(1.5) as wrapper:
        expect(doctor(scene, wrapper=wrapper, **PAIR), ["warn cores"], "2 agents will share 1.5")
    with little_memory(200) as wrapper:
        expect(doctor(scene, wrapper=wrapper, **LARGE), ["FAIL memory"], "memory.max", "209.7 MB")


MOUNTED = 'mount -t tmpfs -o "$1" tmpfs "$0" && shift && exec "$@"'


def disks(scene):
    os.mkdir(scene.path("disk"))
    wrapper = ["unshare", "-m", "sh", "-c", MOUNTED, scene.path("disk")]
    tried = subprocess.run([*wrapper, "ro", "true"], capture_output=True, check=False)
    needs(tried.returncode == 0, "mounts need root")
    for name, word, options, changes in (
        ("FAIL disk space", "4.2 MB", "size=4m", {}),
        ("FAIL disk space", "keep", "size=300m", {"checkpoint": {"every": 1, "keep": 3}, **LARGE}),
        ("FAIL disk space", "more files", "nr_inodes=8", {}),
        ("FAIL disk", "Read-only", "ro", {}),
    ):
        out = ("--out", scene.path("disk/run"))
        expect(doctor(scene, *out, wrapper=[*wrapper, options], **changes), [name], word)


def a_folder_with_another_run(scene):
    scene.call("sim", scene.experiment(**PAIR), "--out", scene.path("run")).check_well()
    running = doctor(scene, "--out", scene.path("run"), seed=9)
    expect(running, ["warn run folder"], scene.path("run"))


# ---- certificates ----


def pinned_ones(scene):
    pins = make_nodes(scene, 2)
    pair = (*with_pair("node-{rank}"), "--rank", "0")
    for name, word, days, said in (
        ("FAIL certificate", "has expired", 3651, pins),
        ("FAIL certificate", "not valid yet", -2, pins),
        ("warn certificate", "ends soon", 3645, pins),
        ("FAIL certificate", "the roster names", 0, pins[::-1]),
        ("FAIL certificate", "revokes", 0, ("revoked", pins[1])),
    ):
        set_clock(scene, days * DAY_S)
        expect(doctor(scene, *here(scene, pins=said), *pair, **PAIR), [name, REFUSED], word)
    set_clock(scene, 3651 * DAY_S)
    agent = scene.start("agent", scene.experiment(**PAIR), *here(scene, pins=pins), *pair)
    agent.wait(30).check_refused("others would refuse agent 0: its certificate", "expired", code=1)


def those_of_a_ca(scene):
    ca = Authority(scene, "ca")
    words = (*with_pair("node-{rank}"), *ca.trusted(), "--rank")

    def look(name, rank, *said):
        running = doctor(scene, *here(scene), *words, str(rank), **PAIR)
        expect(running, [name, REFUSED], *said)

    ca.make(0, "node-1")
    look("FAIL certificate", 1, "starling rank 1")
    ca.make(0)
    ca.revoke("node-0.crt")
    look("FAIL certificate", 0, "is revoked")
    ca.list("-crlsec", "1")
    time.sleep(2)
    look("FAIL CA", 0, "has ended", "gencrl")


# ---- rosters and ports ----


def rosters(scene):
    expect(doctor(scene, *here(scene), "--rank", "0"), ["FAIL roster"], "topology.nodes")
    words = (*places(scene, "127.0.0.1", "nowhere.invalid"), "--rank", "0")
    expect(doctor(scene, *words, **PAIR), ["FAIL names"], "rank 1", "DNS")
    expect(doctor(scene, *here(scene), **PAIR), ["warn roster", REFUSED], "--rank")


def pages(scene):
    """The last rank's port is taken; two agents of a host would share one."""
    base = free_range(2, 10)
    listen = f"127.0.0.1:{base // 10}{{rank}}"
    expect(doctor(scene, monitor__listen=listen, **PAIR), [])
    with socket.create_server(("127.0.0.1", base + 1)):
        running = doctor(scene, monitor__listen=listen, **PAIR)
        expect(running, ["FAIL page"], f"port {base + 1}", "in use", "ss -ltnp")
    roster = (*places(scene, "127.0.0.1", "127.0.0.1"), "--rank", "0")
    running = doctor(scene, *roster, monitor__listen=f"127.0.0.1:{base}", **PAIR)
    expect(running, ["FAIL page", REFUSED], "{rank}")


def addresses(scene):
    """Without ways to anywhere, so that no router is asked."""
    with Net(1) as net:
        own, other = net.address(0), net.address(1)
        for hosts, rank, options, word, reach in (
            ((other, own), "0", TRUSTED, "no address of this host", REFUSED),
            ((own, other), "0", (), "starling keys make", "FAIL reach"),
            (("127.0.0.1", own), "1", TRUSTED, "its own host only", REFUSED),
        ):
            words = (*places(scene, *hosts, ports=(7000, 7001)), "--rank", rank, *options)
            running = doctor(scene, *words, wrapper=net.wrapper(0), **PAIR)
            expect(running, ["FAIL listen", reach], word)


# ---- others ----


def nobody_comes(scene):
    words = (*here(scene), "--rank", "0", "--wait", "1")
    expect(doctor(scene, *words, **PAIR), ["FAIL reach"], "rank 1", "refused")


def clocks(scene):
    pair = start_pair(scene, here(scene), before_second=lambda: set_clock(scene, 40))
    expect(pair[0], ["warn clock"], "rank 1", "ahead", "NTP")
    expect(pair[1], ["warn clock"], "rank 0", "behind")
    scene.environment = {}
    roster = (*here(scene, pins=make_nodes(scene, 2)), *with_pair("node-{rank}"))
    pair = start_pair(scene, roster, before_second=lambda: set_clock(scene, -3 * DAY_S))
    expect(pair[0], ["FAIL clock"], "rank 1", "not valid")
    expect(pair[1], ["FAIL certificate", "warn clock"], "not valid yet")


def answer(listener, line):
    """What a doctor does for one who calls."""
    other, _ = listener.accept()
    with other:
        other.recv(128)
        other.sendall(line.encode())
        left = 1 << 16
        while left > 0:
            left -= len(other.recv(left))
        other.sendall(bytes(1 << 16))


def other_releases_and_ranks(scene):
    """Rank 1 is played by this process."""
    _, version, _, protocol = scene.call("--version").out.strip(")\n").split()
    now = f"time {time.time_ns() // 1000}"
    for name, words in (
        ("FAIL release", f"rank 1 {now} protocol 13 version 0.1.9"),
        ("warn release", f"rank 1 {now} protocol {protocol} version 0.1.9"),
        ("FAIL ranks", f"rank 0 {now} protocol {protocol} version {version}"),
    ):
        with socket.create_server(("127.0.0.2", 0)) as other:
            line = f"starling doctor 1 {words}\n"
            threading.Thread(target=answer, args=(other, line), daemon=True).start()
            roster = here(scene, ports=[*free_ports(1), other.getsockname()[1]])
            expect(doctor(scene, *roster, "--rank", "0", **PAIR).wait(60), [name], "rank 1")


def lose_all(net):
    """What is sent goes to a card that is not there."""
    for rank in (0, 1):
        other, card = net.address(1 - rank), "02:00:00:00:00:99"
        ip("-n", net.space(rank), "neigh", "add", other, "lladdr", card, "dev", "veth0")


def shut(net, rank):
    """It answers nobody at its port."""
    port = str(7000 + rank)
    ip("-n", net.space(rank), "rule", "add", "ipproto", "tcp", "sport", port, "blackhole")


def lose_ways(net):
    for rank in (0, 1):
        ip("-n", net.space(rank), "route", "add", "unreachable", net.address(1 - rank))


def lose_large_packets(net):
    """A shaper with a bucket smaller than a packet, as a path with a smaller MTU and no ICMP."""
    shaper = ["tc", "-n", net.space(0), "qdisc", "add", "dev", "veth0", "root", "tbf"]
    subprocess.run([*shaper, "rate", "1gbit", "burst", "1200", "limit", "200000"], check=True)


# What is done to the network between two hosts, and what each of them names.
NETWORKS = (
    (lambda net: None, ([],), ([],)),
    (lose_all, *[(["FAIL reach"], "timed out", "firewall")] * 2),
    # The higher rank connects. The other way only helps to notice that a process has ended.
    (lambda net: shut(net, 0), (["FAIL heard"], "rank 1"), (["FAIL reach"], "timed out")),
    (
        lambda net: shut(net, 1),
        (["warn reach"], "not reached from here"),
        (["warn heard"], "rank 0"),
    ),
    (lose_ways, *[(["FAIL reach"], "No route", "ip route get")] * 2),
    (lose_large_packets, (["FAIL MTU"], "leave here"), (["FAIL MTU"], "come back")),
)


def networks_between_two_hosts(scene):
    cannot = ""
    for spoil, *expected in NETWORKS:
        with Net(2) as net:
            try:
                spoil(net)
            except (OSError, subprocess.CalledProcessError) as why:
                cannot = f"the kernel or its tools cannot do all: {why}"
                continue
            roster = places(scene, net.address(0), net.address(1), ports=(7000, 7001))
            wrappers = [net.wrapper(rank) for rank in (0, 1)]
            both = start_pair(scene, roster, *TRUSTED, "--wait", "6", wrappers=wrappers)
            for running, named in zip(both, expected):
                expect(running, *named)
    needs(not cannot, cannot)


if __name__ == "__main__":
    run_tests()
