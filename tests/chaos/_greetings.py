"""How an agent asks to be let in (src/provider/provider.h, src/secure/greeting.h), from outside."""

import hashlib
import hmac
import os
import re
import socket
import struct

GREETING, CHALLENGE, PROOF, WELCOME, REFUSAL = 1, 2, 3, 4, 5
BARE, KEY = 0, 1
HEAD = struct.Struct("<BH")
with open(os.path.join(os.path.dirname(__file__), "../../include/starling/version.h")) as header:
    VERSION = int(re.search(r"SL_PROTOCOL_VERSION (\d+)", header.read())[1])
FRAME = struct.Struct("<4sHBBIIQIIII")  # a header, as far as its checksums
HELLO, ABORT = 1, 5  # src/wire/frame.h


def message(kind, payload=b""):
    return HEAD.pack(kind, len(payload)) + payload


def frame(kind):
    """The head of one that somebody makes up who has no key."""
    return FRAME.pack(b"STLG", VERSION, kind, 0, 1, 0, 1, 1, 1, 0, 0).ljust(64, b"\0")


def greeting(rank, to, magic=b"starling", kind=BARE):
    who = struct.pack("<II", rank, to)
    return (magic + who + os.urandom(8) + os.urandom(16) + bytes([kind])).ljust(48, b"\0")


def receive(s, count):
    said = b""
    while len(said) < count:
        more = s.recv(count - len(said))
        if not more:
            raise ConnectionError(f"it ended the connection after {len(said)} bytes of {count}")
        said += more
    return said


def hear(s):
    """(kind, payload) of the next message."""
    kind, count = HEAD.unpack(receive(s, HEAD.size))
    return kind, receive(s, count)


def visit(port, rank, to, says=b""):
    """Somebody without a key greets, and says this if he is welcome: the answer's kind, and all
    that was said until it was ended."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as s:
        s.sendall(message(GREETING, greeting(rank, to)))
        kind, said = hear(s)
        try:
            s.sendall(says if kind == WELCOME else b"")
            while more := s.recv(4096):
                said += more
        except ConnectionError:
            pass
    return kind, said


def sha256(key, text):
    return hmac.new(key, text, hashlib.sha256).digest()


class Prover:
    """Greets as whoever has the run's key does, each time with another incarnation."""

    def __init__(self, path, run_id=0):
        with open(path) as file:
            secret = bytes.fromhex(re.search("[0-9a-f]{64}", file.read()).group())
        # HKDF: extracted without salt, expanded to one block
        self.key = sha256(sha256(bytes(32), secret), b"starling greeting\1")
        self.run_id = struct.pack("<Q", run_id)

    def __call__(self, s, rank, to):
        """The answer, (kind, payload): WELCOME if all is right."""
        said = greeting(rank, to, kind=KEY)
        s.sendall(message(GREETING, said))
        kind, challenge = hear(s)
        if kind != CHALLENGE:
            return kind, challenge
        s.sendall(message(PROOF, self.prove(said, challenge)))
        return hear(s)

    def prove(self, said, challenge):
        side = b"starling dials".ljust(16, b"\0")
        return sha256(self.key, side + said + challenge + self.run_id)
