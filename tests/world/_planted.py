"""What defects.py plants: one guard of the sources disabled at a time, and who has to find it."""

from _planted_apart import APART_DEFECTS
from _planted_members import LOSS_DEFECTS, MEMBERSHIP_DEFECTS
from _planted_pairs import PAIR_DEFECTS

# name: (source, what stands there, what is planted[, the seed from which it is looked for])
DEFECTS = {
    "a payload's checksum is not compared": (
        "src/wire/frame.c",
        "frame.payload_sum != sl_checksum(data + SL_FRAME_HEADER_BYTES, frame.payload_bytes)",
        "frame.payload_sum == 1",
    ),
    "a part leaves before its gradient is there": (
        "src/node/outgoing.c",
        "if (!sl_node_is_final(n, next_source(n)))",
        "if (n->settings.rank == UINT32_MAX)",
    ),
    "silence is not noticed": (
        "src/agent/peers/keepalive.c",
        "return silence_share * n->side->limits.timeout_s;",
        "return 1e9 * silence_share * n->side->limits.timeout_s;",
    ),
    "heartbeats are not sent": (
        "src/agent/peers/keepalive.c",
        "if (!n->process.bye_sent && must_beat(n))",
        "if (!n->process.bye_sent && must_beat(n) && side->meets)",
    ),
    "credit is given for buffers that are held": (
        "src/stream/stream.c",
        "return s->received.data + s->window - s->held;",
        "return s->received.data + s->window;",
    ),
    "HELLO that found no room is not repeated": (
        "src/agent/peers/keepalive.c",
        "if (n->link.connected && !n->link.hello_sent)",
        "if (n->link.connected && !n->link.hello_sent && n->link.agreed)",
        440,
    ),
    "a connection that is back is not logged": (
        "src/agent/contacts.c",
        "entry.seconds = a->side.now_s - n->absence.lost_s;\n        sl_agent_log(a, &entry);",
        "entry.seconds = a->side.now_s - n->absence.lost_s;",
    ),
    "events are logged before the run begins": (
        "src/agent/progress.c",
        "if (o->log == NULL || a->times.began_s == 0)",
        "if (o->log == NULL)",
    ),
    "who was refused does not try again": (
        "src/agent/peers/neighbour.c",
        "n->dialing.next_s = n->side->now_s + retry_s(n);",
        "n->dialing.next_s = n->side->now_s + 1000 * retry_s(n);",
    ),
    "a part is sent although there is no room": (
        "src/agent/peers/sending.c",
        "    return note_sent(n, result);",
        "    note_sent(n, result);\n    return true;",
    ),
    "who waits for long does not say so": (
        "src/agent/agent.c",
        "if (now_s - (anew ? since_s : a->times.told_s) < a->times.tell_after_s)",
        "if (now_s - a->times.told_s < a->times.tell_after_s || a->times.told_s == 0)",
    ),
    "who waits for neighbours waits for ever": (
        "src/agent/agent.c",
        "a->phase == PHASE_CONNECTING && now_s > a->times.deadline_s",
        "a->phase == PHASE_CONNECTING && now_s > 1e9 + a->times.deadline_s",
    ),
    "training begins before HELLO was said": (
        "src/agent/agent.c",
        "return !n->near || (n->link.agreed && n->link.hello_sent);",
        "return !n->near || n->link.connected;",
    ),
    "who is through does not wait for the others": (
        "src/agent/agent.c",
        "return n->process.bye_sent && n->process.bye_received &&",
        "return n->process.bye_sent &&",
        305,
    ),
    "who fails tells nobody": (
        "src/agent/agent.c",
        "            sl_neighbour_tell(n, a->cause);\n",
        "",
    ),
    "a lost connection is not noticed": (
        "src/agent/contacts.c",
        "if (!n->link.agreed || a->phase == PHASE_OVER) {",
        "if (!n->link.agreed || a->phase != PHASE_CONNECTING) {",
    ),
    "what did not come is not sent again": (
        "src/stream/stream.c",
        "    s->sent = s->acknowledged;\n",
        "    s->sent = s->numbered;\n",
        60,
    ),
    "what came is asked for again": (
        "src/agent/peers/sending.c",
        ".received = n->stream.received.frames,\n",
        ".received = n->stream.received.frames > 0 ? n->stream.received.frames - 1 : 0,\n",
        200,
    ),
    "no copy is kept of what may not have come": (
        "src/agent/rounds.c",
        "    if ((came && !frees) || copies->count == 0)\n        return came;\n",
        "    if (came || copies->count > 0)\n        return true;\n",
        180,
    ),
    "a copy is given up before all have the part": (
        "src/stream/copies.c",
        "if (--part->users > 0)",
        "if (part->users-- != 2)",
    ),
    "what stands where the node has it is not copied in time": (
        "src/agent/rounds.c",
        "    if (frees)\n",
        "    if (frees && part > 1000)\n",
        8101,
    ),
    "a part counts as left alone though the next step overwrites it": (
        "src/node/route.c",
        "        if (!is_apart(step->published, next.coming))\n            break;\n",
        "",
        5401,
    ),
    "a part waits for an answer that nobody owes": (
        "src/node/route.c",
        "        if (is_only(&step->out, &next.in))\n",
        "        if (t > number)\n",
        457,
    ),
    "who does not come back is waited for without end": (
        "src/agent/contacts.c",
        "a->phase != PHASE_TRAINING || sl_contacts_left_s(a, n) > 0)",
        "a->phase != PHASE_TRAINING || sl_contacts_left_s(a, n) > -1e9)",
    ),
    "the cause is not passed on": (
        "src/agent/contacts.c",
        "end_of(n)[0] != '\\0' ? n->process.cause : error->text",
        '"it ended"',
    ),
    "a part is overwritten before it has left": (
        "src/node/incoming.c",
        "return n->step.what.in_place ? n->step.sent : n->step.encoded;",
        "return n->step.encoded;",
    ),
    "parts of an exchange that comes early are dropped": (
        "src/node/route.c",
        "r->algorithm->route == SL_ROUTE_SERVER ? 3 : 2",
        "2",
        870,
    ),
    "a part has left when it has for one receiver": (
        "src/agent/rounds.c",
        "if (!sl_neighbour_part_left(a->receivers[i], part))",
        "if (i == 0 && !sl_neighbour_part_left(a->receivers[i], part))",
    ),
    "copies take more than a window of parts": (
        "src/agent/opening.c",
        "a->side.direct ? 0 : a->neighbour_count * a->side.limits.window;",
        "4 * a->neighbour_count * a->side.limits.window;",
    ),
    "a visitor that gives its place to another keeps its connection": (
        "src/agent/peers/unverified.c",
        '    sl_unverified_refuse(v, oldest, "others came while it said nothing");\n',
        "",
        1000,
    ),
    "a visitor that says nothing stays": (
        "src/agent/peers/unverified.c",
        "v->side->now_s > v->list[i].deadline_s)",
        "v->side->now_s > v->list[i].deadline_s + 1e9)",
        440,
    ),
    "the model changes while a gradient is computed": (
        "src/agent/rounds.c",
        "    if (update->publish)\n        start_publishing(a, &update->message);\n",
        "    if (update->compute)\n        sl_machine_model(&a->node)[0] += 1e-3f;\n"
        "    if (update->publish)\n        start_publishing(a, &update->message);\n",
    ),
}

