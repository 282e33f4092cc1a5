"""Gossip training from a loop of your own: see docs/python.md.

    peer = starling.join("experiment.json", model)
    peer.attach(optimizer)
    ...
    average = peer.average()
    peer.leave()
"""

from starling._callback import Callback
from starling._files import load
from starling._join import join, simulate
from starling._library import Error, version
from starling._peer import Peer
from starling._topology import Topology, spectrum, topology

__version__ = version().decode()
__all__ = [
    "Callback",
    "Error",
    "Peer",
    "Topology",
    "join",
    "load",
    "simulate",
    "spectrum",
    "topology",
]
