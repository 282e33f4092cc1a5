"""A wire in front of agents, which keeps what goes over it."""

from _wire import Wire


class Talk:
    """What was heard of one connection, in order: (does whoever was dialed say it, bytes)."""

    def __init__(self, target):
        self.target, self.said = target, []


class Tap(Wire):
    """Forwards from `port` to `target`, or from each of its ports to one of several."""

    def __init__(self, *targets):
        super().__init__(*targets)
        self.target, self.port = targets[0], self.ports[0]
        self.heard = []  # [bytearray] of each direction of each connection
        self.talks = []  # of each connection

    def begins(self, pair):
        pair.heard = {end: bytearray() for end in pair.ends}
        pair.talk = Talk(pair.target)
        self.heard += pair.heard.values()
        self.talks.append(pair.talk)

    def passes(self, pair, end, data):
        pair.heard[end] += data
        pair.talk.said.append((pair.is_answer(end), data))
        return bytes(self.passes_on(pair.heard[end], data))

    def passes_on(self, heard, data):
        """What goes on in place of `data`, the end of what was heard of this direction."""
        return data
