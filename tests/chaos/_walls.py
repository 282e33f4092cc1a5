"""Agents in network namespaces on one bridge. Needs root and iproute2."""
import os
import shutil
import subprocess

from _scene import needs


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def has_net():
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    return subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode == 0


class Net:
    """`with Net(count) as net`: what it makes is gone afterwards."""

    network = "10.83.0"

    def __init__(self, count):
        self.count, self.spaces = count, []
        self.prefix = f"starling-{os.getpid()}-"  # of the namespaces' names
        self.switch = self.prefix + "switch"

    def __enter__(self):
        needs(has_net(), "namespaces need root, iproute2, and leave")
        try:
            self.add_space(self.switch)
            self.open_switch()
            for rank in range(self.count):
                space, card = self.space(rank), self.card(rank)
                self.add_space(space)
                self.plug_in(rank, space, card)
                ip("-n", space, "addr", "add", self.address(rank) + "/24", "dev", card)
                ip("-n", space, "link", "set", "lo", "up")
                ip("-n", space, "link", "set", card, "up")
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

    def open_switch(self):
        ip("-n", self.switch, "link", "add", "bridge0", "type", "bridge")
        ip("-n", self.switch, "link", "set", "bridge0", "up")

    def plug_in(self, rank, space, card):
        port = f"port{rank}"
        veth = ["type", "veth", "peer", "name", port, "netns", self.switch]
        ip("link", "add", card, "netns", space, *veth)
        ip("-n", self.switch, "link", "set", port, "master", "bridge0", "up")

    def space(self, rank):
        return f"{self.prefix}{rank}"

    def card(self, rank):
        return "veth0"

    def address(self, rank):
        return f"{self.network}.{rank + 1}"

    def wrapper(self, rank):
        """What a command begins with to run there."""
        return ["ip", "netns", "exec", self.space(rank)]
