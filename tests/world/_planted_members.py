"""Defects of members, and of agents that go on without a lost peer: as in _planted.py."""

# Of members, which agree on views.
MEMBERSHIP_DEFECTS = {
    "a promise does not hold the next round": (
        "src/membership/member.c",
        "!(m->promise.bound || m->view.cut))",
        "!m->view.cut)",
    ),
    "the member that is furthest does not count": (
        "src/membership/leader.c",
        "a->round > last)",
        "(last == 0 || a->round < last))",
    ),
    "a view begins before the rounds before it have ended": (
        "src/membership/member.c",
        "m->view.pending && next >= sl_membership_view(m)->round)",
        "m->view.pending)",
    ),
    "the number of a view does not grow": (
        "src/membership/leader.c",
        ".number = m->view.number + 1,",
        ".number = m->view.number,",
    ),
    "a round without an exchange is counted as one": (
        "src/membership/decision.c",
        "return exchange + last / period - (round - 1) / period;",
        "return exchange + last - (round - 1);",
    ),
    "who joins is not let in": (
        "src/membership/cause.c",
        "        if (knocks(m, i))\n            return true;",
        "        if (knocks(m, i) && m->now_s < 0)\n            return true;",
    ),
    "a part without a quorum decides": (
        "src/membership/quorum.c",
        "return 2 * count > living || (2 * count == living && has_lowest);",
        "return count > 0 || living > 0;",
    ),
    "either half decides": (
        "src/membership/quorum.c",
        "(2 * count == living && has_lowest)",
        "2 * count == living",
    ),
    "what may hold is not proposed again": (
        "src/membership/leader.c",
        "const bool is_new = !may_hold(m);",
        "const bool is_new = !may_hold(m) || m->now_s >= 0;",
        3401,
    ),
    "a cut is told to nobody": (
        "src/membership/state.c",
        ".cut = m->view.cut ? m->view.number : m->node.cut_in,",
        ".cut = 0,",
    ),
    "the view before is not cut": (
        "src/membership/membership.c",
        "        sl_view_has(begun, message->from, message->incarnation))\n"
        "        m->view.newest.decision.cut = true;",
        "        sl_view_has(begun, message->from, message->incarnation))\n"
        "        m->news.due = true;",
    ),
    "a process that has ended is waited for": (
        "src/membership/quorum.c",
        "(sl_membership_has_ended(m, member->rank) ||",
        "((m->now_s < 0 && sl_membership_has_ended(m, member->rank)) ||",
    ),
}

LOSS_DEFECTS = {
    "an exchange that is cut beside the gradient does not wait for it": (
        "src/node/node.c",
        "return n->round.final == 0 ? end_alone(n, error) : 0;",
        "return end_alone(n, error);",
    ),
    "parts of later views are not foreseen": (
        "src/node/codecs.c",
        "    int result = settings->turns && sl_algorithm_voids(route->algorithm)",
        "    int result = settings->turns && settings->rank == UINT32_MAX",
        5001,
    ),
    "who follows a process has a larger incarnation": (
        "src/agent/peers/neighbour.c",
        "return theirs->joins && (is_free || n->successor == theirs->incarnation);",
        "return theirs->joins && theirs->incarnation > n->process.incarnation &&"
        " (is_free || n->successor == theirs->incarnation);",
        201,
    ),
    "parts on their way out are overwritten as the exchange is cut": (
        "src/agent/members.c",
        "a->cohort.cutting != SL_CUTTING_WAITS || !sl_agent_recall(a))",
        "a->cohort.cutting != SL_CUTTING_WAITS || (sl_agent_recall(a), false))",
    ),
    "who trains alone does not say so": (
        "src/agent/members.c",
        "    sl_members_tell_broken(a, view);\n",
        "",
        501,
    ),
    "a loss does not cut": (
        "src/agent/members.c",
        "    if (u->cut)\n        sl_cutting_begin(a);",
        "    (void)sl_cutting_begin;",
    ),
    "data of another view is mixed": (
        "src/agent/contacts.c",
        "arrived == SL_ARRIVED_DATA && frame.view == a->side.now.view)",
        "arrived == SL_ARRIVED_DATA && frame.view > 0)",
        801,
    ),
    "what a cut leaves is sent again from where it was": (
        "src/agent/rounds.c",
        "1u << SL_FRAME_DATA | 1u << SL_FRAME_DIRECT",
        "1u << SL_FRAME_DIRECT",
    ),
    "data is sent to who has not begun its view": (
        "src/agent/peers/sending.c",
        "n->process.view >= n->side->now.view && ",
        "",
    ),
    "a port that refuses is not believed": (
        "src/agent/contacts.c",
        "if (n->absence.refusals < SL_REFUSALS || n->absence.gone",
        "if (n->absence.refusals < 1000000 * SL_REFUSALS || n->absence.gone",
    ),
    "a part that is not finite is sent": (
        "src/node/outgoing.c",
        "return !n->settings.turns || !n->settings.vec->on_host ||",
        "return true || !n->settings.vec->on_host ||",
        50,
    ),
}
