"""What the program lists, so that tests need no lists of their own."""
import re
import subprocess
import tempfile


def algorithms(starling):
    """Names of all algorithms, from what the program says of a wrong one."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(
            '{"rounds": 1, "topology": {"nodes": 2, "family": "complete"}, "algorithm": "?"}'
        )
        file.flush()
        ended = subprocess.run([starling, "check", file.name], capture_output=True, text=True)
    found = re.search(r"must be one of (.*)", ended.stderr)
    if found is None:
        raise ValueError(f"no list of algorithms in {ended.stderr!r}")
    return found.group(1).split(", ")


def unnamed(starling, cases):
    """Those that no case names; a case is the value of an experiment's key `algorithm`."""
    named = {case["name"] for case in cases}
    return [name for name in algorithms(starling) if name not in named]
