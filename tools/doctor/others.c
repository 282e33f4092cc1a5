/* others.c - who answers at the roster's places, and who has called: reach, clocks, packets,
 * releases.
 *
 * Of two agents the higher rank connects. So a rank below has to be reached from here, and one
 * above has to reach this one; the other way only helps to notice that a process has ended. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "doctor/doctor.h"
#include "doctor/meeting.h"

enum { NAMED_MAX = 6, NAMES_BYTES = NAMED_MAX * 80 + 32 };
static const double skew_s = 2; /* times of two hosts' logs can be compared below */

typedef struct looking {
    doctor *d;
    meeting *m;
} looking;

typedef bool is_meant(const looking *l, uint32_t rank);

/* "rank 1 (node-b:7000)", "ranks 1 (node-b:7000), 2 (...) and 5 more": how many. */
static uint32_t name(const looking *l, is_meant *meant, char out[NAMES_BYTES]) {
    uint32_t count = 0;
    size_t at = 0;
    for (uint32_t i = 0; i < l->m->count; i++) {
        if (!meant(l, i))
            continue;
        if (count++ < NAMED_MAX)
            at += (size_t)snprintf(out + at, NAMES_BYTES - at, "%s%u (%.60s:%u)",
                                   count == 1 ? "" : ", ", i, sl_roster_host(l->d->roster, i),
                                   sl_roster_port(l->d->roster, i));
    }
    if (count > NAMED_MAX)
        snprintf(out + at, NAMES_BYTES - at, " and %u more", count - NAMED_MAX);
    return count;
}

static bool is_other(const looking *l, uint32_t rank) {
    return l->m->places[rank].ss_family != 0 && !(l->m->has_rank && rank == l->m->rank);
}

static bool has_answered(const looking *l, uint32_t rank) {
    const call_end end = l->m->met[rank].end;
    return is_other(l, rank) && (end == CALL_ANSWERED || end == CALL_STALLED);
}

static bool is_other_rank(const looking *l, uint32_t rank) {
    const words *said = &l->m->met[rank].said;
    return has_answered(l, rank) && said->has_rank && said->rank != rank;
}

/* Is it enough that it reaches this one? */
static bool comes_itself(const looking *l, uint32_t rank) {
    return l->m->has_rank && rank > l->m->rank && l->m->met[rank].heard;
}

/* ---- reach ---- */

static bool is_refused(const looking *l, uint32_t rank) {
    return is_other(l, rank) && l->m->met[rank].end == CALL_REFUSED;
}

static bool is_mute(const looking *l, uint32_t rank) {
    return is_other(l, rank) && l->m->met[rank].end == CALL_MUTE;
}

static bool is_silent(const looking *l, uint32_t rank) {
    return is_other(l, rank) && l->m->met[rank].end == CALL_SILENT && !comes_itself(l, rank);
}

static bool is_unreachable(const looking *l, uint32_t rank) {
    return is_other(l, rank) && l->m->met[rank].end == CALL_UNREACHABLE && !comes_itself(l, rank);
}

static bool is_one_way(const looking *l, uint32_t rank) {
    const call_end end = l->m->met[rank].end;
    return is_other(l, rank) && comes_itself(l, rank) &&
           (end == CALL_SILENT || end == CALL_UNREACHABLE);
}

static int why_unreachable(const looking *l) {
    uint32_t i = 0;
    while (!is_unreachable(l, i))
        i++;
    return l->m->met[i].why;
}

static void say_refused(const looking *l) {
    char names[NAMES_BYTES];
    report *r = &l->d->report;
    if (name(l, is_refused, names) == 0)
        return;
    if (l->d->wait_s > 0)
        report_fail(r, "reach", "start `starling doctor` there with the same roster and --wait",
                    "rank %s: refused for %.3g s: nothing listens there, or a firewall rejects it",
                    names, l->d->wait_s);
    else
        report_warn(r, "reach", "start `starling doctor --wait 60` with its rank there, and here",
                    "rank %s: refused: nothing listens there yet", names);
}

