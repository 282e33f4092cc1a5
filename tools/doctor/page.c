/* page.c - the ports of monitor.listen, where agents of this host, or `starling run`, show a page.
 */
#include "doctor/doctor.h"
#include "run/agent_page.h"
#include "run/run_page.h"

static void try_place(doctor *d, const sl_monitor_place *place, uint32_t first, uint32_t count) {
    sl_error error;
    int result = 0;
    for (uint32_t i = 0; i < count && result == 0; i++)
        result = sl_monitor_try(first + i, d->trial.nodes, place, &error);
    if (result != 0)
        report_fail(&d->report, "page", "", "%s", error.text);
    else
        report_ok(&d->report, "page", "monitor.listen \"%s\" is free", place->at);
}

/* Without a roster or a launcher all agents are here, of `starling run`. */
void look_at_page(doctor *d) {
    const sl_monitor_place place = agent_page_place(d->trial.experiment);
    const bool is_one = run_page_takes(place.at);
    if (place.at[0] == '\0')
        return;
    if (d->launch == NULL)
        try_place(d, &place, 0, is_one ? 1 : d->agents);
    else if (is_one && d->agents > 1)
        report_fail(&d->report, "page", "say {rank} in its port, such as 127.0.0.1:91{rank}0",
                    "monitor.listen \"%s\" is one port for %u agents of this host", place.at,
                    d->agents);
    else if (d->has_rank)
        try_place(d, &place, d->rank, 1);
}
