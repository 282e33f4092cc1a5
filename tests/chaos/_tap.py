"""A wire in front of agents, which keeps what goes over it."""

from _wire import Wire


class Tap(Wire):
    """Forwards from `port` to `target`."""

    def __init__(self, target):
        super().__init__(target)
        self.target, self.port = target, self.ports[0]
        self.heard = []  # [bytearray] of each direction of each connection

    def begins(self, pair):
        pair.heard = {end: bytearray() for end in pair.ends}
        self.heard += pair.heard.values()

    def passes(self, pair, end, data):
        pair.heard[end] += data
        return data
