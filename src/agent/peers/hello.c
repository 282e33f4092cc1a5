/* hello.c - what two agents say before anything else, and what differs; see neighbour.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/peers/neighbour.h"
#include "task/layout_text.h"
#include "wire/checksum.h"

sl_passage sl_side_passage(const sl_side *side, uint32_t to) {
    return (sl_passage){.run_id = side->hello.run_id,
                        .from = side->rank,
                        .to = to,
                        .incarnation = side->incarnation};
}

/* The checksum is of both: what is of this connection only, and the words. */
int sl_side_send_hello(const sl_side *side, sl_channel *channel, sl_connection *connection,
                       const sl_standing *standing, sl_frame *frame) {
    uint8_t whole[SL_FRAME_HEADER_BYTES + SL_HELLO_BYTES + SL_HELLO_TEXT_MAX];
    uint8_t *payload = whole + SL_FRAME_HEADER_BYTES;
    const size_t words_bytes = side->hello.settings_bytes + side->hello.layout_bytes;
    sl_hello hello = side->hello;
    hello.standing = *standing;
    sl_hello_encode(&hello, payload);
    memcpy(payload + SL_HELLO_BYTES, side->words, words_bytes);
    frame->type = SL_FRAME_HELLO;
    frame->sender = side->rank;
    frame->payload_bytes = (uint32_t)(SL_HELLO_BYTES + words_bytes);
    frame->payload_sum = sl_checksum(payload, frame->payload_bytes);
    sl_frame_encode(frame, whole);
    return sl_channel_send(channel, connection, side->now_s, whole,
                           SL_FRAME_HEADER_BYTES + SL_HELLO_BYTES, side->words, words_bytes, false);
}

typedef struct value {
    const char *key;
    uint64_t ours, theirs;
} value;

/* What HELLO holds in full. */
static const value *value_that_differs(const value *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (values[i].ours != values[i].theirs)
            return &values[i];
    return NULL;
}

static const char model_layout[] = "model layout", on_loss[] = "membership.on_loss";

/* A layout that HELLO does not hold to its end may differ behind. */
static bool name_tensor(const sl_hello *ours, uint32_t rank, const sl_hello *theirs, uint32_t peer,
                        char text[SL_REFUSAL_MAX]) {
    char tensor[SL_REFUSAL_MAX - 64];
    if (!sl_layout_text_differs((sl_layout_text){theirs->layout, theirs->layout_bytes},
                                (sl_layout_text){ours->layout, ours->layout_bytes}, tensor,
                                sizeof tensor))
        return false;
    snprintf(text, SL_REFUSAL_MAX, "the tensors of agents %u (there) and %u (here) differ: %s",
             peer, rank, tensor);
    return true;
}

/* The first setting of the section that differs, as far as both have said theirs. */
static bool name_setting(const sl_hello *ours, const sl_hello *theirs, uint32_t peer,
                         const char *section, char text[SL_REFUSAL_MAX]) {
    sl_difference d;
    if (ours->settings_bytes == 0 || theirs->settings_bytes == 0 ||
        !sl_experiment_difference(&d, section, ours->settings, ours->settings_bytes,
                                  theirs->settings, theirs->settings_bytes))
        return false;
    snprintf(text, SL_REFUSAL_MAX, "%s: %s here, %s at agent %u", d.key, d.ours, d.theirs, peer);
    return true;
}

/* What HELLO holds a hash of. A rank that joins behind the first ones brings data of its own,
 * unless all share theirs. */
