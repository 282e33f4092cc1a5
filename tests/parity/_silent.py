"""Messages that say nothing: who sends when is counted as in the reference, with its bytes."""
import _simulate  # noqa: F401  the folder of the reference
import algorithms

HEADER = 64  # bytes of a frame's
CASES = {
    "silent lag-3pc 1": {"name": "lag-3pc", "server": 0},
    "silent lag-3pc 5": {"name": "lag-3pc", "trigger": 5, "server": 0},
    "silent clag 3": {"name": "clag", "trigger": 3, "server": 0},
}


def check_counts(starling, case, rounds):
    """(reason or None, 0), of messages to a server at rank 0 that are as long as the vector."""
    (a, b, x0), *_ = case.expected()
    run = algorithms.Run(
        case.graph.slots, case.settings, case.optimizer, algorithms.Quadratic(a, b), x0
    )
    for _ in range(rounds):
        run.step()
    traffic, silences = case.found(starling, (a, b, x0)).traffic, run.state.silent.ravel()
    for i in range(1, case.graph.n):
        silent = int(silences[i])
        expected = {
            "messages_sent": rounds - silent,
            "messages_silent": silent,
            "bytes_sent": HEADER * rounds + 4 * x0.shape[1] * (rounds - silent),
        }
        found = {key: traffic[i][key] for key in expected}
        if found != expected:
            return f"node {i}: {found}, expected {expected}", None
    some = (silences[1:] > 0).any() and (silences < rounds).all()
    return None if some else f"of {rounds} messages silent: {silences}", 0
