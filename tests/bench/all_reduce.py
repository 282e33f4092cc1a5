#!/usr/bin/env python3
"""Starling's ring all-reduce beside OpenMPI's MPI_Allreduce and Gloo's through PyTorch; and a
CHOCO-SGD round beside a dense one. In one run, in turns.

With --mbit only the second, on links of that rate (root). The tables are Markdown
(docs/benchmarks.md).

usage: all_reduce.py ...     meson compile -C BUILD gossip_agents peer_mpi links
"""
import importlib.util
import os
import sys

import _bench
from _links import Links

# Of the models themselves, at learning rate 0.
AVERAGE = ["algorithm.name=local-sgd", "algorithm.period=1"]
CHOCO = [
    "algorithm.name=choco-sgd",
    "algorithm.compressor.name=top-k",
    "algorithm.compressor.fraction=0.01",
]


def averages(build, nodes, dimension):
    """name -> command"""
    size = [str(dimension), str(_bench.rounds_for(nodes, dimension))]
    agents = _bench.needed(build, "gossip_agents")
    programs = {"Starling": [agents, str(nodes), *size, *AVERAGE]}
    if _bench.has_mpi(build):
        programs["OpenMPI"] = _bench.mpi(build, nodes, *size, "allreduce")
    if importlib.util.find_spec("torch"):
        gloo = os.path.join(_bench.HERE, "peer_gloo.py")
        programs["Gloo"] = [sys.executable, gloo, str(nodes), *size]
    else:
        print("Gloo: this Python has no torch (apt-get install python3-torch)")
    return programs


def rounds_of_gossip(build, nodes, dimension, links=None):
    """name -> command; each agent is in a namespace of its own where there are links."""
    agents = _bench.needed(build, "gossip_agents")
    rounds = {name: _bench.rounds_for(nodes, dimension) for name in ("CHOCO top-1 %", "D-PSGD")}
    command = [agents]
    if links is not None:
        command = ["env", "GOSSIP_NETNS=" + links.prefix, agents]
        rounds = {"CHOCO top-1 %": 8, "D-PSGD": 1}
    keys = {"CHOCO top-1 %": CHOCO, "D-PSGD": []}
    return {
        name: [*command, str(nodes), str(dimension), str(count), *keys[name]]
        for name, count in rounds.items()
    }


def main():
    parser = _bench.parser_of(__doc__, repetitions=3)
    parser.add_argument("--dimension", type=int, default=_bench.RESNET50)
    parser.add_argument("--nodes", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--mbit", type=float, help="of each agent's link; default: loopback")
    options = parser.parse_args()
    build, d, last = options.build, options.dimension, options.nodes[-1]
    title = "Compressed beside dense gossip on a ring"
    if options.mbit is not None:
        with Links(build, last, options.mbit, 0) as links:
            cases = [(last, rounds_of_gossip(build, last, d, links))]
            _bench.print_table(f"{title}, {options.mbit:g} Mbit/s", d, options.repetitions, cases)
        return
    cases = [(nodes, averages(build, nodes, d)) for nodes in options.nodes]
    _bench.print_table("All-reduce", d, options.repetitions, cases)
    _bench.print_table(title, d, options.repetitions, [(last, rounds_of_gossip(build, last, d))])


if __name__ == "__main__":
    main()
