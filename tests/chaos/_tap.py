"""A wire in front of one agent, which keeps what goes over it, and may flip bits."""
import select
import socket
import threading

AT_ONCE = 1 << 16


class Tap(threading.Thread):
    """Forwards from its port to `target`. flips: after so many bytes of a direction a bit is
    flipped, once for each number, over all connections."""

    def __init__(self, target, flips=()):
        super().__init__(daemon=True)
        self.target = target
        self.flips = sorted(flips)
        self.flipped = 0
        self.heard = []  # [bytearray] of each direction of each connection
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.pairs = {}  # {end: (other end, bytearray)}
        self.ending = False

    def run(self):
        while not self.ending:
            ready, _, _ = select.select([self.listener, *self.pairs], [], [], 0.05)
            for end in ready:
                if end is self.listener:
                    self.accept()
                elif end in self.pairs:
                    self.pump(end)
        for end in [self.listener, *self.pairs]:
            end.close()

    def accept(self):
        client, _ = self.listener.accept()
        try:
            server = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            client.close()
            return
        for end, other in ((client, server), (server, client)):
            self.heard.append(bytearray())
            self.pairs[end] = (other, self.heard[-1])

    def pump(self, end):
        other, heard = self.pairs[end]
        try:
            data = bytearray(end.recv(AT_ONCE))
            heard += data
            if self.flips and len(heard) > self.flips[0] and data:
                data[-1] ^= 1
                self.flips.pop(0)
                self.flipped += 1
            if data:
                other.sendall(self.passes_on(heard, data))
        except OSError:
            data = b""
        if not data:
            for one in (end, other):
                self.pairs.pop(one)
                one.close()

    def passes_on(self, heard, data):
        """What goes on in place of `data`, the end of what was heard of this direction."""
        return data

    def end(self):
        self.ending = True
        self.join()
