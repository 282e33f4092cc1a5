"""Ports for the processes of a test."""

import random
import socket

# Below those that the kernel gives to connections that go out, of which other tests make many:
# one of those ports may be taken again before a test's own process listens there.
PORTS = range(10000, 32000)
CHANCE = random.SystemRandom()


def is_free(port):
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def free_range(count, multiple=1):
    """The first of so many that follow each other, where nobody listens."""
    while True:
        first = CHANCE.choice(PORTS) // multiple * multiple
        if all(map(is_free, range(first, first + count))):
            return first


def free_ports(count):
    """`count` different ports of 127.0.0.1 where nobody listens."""
    sockets = []
    while len(sockets) < count:
        one = socket.socket()
        try:
            one.bind(("127.0.0.1", CHANCE.choice(PORTS)))
            sockets.append(one)
        except OSError:
            one.close()
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
