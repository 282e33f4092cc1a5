"""What defects.py plants in averages of two; see _planted.py."""

_PAIR = "src/async/averager.c"

PAIR_DEFECTS = {
    "parts that only the server has averaged stay": (
        _PAIR,
        "p->is_cut && p->account.served && parts < p->account.parts",
        "p->is_cut && p->account.served && parts > p->account.parts",
    ),
    "a server is free before its answers are acknowledged": (
        _PAIR,
        "    p->averaged++;\n    return true;",
        "    if (++p->averaged == p->parts)\n        be_free(p);\n    return true;",
    ),
    "everybody waits for everybody": (
        _PAIR,
        "(p->phase == SL_AVERAGER_ASKS && !is_above(p, m))",
        "(p->phase == SL_AVERAGER_ASKS && p->rests)",
    ),
    "who waits is not refused at rest": (
        _PAIR,
        "    while (p->waiting_count > 0)\n        p->refused",
        "    while (p->waiting_count > p->room)\n        p->refused",
    ),
    "a priority is that of the rank, not of the ask": (
        _PAIR,
        "sl_rng_open(p->seed, rank, event, SL_PURPOSE_PAIR)",
        "sl_rng_open(p->seed, p->rank, event, SL_PURPOSE_PAIR)",
    ),
    "a gradient is applied to a model whose average was cut": (
        _PAIR,
        "return p->phase == SL_AVERAGER_FREE && !p->is_cut;",
        "return p->phase == SL_AVERAGER_FREE;",
    ),
    "a gradient is applied in the midst of an average": (
        _PAIR,
        "return p->phase == SL_AVERAGER_FREE && !p->is_cut;",
        "return p->phase != SL_AVERAGER_ASKS && !p->is_cut;",
    ),
    "an ask is served while the own one is under way": (
        _PAIR,
        "if (p->phase != SL_AVERAGER_FREE || p->rests || p->waiting_count == 0)",
        "if (p->phase == SL_AVERAGER_SERVES || p->rests || p->waiting_count == 0)",
    ),
    "a refusal to who is lost is still to be sent": (
        _PAIR,
        "    forget(p->refused, &p->refused_count, peer);\n",
        "",
    ),
    "the rest of an ask goes before it is answered": (
        _PAIR,
        "!asks ? p->come : p->averaged > 0 ? p->parts : 1;",
        "!asks ? p->come : p->parts;",
    ),
}
