"""Where the project is, and what the scripts of chaos/ and reference/ share: for those of this
folder."""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", name) for name in ("chaos", "reference")]
from _ports import free_ports  # noqa: E402,F401
from _scene import Failure, Skipped, check, needs, read_json, read_lines  # noqa: E402,F401
from _scene import outcome, run_tests, wait_until  # noqa: E402,F401
