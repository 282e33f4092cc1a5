/* claims.c - see state.h. */
#include "membership/state.h"

/* Of views, rounds and ballots: what a double holds. Nothing that is counted on wraps. */
static const uint64_t NUMBERS_MAX = (uint64_t)1 << 53;
/* Leaders take the next ballot; nobody comes to NUMBERS_MAX by steps of so many. */
static const uint64_t BALLOTS_AHEAD = (uint64_t)1 << 20;
/* Exchanges that others can be ahead beside one for each member between them. */
static const uint64_t EXCHANGES_AHEAD = 64;

static bool are_ranks(const uint32_t *list, uint32_t count, uint32_t max) {
    for (uint32_t i = 0; i < count; i++)
        if (i == max || list[i] >= max)
            return false;
    return true;
}

/* A process that takes no part knows nothing of ballots. */
static bool is_ballot_near(const sl_membership *m, sl_ballot ballot) {
    return ballot.counter <= NUMBERS_MAX &&
           (!sl_membership_takes_part(m) ||
            ballot.counter <= m->promise.ballot.counter + BALLOTS_AHEAD);
}

/* A leader speaks for its own ballots only. */
static bool is_ballot_sound(const sl_membership *m, const sl_membership_message *message) {
    const bool is_leaders = message->type == SL_MEMBERSHIP_PREPARE ||
                            message->type == SL_MEMBERSHIP_ACCEPT ||
                            message->type == SL_MEMBERSHIP_RELEASE;
    return (!is_leaders || message->ballot.rank == message->from) &&
           is_ballot_near(m, message->ballot);
}

static bool is_decision_sound(const sl_membership *m, const sl_decision *d) {
    return sl_decision_is_valid(d, m->settings.ranks_max) && d->view.number <= NUMBERS_MAX &&
           d->view.round <= NUMBERS_MAX && d->view.exchange <= NUMBERS_MAX &&
           is_ballot_near(m, d->ballot);
}

bool sl_claims_are_sound(const sl_membership *m, const sl_membership_message *message) {
    const uint32_t max = m->settings.ranks_max;
    if (message->from >= max || message->from == m->settings.rank || message->sponsor >= max ||
        message->number > NUMBERS_MAX || message->round > NUMBERS_MAX ||
        !is_ballot_sound(m, message) ||
        !are_ranks(message->unreachable, message->unreachable_count, max) ||
        !are_ranks(message->reached, message->reached_count, max))
        return false;
    if (message->decision != NULL
            ? !is_decision_sound(m, message->decision)
            : message->type == SL_MEMBERSHIP_ACCEPT || message->type == SL_MEMBERSHIP_COMMIT)
        return false;
    return message->accepted == NULL || is_decision_sound(m, message->accepted);
}

/* A member that a broken edge leaves without neighbours waits for nobody. */
bool sl_claims_round(const sl_membership *m, uint64_t round) {
    const uint64_t exchanges = m->settings.ranks_max + EXCHANGES_AHEAD;
    return sl_membership_view(m)->broken_count > 0 ||
           round <= m->node.round + exchanges * m->settings.period;
}

bool sl_claims_next(const sl_membership *m, const sl_decision *d) {
    const sl_view *old = sl_membership_view(m), *new = &d->view;
    if (new->number != m->view.number + 1 || new->round <= old->round ||
        !sl_claims_round(m, new->round - 1) ||
        new->exchange !=
            sl_view_exchange_at(old->exchange, old->round, new->round - 1, m->settings.period))
        return false;
    for (uint32_t i = 0; i < new->count; i++) { /* nobody is replaced before it was left out */
        const sl_member *member = &new->members[i], *before = sl_view_member(old, member->rank);
        if (before != NULL && before->incarnation != member->incarnation)
            return false;
    }
    return true;
}
