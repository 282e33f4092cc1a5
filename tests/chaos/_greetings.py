"""How an agent asks to be let in: a request of libfabric's tcp provider with a greeting in it
(src/secure/greeting.h), from outside."""
import hashlib
import hmac
import os
import re
import struct
import time

# Of a request to connect, as libfabric's tcp provider sends it, with all the room it has.
HEAD, ROOM = struct.Struct(">BBHIQQQ"), 256


def request(greeting, room=ROOM):
    return HEAD.pack(3, 0, room, 0, 0, 0, 1) + greeting.ljust(room, b"\0")


def greeting(rank, to, magic=b"starling"):
    return magic + struct.pack("<II", rank, to)


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

    def __call__(self, rank, to):
        said = greeting(rank, to) + os.urandom(8) + struct.pack("<Q", time.time_ns() // 1000)
        return said + sha256(self.key, said + self.run_id)[:16]
