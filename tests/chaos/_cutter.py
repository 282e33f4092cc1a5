"""A proxy in front of each agent, which cuts connections: after bytes that a seed chooses, in
either direction, by a reset, by an orderly end, or by forwarding no more without a word."""
import random
import select
import socket
import struct
import threading

AT_ONCE = 1 << 14  # bytes forwarded, so that a cut falls between any two pieces
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends a reset
KINDS = ("reset", "end", "silence")


class Pair:
    """A connection to the proxy, and the one that it opened to the agent."""

    def __init__(self, client, server, budget):
        self.ends = (client, server)
        self.waiting = {client: b"", server: b""}  # for each end what it has not taken yet
        self.budget = budget  # bytes until it is cut
        self.silent = False

    def other(self, end):
        return self.ends[end is self.ends[0]]

    def close(self, reset=False):
        for end in self.ends:
            if reset:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            end.close()


class Cutter(threading.Thread):
    """Forwards from `ports` to `targets`, and makes `cuts` cuts, each after up to 2 * `mean` bytes
    of a connection."""

    def __init__(self, seed, targets, cuts, mean, kinds=KINDS):
        super().__init__(daemon=True)
        self.random = random.Random(seed)
        self.left, self.mean, self.kinds = cuts, mean, kinds
        self.made = dict.fromkeys(kinds, 0)
        self.listeners, self.pairs = {}, {}
        self.ending = False
        for target in targets:
            listener = socket.create_server(("127.0.0.1", 0))
            listener.setblocking(False)
            self.listeners[listener] = target
        self.ports = [listener.getsockname()[1] for listener in self.listeners]

    def run(self):
        while not self.ending:
            reads = [*self.listeners, *(e for e, p in self.pairs.items() if self.reads(e, p))]
            writes = [e for e, p in self.pairs.items() if p.waiting[e] and not p.silent]
            readable, writable, _ = select.select(reads, writes, [], 0.05)
            for one in readable:
                if one in self.listeners:
                    self.accept(one)
                elif one in self.pairs:
                    self.read(one)
            for one in writable:
                if one in self.pairs:
                    self.write(one)
        for one in [*self.listeners, *self.pairs]:
            one.close()

    def stop(self):
        self.ending = True
        self.join()

    def reads(self, end, pair):
        """A silent pair is read too: so its end is noticed."""
        return pair.silent or len(pair.waiting[pair.other(end)]) < AT_ONCE

    def accept(self, listener):
        try:
            client, _ = listener.accept()
        except OSError:
            return
        try:
            server = socket.create_connection(("127.0.0.1", self.listeners[listener]), 5)
        except OSError:
            client.close()
            return
        for end in (client, server):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = Pair(client, server, self.random.randrange(2 * self.mean))
        self.pairs[client] = self.pairs[server] = pair

    def drop(self, pair, reset=False):
        for end in pair.ends:
            self.pairs.pop(end, None)
        pair.close(reset)

    def read(self, end):
        pair = self.pairs[end]
        try:
            data = end.recv(AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.finish(pair, end)
        elif not pair.silent:
            if self.left > 0 and len(data) >= pair.budget:
                data = data[: pair.budget]
                self.cut(pair, end, data)
            else:
                pair.budget -= len(data)
                pair.waiting[pair.other(end)] += data

    def finish(self, pair, end):
        """What an end has sent before it closed goes on first."""
        other = pair.other(end)
        try:
            other.settimeout(5)
            other.sendall(b"" if pair.silent else pair.waiting[other])
        except OSError:
            pass
        self.drop(pair)

    def write(self, end):
        pair = self.pairs[end]
        try:
            sent = end.send(pair.waiting[end])
            pair.waiting[end] = pair.waiting[end][sent:]
        except BlockingIOError:
            pass
        except OSError:
            self.drop(pair)

    def cut(self, pair, end, last):
        """Some of what came goes on before the cut."""
        kind = self.random.choice(self.kinds)
        self.made[kind] += 1
        self.left -= 1
        to = pair.other(end)
        try:
            to.send(pair.waiting[to] + last)
        except OSError:
            pass
        pair.waiting = dict.fromkeys(pair.ends, b"")
        if kind == "silence":
            pair.silent = True
        else:
            self.drop(pair, reset=kind == "reset")
