"""What the chaos scripts share: a scratch folder with the `starling` command in it, and test
lines."""
import copy
import inspect
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

EXPERIMENT = {
    "name": "chaos",
    "seed": 3,
    "rounds": 2000000,
    "topology": {"nodes": 8, "family": "ring", "weights": "metropolis"},
    "algorithm": {"name": "d-psgd"},
    "optimizer": {"learning_rate": 0.01},
    "model": {"name": "mlp", "hidden": [16]},
    "data": {"name": "digits", "train_samples": 800, "test_samples": 100, "batch": 8},
    "record": {"every": 20},
    "transport": {"timeout_s": 20, "connect_timeout_s": 60, "reconnect_s": 1},
    "membership": {"on_loss": "stop"},
}

# How often longer than expected a wait may take, on a machine that is loaded.
SLOWER = 10

# A shell lets background commands ignore Ctrl-C, and their children inherit that: one that is
# interrupted before its main would not notice.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Failure(Exception):
    """A test that did not hold; its text is the reason."""


class Skipped(Exception):
    """A test that cannot be run here; its text is why."""


def check(holds, why):
    if not holds:
        raise Failure(why)


def needs(there, why):
    """Else the test is skipped."""
    if not there:
        raise Skipped(why)


def wait_until(holds, what, seconds=60, pause_s=0.02):
    until = time.monotonic() + SLOWER * seconds
    while not holds():
        check(time.monotonic() < until, f"{what}: not within {seconds} s")
        time.sleep(pause_s)


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def read_json(*path):
    with open(os.path.join(*path)) as file:
        return json.load(file)


def read_lines(*path):
    """The objects of a log, but for a line that is being written."""
    with open(os.path.join(*path)) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def tests_of(script):
    """Its functions that take a scene and nothing else; what helps them takes more."""
    return [
        value
        for value in vars(script).values()
        if inspect.isfunction(value)
        and value.__module__ == script.__name__
        and list(inspect.signature(value).parameters) == ["scene"]
    ]


def outcome(test):
    """(ok, not ok or skip, what is said of it); test returns nothing, or (reason or None, by how
    much it differs)."""
    try:
        reason, worst = test() or (None, None)
    except Skipped as why:
        return "skip", f": {why}"
    except Failure as failure:
        return "not ok", f": {failure}"
    except Exception:  # a broken test must not hide the others
        return "not ok", f": {traceback.format_exc(limit=3)!r}"
    if reason:
        return "not ok", f": {reason}"
    return "ok", "" if worst is None else f" (differs by {worst:.1e})"


def play(test, starling):
    scene = Scene(starling)
    try:
        check(test(scene) is None, "it returns something; needs() says why one is skipped")
        scene.check_clean()
    finally:
        scene.close()


def run_tests(tests=None):
    """Runs each test(scene), of the script if nothing is said, and prints its line; ends the
    process."""
    starling, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    failed = False
    for test in tests or tests_of(sys.modules["__main__"]):
        if not wanted or test.__name__ in wanted:
            how, said = outcome(lambda: play(test, starling))
            failed = failed or how == "not ok"
            print(f"{how} {test.__name__.replace('_', ' ')}{said}", flush=True)
    sys.exit(1 if failed else 0)


