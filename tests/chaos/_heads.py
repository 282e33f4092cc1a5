"""Heads of messages that somebody makes up who has no key."""

import os
import re
import struct

with open(os.path.join(os.path.dirname(__file__), "../../include/starling/version.h")) as header:
    VERSION = int(re.search(r"SL_PROTOCOL_VERSION (\d+)", header.read())[1])
FRAME = struct.Struct("<4sHBBIIQIIII")  # a header, as far as its checksums
HEADER = 64  # its bytes, with them
# Of each operation that libfabric's tcp knows; of frames of each type and many lengths.
OPERATIONS = [
    struct.pack("<BBHBBHQ", 3, kind, 0, 0, 0, 0, 80) + bytes(HEADER) for kind in range(16)
]
HELLO, ABORT = 1, 5  # src/wire/frame.h


def frame(kind, length=0, flags=0):
    return FRAME.pack(b"STLG", VERSION, kind, flags, 1, 0, 1, 1, 1, length, 0).ljust(HEADER, b"\0")


FRAMES = [
    frame(kind, length, flags)
    for kind in range(24)
    for length in (0, 1, 1 << 16, (1 << 32) - 1)
    for flags in (0, 2, 255)
]


def heads(chance, count=8):
    """Some, in any order: the first one may end the connection."""
    return b"".join(chance.sample(chance.choice((OPERATIONS, FRAMES)), count))
