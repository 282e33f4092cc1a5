/* lookers.c - see lookers.h. */
#include "run/lookers.h"

static sl_monitor_place place_of(const sl_experiment *e) {
    return (sl_monitor_place){.at = e->monitor.listen,
                              .key = "monitor.listen",
                              .allow = "\"monitor\": {\"public\": true}",
                              .is_public = e->monitor.is_public || e->security.trusted_network};
}

int lookers_listen(lookers *l, const sl_monitor_subject *of, const char *folder, sl_error *error) {
    sl_monitor_place place = place_of(of->experiment);
    if (place.at[0] == '\0')
        return 0;
    l->page = sl_board_page_open(folder);
    if (l->page == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for a page");
    place.route_count = sl_board_page_routes(l->page, false, &place.routes);
    return sl_monitor_listen(&l->port, of, &place, error);
}

void lookers_show_neighbours(lookers *l, const sl_monitor_subject *of, const sl_roster *roster) {
    const sl_monitor_place place = place_of(of->experiment);
    sl_asked_port *ports;
    if (l->page == NULL)
        return;
    const size_t count = sl_monitor_neighbours(&ports, of, &place, roster);
    sl_board_page_ask_at(l->page, ports, count);
}

void lookers_close(lookers *l) {
    sl_monitor_close(&l->monitor);
    sl_monitor_close(&l->port);
    sl_board_page_close(&l->page);
}