static void say_reach(const looking *l) {
    char names[NAMES_BYTES];
    report *r = &l->d->report;
    const uint32_t others = name(l, is_other, names), answered = name(l, has_answered, names);
    double most_s = 0;
    for (uint32_t i = 0; i < l->m->count; i++)
        most_s = has_answered(l, i) ? fmax(most_s, l->m->met[i].round_trip_s) : most_s;
    if (answered > 0)
        report_ok(r, "reach", "doctors of %u of %u other ranks answer, within %.1f ms", answered,
                  others, 1e3 * most_s);
    say_refused(l);
    if (name(l, is_mute, names) > 0)
        report_ok(r, "reach", "rank %s: something listens there that is no doctor, as an agent is",
                  names);
    if (name(l, is_silent, names) > 0)
        report_fail(r, "reach", "let its firewall accept the port, or see whether the host is up",
                    "rank %s: no answer: timed out, as behind a firewall that drops packets",
                    names);
    if (name(l, is_unreachable, names) > 0)
        report_fail(r, "reach", "see routes and firewalls (ip route get ADDRESS)",
                    "rank %s: cannot be reached: %s", names, strerror(why_unreachable(l)));
    if (name(l, is_one_way, names) > 0)
        report_warn(r, "reach", "let its firewall accept the port, so that it is open both ways",
                    "rank %s: reaches this host, and is not reached from here", names);
}

/* ---- the other way ---- */

static bool has_not_called(const looking *l, uint32_t rank) {
    return has_answered(l, rank) && rank > l->m->rank && !l->m->met[rank].heard &&
           !is_other_rank(l, rank);
}

static bool need_not_call(const looking *l, uint32_t rank) {
    return has_answered(l, rank) && rank < l->m->rank && !l->m->met[rank].heard &&
           !is_other_rank(l, rank);
}

static void say_heard(const looking *l) {
    static const char remedy[] = "let the firewall of this host accept TCP at its port";
    char names[NAMES_BYTES];
    if (l->m->listener < 0 || l->d->wait_s == 0)
        return;
    const uint32_t missing = name(l, has_not_called, names);
    if (missing > 0)
        report_fail(&l->d->report, "heard", remedy,
                    "rank %s: answers, and has not reached this host", names);
    if (name(l, need_not_call, names) > 0)
        report_warn(&l->d->report, "heard", remedy,
                    "rank %s: answers, and has not reached this host, which is one way only",
                    names);
    else if (missing == 0 && name(l, has_answered, names) > 0)
        report_ok(&l->d->report, "heard", "all that answer have reached this host, too");
}

/* ---- packets ---- */

static bool is_stalled(const looking *l, uint32_t rank) {
    return is_other(l, rank) && l->m->met[rank].end == CALL_STALLED;
}

static void say_packets(const looking *l) {
    char names[NAMES_BYTES];
    unsigned least = 0, most = 0;
    bool goes_out = false;
    for (uint32_t i = 0; i < l->m->count; i++) {
        const met *a = &l->m->met[i];
        goes_out = goes_out || (is_stalled(l, i) && a->stalled_out);
        if (!has_answered(l, i) || a->mtu == 0 || !a->sends_large)
            continue;
        least = least == 0 || a->mtu < least ? a->mtu : least;
        most = a->mtu > most ? a->mtu : most;
    }
    if (name(l, is_stalled, names) > 0)
        report_fail(&l->d->report, "MTU",
                    "set the same MTU on all of the way (ip link set DEV mtu N), or let ICMP "
                    "\"fragmentation needed\" pass",
                    "rank %s: small packets pass, and large ones do not %s", names,
                    goes_out ? "leave here" : "come back");
    else if (least > 0 && least == most)
        report_ok(&l->d->report, "MTU", "packets of %u bytes pass", least);
    else if (least > 0)
        report_ok(&l->d->report, "MTU", "packets of %u to %u bytes pass", least, most);
}

/* ---- clocks ---- */

