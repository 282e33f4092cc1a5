/* state.h - what the machine's files share; see async.h. */
#ifndef SL_ASYNC_STATE_H
#define SL_ASYNC_STATE_H

#include "async/async.h"
#include "async/averager.h"
#include "node/inbox.h"
#include "optim/direction.h"
#include "route/form.h"

enum { SL_ASYNC_ACTS_MAX = 4 }; /* of one step */

typedef enum sl_gradient_phase {
    SL_GRADIENT_NONE,    /* all rounds are done, or it has not begun */
    SL_GRADIENT_RUNNING, /* somebody computes it */
    SL_GRADIENT_HELD     /* it is there, and not applied */
} sl_gradient_phase;

/* The vector that was published last. */
typedef struct sl_publication {
    uint64_t number; /* of its exchange */
    uint32_t sent;   /* parts; all of them: it is out */
    bool open;       /* what belongs to it is not combined yet */
    double scalar;   /* in its headers */
} sl_publication;

/* How a view ends, where what is on its way counts. */
typedef struct sl_ending {
    bool *told;  /* (inbox.peer_count) nothing more of it is on its way */
    bool tells;  /* it has to */
    bool is_cut; /* what is on its way is lost */
    bool keeps;  /* it was added: the sums of models and weights go on */
} sl_ending;

/* Commits that are applied together. */
typedef struct sl_batch {
    uint64_t version;     /* of the model: batches so far */
    uint32_t left;        /* of the one under way; 0: none is */
    bool *early, *chosen; /* (ranks) it was here before this instant; it is of the batch */
} sl_batch;

/* A server of commits, what it has of the vector, and how far this node is with it. */
typedef struct sl_owner {
    uint32_t server; /* its rank */
    sl_range range;
    sl_codec *codec; /* of commits, like the next two */
    sl_encoder *encoder;
    sl_decoder *decoder;
    sl_codec *plain; /* of the model that comes back */
    sl_decoder *plain_decoder;
    sl_payload *payloads; /* (parts) of this node's commit */
    uint8_t *encoded;     /* (parts, stride) NULL: they are the vector's own memory */
    size_t stride;
    uint32_t parts, model_parts; /* of a commit, and of what comes back; 0: it has nothing */
    uint32_t sent, come;         /* parts */
} sl_owner;

/* What the server of commits keeps. */
typedef struct sl_service {
    uint64_t *clocks; /* (ranks) commits of each under this view; UINT64_MAX: it has no
                         part in it. NULL: this node is no server */
    uint64_t *last_ns, *interval_ns, *extra; /* (ranks) as sl_clocks has them */
    uint64_t *numbers;                       /* (ranks) of its last commit */
    bool holds_own;                          /* this node's commit is not applied yet */
    bool *waits;                 /* (ranks) has it committed, and not got the model since? */
    uint32_t *answers;           /* (answer_count, ranks) who gets the model next */
    uint32_t answer_count, sent; /* sent: parts of the first one's */
    uint32_t *come;              /* (inbox.peer_count) parts of the commit under way */
    uint32_t turn;               /* whose commit is next, where they go in turn */
    sl_batch batch;              /* where several are applied together */
} sl_service;

/* Where payloads stay that are needed later than the driver's buffers may be kept. */
typedef struct sl_kept {
    uint8_t *memory; /* (peers, room, stride); NULL: they stay where they came */
    uint32_t room;   /* parts of a peer */
    size_t stride;
    uint64_t *count; /* (peers) so many have come */
} sl_kept;

/* How this node's last ask of a peer has ended. */
typedef struct sl_ask_end {
    uint64_t event;
    uint32_t parts;   /* averaged here */
    uint64_t claimed; /* of this ask the peer wants to know; 0: it does not */
} sl_ask_end;

/* What this node wants to know, of an average that it served and that was cut. */
typedef enum sl_claim_stage {
    SL_CLAIM_NONE,
    SL_CLAIM_DUE,
    SL_CLAIM_OPEN,
    SL_CLAIM_ANSWERED
} sl_claim_stage;

typedef struct sl_accounts {
    sl_ask_end *ends; /* (count) by rank; NULL: nothing is ever cut */
    uint32_t count;
    sl_claim_stage stage;
    uint32_t to; /* whom sl_accounts_next writes to */
} sl_accounts;

/* What a node at rest goes on from, beside vectors and counters: for pieces.c. */
typedef struct sl_at_rest {
    uint64_t rests;    /* it has rested, or is to, from pieces that were loaded */
    uint64_t gradient; /* sl_gradient_phase */
    uint64_t wants, is_over, keeps;
    uint64_t serves_from, serves_count; /* what it has served; count 0: nothing */
    uint64_t come_count, *come;         /* (ranks) parts of each server's model; NULL: no servers */
} sl_at_rest;

