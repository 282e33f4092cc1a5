/* reduce.c - see reduce.h. */
#include "agent/collectives/reduce.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/round_up.h"
#include "starling/vec.h"

static size_t part_bytes(const sl_side *side) {
    return sl_frame_sum_bytes_max(side->limits.part_bytes_max, side->direct);
}

size_t sl_reduce_bytes(const sl_side *side) {
    return sl_round_up(2 * SL_REDUCE_WINDOW * part_bytes(side), SL_VEC_ALIGNMENT);
}

int sl_reduce_open(sl_reduce *out, sl_tree_position *place, sl_side *side, sl_error *error) {
    sl_reduce s = {.place = place, .part_numbers = part_bytes(side) / sizeof(double)};
    const size_t bytes = sl_reduce_bytes(side);
    s.links = calloc(place->link_count + 1u, sizeof *s.links);
    s.rising = sl_side_share(side, bytes);
    if (s.rising == NULL)
        s.rising = s.own = aligned_alloc(SL_VEC_ALIGNMENT, bytes);
    s.falling = s.rising + SL_REDUCE_WINDOW * s.part_numbers;
    int result = s.links != NULL && s.rising != NULL
                     ? sl_fabric_register(side->fabric, s.rising, bytes, -1, error)
                     : sl_fail(error, SL_ENOMEM, "agent %u: out of memory for sums", side->rank);
    if (result != 0)
        sl_reduce_close(&s);
    else
        *out = s;
    return result;
}

void sl_reduce_close(sl_reduce *s) {
    free(s->links);
    free(s->own);
    memset(s, 0, sizeof *s);
}

