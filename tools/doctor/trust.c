/* trust.c - key files, certificates and those who vouch for them: as an agent reads them, and as
 * others will judge them. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "doctor/doctor.h"

enum { DAY_TEXT = 16 };
static const int64_t soon_s = 14 * 86400; /* less is left: who renews needs time */

static void print_day(int64_t seconds, char out[DAY_TEXT]) {
    const time_t time = (time_t)seconds;
    struct tm utc;
    strftime(out, DAY_TEXT, "%Y-%m-%d", gmtime_r(&time, &utc));
}

/* until_s 0: it does not end. */
static void say_end(report *r, const char *name, const char *what, int64_t until_s,
                    const char *remedy) {
    char day[DAY_TEXT];
    print_day(until_s, day);
    if (until_s == 0)
        report_ok(r, name, "%s does not end", what);
    else if (until_s <= time(NULL))
        report_fail(r, name, remedy, "%s ended %s (UTC)", what, day);
    else if (until_s - time(NULL) < soon_s)
        report_warn(r, name, remedy, "%s ends soon: %s (UTC)", what, day);
    else
        report_ok(r, name, "%s ends %s (UTC)", what, day);
}

/* False: its files are no good. */
static bool say_authority(report *r, const sl_security_config *c) {
    sl_authority_ends ends;
    sl_error error;
    if (c->ca[0] == '\0')
        return true;
    if (sl_security_look(c, &ends, &error) != 0) {
        report_fail(r, "CA", "", "%s", error.text);
        return false;
    }
    say_end(r, "CA", "security.ca", ends.ca_s,
            "have its certificate renewed, and give it to all nodes");
    if (c->revoked[0] != '\0')
        say_end(r, "revoked", "security.revoked", ends.revoked_s,
                "make a new list (`openssl ca -gencrl`), and give it to all nodes");
    return true;
}

/* What the others will ask of this node's certificate. */
static void say_certificate(doctor *d, const sl_credentials *credentials) {
    const char *pinned = d->roster != NULL && d->rank < sl_roster_count(d->roster)
                             ? sl_roster_fingerprint(d->roster, d->rank)
                             : "";
    sl_error error;
    sl_credentials_dates(credentials, &d->valid_from_s, &d->valid_until_s);
    if (d->valid_until_s == 0)
        return;
    if (d->roster != NULL && strcmp(pinned, "revoked") == 0)
        report_fail(&d->report, "certificate",
                    "make a new pair (`starling keys make --node`), and put its fingerprint there",
                    "the roster revokes that of rank %u", d->rank);
    else if (d->has_rank && sl_credentials_check(credentials, d->rank, pinned, &error) != 0)
        report_fail(&d->report, "certificate",
                    "give this node the pair of its rank, or have one made "
                    "(docs/security.md)",
                    "%s", error.text);
    else
        say_end(&d->report, "certificate", "this node's", d->valid_until_s,
                "have a new one made, and its fingerprint put in the roster");
}

void look_at_keys(doctor *d) {
    const sl_security_config *c = &d->trial.experiment->security;
    const bool is_own = strstr(c->key, "{rank}") != NULL && !d->has_rank; /* each agent's own */
    sl_credentials *credentials = NULL;
    sl_error error;
    if (!d->given || sl_security_mode_of(c) == SL_SECURITY_NONE || !say_authority(&d->report, c))
        return;
    if (is_own)
        report_warn(&d->report, "key", "say --rank", "%s is not looked at", c->key);
    else if (sl_security_load(&credentials, c, d->has_rank ? (int64_t)d->rank : -1, &error) != 0)
        report_fail(&d->report, "key", "", "%s", error.text);
    else
        report_ok(&d->report, "key", "%s is this user's alone", c->key);
    if (credentials != NULL)
        say_certificate(d, credentials);
    sl_credentials_close(&credentials);
}
