"""Where project and build are, and commands that must end well: for scripts of this folder."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[1])))
sys.path[:0] = [os.path.join(ROOT, "tests", "chaos"), os.path.join(ROOT, "tools")]
from _ports import free_ports  # noqa: E402,F401
from _scene import Failure, check, needs, run_tests  # noqa: E402,F401


def call(*command, **options):
    """What it says on both outputs."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=options.pop("stderr", subprocess.STDOUT),
        text=True,
        errors="replace",
        **{"timeout": 600, **options},
    )
    check(done.returncode == 0, f"{command}: {done.returncode}, {done.stdout[-3000:]}")
    return done.stdout