static bool is_ahead(const looking *l, uint32_t rank) {
    const met *a = &l->m->met[rank];
    return has_answered(l, rank) && fabs(a->ahead_s) - a->round_trip_s / 2 > skew_s;
}

/* Its clock is beyond the days of this node's certificate. */
static bool doubts_certificate(const looking *l, uint32_t rank) {
    const double now_s = (double)time(NULL) + l->m->met[rank].ahead_s;
    return is_ahead(l, rank) && l->d->valid_until_s > 0 &&
           (now_s < (double)l->d->valid_from_s || now_s > (double)l->d->valid_until_s);
}

static void say_clocks(const looking *l) {
    static const char remedy[] = "set both by NTP (timedatectl set-ntp true)";
    char names[NAMES_BYTES];
    double most_s = 0;
    for (uint32_t i = 0; i < l->m->count; i++)
        if (has_answered(l, i) && fabs(l->m->met[i].ahead_s) > fabs(most_s))
            most_s = l->m->met[i].ahead_s;
    if (name(l, doubts_certificate, names) > 0)
        report_fail(&l->d->report, "clock", remedy,
                    "rank %s: there this node's certificate is not valid; clocks are up to %.3g s "
                    "apart",
                    names, fabs(most_s));
    else if (name(l, is_ahead, names) > 0)
        report_warn(&l->d->report, "clock", remedy,
                    "rank %s: its clock is up to %.3g s %s this one", names, fabs(most_s),
                    most_s > 0 ? "ahead of" : "behind");
    else if (name(l, has_answered, names) > 0)
        report_ok(&l->d->report, "clock", "those that answer are within %.2g s",
                  fabs(most_s) + 0.001);
}

/* ---- releases ---- */

static bool speaks_otherwise(const looking *l, uint32_t rank) {
    return has_answered(l, rank) && l->m->met[rank].said.protocol != SL_PROTOCOL_VERSION;
}

static bool is_other_release(const looking *l, uint32_t rank) {
    return has_answered(l, rank) && strcmp(l->m->met[rank].said.release, sl_version()) != 0;
}

static void say_releases(const looking *l) {
    static const char remedy[] = "install the same release on all hosts";
    char names[NAMES_BYTES];
    if (name(l, speaks_otherwise, names) > 0)
        report_fail(&l->d->report, "release", remedy,
                    "rank %s: speaks another protocol than this one's, %u", names,
                    SL_PROTOCOL_VERSION);
    else if (name(l, is_other_release, names) > 0)
        report_warn(&l->d->report, "release", remedy, "rank %s: has another one than %s", names,
                    sl_version());
    if (name(l, is_other_rank, names) > 0)
        report_fail(&l->d->report, "ranks",
                    "give all hosts the same roster, and each its own --rank",
                    "rank %s: who answers there has another rank", names);
}

/* ---- all of it ---- */

/* One rank of each host has large packets to answer: the way is the same for all. */
static void choose_large(const looking *l) {
    for (uint32_t i = 0; i < l->m->count; i++)
        l->m->met[i].sends_large =
            i == 0 || (l->m->has_rank && i == l->m->rank + 1) ||
            strcmp(sl_roster_host(l->d->roster, i), sl_roster_host(l->d->roster, i - 1)) != 0;
}

void look_at_others(doctor *d, int listener) {
    if (d->places == NULL)
        return;
    const uint32_t count = sl_roster_count(d->roster);
    meeting m = {.places = d->places,
                 .count = count,
                 .has_rank = d->has_rank,
                 .rank = d->rank,
                 .listener = listener,
                 .wait_s = d->wait_s,
                 .met = calloc(count, sizeof(met))};
    const looking l = {d, &m};
    if (m.met != NULL)
        choose_large(&l);
    if (m.met == NULL || !meeting_hold(&m)) {
        report_fail(&d->report, "reach", "", "out of memory");
    } else {
        say_reach(&l);
        say_heard(&l);
        say_packets(&l);
        say_clocks(&l);
        say_releases(&l);
    }
    free(m.met);
}
