/* launcher.h - what the launcher of this process says in the environment. */
#ifndef SL_LAUNCHER_H
#define SL_LAUNCHER_H

#include "launch/environment.h"
#include "launch/resolver.h"

enum { SL_MASTER_HOSTS_MAX = 4, SL_JOB_MAX = 320, SL_SEEN_MAX = 320 };

typedef struct sl_launcher {
    const char *name;       /* NULL: no launcher was found */
    uint32_t rank, size;    /* size 0: it does not say */
    char seen[SL_SEEN_MAX]; /* the variables of rank and size, with their values */
    const char *size_name;  /* the variable; NULL: it does not say */
    char job[SL_JOB_MAX];   /* what it calls this job; may be empty */
    bool one_host;          /* all processes are on this one */
    bool several_hosts;     /* they are known to be on several */
    char hosts[SL_MASTER_HOSTS_MAX][SL_HOST_MAX]; /* where rank 0 may be */
    uint32_t host_count;
    uint32_t ports_from, ports_to; /* where rank 0 may tell the roster */
    bool own_host;                 /* `hosts` are of the launcher's host, not surely of rank 0's */
} sl_launcher;

/* Fills *out. SL_EINVAL: a variable is malformed or missing, or two launchers disagree. */
int sl_launcher_find(sl_launcher *out, sl_environment environment, sl_error *error);
/* Only where rank 0 is: what MASTER_ADDR and MASTER_PORT say, which torchrun sets and others may.
 */
int sl_launcher_find_master(sl_launcher *out, sl_environment environment, sl_error *error);
/* What was seen of launchers that do not start this process, for a refusal; "" if nothing. */
const char *sl_launcher_hint(sl_environment environment);
/* The ports of a rendezvous that is said to be at `port`. */
void sl_launcher_ports(sl_launcher *launcher, uint32_t port);

#endif
