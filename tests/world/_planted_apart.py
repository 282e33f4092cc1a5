"""What defects.py plants in agents whose nodes go at their own times; see _planted.py. Most were
there until the world was."""

APART_DEFECTS = {
    "a sum that a view cut is waited for": (
        "src/agent/calls.c",
        "    if (c->current.kind == SL_CALL_SUM) /* of the view before */\n",
        "    if (c->current.kind == SL_CALL_REST)\n",
    ),
    "nobody hears that others have given up the average": (
        "src/agent/averaging.c",
        "return n != NULL && n->process.bye_received && !n->absence.gone &&",
        "return n != NULL && !n->process.bye_received && !n->absence.gone &&",
    ),
    "who leaves takes part in the average": (
        "src/agent/rounds.c",
        "    a->averaging.stage = SL_AVERAGING_NONE; /* who leaves may have come to it */\n",
        "",
    ),
    "who leaves after its last round tells of the model before it": (
        "src/agent/rounds.c",
        ".finished = rested->round == a->settings.task.rounds,",
        ".finished = false,",
    ),
    "a round of who leaves is told twice": (
        "src/agent/rounds.c",
        ".round_done = rested->round != a->cohort.told,",
        ".round_done = true,",
    ),
    "somebody who is alone asks": (
        "src/async/pairs.c",
        "n->wants = n->wants && n->asks && n->inbox.peer_count > 0;",
        "n->wants = n->wants && n->asks;",
    ),
    "what comes after a cut ends the run": (
        "src/async/averager.c",
        "return p->is_cut && m->peer ==",
        "return p->rests && !p->is_cut && m->peer ==",
    ),
    "the server waits for who ends with rounds of its own": (
        "src/async/commits.c",
        "if (!update->finished || n->view == NULL)",
        "if (!update->finished || n->view == NULL || hook != NULL)",
    ),
    "a neighbour that leaves hears BYE before the last versions": (
        "src/agent/leaving.c",
        "return a->node.own != NULL && n->near;",
        "return a->node.own != NULL && !n->near && n->near;",
    ),
}