# The same for disk_world.
DISK_DEFECTS = {
    "a checkpoint is renamed before it is synced": (
        "src/checkpoint/cut_file.c",
        "    if (result == 0)\n        result = sl_disk_sync(handle);\n",
        "",
    ),
    "the folder of checkpoints is not synced": (
        "src/checkpoint/cut_file.c",
        "(result = sl_disk_sync_folder(folder)) != 0",
        "(result = folder[0] == 1) != 0",
    ),
    "a vector's checksum is not compared": (
        "src/checkpoint/image_reader.c",
        "if (said == NULL || strcmp(said, digits) != 0)",
        "if (said == NULL || digits[0] == '\0')",
    ),
    "the push-sum weight is not saved": (
        "src/node/pieces.c",
        '    REAL("push_sum_weight", state.push_sum_weight),\n',
        "",
        630,
    ),
    "an algorithm's own vectors are not saved": (
        "src/node/pieces.c",
        'found = is_vector(out, index, s->extra[i], "own", i);',
        "found = false;",
    ),
    "momentum is not saved": (
        "src/node/pieces.c",
        'is_vector(out, index, s->m, "momentum", SIZE_MAX)',
        "false",
    ),
}

# The same for run_world.
RUN_DEFECTS = {
    "who does nothing any more is waited for without end": (
        "tools/run/fleet.c",
        "const bool late = now_seconds() - f->still_since > f->timeout_s + GRACE_SECONDS;",
        "const bool late = f->still_since > 1e300;",
    ),
    "who never comes up is waited for without end": (
        "tools/run/fleet.c",
        "    kill_within(f, f->connect_timeout_s + GRACE_SECONDS);\n",
        "",
    ),
    "an exit code is not looked at": (
        "tools/run/fleet.c",
        "    return status == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == TOOL_SAVED);",
        "    return status >= 0;",
    ),
    "who waits for a neighbour to come back is killed": (
        "tools/run/fleet.c",
        "    patience += f->reconnect_s;\n",
        "",
    ),
    "agents are not told that the run is to end": (
        "tools/run/fleet.c",
        "        f->interrupted = true;\n        signal_all(f, SIGNAL_END);\n",
        "        f->interrupted = true;\n",
    ),
    "agents are left when the run ends": (
        "tools/run/fleet.c",
        "        child_close(&f->members[i].child);\n",
        "        child_hang_up(&f->members[i].child);\n",
    ),
    "the cause of a failure is not kept": (
        "tools/run/agents.c",
        "if (r->cause.code == 0 ||",
        "if (r->cause.code == 1 ||",
    ),
    "a model is read before the others' of its round": (
        "tools/run/agents.c",
        "return r->collector->incomplete || !r->collector->waiting[rank];",
        "return true;",
    ),
    "reports wait behind a round that will never be complete": (
        "tools/run/agents.c",
        "        r->collector->incomplete = true;\n",
        "        r->collector->incomplete = false;\n",
    ),
    "two reports are mixed": (
        "tools/run/reporter.c",
        "if (pthread_mutex_clocklock(&r->telling, CLOCK_MONOTONIC, &until) == 0) {",
        "if (pthread_mutex_clocklock(&r->telling, CLOCK_MONOTONIC, &until) != 1) {",
        600,
    ),
    "who is asked for a checkpoint looks at that for ever": (
        "src/agent/agent.c",
        "    sl_signal_take(a->stop_descriptor);\n",
        "",
    ),
    "not all agents leave after the same round": (
        "src/agent/saving.c",
        "note(a, kind, under_way + s->spread);",
        "note(a, kind, under_way);",
    ),
}

