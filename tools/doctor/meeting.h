/* meeting.h - calls the doctors at all places of a roster, and answers those that call, in one
 * loop.
 *
 * A place is called until it answers, or time is up. Who calls here is heard for a few seconds, may
 * send so many bytes and no more, and costs no memory. */
#ifndef MEETING_H
#define MEETING_H

#include <sys/socket.h>

#include "doctor/words.h"

typedef enum call_end {
    CALL_NONE,     /* its name is not known, or it is this one */
    CALL_ANSWERED, /* by a doctor, and large packets pass where they were tried */
    CALL_STALLED,  /* likewise, and they do not pass */
    CALL_MUTE,     /* somebody else is there: an agent, as long as it says nothing */
    CALL_REFUSED,
    CALL_SILENT,      /* no answer in time */
    CALL_UNREACHABLE, /* errno `why` */
} call_end;

/* What became of a rank. */
typedef struct met {
    call_end end;
    int why;
    bool sends_large; /* in: so many bytes are to pass, too */
    bool stalled_out; /* what this one has sent did not pass; else what it should have got */
    words said;       /* if it has answered */
    double round_trip_s, ahead_s; /* its clock before this one's */
    unsigned mtu;                 /* of the path, as the kernel knows it; 0: not known */
    bool heard;                   /* it has called here */
} met;

typedef struct meeting {
    const struct sockaddr_storage *places; /* (count) ss_family 0: is not called */
    uint32_t count;
    bool has_rank;
    uint32_t rank; /* is not called */
    int listener;  /* -1: nobody can call */
    double wait_s; /* for those who do not answer yet, and for those who have not called */
    met *met;      /* (count) out */
} meeting;

/* False: out of memory. */
bool meeting_hold(meeting *m);

#endif
