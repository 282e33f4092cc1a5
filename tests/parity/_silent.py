"""Messages that say nothing: who sends when is counted as in the reference, with its bytes."""
import _simulate  # noqa: F401  the folder of the reference
import algorithms

HEADER = 64  # bytes of a frame's
CHOCO = {"consensus_step": 0.3}
CASES = {
    "silent lag-3pc 1": {"name": "lag-3pc", "server": 0},
    "silent lag-3pc 5": {"name": "lag-3pc", "trigger": 5, "server": 0},
    "silent lag-wk": {"name": "lag-wk", "server": 0},
    "silent lag-wk short": {"name": "lag-wk", "depth": 3, "xi": 0.2, "server": 0},
    "silent laq": {"name": "laq", "server": 0},
    "silent laq clock": {"name": "laq", "clock": 2, "bits": 3, "server": 0},
    "silent choco-sgd": {"name": "choco-sgd", "trigger": 20, **CHOCO},
    "silent choco-sgd growing": {
        "name": "choco-sgd",
        "trigger": 5,
        "trigger_growth": 0.5,
        "variant": "mix-then-compress",
        **CHOCO,
    },
    "silent clag 3": {"name": "clag", "trigger": 3, "server": 0},
}


def payload_of(settings, d):
    """Bytes of a message that says something."""
    if settings["name"] == "laq":
        return (settings.get("bits", 4) * d + 7) // 8 + 4
    return 4 * d


def check_counts(starling, case, rounds):
    """(reason or None, 0), of messages to a server at rank 0, or along a ring."""
    (a, b, x0), *_ = case.expected()
    payload = payload_of(case.settings, x0.shape[1])
    run = algorithms.Run(
        case.graph.slots, case.settings, case.optimizer, algorithms.Quadratic(a, b), x0
    )
    for _ in range(rounds):
        run.step()
    rounds -= case.settings.get("variant") == "mix-then-compress"  # the first round has no message
    traffic, silences = case.found(starling, (a, b, x0)).traffic, run.state.silent.ravel()
    by_server = "server" in case.settings
    for i in range(int(by_server), case.graph.n):
        to, silent = 1 if by_server else 2, int(silences[i])
        expected = {
            "messages_sent": to * (rounds - silent),
            "messages_silent": to * silent,
            "bytes_sent": to * (HEADER * rounds + payload * (rounds - silent)),
        }
        found = {key: traffic[i][key] for key in expected}
        if found != expected:
            return f"node {i}: {found}, expected {expected}", None
    some = (silences[1:] > 0).any() and (silences < rounds).all()
    return None if some else f"of {rounds} messages silent: {silences}", 0