static const char *section_that_differs(const sl_hello *ours, const sl_hello *theirs,
                                        bool own_data) {
    const bool loss = ours->goes_on != theirs->goes_on; /* which algorithm.replicas may follow */
    if (ours->topology_hash != theirs->topology_hash)
        return "topology";
    for (uint32_t i = 0; i < ours->section_count; i++)
        if (ours->section_count != theirs->section_count ||
            (ours->sections[i] != theirs->sections[i] && !(own_data && i == SL_SECTION_data)))
            return loss && i == SL_SECTION_algorithm ? on_loss : sl_section_name((sl_section)i);
    if (loss)
        return on_loss;
    if (ours->layout_hash != theirs->layout_hash)
        return model_layout;
    if (ours->direct != theirs->direct)
        return "way of payloads (transport.gpu_direct; \"off\" for all suits any pair)";
    return ours->data_hash != theirs->data_hash && !own_data
               ? "content of the data set, or of model.start,"
               : NULL;
}

static void name_beginning(uint64_t resumed, char out[64]) {
    if (resumed == 0)
        snprintf(out, 64, "begins anew");
    else if (resumed == SL_HELLO_AGREES)
        snprintf(out, 64, "goes on from a checkpoint (--resume)");
    else
        snprintf(out, 64, "goes on from round %" PRIu64, resumed);
}

static void name_beginnings(const sl_hello *ours, uint32_t rank, const sl_hello *theirs,
                            uint32_t peer, char text[SL_REFUSAL_MAX]) {
    char here[64], there[64];
    name_beginning(ours->resumed, here);
    name_beginning(theirs->resumed, there);
    snprintf(text, SL_REFUSAL_MAX,
             "agent %u %s, and agent %u %s; all go on from the same round, or none does", peer,
             there, rank, here);
}

bool sl_hello_differs(const sl_side *side, const sl_hello *theirs, uint32_t peer,
                      char text[SL_REFUSAL_MAX]) {
    const sl_hello *ours = &side->hello;
    const uint32_t rank = side->rank;
    const bool own_data = !side->shares && (peer >= ours->nodes || rank >= ours->nodes);
    const value inputs[] = {{"seed", ours->seed, theirs->seed},
                            {"topology.nodes", ours->nodes, theirs->nodes}};
    const value results[] = {{"rounds", ours->rounds, theirs->rounds},
                             {"the model's parameters", ours->dimension, theirs->dimension},
                             {"transport.chunk_bytes", ours->chunk_bytes, theirs->chunk_bytes}};
    const char *section = ours->run_id != theirs->run_id ? "run id" : NULL;
    const value *v = section == NULL ? value_that_differs(inputs, 2) : NULL;
    if (section == NULL && v == NULL)
        section = section_that_differs(ours, theirs, own_data);
    const bool joins = side->now.trains || theirs->standing.trains ||
                       ours->resumed == SL_HELLO_JOINS || theirs->resumed == SL_HELLO_JOINS;
    if (section == NULL && v == NULL && ours->resumed != theirs->resumed && !joins) {
        name_beginnings(ours, rank, theirs, peer, text);
        return true;
    }
    if (section == NULL && v == NULL)
        v = value_that_differs(results, 3);
    if (v != NULL)
        snprintf(text, SL_REFUSAL_MAX, "%s: %" PRIu64 " here, %" PRIu64 " at agent %u", v->key,
                 v->ours, v->theirs, peer);
    else if (section == on_loss)
        snprintf(text, SL_REFUSAL_MAX,
                 "%s: \"%s\" here, \"%s\" at agent %u; \"auto\" follows from the algorithm",
                 on_loss, ours->goes_on ? "continue" : "stop",
                 theirs->goes_on ? "continue" : "stop", peer);
    else if (section != NULL && name_setting(ours, theirs, peer, section, text))
        return true;
    else if (section == model_layout && name_tensor(ours, rank, theirs, peer, text))
        return true;
    else if (section != NULL)
        snprintf(text, SL_REFUSAL_MAX, "the %s of agents %u and %u differs; %s", section, peer,
                 rank,
                 ours->run_id != theirs->run_id
                     ? "their rosters differ, or STARLING_RUN_ID (--run-id): give both the same"
                     : "run `starling check` on both hosts' experiment files and compare");
    return section != NULL || v != NULL;
}
