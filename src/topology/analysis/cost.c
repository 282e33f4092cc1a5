/* cost.c - what a round moves, how long that takes on given links, and how many rounds agreement
 * takes; see starling/analysis.h. */
#include <math.h>

#include "starling/analysis.h"
#include "starling/links.h"
#include "topology/graph/graph.h"
#include "topology/links/links.h"

sl_traffic sl_topology_traffic(const sl_topology *t) {
    sl_traffic traffic = {0};
    for (uint32_t k = 0; k < t->graph.period; k++) {
        const side *out = &t->graph.slots[k].out;
        uint64_t busiest = 0;
        for (uint32_t i = 0; i < t->graph.nodes; i++)
            busiest = out->start[i + 1] - out->start[i] > busiest
                          ? out->start[i + 1] - out->start[i]
                          : busiest;
        traffic.messages += (double)t->graph.slots[k].edges / t->graph.period;
        traffic.sent_max += (double)busiest / t->graph.period;
    }
    traffic.sent_mean = traffic.messages / t->graph.nodes;
    return traffic;
}

/* What node i waits for on one side: its port, through which all its messages go, or the slowest
 * of the links that they pass beside each other. */
static double port_seconds(const side *s, uint32_t i, const sl_links *links, double bytes,
                           sl_port port) {
    const double mbit = sl_links_port(links, i), each = mbit > 0 ? bytes * 8e-6 / mbit : 0;
    double busy = 0, latency = 0, slowest = 0;
    for (uint64_t e = s->start[i]; e < s->start[i + 1]; e++) {
        busy += each;
        latency = fmax(latency, 1e-3 * sl_links_get(links, i, s->peers[e]).latency_ms);
        slowest = fmax(slowest, sl_links_seconds(links, i, s->peers[e], bytes));
    }
    return port == SL_PORT_SERIAL ? fmax(busy + latency, slowest) : slowest;
}

double sl_topology_round_seconds(const sl_topology *t, const sl_links *links,
                                 const double *compute_s, double message_bytes, sl_port port) {
    double total = 0;
    for (uint32_t k = 0; k < t->graph.period; k++) {
        const slot *p = &t->graph.slots[k];
        double longest = 0;
        for (uint32_t i = 0; i < t->graph.nodes; i++) {
            const double computes = compute_s != NULL ? compute_s[i] : 0,
                         sends = port_seconds(&p->out, i, links, message_bytes, port),
                         gets = port_seconds(&p->in, i, links, message_bytes, port);
            longest = fmax(longest, computes + fmax(sends, gets));
        }
        total += longest;
    }
    return total / t->graph.period;
}

double sl_rounds_to(double gap, double epsilon) {
    if (!(gap > 0))
        return gap <= 0 ? INFINITY : NAN;
    if (gap >= 1 || epsilon >= 1)
        return epsilon >= 1 ? 0 : 1;
    double rounds = log(epsilon) / log1p(-gap);
    return ceil(rounds * (1 - 1e-12)); /* 0.1^3 is 1e-3, whatever rounding made of it */
}

double sl_rounds_along(const double *errors, uint32_t rounds, uint32_t period, double gap,
                       double epsilon) {
    uint32_t known = 0;
    for (; errors != NULL && known < rounds && !isnan(errors[known]); known++)
        if (errors[known] <= epsilon)
            return known + 1;
    if (known == 0 || isnan(gap))
        return sl_rounds_to(gap, epsilon);
    uint32_t step =
        known < period
            ? 1
            : period; /* rounds after which the errors are the same again but for a factor */
    double step_gap = -expm1(step * log1p(-gap)), least = INFINITY;
    for (uint32_t k = known - step; k < known; k++)
        least = fmin(least, k + 1 + step * sl_rounds_to(step_gap, epsilon / errors[k]));
    return least;
}

double sl_transient_rounds(uint64_t nodes, double gap, bool same_data) {
    return gap <= 0 ? INFINITY : pow((double)nodes, 3) / pow(gap, same_data ? 2 : 4);
}
