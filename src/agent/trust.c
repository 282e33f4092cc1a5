/* trust.c - whom an agent trusts, anew while it runs; see state.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agent/state.h"
#include "base/clock.h"
#include "launch/roster.h"

static const char names_another[] = "the roster names another certificate for it, since it was "
                                    "read again";
static const char is_revoked[] = "its certificate is revoked in the roster, which was read again";
static const char key_is_over[] = "it has proved itself with an older run's key, which holds no "
                                  "longer (security.overlap_s)";

int sl_trust_open(sl_agent *a, sl_error *error) {
    pthread_condattr_t attributes;
    bool made = pthread_condattr_init(&attributes) == 0;
    if (made) {
        made = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
               pthread_cond_init(&a->trust.changed, &attributes) == 0;
        pthread_condattr_destroy(&attributes);
    }
    a->trust.open = made;
    return made ? 0 : sl_fail(error, SL_ENOMEM, "agent %u: out of memory", a->settings.rank);
}

static void drop_offer(sl_trust *t) {
    t->asked = false;
    sl_credentials_close(&t->credentials);
    sl_roster_close(&t->roster);
}

void sl_trust_close(sl_agent *a) {
    sl_trust *t = &a->trust;
    drop_offer(t);
    sl_credentials_close(&t->own_credentials);
    sl_roster_close(&t->own_roster);
    sl_roster_close(&t->before_own);
    if (t->open)
        pthread_cond_destroy(&t->changed);
}

void sl_trust_be(sl_agent *a, sl_trust_state state) {
    pthread_mutex_lock(&a->shown.mutex);
    a->trust.state = state;
    pthread_cond_broadcast(&a->trust.changed);
    pthread_mutex_unlock(&a->shown.mutex);
}

/* ---- the loop's thread ---- */

static int check(const sl_agent *a, sl_credentials *credentials, const sl_roster *roster,
                 sl_error *error) {
    const sl_guard *guard = &a->side.guard;
    sl_guard next = {.credentials = credentials != NULL ? credentials : guard->credentials};
    int result = roster != NULL && sl_guard_uses_certificates(guard)
                     ? sl_roster_check_change(roster, guard->roster, error)
                     : 0;
    if (result == 0) /* what this agent shows is what others expect of it */
        result = sl_guard_take_roster(&next, roster != NULL ? roster : guard->roster,
                                      a->settings.rank, error);
    if (result == 0 && credentials != NULL)
        result = sl_credentials_follow(credentials, guard->credentials, error);
    return result;
}

static bool is_same_key(const sl_credentials *a, const sl_credentials *b) {
    return a->secret != NULL ? sl_credentials_name(a, 0) == sl_credentials_name(b, 0)
                             : memcmp(a->fingerprint, b->fingerprint, SL_FINGERPRINT_BYTES) == 0;
}

/* What is in the files that security.ca and security.revoked name; which keys these are stays. */
static void tell_authority(const sl_credentials *now, const sl_credentials *before, char *out,
                           size_t bytes) {
    if (now == NULL || now->authority == NULL)
        return;
    const sl_authority *a = now->authority, *b = before->authority;
    snprintf(out, bytes, "%s%s",
             memcmp(a->ca, b->ca, sizeof a->ca) != 0
                 ? "; the certificates of security.ca are others"
                 : "",
             memcmp(a->lists, b->lists, sizeof a->lists) != 0
                 ? "; the list of security.revoked is another one"
                 : "");
}

static void tell_credentials(const sl_agent *a, const sl_credentials *now, char *out,
                             size_t bytes) {
    const sl_credentials *before = a->side.guard.credentials;
    if (now == NULL || is_same_key(now, before))
        snprintf(out, bytes, "%s", before != NULL ? "; the key is as before" : "");
    else if (now->secret == NULL)
        snprintf(out, bytes, "; this agent has another pair");
    else
        snprintf(out, bytes,
                 "; the run's key is another one, and the one before holds for %g s more "
                 "(security.overlap_s)",
                 a->settings.experiment->security.overlap_s);
}

static void tell(sl_agent *a, const sl_credentials *credentials, const sl_roster *roster) {
    char *said = a->trust.said;
    if (roster != NULL)
        sl_roster_tell_change(roster, a->side.roster, said, SL_AGENT_RELOAD_MAX);
    else
        snprintf(said, SL_AGENT_RELOAD_MAX, "there is no roster's file");
    size_t used = strlen(said);
    tell_credentials(a, credentials, said + used, SL_AGENT_RELOAD_MAX - used);
    used += strlen(said + used);
    tell_authority(credentials, a->side.guard.credentials, said + used, SL_AGENT_RELOAD_MAX - used);
}

