"""A wire in front of one agent, held by somebody who knows how frames travel, and has no key: he
repeats, swaps, cuts and alters them, and puts in some of his own."""
from _greetings import HEAD, PROOF, WELCOME
from _tap import Tap

MAGIC, HEADER, KIND, LENGTH = b"STLG", 64, 6, slice(32, 36)  # of a frame's header
DATA, ABORT, BYE = 2, 5, 6  # kinds of frames


def resize(message):
    message[LENGTH] = (len(message) - HEADER).to_bytes(4, "little")
    return message


def alter(message, at):
    message[at] ^= 1
    return message


def forge(message, kind, text=b""):
    """A frame of another kind, as if the same agent had sent it."""
    forged = message[:HEADER] + text
    forged[KIND] = kind
    return resize(forged)


def unseal(message):
    """It says that it is not sealed."""
    message[KIND + 1] = 0
    return message


# What comes of two messages that follow each other; the first one is data.
CHANGES = {
    "repeated": lambda a, b: [a, a, b],
    "swapped": lambda a, b: [b, a],
    "left out": lambda a, b: [b],
    "cut": lambda a, b: [resize(a[:-1]), b],
    "longer": lambda a, b: [resize(a + b"more"), b],
    "another payload": lambda a, b: [alter(a, -1), b],
    "another part": lambda a, b: [alter(a, 12), b],
    "another exchange": lambda a, b: [alter(a, 16), b],
    "not sealed": lambda a, b: [unseal(a), b],
    "ABORT put in": lambda a, b: [forge(a, ABORT, b"it is over"), a, b],
    "BYE put in": lambda a, b: [forge(a, BYE), a, b],
}


class Stream:
    """One direction of a connection, message by message."""

    def __init__(self):
        self.bytes, self.begun = bytearray(), False
        self.data, self.first = 0, None  # frames of data; one that waits for what comes behind it

    def next(self):
        """The next whole message; None: there is none yet."""
        need = HEADER if self.begun else HEAD.size
        if len(self.bytes) >= need:
            need += (
                int.from_bytes(self.bytes[LENGTH], "little")
                if self.begun
                else HEAD.unpack(self.bytes[: HEAD.size])[1]
            )
        if len(self.bytes) < need:
            return None
        message, self.bytes = self.bytes[:need], self.bytes[need:]
        self.begun = self.begun or message[0] in (PROOF, WELCOME)  # the last of each side
        return message


class Robber(Tap):
    """Makes each of the changes once, one a connection: of data in either direction, of which
    `after` frames go on before."""

    def __init__(self, target, after):
        super().__init__(target)
        self.after, self.left, self.streams = after, dict(CHANGES), {}

    def passes_on(self, heard, data):
        stream = self.streams.setdefault(id(heard), Stream())
        stream.bytes += data
        out = bytearray()
        while (message := stream.next()) is not None:
            for one in self.change(stream, message):
                out += one
        return out

    def change(self, stream, message):
        is_data = message.startswith(MAGIC) and message[KIND] == DATA
        stream.data += is_data
        if stream.first is not None:
            first, stream.first, name = stream.first, None, next(iter(self.left))
            return self.left.pop(name)(first, message)
        if is_data and stream.data == self.after + 1 and self.left and not self.waits():
            stream.first = message
            return []
        return [message]

    def waits(self):
        return any(stream.first is not None for stream in self.streams.values())
