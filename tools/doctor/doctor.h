/* doctor.h - looks at a host before agents run on it; each function says what it has seen. */
#ifndef DOCTOR_H
#define DOCTOR_H

#include "cli/tool.h"
#include "doctor/report.h"

typedef struct doctor {
    const options *o;
    double wait_s; /* for the others' doctors; 0: not at all */
    report report;
    bool given;              /* the trial is of an experiment that is good; else of a small one */
    trial trial;             /* prepared */
    sl_launch *launch;       /* NULL: there is no roster, and no launcher */
    sl_roster *told;         /* by rank 0, where there is a launcher and no roster */
    const sl_roster *roster; /* one of both; NULL: agents are on this host */
    bool has_rank;
    uint32_t rank;
    uint32_t agents;                     /* that this host will run */
    struct sockaddr_storage *places;     /* (ranks of the roster) ss_family 0: not found */
    uint32_t lost;                       /* of them */
    int64_t valid_from_s, valid_until_s; /* of this node's certificate; 0: it has none */
} doctor;

/* machine.c: libraries, processor, device. The device comes before the trial is prepared. */
void look_at_device(report *r, sl_experiment *experiment);
void look_at_provider(doctor *d);
void look_at_processor(doctor *d);
/* limits.c */
void look_at_cores(doctor *d);
void look_at_memory(doctor *d);
void look_at_descriptors(doctor *d);
void look_at_locked_memory(doctor *d);
/* disk.c */
void look_at_disk(doctor *d);
/* trust.c */
void look_at_keys(doctor *d);
/* deadlines.c */
void look_at_deadlines(doctor *d);
/* places.c: roster and rank; names; where this rank listens. */
void look_at_loopback(doctor *d);
void look_at_roster(doctor *d);
void look_at_names(doctor *d);
/* A listening socket at the place of this rank; -1: there is none. */
int look_at_listening(doctor *d);
/* page.c: where agents show their page. */
void look_at_page(doctor *d);
/* others.c: who answers at the roster's places, until all do or time is up. listener: of the
 * caller; -1: none. */
void look_at_others(doctor *d, int listener);

#endif