# The same for session_world.
SESSION_DEFECTS = {
    "a call that did not come is not sent again": (
        "src/stream/stream.c",
        "    s->sent = s->acknowledged;\n",
        "    s->sent = s->acknowledged;\n"
        "    const sl_sent_frame *f;\n"
        "    while ((f = sl_stream_next(s)) && !sl_frame_is_data(&f->frame))\n"
        "        sl_stream_pass(s);\n",
    ),
    "a call goes before HELLO has come": (
        "src/agent/peers/sending.c",
        "n->link.hello_sent && n->link.agreed;",
        "n->link.hello_sent;",
    ),
    "every rank gives its own first model": (
        "src/session/peer.c",
        "    if (rank != 0)\n        memset(x, 0, d * sizeof *x);\n",
        "",
    ),
}

# The same for sweep_world.
SWEEP_DEFECTS = {
    "a shortage of memory is taken for a file that is not good": (
        "src/agent/saving.c",
        "else if (checked == SL_ENOMEM)",
        "else if (checked == 1)",
    ),
}


# The same for the tests of unit/.
SAVING_DEFECTS = {
    "who has left names another round": (
        "src/agent/saving.c",
        "if (a->saving.left || (",
        "if ((",
    ),
}

CHANNEL_DEFECTS = {
    "two frames have one nonce": (
        "src/secure/seal.c",
        "put64(nonce, s->frames++);",
        "put64(nonce, s->frames);",
    ),
    "a tag is not compared": (
        "src/secure/seal.c",
        "return s->library->end(s->cipher, tag);",
        "s->library->end(s->cipher, tag);\n    return true;",
    ),
    "what a seal says is not looked at": (
        "src/agent/peers/channel.c",
        "if (!unseal(c, data, bytes, now_s)) {",
        "if (!unseal(c, data, bytes, now_s) && bytes < SL_FRAME_HEADER_BYTES) {",
    ),
    "a header is not sealed": (
        "src/secure/seal.c",
        "s->library->begin(s->cipher, nonce, header, bytes);",
        "s->library->begin(s->cipher, nonce, header, bytes > 8 ? 8 : bytes);",
    ),
    "a frame without a seal passes where all are sealed": (
        "src/agent/peers/channel.c",
        "if (c == NULL || c->in == NULL)",
        "if (c == NULL || c->in == NULL || (bytes > 7 && (data[7] & 2) == 0))",
    ),
    "frames are counted anew under each key": (
        "src/secure/seal.c",
        "s->began = s->frames;",
        "s->began = s->frames = 0;",
    ),
    "a key is never worn": (
        "src/secure/seal.c",
        "now_s - s->began_s > key_s",
        "now_s - s->began_s > 1e9 * key_s",
    ),
    "the next key of the other side is not followed": (
        "src/agent/peers/channel.c",
        "if (phase != sl_seal_phase(c->in) && ",
        "if (phase != sl_seal_phase(c->in) && c->dials && ",
    ),
    "both directions have one key": (
        "src/secure/handshake.c",
        "memcpy(h->dials ? takes : sends, both + SL_SEAL_KEY_BYTES, SL_SEAL_KEY_BYTES);",
        "memcpy(h->dials ? takes : sends, both, SL_SEAL_KEY_BYTES);",
    ),
    "a certificate is not compared with the roster's": (
        "src/secure/certificate.c",
        "d->pinned != NULL && CRYPTO_memcmp(fingerprint, d->pinned, sizeof fingerprint) != 0",
        "d->pinned == NULL && d->authority == NULL",
    ),
    "any rank's certificate proves a rank": (
        "src/agent/peers/channel.c",
        "!sl_guard_demand(guard, peer_of(c), c->pin, &demand)",
        "!sl_guard_demand(guard, 0 * peer_of(c), c->pin, &demand)",
    ),
    "an expired certificate is good": (
        "src/secure/certificate.c",
        "if (begun && !ended)",
        "if (begun)",
    ),
    "a run's key proves any rank": (
        "src/secure/handshake.c",
        "sl_passage_encode(&h->passage, context);\n    for (unsigned i = 0;",
        "memset(context, 0, sizeof context);\n    for (unsigned i = 0;",
    ),
    "HELLO passes before the proof": (
        "src/agent/peers/channel.c",
        "else if (!sl_channel_is_ready(c))",
        "else if (!sl_channel_is_ready(c) && frame->type != SL_FRAME_HELLO)",
    ),
    "one receiver takes all envelopes": (
        "src/agent/peers/sealed_buffers.c",
        "if (has >= SL_SEALED_BUFFERS || e->free_count == 0)",
        "if (has > 1000 || e->free_count == 0)",
    ),
    "an envelope is used again before it has left": (
        "src/agent/peers/sealed_buffers.c",
        "    const uint32_t number = e->free[--e->free_count];\n",
        "    const uint32_t number = e->free[e->free_count - 1];\n",
    ),
    "a closed connection keeps its envelopes": (
        "src/agent/peers/channel.c",
        "    sl_sealed_buffers_give_all(&c->guard->envelopes, c);\n",
        "",
    ),
    "a frame that found no room is sealed again": (
        "src/agent/peers/channel.c",
        "    if (result == 0)\n        w->header_bytes = 0;\n    return result;",
        "    w->header_bytes = 0;\n    return result;",
    ),
}

