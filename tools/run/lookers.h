/* lookers.h - where an agent answers those who look at it: its run folder's socket, and
 * monitor.listen, with its page. */
#ifndef LOOKERS_H
#define LOOKERS_H

#include "starling/monitor.h"
#include "starling/roster.h"
#include "starling/show.h"

typedef struct lookers {
    sl_monitor *monitor; /* NULL: the folder can hold no socket */
    sl_monitor *port;    /* at monitor.listen; NULL: nowhere */
    sl_board_page *page; /* there */
} lookers;

/* At monitor.listen, if the experiment says one. */
int lookers_listen(lookers *l, const sl_monitor_subject *of, const char *folder, sl_error *error);
/* Neighbours have folders of their own: the page asks them at their ports. The roster's names have
 * been looked up. */
void lookers_show_neighbours(lookers *l, const sl_monitor_subject *of, const sl_roster *roster);
void lookers_close(lookers *l);

#endif