int sl_reduce_turn(sl_reduce *s, sl_error *error) {
    sl_reduce_link *links = calloc(s->place->link_count + 1u, sizeof *links);
    if (links == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for sums of a view");
    free(s->links);
    s->links = links;
    s->active = false;
    s->number = 0;
    s->parts = s->vector_parts = s->begun = s->settled = 0;
    return 0;
}

static size_t parts_for(const sl_reduce *s, size_t count) {
    return (count + s->part_numbers - 1) / s->part_numbers;
}

int sl_reduce_begin(sl_reduce *s, const sl_share *share, sl_error *error) {
    const size_t vector_parts = parts_for(s, share->count),
                 parts = vector_parts + parts_for(s, share->number_count);
    if (parts > UINT32_MAX)
        return sl_fail(error, SL_EINVAL, "a sum of %zu numbers; in frames of %zu they are too many",
                       share->number_count, s->part_numbers);
    s->share = *share;
    s->active = true;
    s->number++;
    s->vector_parts = (uint32_t)vector_parts;
    s->parts = (uint32_t)parts;
    s->begun = s->settled = 0;
    for (uint32_t i = 0; i < s->place->link_count; i++) {
        sl_reduce_link *l = &s->links[i];
        l->received = l->told = l->asked = l->sent = l->come = 0;
    }
    return 0;
}

/* ---- parts ---- */

static bool is_child(const sl_reduce *s, uint32_t link) {
    return link < s->place->child_count;
}

static sl_reduce_link *parent(const sl_reduce *s) {
    return sl_tree_position_is_root(s->place) ? NULL : &s->links[s->place->child_count];
}

/* The vector's parts, in float, come first; those of the numbers, in double, follow. */
static bool is_of_vector(const sl_reduce *s, uint32_t part) {
    return part < s->vector_parts;
}

/* Where it begins in the vector, or among the numbers. */
static size_t beginning_of(const sl_reduce *s, uint32_t part) {
    return (is_of_vector(s, part) ? part : part - s->vector_parts) * s->part_numbers;
}

static size_t numbers_of(const sl_reduce *s, uint32_t part) {
    const size_t count = is_of_vector(s, part) ? s->share.count : s->share.number_count,
                 rest = count - beginning_of(s, part);
    return rest < s->part_numbers ? rest : s->part_numbers;
}

static size_t bytes_down(const sl_reduce *s, uint32_t part) {
    return numbers_of(s, part) * (is_of_vector(s, part) ? sizeof(float) : sizeof(double));
}

static double *slot(const sl_reduce *s, double *slots, uint32_t part) {
    return slots + part % SL_REDUCE_WINDOW * s->part_numbers;
}

static void lay_own_share(const sl_reduce *s, uint32_t part) {
    double *out = slot(s, s->rising, part);
    const size_t count = numbers_of(s, part);
    if (!is_of_vector(s, part)) {
        memcpy(out, s->share.numbers + beginning_of(s, part), count * sizeof *out);
        return;
    }
    const float *x = s->share.x + beginning_of(s, part);
    for (size_t i = 0; i < count; i++)
        out[i] = x[i];
}

static void add(const sl_reduce *s, uint32_t part, const uint8_t *payload) {
    double *sum = slot(s, s->rising, part);
    for (size_t i = 0; i < numbers_of(s, part); i++) {
        double term;
        memcpy(&term, payload + i * sizeof term, sizeof term);
        sum[i] += term;
    }
}

/* The result of the next part: into the share, and to where it is sent on from. */
static void settle(sl_reduce *s, const void *result) {
    const uint32_t part = s->settled++;
    const size_t bytes = bytes_down(s, part);
    if (is_of_vector(s, part))
        memcpy(s->share.x + beginning_of(s, part), result, bytes);
    else
        memcpy(s->share.numbers + beginning_of(s, part), result, bytes);
    if (result != slot(s, s->falling, part))
        memcpy(slot(s, s->falling, part), result, bytes);
}

static void settle_at_root(sl_reduce *s) {
    const double *sum = slot(s, s->rising, s->settled);
    double *out = slot(s, s->falling, s->settled);
    if (!is_of_vector(s, s->settled))
        memcpy(out, sum, bytes_down(s, s->settled));
    for (size_t i = 0; is_of_vector(s, s->settled) && i < numbers_of(s, s->settled); i++)
        ((float *)out)[i] = (float)(sum[i] / s->share.divisor);
    settle(s, out);
}

/* ---- how far it may go ---- */

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* Parts that all children's are added to. */
static uint32_t whole(const sl_reduce *s) {
    return s->place->child_count > 0 ? s->links[s->place->child_count - 1].received : s->begun;
}

/* Parts whose place in `falling` is free again. */
static uint32_t passed_down(const sl_reduce *s) {
    uint32_t parts = s->settled;
    for (uint32_t i = 0; i < s->place->child_count; i++)
        parts = least(parts, s->links[i].come);
    return parts;
}

static uint32_t passed_up(const sl_reduce *s) {
    return parent(s) != NULL ? parent(s)->come : s->settled;
}

/* How many parts this link may send. */
static uint32_t room_for(const sl_reduce *s, uint32_t link) {
    if (!is_child(s, link))
        return least(s->parts, passed_down(s) + SL_REDUCE_WINDOW);
    return link == 0 ? s->begun : s->links[link - 1].received;
}

/* ---- sending ---- */

static bool send_part(sl_reduce *s, uint32_t link) {
    sl_reduce_link *l = &s->links[link];
    const bool down = is_child(s, link);
    const sl_frame frame = {
        .type = SL_FRAME_SUM,
        .exchange = s->number,
        .part = l->sent,
        .payload_bytes =
            (uint32_t)(down ? bytes_down(s, l->sent) : numbers_of(s, l->sent) * sizeof(double)),
    };
    if (!sl_neighbour_send(s->place->links[link], frame,
                           slot(s, down ? s->falling : s->rising, l->sent), false))
        return false;
    l->sent++;
    return true;
}

static void send_parts(sl_reduce *s, uint32_t link) {
    sl_reduce_link *l = &s->links[link];
    const uint32_t ready = is_child(s, link) ? s->settled : whole(s);
    while (sl_tree_position_reaches(s->place, link) && l->wanted_in == s->number &&
           l->sent < least(ready, l->wanted) && send_part(s, link))
        ;
}

/* Asks for parts, and tells how many came: the last at once. */
static void ask(sl_reduce *s, uint32_t link) {
    sl_reduce_link *l = &s->links[link];
    const sl_frame frame = {.type = SL_FRAME_SUM_CREDIT,
                            .exchange = s->number,
                            .part = room_for(s, link),
                            .step = l->received};
    const bool due = frame.part > l->asked || l->received - l->told >= SL_REDUCE_WINDOW / 2 ||
                     (l->received == s->parts && l->told < l->received);
    if (!due || !sl_tree_position_reaches(s->place, link) ||
        !sl_neighbour_send(s->place->links[link], frame, NULL, false))
        return;
    l->asked = frame.part;
    l->told = frame.step;
}

static bool is_done(const sl_reduce *s) {
    for (uint32_t i = 0; i < s->place->link_count; i++)
        if (s->links[i].told < s->parts)
            return false;
    return s->settled == s->parts && passed_down(s) == s->parts && passed_up(s) == s->parts;
}

bool sl_reduce_has_passed(const sl_reduce *s, uint32_t link) {
    const sl_reduce_link *l = &s->links[link];
    const bool is_child = link < s->place->child_count;
    return is_child ? l->received == s->parts && l->come == s->parts : s->settled == s->parts;
}

bool sl_reduce_is_known(const sl_reduce *s) {
    return s->parts > 0 && s->settled == s->parts;
}

bool sl_reduce_advance(sl_reduce *s, bool holds) {
    if (!s->active)
        return false;
    do {
        while (s->begun < least(s->parts, passed_up(s) + SL_REDUCE_WINDOW))
            lay_own_share(s, s->begun++);
        while (parent(s) == NULL && !holds &&
               s->settled < least(whole(s), passed_down(s) + SL_REDUCE_WINDOW))
            settle_at_root(s);
    } while (s->begun < least(s->parts, passed_up(s) + SL_REDUCE_WINDOW));
    for (uint32_t i = 0; i < s->place->link_count; i++) {
        ask(s, i);
        send_parts(s, i);
    }
    s->active = !is_done(s);
    return !s->active;
}

/* ---- receiving ---- */

static int refuse(const sl_neighbour *from, const char *what, const sl_frame *frame,
                  sl_error *error) {
    return sl_fail_edge(error, SL_EPROTO, from->rank, from->side->rank, from->side->now.round,
                        "agent %u sent part %u of sum %" PRIu64 ", %u bytes, %s", from->rank,
                        frame->part, frame->exchange, frame->payload_bytes, what);
}

static int take_part(sl_reduce *s, uint32_t link, const sl_frame *frame, const uint8_t *payload,
                     sl_error *error) {
    sl_reduce_link *l = &s->links[link];
    const sl_neighbour *from = s->place->links[link];
    if (!s->active || frame->exchange != s->number || frame->part != l->received ||
        frame->part >= l->asked)
        return refuse(from, "which was not asked for", frame, error);
    const size_t bytes = is_child(s, link) ? numbers_of(s, frame->part) * sizeof(double)
                                           : bytes_down(s, frame->part);
    if (frame->payload_bytes != bytes)
        return refuse(from, "where this agent's share has another size", frame, error);
    l->received++;
    if (is_child(s, link))
        add(s, frame->part, payload);
    else
        settle(s, payload);
    return 0;
}

/* A SUM_CREDIT. Of a later sum than this agent's: all of this one came. Of an earlier one: it has
 * not heard yet that this one has begun. */
static int take_wish(sl_reduce *s, uint32_t link, const sl_frame *frame, sl_error *error) {
    sl_reduce_link *l = &s->links[link];
    const bool now = frame->exchange == s->number;
    if (frame->exchange < s->number)
        return 0;
    if ((now && frame->step > l->sent) || (!now && (frame->step > 0 || l->sent < s->parts)))
        return refuse(s->place->links[link], "of which it has not got so many", frame, error);
    if (l->come < frame->step || !now)
        l->come = now ? frame->step : l->sent;
    l->wanted = frame->part;
    l->wanted_in = frame->exchange;
    return 0;
}

int sl_reduce_take(sl_reduce *s, sl_neighbour *from, const sl_frame *frame, const uint8_t *payload,
                   sl_error *error) {
    const uint32_t link = sl_tree_position_link(s->place, from);
    if (link == s->place->link_count)
        return refuse(from, "but is no neighbour in the tree of sums", frame, error);
    if (frame->type == SL_FRAME_SUM)
        return take_part(s, link, frame, payload, error);
    return take_wish(s, link, frame, error);
}

void sl_reduce_name_wait(const sl_reduce *s, char *out, size_t bytes, uint32_t *peer) {
    if (s->place->link_count == 0) {
        snprintf(out, bytes, "nobody");
        return;
    }
    uint32_t link = 0; /* the first that has not sent what it was asked for */
    while (link + 1 < s->place->link_count && s->links[link].received == s->links[link].asked)
        link++;
    *peer = s->place->links[link]->rank;
    snprintf(out, bytes, "agent %u's part %u of %u", *peer, s->links[link].received, s->parts);
}
