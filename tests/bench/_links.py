"""Network namespaces, one for each process, joined by slow links (links.c)."""

import os
import subprocess

import _bench


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


class Links:
    """`with Links(...) as links`: count namespaces; what it makes is gone afterwards."""

    def __init__(self, build, count, mbit, delay_ms):
        self._command = [_bench.needed(build, "links"), str(count), str(mbit), str(delay_ms)]
        self._count, self._spaces, self._program = count, [], None
        self.prefix = f"starling-{os.getpid()}-"  # of the namespaces' names
        if os.geteuid() != 0:
            raise SystemExit("slow links need root, iproute2 and /dev/net/tun")

    def __enter__(self):
        try:
            self._open()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self._program is not None:
            self._program.communicate()  # the end of its input
        for space in self._spaces:
            subprocess.run(["ip", "netns", "del", space], check=False)

    def _add_space(self, name):
        ip("netns", "add", name)
        self._spaces.append(name)

    def _open(self):
        switch = self.prefix + "switch"
        self._add_space(switch)
        self._program = subprocess.Popen(
            ["ip", "netns", "exec", switch, *self._command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self._program.stdout.readline() != "ready\n":
            raise SystemExit("links: did not start")
        for rank in range(self._count):
            space, card = self._space(rank), self.card(rank)
            self._add_space(space)
            ip("-n", switch, "link", "set", card, "netns", space)
            address = f"02:00:00:00:00:{rank + 1:02x}"
            ip("-n", space, "link", "set", card, "address", address)
            ip("-n", space, "addr", "add", self.address(rank) + "/24", "dev", card)
            ip("-n", space, "link", "set", card, "up")
            ip("-n", space, "link", "set", "lo", "up")

    def _space(self, rank):
        return f"{self.prefix}{rank}"

    def card(self, rank):
        return f"tap{rank + 1}"

    def address(self, rank):
        return f"10.82.0.{rank + 1}"

    def command(self, rank):
        """What a command begins with to run there."""
        return ["ip", "netns", "exec", self._space(rank)]


class Loopback:
    """The same without namespaces and slow links."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def card(self, rank):
        return "lo"

    def address(self, rank):
        return "127.0.0.1"

    def command(self, rank):
        return []
