/* members_post.c - what will happen, by time, and messages on their way; see members.h. */
#include <stdlib.h>
#include <string.h>

#include "members.h"

static happening *heap;
static size_t heap_count, heap_max;
static uint64_t orders;

static bool comes_before(const happening *a, const happening *b) {
    return a->at_s < b->at_s || (a->at_s == b->at_s && a->order < b->order);
}

void push(happening h) {
    if (heap_count == heap_max)
        heap = realloc(heap, (heap_max = 2 * heap_max + 64) * sizeof *heap);
    h.order = orders++;
    size_t i = heap_count++;
    for (; i > 0 && comes_before(&h, &heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = h;
}

happening pop(void) {
    const happening first = heap[0], last = heap[--heap_count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < heap_count; i = child) {
        if (child + 1 < heap_count && comes_before(&heap[child + 1], &heap[child]))
            child++;
        if (!comes_before(&heap[child], &last))
            break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return first;
}

bool nothing_is_left(void) {
    return heap_count == 0;
}

void forget(bool frees) {
    while (heap_count > 0)
        free(pop().letter);
    orders = 0;
    if (frees) {
        free(heap);
        heap = NULL;
        heap_max = 0;
    }
}

/* ---- letters ---- */

static const sl_decision *copy_decision(letter *l, int i, const sl_decision *d) {
    if (d == NULL)
        return NULL;
    l->decisions[i] = *d;
    memcpy(l->members[i], d->view.members, d->view.count * sizeof(sl_member));
    if (d->view.broken_count > 0)
        memcpy(l->broken[i], d->view.broken, d->view.broken_count * sizeof(sl_pair));
    l->decisions[i].view.members = l->members[i];
    l->decisions[i].view.broken = l->broken[i];
    return &l->decisions[i];
}

letter *letter_copy(const sl_membership_message *message) {
    letter *l = malloc(sizeof *l);
    l->message = *message;
    l->message.decision = copy_decision(l, 0, message->decision);
    l->message.accepted = copy_decision(l, 1, message->accepted);
    for (uint32_t i = 0; i < message->unreachable_count; i++)
        l->unreachable[i] = message->unreachable[i];
    for (uint32_t i = 0; i < message->reached_count; i++)
        l->reached[i] = message->reached[i];
    l->message.unreachable = l->unreachable;
    l->message.reached = l->reached;
    return l;
}
