"""A CA for scripts, by the commands of docs/security.md."""

import subprocess

CONFIGURATION = """[ca]
default_ca = starling
[starling]
database = index.txt
default_md = default
default_crl_days = 30
"""


class Authority:
    """In a folder of the scene, with an empty list of revoked certificates."""

    def __init__(self, scene, name):
        self.scene, self.name, self.made = scene, name, 0
        self.folder = scene.path(name)
        subprocess.run(["mkdir", self.folder], check=True)
        scene.write(f"{name}/ca.cnf", CONFIGURATION)
        scene.write(f"{name}/index.txt", "")
        self.call(
            "req -x509 -newkey ed25519 -noenc -days 30 -keyout ca.key -out ca.crt -subj",
            f"/CN={name}",
        )
        self.list()

    def call(self, words, *more):
        command = ["openssl", *words.split(), *more]
        subprocess.run(command, cwd=self.folder, check=True, capture_output=True)

    def make(self, rank, name=None):
        """The pair NAME, node-RANK if nothing is said, whose certificate is for this rank."""
        name = f"../{name or f'node-{rank}'}"
        new = f"req -new -newkey ed25519 -noenc -keyout {name}.key -out {name}.csr -subj"
        self.call(new, f"/CN=starling rank {rank}")
        self.call(f"x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -days 30 -out {name}.crt")

    def revoke(self, certificate):
        self.call(f"ca -config ca.cnf -cert ca.crt -keyfile ca.key -revoke ../{certificate}")
        self.list()

    def list(self, *more):
        make = "ca -config ca.cnf -cert ca.crt -keyfile ca.key -gencrl -out revoked.pem"
        self.call(make, *more)

    def trusted(self):
        """The options of an agent that trusts it."""
        ca, revoked = f"security.ca={self.name}/ca.crt", f"security.revoked={self.name}/revoked.pem"
        return ("--set", ca, "--set", revoked)