SECURE_DEFECTS = {
    "a proof is not compared": (
        "src/secure/greeting.c",
        "CRYPTO_memcmp(mac, macs + at, MAC_BYTES) == 0",
        "CRYPTO_memcmp(mac, macs + at, 0) == 0",
    ),
    "a proof fits another challenge": (
        "src/secure/greeting.c",
        "e->challenge, SL_CHALLENGE_BYTES);",
        "e->challenge, 16);",
    ),
    "a proof of one side is the other's": (
        "src/secure/greeting.c",
        'dials ? "starling dials" : "starling answers", dials ? 14 : SIDE_BYTES',
        '"starling dials", 14',
    ),
    "whoever knows a certificate has its key": (
        "src/secure/greeting.c",
        "EVP_DigestVerify(context, signature, SIGNATURE_BYTES, text, SIGNED_BYTES) == 1",
        "EVP_DigestVerify(context, signature, SIGNATURE_BYTES, text, SIGNED_BYTES) >= 0",
    ),
    "the next key is the same one": (
        "src/secure/seal.c",
        "    memcpy(s->key, next, sizeof next);\n",
        "",
    ),
    "frames' keys are of any passage": (
        "src/secure/handshake.c",
        "context, sizeof context, 1) == 1;",
        "NULL, 0, 0) == 1;",
    ),
    "TLS 1.2 is spoken": (
        "src/secure/tls.c",
        "return SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION) == 1 &&",
        "return SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION) == 1 &&",
    ),
}

