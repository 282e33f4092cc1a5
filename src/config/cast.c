/* cast.c - who is there, round by round; see starling/faults.h. */
#include <stdlib.h>

#include "starling/faults.h"

void sl_faults_close(sl_faults *f) {
    for (size_t i = 0; i < f->count; i++) {
        free(f->items[i].ranks);
        free(f->items[i].sides);
    }
    free(f->items);
    free(f->text);
    *f = (sl_faults){0};
}

bool sl_faults_turn(const sl_faults *f, uint64_t round) {
    for (size_t i = 0; i < f->count; i++)
        if (f->items[i].round == round && f->items[i].kind != SL_FAULT_NONFINITE)
            return true;
    return false;
}

static bool names(const sl_faults *f, sl_fault_kind kind, uint64_t round, uint32_t rank) {
    for (size_t i = 0; i < f->count; i++)
        for (size_t k = 0; k < f->items[i].count; k++)
            if (f->items[i].kind == kind && f->items[i].round == round &&
                f->items[i].ranks[k] == rank)
                return true;
    return false;
}

bool sl_faults_spoil(const sl_faults *f, uint64_t round, uint32_t rank) {
    return names(f, SL_FAULT_NONFINITE, round, rank);
}

bool sl_faults_leaves(const sl_faults *f, uint64_t round, uint32_t rank) {
    return names(f, SL_FAULT_LEAVE, round, rank);
}

uint64_t sl_faults_next(const sl_faults *f, uint64_t after) {
    uint64_t next = 0;
    for (size_t i = 0; i < f->count; i++)
        if (f->items[i].round > after && (next == 0 || f->items[i].round < next))
            next = f->items[i].round;
    return next;
}

int sl_cast_open(sl_cast *out, uint32_t nodes, uint32_t there, sl_error *error) {
    sl_cast cast = {.nodes = nodes, .of = calloc(nodes, sizeof *cast.of)};
    if (cast.of == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %u nodes", nodes);
    for (uint32_t i = there; i < nodes; i++)
        cast.of[i] = SL_ABSENT;
    *out = cast;
    return 0;
}

void sl_cast_close(sl_cast *cast) {
    free(cast->of);
    cast->of = NULL;
}

bool sl_has_quorum(uint32_t side, uint32_t of, bool has_lowest) {
    return 2ull * side > of || (2ull * side == of && has_lowest);
}

size_t sl_cast_side(const sl_fault *p) {
    uint32_t lowest = 0; /* where it stands in the list */
    for (uint32_t i = 1; i < p->count; i++)
        lowest = p->ranks[i] < p->ranks[lowest] ? i : lowest;
    for (size_t i = 0; i < p->count; i++) {
        uint32_t size = 0;
        for (size_t k = 0; k < p->count; k++)
            size += p->sides[k] == p->sides[i];
        if (sl_has_quorum(size, (uint32_t)p->count, p->sides[lowest] == p->sides[i]))
            return p->sides[i];
    }
    return SIZE_MAX;
}

static void play(sl_cast *cast, const sl_fault *f) {
    const size_t side = f->kind == SL_FAULT_PARTITION ? sl_cast_side(f) : 0;
    for (size_t i = 0; i < f->count; i++)
        cast->of[f->ranks[i]] = f->kind == SL_FAULT_JOIN        ? SL_THERE
                                : f->kind != SL_FAULT_PARTITION ? SL_ABSENT
                                : f->sides[i] == side           ? SL_THERE
                                                                : SL_RESTS;
    for (uint32_t i = 0; i < cast->nodes && f->kind == SL_FAULT_HEAL; i++)
        if (cast->of[i] == SL_RESTS)
            cast->of[i] = SL_THERE;
}

void sl_cast_play(sl_cast *cast, const sl_faults *faults, uint64_t round) {
    for (size_t i = 0; i < faults->count; i++)
        if (faults->items[i].round == round && faults->items[i].kind != SL_FAULT_NONFINITE)
            play(cast, &faults->items[i]);
}

uint32_t sl_cast_members(const sl_cast *cast, uint32_t *out) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < cast->nodes; i++)
        if (cast->of[i] == SL_THERE)
            out[count++] = i;
    return count;
}
