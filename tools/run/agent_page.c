/* agent_page.c - see agent_page.h. */
#include "run/agent_page.h"

#include "run/run_page.h"

sl_monitor_place agent_page_place(const sl_experiment *e) {
    const sl_show_place said = run_page_place(e);
    return (sl_monitor_place){
        .at = said.at, .key = said.key, .allow = said.allow, .is_public = said.is_public};
}

int agent_page_listen(agent_page *l, const sl_monitor_subject *of, const char *folder,
                      sl_error *error) {
    sl_monitor_place place = agent_page_place(of->experiment);
    if (place.at[0] == '\0')
        return 0;
    l->page = sl_board_page_open(folder);
    if (l->page == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for a page");
    place.route_count = sl_board_page_routes(l->page, &place.routes);
    return sl_monitor_listen(&l->port, of, &place, error);
}

void agent_page_show_neighbours(agent_page *l, const sl_monitor_subject *of,
                                const sl_roster *roster) {
    const sl_monitor_place place = agent_page_place(of->experiment);
    sl_asked_port *ports;
    if (l->page == NULL)
        return;
    const size_t count = sl_monitor_neighbours(&ports, of, &place, roster);
    sl_board_page_ask_at(l->page, ports, count);
}

void agent_page_close(agent_page *l) {
    sl_monitor_close(&l->monitor);
    sl_monitor_close(&l->port);
    sl_board_page_close(&l->page);
}
