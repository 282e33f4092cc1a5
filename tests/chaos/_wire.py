"""A wire in front of agents: it forwards what goes over it. Whoever holds it cuts it, listens, or
alters what goes by (_tap.py, _forger.py)."""

import select
import socket
import threading

AT_ONCE = 1 << 14  # bytes that are forwarded, so that a cut falls between any two pieces


class Pair:
    """A connection to the wire, and the one that it opened to the agent."""

    def __init__(self, target, client, server):
        self.target, self.ends = target, (client, server)
        self.waiting = {end: b"" for end in self.ends}  # for each what it has not taken yet
        self.silent = False

    def other(self, end):
        return self.ends[end is self.ends[0]]

    def close(self):
        for end in self.ends:
            end.close()


class Wire(threading.Thread):
    """Forwards from a port of its own (`ports`) to each of `targets`, in a thread."""

    def __init__(self, *targets):
        super().__init__(daemon=True)
        self.listeners, self.pairs = {}, {}
        self.ending = False
        for target in targets:
            listener = socket.create_server(("127.0.0.1", 0))
            listener.setblocking(False)
            self.listeners[listener] = target
        self.ports = [listener.getsockname()[1] for listener in self.listeners]

    def run(self):
        while not self.ending:
            self.turn()
        for one in [*self.listeners, *self.pairs]:
            one.close()

    def turn(self):
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
        target = self.listeners[listener]
        try:
            server = socket.create_connection(("127.0.0.1", target), 5)
        except OSError:
            client.close()
            return
        self.join_ends(Pair(target, client, server))

    def join_ends(self, pair):
        for end in pair.ends:
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.pairs[end] = pair
        self.begins(pair)

    def begins(self, pair):
        """A new connection."""

    def passes(self, pair, end, data):
        """What goes on in place of `data`, which comes from `end`."""
        return data

    def drop(self, pair):
        for end in pair.ends:
            self.pairs.pop(end, None)
        pair.close()

    def pass_last(self, pair, end, last):
        """Before a cut; nothing goes on twice."""
        to = pair.other(end)
        data, pair.waiting[to] = pair.waiting[to] + last, b""
        try:
            to.send(data)
        except OSError:
            pass

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
            data = self.passes(pair, end, data)
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
