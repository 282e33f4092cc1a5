/* agent_page.h - where an agent answers who looks at it: its run folder's socket, and
 * monitor.listen, with its page. */
#ifndef AGENT_PAGE_H
#define AGENT_PAGE_H

#include "starling/monitor.h"
#include "starling/roster.h"
#include "starling/show.h"

typedef struct agent_page {
    sl_monitor *monitor; /* NULL: the folder can hold no socket */
    sl_monitor *port;    /* at monitor.listen; NULL: nowhere */
    sl_board_page *page; /* there */
} agent_page;

/* What monitor.* says of it. */
sl_monitor_place agent_page_place(const sl_experiment *experiment);
/* At monitor.listen, if the experiment says one. */
int agent_page_listen(agent_page *l, const sl_monitor_subject *of, const char *folder,
                      sl_error *error);
/* Neighbours have folders of their own: the page asks them at their ports. The roster's names have
 * been looked up. */
void agent_page_show_neighbours(agent_page *l, const sl_monitor_subject *of,
                                const sl_roster *roster);
void agent_page_close(agent_page *l);

#endif
