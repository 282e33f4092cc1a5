"""Agents in network namespaces on one bridge. Needs root and iproute2."""
import os
import shutil
import subprocess


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def why_no_net():
    """Why namespaces cannot be used here; None: they can."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "namespaces need root, and iproute2"
    tried = subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False)
    return None if tried.returncode == 0 else "no namespaces are allowed here"


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