/* For those who are told, in words: nothing is compared with it. */
static void note_time(char out[SL_TRUST_TIME_MAX]) {
    const time_t now = time(NULL);
    struct tm parts;
    if (localtime_r(&now, &parts) == NULL || strftime(out, SL_TRUST_TIME_MAX, "%F %T", &parts) == 0)
        out[0] = '\0';
}

/* Connections that were proved by a run's key which holds no longer are made anew. */
static void part_from_keys(sl_agent *a) {
    const sl_credentials *c = a->side.guard.credentials;
    const uint64_t now = sl_credentials_name(c, 0), before = sl_credentials_name(c, 1);
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++) {
        const uint64_t key = sl_channel_key(n->link.channel);
        if (key != 0 && key != now && key != before)
            sl_contacts_expel(a, n, key_is_over, false);
    }
}

static void take_credentials(sl_agent *a, sl_credentials *now) {
    const sl_credentials *before = a->side.guard.credentials;
    if (!is_same_key(now, before))
        note_time(a->trust.key_time);
    if (!is_same_key(now, before) && now->before != NULL)
        a->trust.overlap_ends_s = sl_clock_seconds() + a->settings.experiment->security.overlap_s;
    sl_guard_renew(&a->side.guard, now);
    a->trust.told_end = false;
    sl_credentials_close(&a->trust.own_credentials);
    a->trust.own_credentials = now;
    part_from_keys(a);
}

/* Connections that were proved by a certificate which its CA has revoked, or whose CA is another
 * one now. It may come back with another certificate. */
static void part_from_certificates(sl_agent *a) {
    char why[SL_CERTIFICATE_WHY_MAX];
    if (a->side.guard.credentials == NULL || a->side.guard.credentials->authority == NULL)
        return;
    sl_unverified_close(&a->unverified); /* true ones come again */
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        if (!sl_channel_is_trusted(n->link.channel, why))
            sl_contacts_expel(a, n, why, false);
}

/* A connection that was proved by what holds no longer. True: that may have been. */
static bool part(sl_agent *a, const sl_guard *before, sl_neighbour *n) {
    uint8_t pinned[SL_FINGERPRINT_BYTES] = {0}, pins[SL_FINGERPRINT_BYTES] = {0}; /* by a CA: 0 */
    sl_demand demand;
    const bool had = sl_guard_demand(before, n->rank, pinned, &demand);
    const bool has = sl_guard_demand(&a->side.guard, n->rank, pins, &demand);
    const bool differs = had && (!has || memcmp(pinned, pins, sizeof pins) != 0);
    if (differs)
        sl_contacts_expel(a, n, has ? names_another : is_revoked, !has);
    return differs;
}

static void take_roster(sl_agent *a, sl_roster *now) {
    sl_trust *t = &a->trust;
    const sl_guard before = a->side.guard;
    bool differs = false;
    a->side.roster = a->side.guard.roster = now;
    if (sl_guard_uses_certificates(&before)) {
        sl_unverified_close(&a->unverified); /* true ones come again */
        for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
            differs |= part(a, &before, n);
    }
    if (differs) { /* the one before is what others may still go by */
        sl_roster_close(&t->before_own);
        t->before = before.roster;
        t->before_own = t->own_roster;
        note_time(t->roster_time);
    } else {
        sl_roster_close(&t->own_roster);
    }
    t->own_roster = now;
}

static int take(sl_agent *a, sl_error *error) {
    sl_trust *t = &a->trust;
    const int result = check(a, t->credentials, t->roster, error);
    if (result != 0)
        return result;
    tell(a, t->credentials, t->roster);
    if (t->credentials != NULL)
        take_credentials(a, t->credentials);
    t->credentials = NULL;
    if (t->roster != NULL)
        take_roster(a, t->roster);
    t->roster = NULL;
    part_from_certificates(a);
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++) { /* it may be let in now */
        n->dialing.turned_away = 0;
        if (n->link.connection == NULL)
            n->dialing.next_s = a->side.now_s;
    }
    return 0;
}

void sl_trust_take(sl_agent *a) {
    sl_trust *t = &a->trust;
    sl_error error = {.code = 0};
    pthread_mutex_lock(&a->shown.mutex);
    const bool asked = t->asked;
    pthread_mutex_unlock(&a->shown.mutex);
    if (!asked)
        return;
    take(a, &error); /* the offer is the loop's, from asked on until it answers */
    pthread_mutex_lock(&a->shown.mutex);
    t->error = error;
    drop_offer(t);
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&a->shown.mutex);
}

