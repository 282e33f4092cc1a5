#!/usr/bin/python3
"""A torch script's step with Starling beside DistributedDataParallel with Gloo: what of the
communication is not hidden, and the time to the same loss.

Four processes train a ResNet-20 on CIFAR-10. Each has five models of the same start, which it
trains in turns of some steps: one without communication; one that only waits for the others, by an
all-reduce of one number; one with DistributedDataParallel; one with d-psgd on the one-peer
exponential graph; one with choco-sgd top-1 % on a ring. What a step takes more than one without
communication was not hidden. The loss is that of the peers' averaged model on 512 images of the
test set, measured after each turn, off the clock; the mean of three turns counts.

CIFAR-10's binary files (*.bin or *.bin.xz) are looked for in $STARLING_DATA/cifar10, by default
../shared/data/cifar10 beside the project. Needs torch; slow links need root and what
`meson compile -C BUILD links` builds.

usage: ddp.py [--mbit R --delay-ms D] [--batch B] [--loss L] ...
"""
import importlib.util
import json
import lzma
import os
import statistics
import sys
import tempfile
import time

import _bench
from _links import Links, Loopback, torch_processes
from _ports import free_range

SHARED = os.environ.get("STARLING_DATA", os.path.join(_bench.ROOT, "..", "shared", "data"))
DATA = os.path.join(SHARED, "cifar10")
NODES, SMOOTHED, TESTED = 4, 3, 512
ROW = 1 + 3 * 32 * 32  # bytes of an image and its label
TRAIN, IMAGES = [f"data_batch_{i}.bin" for i in range(1, 6)], 10000  # of each file
PLAIN, WAIT, DDP = "no communication", "one number, Gloo", "DDP, Gloo"
DPSGD, CHOCO = "d-psgd", "choco-sgd 1 %"
WAYS = [PLAIN, WAIT, DDP, DPSGD, CHOCO]
TOLD = ("batch", "rate", "turns", "steps", "transport")  # options that processes get
TRANSPORT = {"round_timeout_s": 600, "connect_timeout_s": 60}
EXPERIMENTS = {
    DPSGD: {"topology": {"family": "one-peer-exponential"}, "algorithm": "d-psgd"},
    CHOCO: {
        "topology": {"family": "ring"},
        "algorithm": {"name": "choco-sgd", "compressor": {"name": "top-k", "fraction": 0.01}},
    },
}


# ---- a process ----


def read_rows(torch, files, rank):
    """This rank's share of the images: rows of a label and the pixels of 3 colours."""
    content = b""
    for name in files:
        path = os.path.join(DATA, name)
        with open(path, "rb") if os.path.exists(path) else lzma.open(path + ".xz") as data:
            content += data.read()
    return torch.frombuffer(bytearray(content), dtype=torch.uint8).view(-1, ROW)[rank::NODES]


def unpack(rows):
    """(images, labels)"""
    return rows[:, 1:].view(-1, 3, 32, 32) / 255.0 - 0.5, rows[:, 0].long()


class Way:
    """A model that is trained in one of the ways."""

    def __init__(self, torch, name, task):
        import model_step

        torch.manual_seed(1)
        self.build = lambda: model_step.build("resnet20")  # 269,722 parameters
        self.torch, self.name, self.peer, self.losses = torch, name, None, []
        self.model = self.build()
        self.optimizer = torch.optim.SGD(self.model.parameters(), task["rate"], momentum=0.9)
        if name == DDP:
            parallel = torch.nn.parallel.DistributedDataParallel
            self.model = parallel(self.model, broadcast_buffers=False)
        elif name in EXPERIMENTS:
            import starling

            experiment = {
                **EXPERIMENTS[name],
                "transport": {**TRANSPORT, **task["transport"]},
                "security": {"mode": "none", "trusted_network": True},
            }
            roster = task["rosters"][name]
            self.peer = starling.join(
                experiment, self.model, rank=task["rank"], size=NODES, roster=roster
            )
            self.peer.attach(self.optimizer)

    def step(self, images, labels):
        self.optimizer.zero_grad()
        loss = self.torch.nn.functional.cross_entropy(self.model(images), labels)
        loss.backward()
        if self.name == WAIT:
            self.torch.distributed.all_reduce(self.torch.zeros(1))
        self.optimizer.step()

    def turn(self, batches):
        """(begin, end, processor time) of all but the first step: an exchange that runs beside a
        step began with the step before."""
        self.step(*next(batches))
        begin, used = time.monotonic(), time.process_time()
        for images, labels in batches:
            self.step(images, labels)
        end, used = time.monotonic(), time.process_time() - used
        if self.peer is not None:
            self.peer.end()
        return begin, end, used

    def evaluate(self, images, labels):
        """The loss of the averaged model, with the batch's own statistics."""
        model = self.build()
        if self.peer is not None:
            model.load_state_dict(self.peer.average())
        else:
            model.load_state_dict(getattr(self.model, "module", self.model).state_dict())
        with self.torch.no_grad():
            loss = self.torch.nn.functional.cross_entropy(model(images), labels)
        self.losses.append(loss.item())


def batches(rows, turn, task):
    """What the turn trains on: one step to begin with, then those that are timed."""
    steps, batch = task["steps"] + 1, task["batch"]
    for step in range(turn * steps, (turn + 1) * steps):
        yield unpack(rows[range(step * batch, (step + 1) * batch)])


