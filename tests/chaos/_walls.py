"""Agents in network namespaces on one bridge, and walls between neighbours: rules of nftables that
answer segments with a reset, or drop them. A wall in one direction leaves a connection half-open.
Needs root, iproute2 and nftables."""
import os
import random
import re
import shutil
import subprocess
import threading
import time

DEEDS = {"reset": "reject with tcp reset", "drop": "drop"}
KINDS = [f"{deed}, {sides}" for deed in DEEDS for sides in ("one way", "both ways")]
PARTS = "tcp flags & rst == 0 counter reject with tcp reset"  # and let answers of the other side in
STANDS_S = {"reset": (0.1, 0.4), "drop": (0.5, 2)}  # least and most


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def why_not():
    """Why namespaces cannot be used here; None: they can."""
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("nft") is None:
        return "walls need root, iproute2 and nftables"
    tried = subprocess.run(
        ["unshare", "-n", "nft", "add table inet walls"], capture_output=True, check=False
    )
    return None if tried.returncode == 0 else "namespaces or nftables are not allowed here"


class Net:
    """`with Net(count) as net`: what it makes is gone afterwards."""

    def __init__(self, count):
        self.count, self.spaces = count, []

    def __enter__(self):
        try:
            self.open()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for space in self.spaces:
            subprocess.run(["ip", "netns", "del", space], check=False)

    def add_space(self, name):
        ip("netns", "add", name)
        self.spaces.append(name)

    def open(self):
        switch = f"starling-{os.getpid()}-switch"
        self.add_space(switch)
        ip("-n", switch, "link", "add", "bridge0", "type", "bridge")
        ip("-n", switch, "link", "set", "bridge0", "up")
        for rank in range(self.count):
            space, port = self.space(rank), f"port{rank}"
            self.add_space(space)
            veth = ["type", "veth", "peer", "name", port, "netns", switch]
            ip("link", "add", "veth0", "netns", space, *veth)
            ip("-n", switch, "link", "set", port, "master", "bridge0", "up")
            ip("-n", space, "addr", "add", self.address(rank) + "/24", "dev", "veth0")
            ip("-n", space, "link", "set", "lo", "up")
            ip("-n", space, "link", "set", "veth0", "up")
            chains = [
                f"chain from_{other} {{\n type filter hook input priority 0\n }}\n"
                for other in range(self.count)
            ]
            self.nft(rank, f"table inet walls {{\n{''.join(chains)}}}\n")

    def space(self, rank):
        return f"starling-{os.getpid()}-{rank}"

    def address(self, rank):
        return f"10.83.0.{rank + 1}"

    def wrapper(self, rank):
        """What a command begins with to run there."""
        return ["ip", "netns", "exec", self.space(rank)]

    def nft(self, rank, rules):
        command = [*self.wrapper(rank), "nft", "-f", "-"]
        done = subprocess.run(command, input=rules, check=True, text=True, capture_output=True)
        return done.stdout

    def build(self, rank, to, deed):
        """A reset goes back to the sender: the receiver does not hear of it."""
        rule = f"ip saddr {self.address(rank)} meta l4proto tcp counter {DEEDS[deed]}"
        self.nft(to, f"add rule inet walls from_{rank} {rule}\n")

    def part(self, side, but=()):
        """Who is on this side and all others reach each other no more, and hear so at once; `but`
        are on both sides."""
        for to, rank in self.between(side, but):
            self.nft(to, f"add rule inet walls from_{rank} ip saddr {self.address(rank)} {PARTS}\n")

    def heal(self, side, but=()):
        for to, rank in self.between(side, but):
            self.tear_down(rank, to)

    def between(self, side, but):
        ranks = [rank for rank in range(self.count) if rank not in but]
        return [(a, b) for a in ranks for b in ranks if (a in side) != (b in side)]

    def tear_down(self, rank, to):
        """How many segments the wall has stopped."""
        chain = f"chain inet walls from_{rank}"
        listed = self.nft(to, f"list {chain}\nflush {chain}\n")
        return sum(int(packets) for packets in re.findall(r"packets (\d+)", listed))


class Walls:
    """Builds walls on all edges of a ring at random times, until `cuts` have stopped something."""

    def __init__(self, net, seed, cuts):
        self.net, self.seed, self.left = net, seed, cuts
        self.made = dict.fromkeys(KINDS, 0)
        self.lock, self.ending = threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self.work, args=[i]) for i in range(net.count)]

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.ending.set()
        for thread in self.threads:
            thread.join()

    def work(self, rank):
        chance = random.Random(self.seed * self.net.count + rank)
        while self.left > 0 and not self.ending.is_set():
            self.cut(rank, chance)
            self.ending.wait(chance.uniform(0, 0.8))

    def cut(self, rank, chance):
        kind = chance.choice(KINDS)
        deed, sides = kind.split(", ")
        ends = [rank, (rank + 1) % self.net.count]
        chance.shuffle(ends)
        ways = [ends, ends[::-1]] if sides == "both ways" else [ends]
        for way in ways:
            self.net.build(*way, deed)
        time.sleep(chance.uniform(*STANDS_S[deed]))
        stopped = sum([self.net.tear_down(*way) for way in ways])
        with self.lock:
            if stopped > 0 and self.left > 0:
                self.left -= 1
                self.made[kind] += 1
