/* deadlines.c - do the experiment's deadlines leave time for what its links need? */
#include <math.h>

#include "check/times_page.h"
#include "doctor/doctor.h"

static const double near_share = 0.5; /* of a deadline: rounds differ */

/* Of the parts that may stand in a link before a heartbeat: one for each neighbour. */
static double queue_seconds(const trial *t) {
    const sl_experiment *e = t->experiment;
    const uint32_t *peers, degree = sl_topology_peers(e->topology, 0, &peers);
    return e->network.bandwidth_mbit > 0
               ? 8e-6 * degree * e->transport.chunk_bytes / e->network.bandwidth_mbit +
                     2e-3 * e->network.latency_ms
               : 0;
}

void look_at_deadlines(doctor *d) {
    const sl_transport_config *c = &d->trial.experiment->transport;
    const double round_s = round_estimate(&d->trial), queue_s = queue_seconds(&d->trial);
    if (!d->given)
        return;
    if (queue_s > c->timeout_s)
        report_fail(&d->report, "silence",
                    "raise transport.timeout_s, or lower transport.chunk_bytes",
                    "a link is busy for %.3g s with parts of a message, and who is silent for "
                    "transport.timeout_s, %.3g s, counts as dead",
                    queue_s, c->timeout_s);
    if (isnan(round_s))
        report_ok(&d->report, "deadlines",
                  "not compared: network.* and network.gradient_ms do not say how long a round "
                  "takes");
    else if (round_s >= c->round_timeout_s)
        report_fail(&d->report, "deadlines", "raise transport.round_timeout_s, or send less",
                    "a round takes about %.3g s, and transport.round_timeout_s ends it after "
                    "%.3g s",
                    round_s, c->round_timeout_s);
    else if (round_s > near_share * c->round_timeout_s)
        report_warn(&d->report, "deadlines", "raise transport.round_timeout_s",
                    "a round takes about %.3g s of transport.round_timeout_s, %.3g s", round_s,
                    c->round_timeout_s);
    else
        report_ok(&d->report, "deadlines", "a round takes about %.3g s of %.3g s", round_s,
                  c->round_timeout_s);
}
