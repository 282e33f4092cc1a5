"""Somebody who has no key of the run and no private key of its nodes, and knows all else: how
agents prove themselves, the roster, its certificates, and what was heard."""

import base64
import os
import random
import struct
import subprocess
import tempfile

from _greetings import KEY, sha256

MAGIC, TO_AT = b"starling", 12  # where a greeting says whom it is for
CERTIFICATE = KEY + 1  # what a greeting says that its sender has
MAC_BYTES, SIGNATURE_BYTES = 32, 64
SIDE = b"starling dials".ljust(16, b"\0")


def to_another(said, to):
    """The same greeting, for somebody else; what holds none stays as it is."""
    at = said.find(MAGIC)
    if at < 0:
        return said
    return said[: at + TO_AT] + struct.pack("<I", to) + said[at + TO_AT + 4 :]


class Pretender:
    """Makes proofs, each wrong in another manner. certificates: paths; none: of a run's key."""

    def __init__(self, certificates=(), run_id=0, seed=1):
        self.run_id, self.random = struct.pack("<Q", run_id), random.Random(seed)
        self.certificates = [der_of(path) for path in certificates]
        self.kind = CERTIFICATE if certificates else KEY
        self.number = 0

    def prove(self, said, challenge):
        self.number += 1
        text = SIDE + said + challenge + self.run_id
        if self.kind == KEY:
            return (self.random.randbytes(MAC_BYTES), sha256(bytes(32), text), b"")[self.number % 3]
        made_up = self.random.randbytes(SIGNATURE_BYTES)
        certificate = self.random.choice(self.certificates)
        shorter = certificate[: len(certificate) - self.number % 3]
        return (sign(text) if self.number % 2 == 0 else made_up) + shorter


def der_of(path):
    with open(path) as file:
        return base64.b64decode(file.read().split("-----")[2])


def sign(text):
    """With a new key, which is nobody's."""
    with tempfile.TemporaryDirectory() as folder:
        key, said = os.path.join(folder, "key"), os.path.join(folder, "text")
        with open(said, "wb") as file:
            file.write(text)
        call("openssl", "genpkey", "-algorithm", "ed25519", "-out", key)
        return call("openssl", "pkeyutl", "-sign", "-inkey", key, "-rawin", "-in", said)


def call(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