# What finds them, of the build's tests/.
# The same for restart_world.
RESTART_DEFECTS = {
    "who ends again and again is started without end": (
        "tools/run/restarts.c",
        "if (recent == RESTARTS_MAX)",
        "if (recent > RESTARTS_MAX)",
    ),
    "who has left is started again": (
        "tools/run/fleet.c",
        "stays_out = f->restart != SL_RESTART_ALWAYS;",
        "stays_out = false;",
    ),
    "who joins is not told where to listen": ("tools/run/fleet.c", ".port = m->port};", "};"),
    "who joins gets no roster": (
        "tools/run/fleet.c",
        "if (m->joins && f->roster_sent)",
        "if (m->finished && f->roster_sent)",
        45,
    ),
    "all end with a checkpoint that lacks somebody": (
        "src/agent/saving.c",
        "round == a->saving.asked[kind] && a->cohort.cutting == SL_CUTTING_NOTHING;",
        "round == a->saving.asked[kind];",
    ),
    "who joins chooses the round of the last checkpoint": (
        "src/agent/saving.c",
        "if (sl_cohort_is_outside(&a->cohort)) { /* it has no part in a cut */",
        "if (kind == SL_CUT_KINDS) {",
        4501,
    ),
}

WIRE_DEFECTS = {
    "a header's checksum is not compared": (
        "src/wire/frame.c",
        "if (get32(data + HEADER_SUM_AT) != header_sum(data))",
        "if (header_sum(data) == 1 && get32(data + HEADER_SUM_AT) == 1)",
    ),
}

AUTHORITY_DEFECTS = {
    "who is revoked is not asked": (
        "src/secure/authority.c",
        "X509_STORE_set_flags(r->authority->store, X509_V_FLAG_CRL_CHECK) != 1",
        "r->count == 0",
    ),
    "a certificate of the CA proves any rank": (
        "src/secure/certificate.c",
        "if (!right || names_rank(certificate, d->rank))",
        "if (!right || names_rank(certificate, d->rank) || d->rank > 0)",
    ),
    "a CA vouches against the roster": (
        "src/secure/certificate.c",
        "if (d->pinned != NULL && ",
        "if (d->authority == NULL && d->pinned != NULL && ",
    ),
    "whoever is pinned need not be of the CA": (
        "src/secure/certificate.c",
        "if (d->authority != NULL)",
        "if (d->pinned == NULL)",
    ),
    "anybody's certificate may sign": (
        "src/secure/authority.c",
        "if (X509_check_ca(signer) != 1)",
        "if (signer == NULL)",
    ),
    "anybody's list revokes": (
        "src/secure/authority.c",
        "if (!is_signed(r, list))",
        "if (!is_signed(r, list) && r->count == 0)",
    ),
    "a list that has ended shuts all out": (
        "src/secure/authority.c",
        "if (wrong != X509_V_ERR_CRL_HAS_EXPIRED && ",
        "if (",
    ),
    "a certificate is shown without its key": (
        "src/secure/greeting.c",
        "certificate != NULL && is_signed(text, certificate, signature) &&",
        "certificate != NULL &&",
    ),
}
# The same for test_verdicts.
VERDICT_DEFECTS = {
    "a neighbour that has left is still waited for": (
        "src/agent/leaving.c",
        "(sl_machine_awaits(&a->node, n->rank) ||",
        "(a->side.now_s < 0 ||",
    ),
}

FINDERS = {
    "world/fault_world": DEFECTS,
    "world/disk_world": DISK_DEFECTS,
    "world/run_world": RUN_DEFECTS,
    "world/restart_world": RESTART_DEFECTS,
    "world/session_world": SESSION_DEFECTS,
    "world/membership_world": MEMBERSHIP_DEFECTS,
    "world/pair_world": PAIR_DEFECTS,
    "world/apart_world": APART_DEFECTS,
    "world/loss_world": LOSS_DEFECTS,
    "world/sweep_world": SWEEP_DEFECTS,
    "test_wire": WIRE_DEFECTS,
    "test_saving": SAVING_DEFECTS,
    "test_verdicts": VERDICT_DEFECTS,
    "test_channel": CHANNEL_DEFECTS,
    "test_secure": SECURE_DEFECTS,
    "test_authority": AUTHORITY_DEFECTS,
}
