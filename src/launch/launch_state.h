/* launch_state.h - what a launch knows, for launch.c and arrival.c. */
#ifndef SL_LAUNCH_STATE_H
#define SL_LAUNCH_STATE_H

#include "launch/launcher.h"
#include "launch/rendezvous.h"
#include "starling/launch.h"

enum { SL_LAUNCH_TEXT_MAX = 2048 };

struct sl_launch {
    sl_launch_settings settings; /* its texts are for sl_launch_find only */
    sl_environment environment;  /* for sl_launch_find */
    sl_launcher launcher;        /* with the master that the caller names */
    sl_roster *roster;           /* NULL: by rendezvous, or sl_launch_meet has given it away */
    char *source;                /* what it was read from; NULL: by rendezvous */
    uint16_t source_port;        /* of its hosts without ports */
    sl_rendezvous rendezvous;    /* by rendezvous */
    sl_master *master;           /* rank 0's, once it listens */
    uint32_t rank, size;
    uint32_t local_rank;    /* LOCAL_RANK; else as rank */
    bool gives_run_id;      /* the caller, or STARLING_RUN_ID: then none is drawn */
    char host[SL_HOST_MAX]; /* where the agent listens; "": not known yet */
    uint16_t port;
    bool is_everywhere; /* `host` is no address where others reach it */
    char text[SL_LAUNCH_TEXT_MAX];
};

#endif