/* What differs between patterns. A hook that is NULL does nothing. */
typedef struct sl_async_pattern {
    int (*open)(sl_async *n, sl_error *error);
    void (*start)(sl_async *n);                    /* in place of the first `begin` */
    void (*begin)(sl_async *n);                    /* a round's gradient runs */
    int (*gradient)(sl_async *n, sl_error *error); /* and is held now */
    /* Is what came what the codec makes? NULL: of n->codec. */
    bool (*is_right)(const sl_async *n, const sl_event *event);
    int (*received)(sl_async *n, uint32_t slot, const sl_event *event, sl_error *error);
    bool (*next)(sl_async *n, sl_async_part *out, sl_row *to);
    int (*left)(sl_async *n, sl_error *error);
    void (*acknowledged)(sl_async *n, uint32_t peer);
    /* Goes on as far as that leads. turn: nothing else happens at this instant. */
    int (*advance)(sl_async *n, bool turn, sl_update *update, sl_error *error);
    int (*drain)(sl_async *n, sl_error *error);
    void (*rest)(sl_async *n);
    void (*cut)(sl_async *n);
    void (*lose)(sl_async *n, uint32_t peer);
    bool (*is_still)(const sl_async *n); /* nothing is open */
    /* Of a still one, of whose view nobody is lost: what is on its way to it is added. */
    int (*gather)(sl_async *n, sl_error *error);
    int (*begin_view)(sl_async *n, sl_error *error); /* of a still one: it has other peers now */
    void (*release)(sl_async *n);                    /* of a still one: it goes on as before */
    bool rests_late;                                 /* see sl_async_rests_late */
    bool (*is_whole)(const sl_async *n);
    /* Is the exchange of the round under way over when a view begins? What it has done stays. */
    bool (*is_over)(const sl_async *n);
    /* What a node whose gradient is there, or not begun, waits for of that peer; NULL: nothing. */
    const char *(*awaits)(const sl_async *n, uint32_t slot);
} sl_async_pattern;

struct sl_async {
    sl_node_settings settings;
    const sl_algorithm *algorithm;
    const sl_async_pattern *pattern;
    sl_state state;
    sl_direction direction;
    sl_codec *codec; /* NULL, like the next two: commits have their owners' */
    sl_encoder *encoder;
    sl_decoder *decoder;
    uint32_t parts;        /* of a message */
    uint8_t *encoded;      /* (2, parts, stride) of an ask and an answer; NULL: they leave from the
                              vector's own memory */
    size_t encoded_bytes;  /* of the part that was encoded last */
    bool is_encoding;      /* a first part, which has not left */
    int failed;            /* the device, when it encoded */
    float *brought;        /* (brought_room, stride) what is combined; NULL, like the next one: the
                              vectors are on the host */
    uint32_t brought_room; /* parts */
    uint8_t *lent;         /* (stride) */
    const uint32_t *peers; /* (inbox.peer_count) borrowed from the topology, or all_peers */
    uint32_t *all_peers;   /* of those without edges; else NULL */
    sl_inbox inbox;
    sl_kept kept;
    sl_part *room; /* (most in-neighbours) those that are combined */
    sl_gradient_phase gradient;
    double loss_limit;
    uint64_t now_ns;                /* of this step */
    sl_round statistics;            /* of the round under way */
    sl_act acts[SL_ASYNC_ACTS_MAX]; /* (act_count) of this step */
    size_t act_count;
    bool turns;               /* TURN is wanted */
    bool repeats;             /* sl_async_expect was called */
    const sl_act *expected;   /* of that */
    bool rests;               /* since REST or CUT */
    bool awaits_model;        /* the first one, until it begins */
    bool stands;              /* others are to hear where it stands, as a view begins */
    uint64_t stands_at;       /* its latest version then */
    bool comes;               /* with this view, and another's model */
    sl_at_rest at_rest;       /* as the last step that it rested after has left it, or as loaded */
    bool is_loaded;           /* from pieces, and no view has begun since */
    bool is_over;             /* the exchange of the round under way: it was cut */
    uint32_t ranks;           /* of the run */
    const sl_node_view *view; /* NULL: the first, of all ranks */
    uint32_t *row_peers;      /* (2, ranks) rows in and out without broken edges; NULL: none is */
    double *row_weights;      /* (2, ranks) */
    /* pairs */
    sl_averager averager;
    sl_accounts accounts;
    float *undo; /* (dimension) what it had where it averages as a server; NULL: nothing is cut */
    bool asks;   /* does it ask at all? */
    bool wants;  /* an average, which has not begun */
    uint64_t events; /* its asks so far */
    /* versions */
    sl_publication out;
    uint64_t *newest; /* (inbox.peer_count) whole message of each peer */
    bool *heard;      /* (inbox.peer_count) has a whole message of it come? */
    uint64_t *needs;  /* (inbox.peer_count) it has use for none before this one, likewise */
    uint64_t *first;  /* (inbox.peer_count) it has no version before this one, under this view */
    uint64_t *chosen; /* (inbox.peer_count) what was combined last of it */
    uint64_t *taken;  /* (inbox.peer_count) the same of in-neighbours, for an act */
    sl_ending ending;
    /* commits: `out` is the gradient */
    sl_service served;
    uint32_t server;  /* of all, where they are not sharded */
    sl_owner *owners; /* (owner_count) by rank */
    sl_owner *own;    /* what this node serves; NULL: nothing */
    uint32_t owner_count;
    size_t owner_bytes_max; /* of a part, under any view */
    uint64_t pulled; /* where commits are applied together: the version of the one that it has */
};

