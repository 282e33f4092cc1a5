/* launcher.h - what the launcher of this process says in the environment. */
#ifndef SL_LAUNCHER_H
#define SL_LAUNCHER_H

#include "launch/environment.h"
#include "launch/resolver.h"

enum { SL_MASTER_HOSTS_MAX = 4, SL_JOB_MAX = 320, SL_SEEN_MAX = 320 };

/* Where rank 0 may be. */
typedef struct sl_whereabouts {
    char hosts[SL_MASTER_HOSTS_MAX][SL_HOST_MAX];
    uint32_t host_count; /* 0: not known */
    uint32_t ports_from, ports_to;
    bool of_launcher; /* the hosts are the launcher's own, which need not be rank 0's */
} sl_whereabouts;

typedef struct sl_launcher {
    const char *name; /* NULL: no launcher was found */
    const char *way;  /* how it passes a variable on to all processes; NULL: not known */
    uint32_t rank, size, local_rank; /* the last: among those of this host */
    bool has_local_rank;
    const char *size_name;  /* the variable of size; NULL: none says it */
    char seen[SL_SEEN_MAX]; /* the variables of rank and size, with their values */
    char job[SL_JOB_MAX];   /* what it calls this job; may be empty */
    bool one_host;          /* all processes are on this one */
    bool several_hosts;     /* they are known to be on several; if neither, nothing is known */
    sl_whereabouts master;
} sl_launcher;

/* Fills *out. SL_EINVAL: a variable is malformed or missing, or two launchers disagree. */
int sl_launcher_find(sl_launcher *out, sl_environment environment, sl_error *error);
/* Only where rank 0 is: what MASTER_ADDR and MASTER_PORT say, which torchrun sets and others may.
 */
int sl_launcher_find_master(sl_launcher *out, sl_environment environment, sl_error *error);
/* What was seen of launchers that do not start this process, for a refusal; "" if nothing. */
const char *sl_launcher_hint(sl_environment environment);
/* A rendezvous at `port`, or one of the next. */
void sl_whereabouts_ports(sl_whereabouts *master, uint32_t port);

#endif