class Scene:
    """A scratch folder in which `starling` runs. Its name is on each process's command line."""

    def __init__(self, starling):
        self.starling = starling
        self.folder = tempfile.mkdtemp(prefix="starling-chaos-")
        self.temporary = os.path.join(self.folder, "tmp")
        os.mkdir(self.temporary)
        self.environment = {}  # beside this process's own
        self.pause_us = 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def experiment(self, file="experiment.json", **changes):
        """The experiment above with dotted keys replaced; a value of None removes the key."""
        content = copy.deepcopy(EXPERIMENT)
        for key, value in changes.items():
            *above, last = key.split("__")
            place = content
            for part in above:
                place = place.setdefault(part, {})
            if value is None:
                place.pop(last, None)
            else:
                place[last] = copy.deepcopy(value)  # a later change is of this experiment only
        return self.write(file, json.dumps(content, indent=1))

    def roster(self, ports, name="roster", pins=itertools.repeat("")):
        """Of places on this host, one for each fingerprint of a certificate if these are said."""
        rows = zip(ports, pins)
        return self.write(name, "".join(f"127.0.0.1:{port} {pin}\n" for port, pin in rows))

    def check_models(self, outs, sim="sim", experiment=None):
        """Models of ranks 0, 1, ... in these folders have the simulator's bits; it is asked first
        where the experiment is given."""
        if experiment is not None:
            shutil.rmtree(self.path(sim), ignore_errors=True)
            self.call("sim", experiment, "--out", self.path(sim), timeout=300).check_well()
        for rank, out in enumerate(outs):
            found, expected = (
                read_bytes(self.path(f"{folder}/model-{rank}.npy")) for folder in (out, sim)
            )
            check(found == expected, f"the model of rank {rank} in {out} differs from {sim}'s")

    def built(self, name):
        """What the build has beside the command."""
        path = os.path.join(os.path.dirname(os.path.dirname(self.starling)), name)
        check(os.path.exists(path), f"{name} is not built")
        return path

    def preload(self, *names):
        self.environment["LD_PRELOAD"] = ":".join(self.built(f"tests/lib{n}.so") for n in names)

    def take_time(self, pause_us=500):
        """A product of matrices takes agents that start from now on so much longer: who only waits
        for something to happen to them does not keep the processors busy."""
        self.pause_us = pause_us

    def emulate_device(self):
        self.environment["STARLING_PLUGIN"] = self.built("gpu/libstarling-emulated.so")

    def start(self, *arguments, wrapper=()):
        """A running command; its outputs go to files, so that no pipe can fill up."""
        self.count = getattr(self, "count", 0) + 1
        out, err = self.path(f"stdout{self.count}"), self.path(f"stderr{self.count}")
        environment = {**os.environ, **self.environment, "TMPDIR": self.temporary}
        if self.pause_us and arguments[0] in ("run", "agent"):
            slow = self.built("tests/libslow_gradient.so")
            environment["LD_PRELOAD"] = ":".join([slow, *environment.get("LD_PRELOAD", "").split()])
            environment.setdefault("STARLING_PAUSE_US", str(self.pause_us))
        with open(out, "w") as stdout, open(err, "w") as stderr:
            process = subprocess.Popen(
                [*wrapper, self.starling, *arguments],
                cwd=self.folder,
                env=environment,
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        return Running(process, out, err)

    def call(self, *arguments, timeout=60, wrapper=()):
        return self.start(*arguments, wrapper=wrapper).wait(timeout)

    def agent(self, path, rank, roster, *extra, out=None, wrapper=()):
        """An agent by hand, with a folder of its own."""
        words = ("agent", path, "--rank", str(rank), "--roster", roster)
        out = self.path(out or f"out{rank}")
        return self.start(*words, "--out", out, *extra, wrapper=wrapper)

    def processes(self):
        """pid -> arguments of every process of this folder, zombies of ours too."""
        found = {}
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    arguments = file.read().split(b"\0")
            except OSError:
                continue
            if any(self.folder.encode() in argument for argument in arguments):
                found[int(entry)] = [argument.decode(errors="replace") for argument in arguments]
        return found

    def agents(self):
        """rank -> pid"""
        return {
            int(arguments[arguments.index("--rank") + 1]): pid
            for pid, arguments in self.processes().items()
            if len(arguments) > 1 and arguments[1] == "agent"
        }

    def kill_run(self, running):
        """SIGKILL to `starling run` and all its agents."""
        for pid in [running.process.pid, *self.agents().values()]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        running.process.wait()
        self.wait_gone(10)

    def wait_gone(self, seconds):
        wait_until(lambda: not self.processes(), "all processes end", seconds)

    def check_clean(self):
        check(not self.processes(), f"left behind: {self.processes()}")
        check(not os.listdir(self.temporary), f"left in TMPDIR: {os.listdir(self.temporary)}")

    def close(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)


class Running:
    """A command under way, and after wait() its end."""

    def __init__(self, process, out, err):
        self.process, self.out_path, self.err_path = process, out, err
        self.began = time.monotonic()
        self.code = None

    @property
    def out(self):
        with open(self.out_path, errors="replace") as file:
            return file.read()

    @property
    def err(self):
        with open(self.err_path, errors="replace") as file:
            return file.read()

    @property
    def said(self):
        """Warnings are on standard error, what else is told of a run on standard output."""
        return self.out + self.err

    @property
    def errors(self):
        """The lines of those that are no warnings."""
        warns = re.compile(r"starling: warning: |\d\d:\d\d:\d\d warning( rank \d+)?: ")
        return [line for line in self.err.splitlines() if not warns.match(line)]

    def wait(self, timeout):
        try:
            self.code = self.process.wait(SLOWER * timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure(
                f"still running after {timeout} s; stdout {self.out[-500:]!r}, "
                f"stderr {self.err[-500:]!r}"
            ) from None
        self.seconds = time.monotonic() - self.began
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self

    def wait_for(self, text, seconds=60):
        until = time.monotonic() + SLOWER * seconds
        while text not in self.said:
            check(
                self.process.poll() is None,
                f"ended with {self.process.returncode} before it wrote {text!r}: {self.err!r}",
            )
            check(
                time.monotonic() < until,
                f"did not write {text!r} within {seconds} s: {self.said!r}",
            )
            time.sleep(0.02)

    def check_well(self):
        check(self.code == 0, f"exit code {self.code}: {self.err!r}")

    def ends(self, code, seconds):
        self.wait(seconds)
        check(self.code == code, f"exit code {self.code}, expected {code}: {self.err!r}")
        return self

    def check_refused(self, *words, code=2):
        """Ended with `code`, and one error line that has all of `words`, beside warnings."""
        lines = self.errors
        check(self.code == code, f"exit code {self.code}, expected {code}; stderr {self.err!r}")
        check(
            len(lines) == 1 and lines[0].startswith("starling: "),
            f"expected one line 'starling: ...', got {self.err!r}",
        )
        for word in words:
            check(word.lower() in lines[0].lower(), f"'{word}' is missing in {lines[0]!r}")
