"""What the program lists, so that tests need no lists of their own."""
import re
import subprocess
import tempfile

AT_OWN_TIMES = ("ad-psgd", "ssp", "round-robin")


def names_in(text):
    """The names behind "must be one of" in an error."""
    found = re.search(r"must be one of (.*)", text)
    if found is None:
        raise ValueError(f"no list in {text!r}")
    return found.group(1).replace('"', "").split(", ")


def families(starling):
    """Names of all families of topologies."""
    command = [starling, "topology", "make", "?", "--nodes", "8"]
    return names_in(subprocess.run(command, capture_output=True, text=True).stderr)


def allowed(starling, key):
    """What a key of an experiment may be, from what the program says of a wrong value."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write('{"rounds": 1, "topology": {"nodes": 2, "family": "complete"}}')
        file.flush()
        command = [starling, "check", file.name, "--set", f"{key}=?"]
        return names_in(subprocess.run(command, capture_output=True, text=True).stderr)


def algorithms(starling):
    """Names of all algorithms."""
    return allowed(starling, "algorithm.name")


def unnamed(starling, cases):
    """Of those whose nodes share rounds (test_asynchronous.py has the others), those that no case
    names; a case is the value of an experiment's key `algorithm`."""
    named = {case["name"] for case in cases}
    return [n for n in algorithms(starling) if n not in (*AT_OWN_TIMES, *named)]
