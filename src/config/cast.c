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
        if (f->items[i].view_round == round)
            return true;
    return false;
}

bool sl_faults_touch(const sl_faults *f, uint64_t round) {
    for (size_t i = 0; i < f->count; i++)
        if (f->items[i].round == round)
            return true;
    return sl_faults_turn(f, round);
}

bool sl_faults_spoil(const sl_faults *f, uint64_t round, uint32_t rank) {
    for (size_t i = 0; i < f->count; i++)
        for (size_t k = 0; k < f->items[i].count; k++)
            if (f->items[i].kind == SL_FAULT_NONFINITE && f->items[i].round == round &&
                f->items[i].ranks[k] == rank)
                return true;
    return false;
}

uint64_t sl_faults_next(const sl_faults *f, uint64_t after) {
    uint64_t next = 0;
    for (size_t i = 0; i < f->count; i++) {
        const uint64_t rounds[] = {f->items[i].round, f->items[i].view_round};
        for (size_t k = 0; k < 2; k++)
            if (rounds[k] > after && (next == 0 || rounds[k] < next))
                next = rounds[k];
    }
    return next;
}

int sl_cast_open(sl_cast *out, uint32_t nodes, uint32_t there, sl_error *error) {
    sl_cast cast = {.nodes = nodes, .side_count = 1, .sides = calloc(nodes, sizeof *cast.sides)};
    if (cast.sides == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %u nodes", nodes);
    for (uint32_t i = there; i < nodes; i++)
        cast.sides[i] = SL_ABSENT;
    *out = cast;
    return 0;
}

void sl_cast_close(sl_cast *cast) {
    free(cast->sides);
    cast->sides = NULL;
}

static void heal(sl_cast *cast) {
    for (uint32_t i = 0; i < cast->nodes; i++)
        if (cast->sides[i] != SL_ABSENT)
            cast->sides[i] = 0;
    cast->side_count = 1;
}

static void play(sl_cast *cast, const sl_fault *f) {
    for (size_t i = 0; i < f->count; i++)
        cast->sides[f->ranks[i]] = f->kind == SL_FAULT_PARTITION ? f->sides[i]
                                   : f->kind == SL_FAULT_JOIN    ? 0
                                                                 : SL_ABSENT;
    for (size_t i = 0; i < f->count && f->kind == SL_FAULT_PARTITION; i++)
        if (f->sides[i] >= cast->side_count)
            cast->side_count = f->sides[i] + 1;
    if (f->kind == SL_FAULT_HEAL)
        heal(cast);
}

void sl_cast_play(sl_cast *cast, const sl_faults *faults, uint64_t round) {
    for (size_t i = 0; i < faults->count; i++)
        if (faults->items[i].round == round && faults->items[i].kind != SL_FAULT_NONFINITE)
            play(cast, &faults->items[i]);
}

uint32_t sl_cast_members(const sl_cast *cast, uint32_t side, uint32_t *out) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < cast->nodes; i++)
        if (cast->sides[i] == side)
            out[count++] = i;
    return count;
}
