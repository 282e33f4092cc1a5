"""Defects of members, and of agents that go on without a lost peer: as in _planted.py."""

# Of members, who agree on epochs.
MEMBERSHIP_DEFECTS = {
    "a promise is for more rounds than was told": (
        "src/membership/member.c",
        "(m->bound && round > m->limit)",
        "(m->bound && round > m->limit + 1)",
    ),
    "members of a side end at the smallest limit": (
        "src/membership/leader.c",
        "else if (last > sides[i].last)",
        "else if (last < sides[i].last)",
    ),
    "an epoch begins before the one before has ended": (
        "src/membership/member.c",
        "if (m->queued > 0 && m->round >= m->queue[0].last)",
        "if (m->queued > 0)",
    ),
    "an epoch begins amid an exchange": (
        "src/membership/leader.c",
        "const uint64_t last = sl_round_up(a->limit, m->settings.period);",
        "const uint64_t last = a->limit;",
    ),
    "an older epoch is taken": (
        "src/membership/member.c",
        "    if (e->number <= m->number)\n        return;\n    const sl_epoch_side",
        "    const sl_epoch_side",
    ),
    "the number of an epoch does not grow": (
        "src/membership/leader.c",
        "e->number = a->number + 1;",
        "e->number = a->number > 1 ? a->number : 2;",
    ),
    "the exchanges of a side behind are counted": (
        "src/membership/leader.c",
        "if (exchange > e->exchange)",
        "if (e->exchange == 0 || exchange < e->exchange)",
    ),
    "sides do not merge": (
        "src/membership/cause.c",
        "if (knocks(m, i) || sl_membership_is_foreign(m, i))",
        "if (knocks(m, i))",
    ),
    "who joins is not let in": (
        "src/membership/cause.c",
        "if (knocks(m, i) || sl_membership_is_foreign(m, i))",
        "if (sl_membership_is_foreign(m, i))",
    ),
    "COMMIT does not wait for all that accept": (
        "src/membership/leader.c",
        "        if (has_not_accepted(m, i))\n            return;\n    commit(m);",
        "        if (has_not_accepted(m, i) && m->now_s < 0)\n            return;\n    commit(m);",
    ),
    "the round of a side ahead does not count": (
        "src/membership/leader.c",
        "if (side->last >= e->round)",
        "if (e->round == 0)",
    ),
}

LOSS_DEFECTS = {
    "who follows a process has a larger incarnation": (
        "src/agent/neighbour.c",
        "return theirs->joins && (is_free || n->heir == theirs->incarnation);",
        "return theirs->joins && theirs->incarnation > n->incarnation &&"
        " (is_free || n->heir == theirs->incarnation);",
        201,
    ),
    "parts on their way out are overwritten as their receiver is folded": (
        "src/agent/folding.c",
        "if (n->connection != NULL && n->left < n->sent_ever) {",
        "if (n->connection != NULL && n->left > n->sent_ever) {",
        34,
    ),
    "who trains alone does not say so": (
        "src/agent/folding.c",
        "    sl_members_tell_broken(a, view);\n",
        "",
        199,
    ),
    "who is lost is not folded": (
        "src/agent/members.c",
        "    if (!n->folded)\n        sl_folding_lose(a, n);\n    sl_members_alarm(a);",
        "    sl_members_alarm(a);",
    ),
    "data of another epoch is mixed": (
        "src/agent/early.c",
        "    if (hash == g->hash && !n->folded)\n        sl_agent_deliver(a, event);",
        "    if (!n->folded)\n        sl_agent_deliver(a, event);",
    ),
    "data that came early is lost": (
        "src/agent/early.c",
        "if (early.hash == g->hash && !early.from->folded)",
        "if (early.hash == g->hash && early.from->folded)",
    ),
    "who has turned is still waited for": (
        "src/agent/folding.c",
        "later || does_nothing_here(a, n);",
        "does_nothing_here(a, n);",
        40,
    ),
    "who has stepped aside, or is in no view, is still waited for": (
        "src/agent/folding.c",
        "(m != NULL && (sl_membership_is_aside(m, n->rank, n->since) ||",
        "(m == NULL && (sl_membership_is_aside(m, n->rank, n->since) ||",
    ),
    "who sees a later epoch trains on alone": (
        "src/agent/members.c",
        "return any && !a->cohort.alone && !sl_membership_is_let_go(a->cohort.membership);",
        "return false;",
        74902,
    ),
    "a port that refuses is not believed": (
        "src/agent/contacts.c",
        "if (++n->refusals < REFUSALS || n->gone",
        "if (++n->refusals < 1000000 * REFUSALS || n->gone",
    ),
    "a part that is not finite is sent": (
        "src/node/outgoing.c",
        "return !n->settings.turns || !n->settings.vec->on_host ||",
        "return true || !n->settings.vec->on_host ||",
        50,
    ),
    "who has stepped aside and leaves tells a round twice": (
        "src/agent/rounds.c",
        "const bool at_end = !a->cohort.aside; /* else",
        "const bool at_end = true; /* else",
        304,
    ),
}

# Of who joins: rare in worlds, and told as a transcript.
JOINING_DEFECTS = {
    "who has given up joining goes back on what it accepted": (
        "src/membership/member.c",
        "side->last < m->limit : !may_join(m, e))",
        "side->last < m->limit : !m->joins)",
    ),
}
