"""Agents in network namespaces on one bridge, and walls between them: rules of nftables that answer
segments with a reset. Needs root, iproute2 and nftables."""
import os
import shutil
import subprocess

PARTS = "tcp flags & rst == 0 counter reject with tcp reset"  # and let answers of the other side in


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def why_no_net():
    """Why namespaces cannot be used here; None: they can."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "namespaces need root, and iproute2"
    tried = subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False)
    return None if tried.returncode == 0 else "no namespaces are allowed here"


def why_no_walls():
    if shutil.which("nft") is None:
        return "walls need nftables"
    rules = ["unshare", "-n", "nft", "add table inet walls"]
    tried = subprocess.run(rules, capture_output=True, check=False)
    return why_no_net() or (None if tried.returncode == 0 else "no nftables are allowed here")


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

    def space(self, rank):
        return f"starling-{os.getpid()}-{rank}"

    def address(self, rank):
        return f"10.83.0.{rank + 1}"

    def wrapper(self, rank):
        """What a command begins with to run there."""
        return ["ip", "netns", "exec", self.space(rank)]

    def add_walls(self):
        """Without stones yet."""
        chain = "chain from_{} {{\n type filter hook input priority 0\n }}\n"
        chains = "".join(chain.format(rank) for rank in range(self.count))
        for rank in range(self.count):
            self.nft(rank, f"table inet walls {{\n{chains}}}\n")

    def nft(self, rank, rules):
        command = [*self.wrapper(rank), "nft", "-f", "-"]
        subprocess.run(command, input=rules, check=True, text=True, capture_output=True)

    def part(self, side):
        """Who is on this side and all others reach each other no more, and hear so at once."""
        for to, rank in self.between(side):
            self.nft(to, f"add rule inet walls from_{rank} ip saddr {self.address(rank)} {PARTS}\n")

    def heal(self, side):
        for to, rank in self.between(side):
            self.nft(to, f"flush chain inet walls from_{rank}\n")

    def between(self, side):
        ranks = range(self.count)
        return [(a, b) for a in ranks for b in ranks if (a in side) != (b in side)]