def work(task):
    import torch

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=task["rank"], world_size=NODES)
    rows = read_rows(torch, TRAIN[: -(-needed_images(task) // IMAGES)], task["rank"])
    tested = unpack(read_rows(torch, ["test_batch.bin"], task["rank"])[: TESTED // NODES])
    ways = [Way(torch, name, task) for name in WAYS]
    times = {name: [] for name in WAYS}
    for turn in range(task["turns"]):
        for way in ways[turn % len(ways) :] + ways[: turn % len(ways)]:
            torch.distributed.barrier()
            times[way.name].append(way.turn(batches(rows, turn, task)))
            if way.name not in (PLAIN, WAIT):
                way.evaluate(*tested)
        if task["rank"] == 0:
            said = ", ".join(f"{way.name} {way.losses[-1]:.2f}" for way in ways if way.losses)
            print(f"turn {turn + 1}/{task['turns']}: loss {said}", file=sys.stderr, flush=True)
    torch.distributed.barrier()
    for way in ways:
        if way.peer is not None:
            way.peer.leave()
    with open(task["out"], "w") as file:
        json.dump({"times": times, "losses": {way.name: way.losses for way in ways}}, file)


# ---- all processes ----


def needed_images(task):
    return NODES * task["batch"] * task["turns"] * (task["steps"] + 1)


def run(links, options, folder):
    """[what each process has measured]"""
    first = free_range(3 * NODES)
    task = {
        **{name: getattr(options, name) for name in TOLD},
        "rosters": {
            name: [f"{links.address(rank)}:{base + rank}" for rank in range(NODES)]
            for name, base in ((DPSGD, first + NODES), (CHOCO, first + 2 * NODES))
        },
    }
    tasks = [{**task, "out": os.path.join(folder, f"{rank}.json")} for rank in range(NODES)]
    return torch_processes(links, options.build, __file__, tasks, first)


def step_times(measured, name, steps):
    """Seconds of a step in each turn: from the first process's begin to the last one's end."""
    turns = zip(*(each["times"][name] for each in measured))
    return [(max(end for _, end, _ in t) - min(begin for begin, _, _ in t)) / steps for t in turns]


def processor_times(measured, name, steps):
    """Processor seconds of a step of one process in each turn."""
    turns = zip(*(each["times"][name] for each in measured))
    return [statistics.mean(used for _, _, used in t) / steps for t in turns]


def steps_to(measured, name, options):
    """After how many steps the loss, a mean over SMOOTHED turns, is as low; or None."""
    means = [statistics.mean(turn) for turn in zip(*(each["losses"][name] for each in measured))]
    for turns in range(SMOOTHED, len(means) + 1):
        if statistics.mean(means[turns - SMOOTHED : turns]) <= options.loss:
            return turns * (options.steps + 1)
    return None


def more(measure, measured, name, steps):
    """What the way takes more than none in the same turn."""
    pairs = zip(measure(measured, name, steps), measure(measured, PLAIN, steps))
    return 1e3 * statistics.median(way - plain for way, plain in pairs)


def report(measured, options):
    heads = "step ms|not hidden ms|of DDP's|processor ms|steps to the loss|seconds".split("|")
    _bench.print_heads("", *heads)
    ddp = more(step_times, measured, DDP, options.steps)
    for name in WAYS:
        step = statistics.median(step_times(measured, name, options.steps))
        count = steps_to(measured, name, options)
        cells = [name, f"{1e3 * step:.1f}", "", "", ""]
        if name != PLAIN:
            longer = more(step_times, measured, name, options.steps)
            used = more(processor_times, measured, name, options.steps)
            cells[2:] = [f"{longer:.1f}", f"{longer / ddp:.3f}", f"{used:.1f}"]
        cells += [str(count or "-"), f"{count * step:.1f}" if count else "-"]
        _bench.print_row(*cells)


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--work":
        return work(json.loads(sys.argv[2]))
    parser = _bench.parser_of(__doc__)
    parser.add_argument("--mbit", type=float, help="of each process's link; default: loopback")
    parser.add_argument("--delay-ms", type=float, default=20, help="of the links, one way")
    parser.add_argument("--batch", type=int, default=8, help="images of a process (default 8)")
    parser.add_argument("--rate", type=float, default=0.02, help="learning rate (default 0.02)")
    parser.add_argument("--turns", type=int, default=30, help="of each way (default 30)")
    parser.add_argument("--steps", type=int, default=8, help="timed in a turn (default 8)")
    parser.add_argument("--loss", type=float, default=2.0, help="to reach (default 2)")
    parser.add_argument("--transport", type=json.loads, default={}, help="keys of ours, as JSON")
    options = parser.parse_args()
    if needed_images(vars(options)) > 50000:
        parser.error("CIFAR-10 has 50,000 images: take fewer turns, steps or a smaller batch")
    if importlib.util.find_spec("torch") is None:
        sys.exit("ddp.py: this Python has no torch (apt-get install python3-torch)")
    if not os.path.isdir(DATA):
        sys.exit(f"{DATA}: no such folder; set STARLING_DATA")
    if options.mbit is None:
        links, where = Loopback(), "loopback"
    else:
        links = Links(options.build, NODES, options.mbit, options.delay_ms)
        where = f"{options.mbit:g} Mbit/s, {options.delay_ms:g} ms"
    with links, tempfile.TemporaryDirectory() as folder:
        measured = run(links, options, folder)
    print(
        f"ResNet-20, {NODES} processes on {os.cpu_count()} cores, batch {options.batch} each, "
        f"{where}; {options.turns} turns of {options.steps} steps; loss {options.loss:g}\n"
    )
    report(measured, options)


if __name__ == "__main__":
    main()
