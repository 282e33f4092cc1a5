/* launch.h - who this process is among its peers, and where they are, from what started it.
 *
 * What the caller says wins; then STARLING_RANK, STARLING_SIZE, STARLING_ROSTER and
 * STARLING_MASTER; then the innermost launcher: torchrun (RANK, WORLD_SIZE, MASTER_ADDR,
 * MASTER_PORT), Open MPI (OMPI_COMM_WORLD_RANK and _SIZE) or PMIx (PMIX_RANK), a step of Slurm
 * (SLURM_PROCID, SLURM_NTASKS), an indexed job of Kubernetes (JOB_COMPLETION_INDEX).
 *
 * Peers are found by a roster, or by a rendezvous: each process listens at a port of its own and
 * tells it to rank 0, which sends the roster to all once and then matters no more.
 *
 *     sl_launch_find(&launch, &settings, sl_topology_nodes(topology), &error);
 *     sl_launch_listen(launch, &host, &port, &error);
 *     sl_agent_open(&agent, ...with sl_launch_rank(launch), host, port, sl_launch_run_id(launch));
 *     sl_launch_meet(launch, sl_agent_port(agent), &roster, &error);
 *     sl_agent_run(agent, roster, &error);
 *
 * Functions of one sl_launch are called by one thread at a time.
 */
#ifndef STARLING_LAUNCH_H
#define STARLING_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "starling/api.h"
#include "starling/error.h"
#include "starling/roster.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the caller says; zeros leave all to the environment. Texts are borrowed for sl_launch_find
 * only, `stop` and `context` until sl_launch_close. */
typedef struct sl_launch_settings {
    bool has_rank;
    uint32_t rank;
    uint32_t joiners;   /* ranks beyond the topology's that may join (membership.joiners) */
    const char *roster; /* a file, a list with commas, or a pattern with {rank}; may be NULL */
    const char *master; /* HOST:PORT where rank 0 tells the roster, without a roster; may be NULL */
    const char *listen; /* HOST:PORT where this process listens (port 0: any); may be NULL */
    uint64_t run_id;    /* equal on all peers; 0: see sl_launch_run_id */
    uint64_t experiment; /* a hash of what peers have alike (sl_experiment_hash); 0: none */
    uint16_t port; /* of the first rank of each host of a roster that is a launcher's list of hosts;
                      0: STARLING_PORT, or 7400 */
    bool certificates;    /* security.mode "certificates": the roster names that of each rank, */
    bool authority;       /* or security.ca vouches for it */
    bool trusted_network; /* security.trusted_network: may listen beyond loopback */
    double timeout_s;     /* of looking up names, and of the rendezvous */
    const volatile int *stop; /* not 0: end soon with SL_ESTOPPED; may be NULL */
    void (*notice)(void *context, const char *text); /* whom it waits for; may be NULL */
    void *context;
    char *const *environment; /* "NAME=VALUE" ..., NULL; NULL: this process's own */
} sl_launch_settings;

typedef struct sl_launch sl_launch;

/* Reads settings and environment, and the file of a roster; asks no network. nodes: of the
 * topology, which the number of processes must equal. SL_EINVAL or SL_EFILE: which variables were
 * seen, what they said, and what is missing or disagrees. */
SL_API int sl_launch_find(sl_launch **out, const sl_launch_settings *settings, uint32_t nodes,
                          sl_error *error);
/* How many processes the environment says there are, which a topology may want to know; 0: it does
 * not say. */
SL_API uint32_t sl_launch_count(void);
SL_API uint32_t sl_launch_rank(const sl_launch *launch);
/* How many lower ranks are on this process's host, as the launcher or the roster says; else its
 * rank. */
SL_API uint32_t sl_launch_place(const sl_launch *launch);
/* Of the topology. */
SL_API uint32_t sl_launch_size(const sl_launch *launch);
/* For sl_agent_settings: what was given; else with a roster a hash of where its nodes are, and by
 * rendezvous of what the launcher calls this job, until sl_launch_meet: then what rank 0 has drawn
 * for this run, which the roster tells the agent. */
SL_API uint64_t sl_launch_run_id(const sl_launch *launch);
/* What rank and peers were found from, for messages, such as "rank 1 of 4 from Slurm (SLURM_PROCID,
 * SLURM_NTASKS); rank 0 tells the roster at node-a". */
SL_API const char *sl_launch_describe(const sl_launch *launch);

/* The roster that the peers are found by, whose names may not be looked up yet; borrowed. NULL:
 * they are found by rendezvous. */
SL_API const sl_roster *sl_launch_roster(const sl_launch *launch);

/* Where the agent is to listen: host (lives as long as launch) and port (0: any). Looks up names,
 * in at most timeout_s. Rank 0 begins to listen for the rendezvous. SL_EINVAL: beyond loopback
 * without trusted_network, or a roster that mixes addresses of this host alone with others. */
SL_API int sl_launch_listen(sl_launch *launch, const char **host, uint16_t *port, sl_error *error);
/* The roster, with addresses, to be closed; port: where the agent listens. By rendezvous all
 * processes come here; takes at most timeout_s until rank 0 is found, and as long again until all
 * have come to it. SL_ENET: whom it waited for in vain. */
SL_API int sl_launch_meet(sl_launch *launch, uint16_t port, sl_roster **roster, sl_error *error);
/* The roster that the peers were found by, from its file as it is now, with addresses, to be
 * closed; NULL: they were found by rendezvous. Takes at most timeout_s. Errors are those of
 * sl_launch_find. */
SL_API int sl_launch_read_again(sl_launch *launch, sl_roster **roster, sl_error *error);
SL_API void sl_launch_close(sl_launch **launch);

#ifdef __cplusplus
}
#endif
#endif