/* A list that ended before it was read is refused. This one holds on: a run goes on. */
static void tell_ended(sl_agent *a) {
    const sl_credentials *c = a->side.guard.credentials;
    const int64_t end = c != NULL && c->authority != NULL ? c->authority->ends.revoked_s : 0;
    if (end == 0 || a->trust.told_end || (int64_t)time(NULL) < end)
        return;
    a->trust.told_end = true;
    sl_agent_notice(a, "warning: the list of security.revoked has ended; it holds on, and lacks "
                       "whom the CA has revoked since: make a new one, and reload");
}

void sl_trust_tick(sl_agent *a) {
    sl_trust *t = &a->trust;
    tell_ended(a);
    if (t->overlap_ends_s == 0 || a->side.now_s < t->overlap_ends_s)
        return;
    t->overlap_ends_s = 0;
    sl_credentials_forget(t->own_credentials);
    part_from_keys(a);
    sl_agent_notice(a, "the run's key before holds no longer (security.overlap_s)");
}

/* ---- the thread that asks ---- */

static int read_files(const sl_agent *a, sl_launch *launch, sl_credentials **credentials,
                      sl_roster **roster, sl_error *error) {
    *credentials = NULL;
    *roster = NULL;
    int result =
        sl_security_load(credentials, &a->settings.experiment->security, a->settings.rank, error);
    if (result == 0 && launch != NULL)
        result = sl_launch_read_again(launch, roster, error);
    return result;
}

/* The mutex is held. False: the state is still this one. */
static bool wait_while(sl_agent *a, bool (*waits)(const sl_trust *t)) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)a->side.limits.connect_timeout_s + 1;
    int result = 0;
    while (waits(&a->trust) && result == 0)
        result = pthread_cond_timedwait(&a->trust.changed, &a->shown.mutex, &until);
    return !waits(&a->trust);
}

static bool is_asked(const sl_trust *t) {
    return t->asked && t->state != SL_TRUST_OVER;
}

/* One at a time. */
static bool is_busy(const sl_trust *t) {
    return t->state == SL_TRUST_NOT_YET || is_asked(t);
}

/* The mutex is held. Gives both away, or closes them. */
static int offer(sl_agent *a, sl_credentials **credentials, sl_roster **roster, sl_error *error) {
    sl_trust *t = &a->trust;
    if (!wait_while(a, is_busy))
        return sl_fail(error, SL_EINVAL, "agent %u: %s", a->settings.rank,
                       t->state == SL_TRUST_NOT_YET ? "does not run yet"
                                                    : "is busy with the reload before this one");
    drop_offer(t); /* which came as the loop ended */
    t->credentials = *credentials;
    t->roster = *roster;
    *credentials = NULL;
    *roster = NULL;
    t->asked = t->state == SL_TRUST_RUNS;
    if (t->asked) {
        sl_agent_wish(a, SL_WISH_RELOAD);
        if (!wait_while(a, is_asked)) /* the offer stays the loop's */
            return sl_fail(error, SL_EINVAL, "agent %u: is busy, and takes it once it is not",
                           a->settings.rank);
        if (!t->asked)
            return 0;
    }
    drop_offer(t);
    return sl_fail(error, SL_EINVAL, "agent %u: ends", a->settings.rank);
}

int sl_agent_reload(sl_agent *a, sl_launch *launch, char said[SL_AGENT_RELOAD_MAX],
                    sl_error *error) {
    sl_credentials *credentials;
    sl_roster *roster;
    sl_error why = {.code = 0};
    why.code = read_files(a, launch, &credentials, &roster, &why);
    pthread_mutex_lock(&a->shown.mutex);
    if (why.code == 0)
        why.code = offer(a, &credentials, &roster, &why);
    if (why.code == 0)
        why = a->trust.error;
    sl_agent_progress *p = &a->shown.progress;
    p->reloads++;
    p->reloaded = why.code == 0;
    snprintf(p->reload, sizeof p->reload, "%.*s", SL_AGENT_RELOAD_MAX - 1,
             why.code == 0 ? a->trust.said : why.text);
    memcpy(said, p->reload, SL_AGENT_RELOAD_MAX);
    pthread_mutex_unlock(&a->shown.mutex);
    sl_credentials_close(&credentials);
    sl_roster_close(&roster);
    if (why.code != 0)
        sl_agent_notice(a, "warning: read again, and nothing of it is used: %s", why.text);
    else
        sl_agent_notice(a, "read again: %s", said);
    if (error != NULL && why.code != 0)
        *error = why;
    return why.code;
}