extern const sl_async_pattern sl_async_pairs, sl_async_versions, sl_async_commits;

/* May a round end? Not at rest; where a run is repeated, when it ended then. */
bool sl_async_may_end(const sl_async *n);
/* The held gradient is applied: by `hook`, element by element, where it is not NULL. The next round
 * begins. */
int sl_async_end_round(sl_async *n, void (*hook)(sl_state *s, size_t from, size_t count),
                       sl_update *update, sl_error *error);
/* The next round's gradient may be taken. */
void sl_async_begin_round(sl_async *n, sl_update *update);
/* Does this round's gradient come with an exchange? */
bool sl_async_exchanges(const sl_async *n);
/* Runs the hook over all elements, block by block. NULL: nothing. */
void sl_async_sweep(sl_async *n, void (*hook)(sl_state *s, size_t from, size_t count));
void sl_async_sweep_range(sl_async *n, void (*hook)(sl_state *s, size_t from, size_t count),
                          size_t from, size_t count);
void sl_async_note(sl_async *n, const sl_act *act);
/* Where the peer's queue is; inbox.peer_count: it is none. */
uint32_t sl_async_slot(const sl_async *n, uint32_t peer);
/* pieces.c */
/* The node rests: what sl_async_piece says of it. */
void sl_async_note_rest(sl_async *n);
/* Its pieces were written: it rests, as then. */
void sl_async_go_on_from_pieces(sl_async *n);
/* accounts.c */
bool sl_accounts_next(sl_async *n, sl_async_part *out, sl_row *to);
/* What sl_accounts_next said has left. */
void sl_accounts_left(sl_async *n, const sl_async_part *part);
int sl_accounts_take(sl_async *n, const sl_event *event, sl_error *error);
/* The node's ask is over, with all parts. */
void sl_accounts_end_ask(sl_async *n, uint32_t peer, uint64_t event);
/* The average with this partner is cut. */
void sl_accounts_cut(sl_async *n, uint32_t partner);
void sl_accounts_lose(sl_async *n, uint32_t peer);
bool sl_accounts_are_open(const sl_async *n);

/* How many exchanges there are before this round. */
uint64_t sl_async_exchanges_before(const sl_async *n, uint64_t round);
/* Has this rank a part in the view? */
bool sl_async_has(const sl_async *n, uint32_t rank);
bool sl_async_is_broken(const sl_async *n, uint32_t peer);
/* Opens n->kept, with room for so many parts of each peer. SL_ENOMEM. */
int sl_async_open_kept(sl_async *n, uint32_t parts, const sl_codec *codec, sl_error *error);
/* Keeps what came until it is released. SL_ENOMEM; SL_EPROTO: more than there may be. */
int sl_async_keep(sl_async *n, uint32_t slot, const sl_event *event, sl_error *error);
/* Combines the first `count` of n->room over the elements of `part`. */
int sl_async_combine(sl_async *n, float self_weight, uint32_t count, uint32_t part,
                     sl_error *error);
void sl_async_count_sent(sl_async *n, uint64_t bytes, bool begins, bool silent, uint32_t receivers);

/* ---- edges.c ---- */

/* What is brought and lent, for the peers that there are. SL_ENOMEM. */
int sl_async_open_edges(sl_async *n);
void sl_async_close_edges(sl_async *n);
/* Do messages leave from memory of their own? */
bool sl_async_encodes(const sl_async *n, const sl_codec *codec);
/* The next part of a message of the vector; parts 0, 1, ... in order. Where it is encoded into
 * memory of the node's, it stays until a message of the same step begins. n->failed: it is none. */
sl_payload sl_async_encode(sl_async *n, const float *vector, uint64_t number, uint32_t step,
                           uint32_t part);
/* `count` elements as they are, a part at most; valid until the next ones. */
sl_payload sl_async_lend(const sl_async *n, const float *vector, size_t count);
/* What came, where the vectors are: number `at` of those that are combined together. It stays until
 * the next one of that number. */
sl_payload sl_async_bring(const sl_async *n, sl_payload payload, uint32_t at);
/* The same, as the algorithm's hooks take it: a neighbour's part. */
sl_part sl_async_part_of(const sl_async *n, uint32_t peer, const sl_arrival *a, float weight,
                         uint32_t at);

#endif
