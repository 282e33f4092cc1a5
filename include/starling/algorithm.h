/* algorithm.h - an algorithm: a few vector hooks over a range of elements.
 *
 * Most algorithms publish one (compressed) vector, receive the weighted sum of the neighbours'
 * vectors, and settle. An exchange is a list of stages; each publishes one vector. The node's
 * route cuts a stage into steps (who sends which range to whom): one step along the topology's
 * edges for gossip, many for a ring all-reduce or servers. Hooks work on elements [from, from +
 * count), so that adapting, encoding, sending and combining overlap part by part. */
#ifndef STARLING_ALGORITHM_H
#define STARLING_ALGORITHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/api.h"
#include "starling/compressor.h"
#include "starling/key.h"
#include "starling/link_budget.h"
#include "starling/optimizer.h"
#include "starling/topology.h"
#include "starling/types.h"
#include "starling/vec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Forms of one algorithm: enum suffix, name in an experiment. */
#define SL_VARIANTS(X)                                                                             \
    X(DEFAULT, "default")                                                                          \
    X(ADAPT_THEN_COMBINE, "adapt-then-combine")                                                    \
    X(COMBINE_WHILE_ADAPT, "combine-while-adapt")                                                  \
    X(COMPRESS_THEN_MIX, "compress-then-mix")                                                      \
    X(MIX_THEN_COMPRESS, "mix-then-compress")                                                      \
    X(CLIP, "clip")                                                                                \
    X(MEDIAN, "median")                                                                            \
    X(TRIMMED_MEAN, "trimmed-mean")
typedef enum sl_variant {
#define SL_VARIANT_ENUM(variant, name) SL_VARIANT_##variant,
    SL_VARIANTS(SL_VARIANT_ENUM)
#undef SL_VARIANT_ENUM
} sl_variant;

/* Which replicas of neighbours choco-sgd and dcd-psgd keep. */
typedef enum sl_replicas {
    SL_REPLICAS_SUM,          /* sum_j W_ij xhat_j: one vector at any degree; needs a fixed W */
    SL_REPLICAS_PER_NEIGHBOUR /* each xhat_j: W may change, and each message goes to all neighbours
                                 in the schedule */
} sl_replicas;

/* Forms of an all-reduce (docs/algorithms.md): enum suffix, name in an experiment. */
#define SL_ALL_REDUCES(X)                                                                          \
    X(RING, "ring")                                                                                \
    X(TREE, "tree")                                                                                \
    X(RECURSIVE_DOUBLING, "recursive-doubling")                                                    \
    X(HALVING_DOUBLING, "halving-doubling")                                                        \
    X(HIERARCHICAL, "hierarchical")                                                                \
    X(TORUS_2D, "torus-2d")                                                                        \
    X(TWO_RINGS, "two-rings")                                                                      \
    X(DOUBLE_TREE, "double-tree")                                                                  \
    X(STAR, "star")
typedef enum sl_all_reduce_form {
#define SL_ALL_REDUCE_ENUM(form, name) SL_ALL_REDUCE_##form,
    SL_ALL_REDUCES(SL_ALL_REDUCE_ENUM)
#undef SL_ALL_REDUCE_ENUM
} sl_all_reduce_form;

#define SL_SERVER_SHARDED (-1) /* algorithm.server: shard k of n at rank k */
#define SL_ALGORITHM_NAME_MAX 64
#define SL_PHASES_MAX 16

/* Which messages of servers' algorithms are compressed: those to the servers, or both ways. */
typedef enum sl_directions { SL_DIRECTIONS_UP, SL_DIRECTIONS_BOTH } sl_directions;

/* The matrix that exact-diffusion mixes with. */
typedef enum sl_mixing { SL_MIXING_LAZY /* (I + W)/2 */, SL_MIXING_PLAIN /* W */ } sl_mixing;

/* What slowmo's nodes do from one exact average to the next. */
typedef enum sl_base { SL_BASE_LOCAL_SGD, SL_BASE_D_PSGD, SL_BASE_SGP } sl_base;

/* What becomes of the buffers of optimizer.momentum when all models are averaged. */
typedef enum sl_buffer_rule {
    SL_BUFFERS_LOCAL,   /* they stay */
    SL_BUFFERS_AVERAGE, /* they are averaged, too */
    SL_BUFFERS_RESET    /* they begin at 0 again */
} sl_buffer_rule;

/* How local-sgd's period goes on. */
typedef enum sl_period_schedule {
    SL_PERIOD_CONSTANT,
    SL_PERIOD_ADAPTIVE, /* with the loss */
    SL_PERIOD_HALVING,  /* the same; halved while the loss does not fall */
    SL_PERIOD_RATE,     /* with loss and learning rate */
    SL_PERIOD_GROWING   /* with the averages */
} sl_period_schedule;

/* ad-psgd: whom a node asks, which nodes ask, and when. */
typedef enum sl_pairing { SL_PAIRING_RANDOM, SL_PAIRING_CYCLIC } sl_pairing;
typedef enum sl_initiators {
    SL_INITIATORS_ALL,
    SL_INITIATORS_BIPARTITE /* those of rank 0's side */
} sl_initiators;
typedef enum sl_average_when {
    SL_AVERAGE_AFTER, /* its gradient, which is applied to the average */
    SL_AVERAGE_BESIDE /* the gradient is computed meanwhile */
} sl_average_when;

/* By what fedavg weighs its clients' models. */
typedef enum sl_client_weights { SL_CLIENTS_SAMPLES, SL_CLIENTS_UNIFORM } sl_client_weights;

/* relaysum's tree: all edges of the topology, or some that span it. */
typedef enum sl_tree_choice { SL_TREE_SPANNING, SL_TREE_TOPOLOGY } sl_tree_choice;

/* The step that all nodes take from common to common model, on what the inner steps moved. */
typedef struct sl_outer {
    double learning_rate, momentum;
    bool nesterov;
} sl_outer;

/* The tables that fetch-sgd's gradients become, and how many elements are read from them. */
typedef struct sl_sketch_config {
    uint32_t rows;
    uint64_t columns; /* 0: of rows columns numbers a tenth of the vector's */
    uint64_t k;       /* 0: a tenth of the columns */
} sl_sketch_config;

/* algorithm.* of an experiment. NaN: what is usual for the algorithm. Hashes take the keys in the
 * order of the fields; the key of a new field says `is_later`. */
typedef struct sl_algorithm_config {
    char name[SL_ALGORITHM_NAME_MAX];
    sl_variant variant;
    sl_replicas replicas;
    double consensus_step; /* choco-sgd, beer: gamma_c; 0: derived */
    double eta;            /* deep-squeeze; 0: derived */
    uint64_t local_steps;  /* gossip: H gradients for one exchange; the most of steps_of */
    sl_counts steps_of;    /* fedavg: of each client */
    uint64_t local_epochs; /* fedavg: passes over a client's samples in place of steps; 0: none */
    uint64_t period;       /* of those that are periodic: H; slowmo on gossip: exchanges; an
                              experiment's 0: what is usual */
    sl_period_schedule period_schedule; /* local-sgd */
    uint64_t first_period;              /* of a growing one: H_0 */
    double growth;                      /* of a growing one: what an average adds, in H_0 */
    uint64_t switch_round;      /* local-sgd: up to it gradients are averaged, in every round */
    uint64_t average_period;    /* gossip-pga: H, exchanges */
    uint64_t correction_period; /* cd-sgd: k */
    uint64_t warmup_rounds;     /* cd-sgd, one-bit-adam, powersgd */
    double warmup_ratio;        /* one-bit-adam: they end once |v|_1 keeps this share; 0: not */
    /* dgc: fractions of entries sent, one an epoch; or numbers of them, one a round */
    double warmup[SL_PHASES_MAX];
    size_t warmup_count;
    uint32_t warmup_k[SL_PHASES_MAX];
    size_t warmup_k_count;
    double threshold;           /* cd-sgd: tau */
    double local_learning_rate; /* cd-sgd; 0: the learning rate */
    double alpha;   /* lead: how fast replicas follow; ecq-sgd: how much of a loss is sent again */
    double gamma;   /* lead: gamma_c */
    double beta;    /* momentum of an algorithm's own */
    double mu;      /* qgm: what of its momentum buffer stays */
    double clip;    /* clipped-gossip: tau; NaN: of the neighbours' distances the second
                       largest; dgc: length of the gradient, times sqrt(n); 0: any */
    uint32_t trim;  /* clipped-gossip: values cut off at each end */
    double trigger; /* lag-3pc, clag: zeta; choco-sgd: c */
    double trigger_growth;   /* choco-sgd: p */
    uint32_t depth;          /* lag-wk, laq: D, steps that are remembered */
    double xi;               /* lag-wk, laq */
    uint64_t clock;          /* laq: silent messages one after the other, at most */
    uint64_t bits;           /* moniqua, laq: of an element */
    double theta;            /* moniqua: more than any element of two neighbours is ever apart */
    bool nesterov;           /* qgm */
    sl_sketch_config sketch; /* fetch-sgd */
    sl_outer outer;          /* diloco, noloco */
    double slow_rate;        /* slowmo: alpha */
    sl_base base;            /* slowmo */
    sl_buffer_rule buffers;  /* local-sgd, slowmo */
    double clients;          /* fedavg: fraction of the nodes that train between exchanges */
    sl_rank_sets clients_of; /* fedavg: or who does, by turns */
    sl_client_weights client_weights;
    sl_reals weights_of;          /* fedavg: or a weight of each */
    double elastic;               /* easgd: alpha; 0: 0.9/n */
    double beta1, beta2, epsilon; /* d-adam, one-bit-adam */
    sl_mixing matrix;             /* exact-diffusion */
    sl_tree_choice tree;          /* relaysum */
    uint32_t rank;                /* powersgd, power-gossip: columns of a factor */
    sl_number_rows start;         /* the first factors Q of these; no rows: random ones */
    sl_switch error_feedback;     /* sl_algorithm_plan sets it */
    sl_directions directions;
    uint64_t delay;                /* all-reduce: D, rounds that a gradient is late */
    sl_all_reduce_form all_reduce; /* all-reduce, local-sgd, gossip-pga */
    uint32_t group; /* torus-2d, two-rings: a row's nodes; hierarchical: a group's; 0: about √n */
    int64_t server; /* parameter-server, double-squeeze, cd-sgd: a rank, or SL_SERVER_SHARDED */
    sl_compressor_config compressor;    /* sl_algorithm_plan sets `scaled` and `contractive` */
    sl_number_rows compressor_schedule; /* [exchange, value] each; no rows: it stays */
    uint32_t backup;                    /* parameter-server: gradients that a round does without */
    uint64_t staleness, staleness_max;  /* d-psgd: rounds; ssp: gradients; max AUTO: the same */
    uint64_t overlap_rounds;            /* sgp: so many rounds after it was sent */
    sl_pairing pairing;
    sl_initiators initiators;
    sl_average_when average;
    sl_budget budget; /* choco-sgd; its links an experiment sets */
    uint32_t batch;   /* with local_epochs, samples of a gradient: sl_experiment_plan sets it */
    /* Whose forms the name is of; NULL: Starling's own. Borrowed. */
    const struct sl_algorithm_library *library;
} sl_algorithm_config;

#define SL_ALGORITHM_VECTORS_MAX 6
#define SL_DEPTH_MAX 32
#define SL_ALGORITHM_NUMBERS_MAX (SL_DEPTH_MAX + 2) /* of its own */

/* A node's state for the hooks. All vectors have d elements; the node owns them. */
typedef struct sl_state {
    const sl_vec_ops *vec;
    const sl_algorithm_config *config;
    sl_shapes shapes;     /* what all vectors are made of */
    uint32_t rank, nodes; /* nodes: members */
    uint32_t place;       /* among the members, whose ranks ascend */
    uint64_t seed;
    double loss;       /* this round's, once its gradient is there */
    double samples;    /* training samples of this node, or 1 */
    float *x, *sum;    /* model; where the step makes the next one, NULL: over x */
    const float *lent; /* of the driver, published and mixed in place of x in this round; NULL: x */
    bool lends;        /* rounds may have such a vector, which is known after the gradient */
    float *g, *m;      /* gradient of this round; momentum buffer, NULL when momentum is 0 */
    float *extra[SL_ALGORITHM_VECTORS_MAX]; /* the algorithm's own */
    float **replicas;    /* (replica_count) their sum, or one each, by `in`; or what came */
    float *received;     /* (slots, received_length), of which the replicas are parts */
    uint32_t slots;      /* neighbours */
    uint32_t slot;       /* SL_ROUTE_TREE, _EDGES: the one that the step meets, among them */
    uint32_t heard;      /* SL_ROUTE_TREE: nodes of whom word has come, this one included */
    double *numbers;     /* (in-neighbours + 1) working memory, 0 at first */
    double *own_numbers; /* (sl_algorithm.own_numbers) kept from round to round, 0 at first */
    size_t replica_count, dimension;
    float *scratch;           /* (block) */
    size_t block;             /* elements that go through scratch at a time */
    sl_sgd sgd;               /* this round's */
    sl_sgd last_sgd;          /* the last round's */
    float step_size;          /* consensus_step or eta in use */
    double mixed;             /* sl_plan.mixed */
    sl_row in;                /* in-neighbours of the current or last step, and their W_ij */
    float self_weight;        /* W_ii there */
    uint64_t round, exchange; /* from 1; exchange: the one under way, or the last */
    uint32_t period;          /* slots of the topology */
    const sl_compressor_config *compressor;       /* of that exchange, or step */
    uint64_t first_exchange;                      /* of the view; 1 of the first one */
    double push_sum_weight, next_push_sum_weight; /* w_i */
    uint64_t doubtful; /* elements of this round that were perhaps decoded wrongly */
    bool is_finite;    /* false: a plain vector's sum overflowed, or a number came that is none */
    bool silent, point_stands; /* `speaks` has last said no; x is a gradient's point, and stays */
    bool alone;                /* the exchange was cut: there is nobody to mix with, until a view */
} sl_state;

/* One part of one node's message. */
typedef struct sl_part {
    sl_decoder *decoder;
    sl_message message;
    uint32_t index, count; /* on a device, the run of parts from this one on */
    uint32_t neighbour;    /* its sender's position in sl_state.in; not of an own part */
    sl_payload payload;
    const uint32_t *sizes; /* (count) bytes of each part */
    float weight;  /* W_ij; own part: W_ii, or with servers 1 if it stays here, else 0; among
                      others' parts, that of a lost peer whose place it takes */
    double scalar; /* the number in its header: the push-sum weight, or what the stage says */
    size_t base;   /* place of the message's first element in the vector */
} sl_part;

static inline sl_run sl_part_run(const sl_part *p, float factor) {
    const sl_run run = {p->decoder, p->message, p->index, p->count, p->payload, p->sizes, factor};
    return run;
}

/* acc += factor * decode(part). acc is a whole vector (d). */
static inline void sl_part_add(const sl_part *p, float factor, float *acc) {
    const sl_run run = sl_part_run(p, factor);
    sl_decoder_add_runs(&run, 1, acc + p->base);
}

/* One part, or one run of parts, of all in-neighbours' messages, in neighbour order. */
typedef struct sl_mix {
    float self_weight;    /* W_ii */
    const sl_part *parts; /* (k) */
    size_t k;
} sl_mix;

/* One published vector of an exchange. A hook that is NULL does nothing. */
typedef struct sl_stage {
    bool plain;    /* never compressed */
    bool sparse;   /* nor these, but what is 0 is not sent: sums of compressed vectors */
    bool restates; /* of the first exchange of later views: see restate.c */
    bool reduces;  /* SL_ROUTE_BOTH: by a form of all-reduce; the other stages go along edges */
    bool gather;   /* centralized routes: the second half, from servers of sums to all nodes */
    bool in_place; /* combine overwrites the published vector, so a part waits until it has been
                      sent */
    bool alone;    /* the message goes to nobody: only `own` gets it */
    /* Elements of the published vector: the first ones, at most the dimension. NULL: all. */
    size_t (*length)(const sl_algorithm_config *config, const sl_shapes *shapes);
    bool ranked; /* the own part is among those that combine gets, in its rank's place: a sum that
                    all nodes form has the same bits everywhere */
    /* SL_ROUTE_EDGES: once before each message. */
    void (*meet)(sl_state *s);
    /* Does this exchange have the stage? NULL: always. */
    bool (*wanted)(const sl_state *s);
    /* Has the node anything to say in this exchange? Asked once, when the whole vector is prepared;
     * it may note for later what it was asked about. False: its messages of the stage are silent:
     * headers without payloads, so that others need not wait; nothing of them is decoded, and `own`
     * and `combine` get no part of them. NULL: it has. */
    bool (*speaks)(sl_state *s);
    /* A number in the headers of the stage's messages, not 0: sl_part.scalar. NULL: the push-sum
     * weight. */
    double (*says)(const sl_state *s);
    /* Runs before the range is published: on all elements; in a gather stage, on those whose sums
     * are here. */
    void (*prepare)(sl_state *s, size_t from, size_t count);
    /* The vector to publish; elements of the step's range are read. Exactly one of the two. */
    const float *(*vector)(const sl_state *s);
    void (*read)(void *state, size_t from, size_t count, float *out);
    /* Of `vector`, what is new of it, for compressors that read that, too (sl_source.fresh). NULL,
     * or gives NULL: all of it. */
    const float *(*fresh)(const sl_state *s);
    /* The scale that all nodes agreed on (sl_source.scale), of the vector or of each tensor; on the
     * host. NULL, or gives NULL: the message's own. */
    const float *(*scale)(const sl_state *s);
    /* The node's own part, right after it was encoded. Where it is weighed then, `combine` gets it
     * again in the place of parts that do not come any more. */
    void (*own)(sl_state *s, const sl_part *mine);
    /* Combines the in-neighbours' parts; may change [from, from + count). */
    void (*combine)(sl_state *s, const sl_mix *mix, size_t from, size_t count);
    /* All of the stage is here: once, before the next one is prepared. */
    void (*over)(sl_state *s);
} sl_stage;

typedef enum sl_route_kind {
    SL_ROUTE_TOPOLOGY,
    SL_ROUTE_ALL_REDUCE,
    SL_ROUTE_SERVER,
    SL_ROUTE_ALL,   /* everybody to everybody */
    SL_ROUTE_TREE,  /* along a tree's edges, in turn: to each neighbour its own message */
    SL_ROUTE_EDGES, /* along all of the topology's, in the same way */
    SL_ROUTE_MERGE, /* up a tree, where each message is merged into its receiver's, and back down */
    SL_ROUTE_BOTH   /* some stages along the topology's edges, some by a form of all-reduce */
} sl_route_kind;
typedef enum sl_matrix_need {
    SL_MATRIX_NONE,
    SL_MATRIX_COLUMN,
    SL_MATRIX_DOUBLY,
    SL_MATRIX_SYMMETRIC
} sl_matrix_need;
typedef enum sl_compressor_need {
    SL_TAKES_IDENTITY, /* sends vectors as they are */
    SL_TAKES_ANY,
    SL_TAKES_UNBIASED,    /* a biased one is warned of */
    SL_TAKES_CONTRACTIVE, /* another one is refused */
    SL_TAKES_LARGEST      /* top-k, or identity, which is k = d */
} sl_compressor_need;

/* What sets sl_state.step_size. */
typedef enum sl_step_rule {
    SL_STEP_NONE,
    SL_STEP_CONSENSUS, /* algorithm.consensus_step, or the largest stable step */
    SL_STEP_ETA,       /* algorithm.eta, or a smaller step for a lower consensus floor */
    SL_STEP_ALPHA      /* algorithm.alpha, or 1/(1 + omega); of a biased compressor 1 */
} sl_step_rule;

/* Where all nodes have one curvature, what says for which steps models converge
 * (starling/stability.h). */
typedef enum sl_stable_by {
    SL_STABLE_BY_EIGENVALUES, /* each eigenvector of W goes by itself */
    SL_STABLE_BY_NETWORK,     /* the whole network: more of it counts than W's eigenvalues */
    SL_STABLE_UNKNOWN         /* models are no linear function of the first ones */
} sl_stable_by;

/* What a node of an asynchronous algorithm exchanges, and what it waits for. */
typedef enum sl_pattern {
    SL_PATTERN_PAIRS,    /* averages with one neighbour at a time */
    SL_PATTERN_VERSIONS, /* a vector in each round; of each neighbour one that it has published */
    SL_PATTERN_COMMITS   /* gradients to a server, its model back */
} sl_pattern;

struct sl_clocks;
/* How an algorithm runs where nodes do not go in rounds that all share: its one stage has a vector
 * and combines it in place. */
typedef struct sl_async_rule {
    sl_pattern pattern;
    void (*begin)(sl_state *s, size_t from, size_t count); /* a gradient is about to be taken */
    /* pairs: does it ask neighbours, or only answer? Whom of `count` does ask `event` (from 1)? */
    bool (*asks)(const sl_algorithm_config *config, const sl_topology *topology, uint32_t rank);
    uint32_t (*partner)(const sl_state *s, uint64_t event, uint32_t count);
    /* versions: which one exchange t takes of a neighbour whose newest is this; of the newest there
     * can be, of nobody. 0: the first model. SL_VERSION_NONE: none yet. */
    uint64_t (*version)(const sl_state *s, uint64_t t, uint64_t newest);
    bool sends_first; /* the first model is version 0 */
    /* commits, at the server (algorithm/centralized/served.h): may this node have the model? */
    bool (*may_begin)(const sl_state *s, const struct sl_clocks *clocks, uint32_t rank);
    /* A commit has come: how many gradients may its node begin out of bounds? NULL: none. */
    uint64_t (*extra)(const sl_state *s, const struct sl_clocks *clocks, uint32_t rank);
    bool in_turn; /* they commit by rank */
    /* Of `nodes` that have gradients left: so many commits, the first, are applied together. */
    uint32_t (*together)(const sl_algorithm_config *config, uint32_t nodes);
    /* Words: for what a node waits, and how old what it takes can be. */
    void (*waits_for)(const sl_algorithm_config *config, char *out, size_t bytes);
} sl_async_rule;
#define SL_VERSION_NONE UINT64_MAX

/* An algorithm's descriptor: all that the program knows of it. A hook that is NULL does nothing. */
typedef struct sl_algorithm {
    const char *name;
    sl_variant variant; /* SL_VARIANT_DEFAULT where there is one form only */
    /* Of several rows of one name and variant the first whose `when` holds; NULL: it does. */
    bool (*when)(const sl_algorithm_config *config);
    sl_route_kind route;
    sl_matrix_need matrix;
    bool fixed_matrix;   /* keeps sums over neighbours, so W must not change with the round */
    bool keeps_replicas; /* of its neighbours, as algorithm.replicas says */
    bool keeps_messages; /* of a step, whole: in sl_state.replicas */
    bool keeps_received; /* what each neighbour last sent, from exchange to exchange: there, too */
    /* The same, so many elements of each neighbour, in a row. NULL: a vector of each. */
    size_t (*received_length)(const sl_algorithm_config *config, const sl_shapes *shapes);
    bool host_only;  /* reads vectors itself */
    bool trims;      /* cuts off algorithm.trim values at each end */
    bool keeps_self; /* mixes with (I + W)/2: W itself may alternate */
    sl_compressor_need compressor;
    sl_compressor_kind
        own_compressor; /* the only compressor that it takes; IDENTITY: any that suits */
    sl_step_rule step_rule;
    const sl_key *keys; /* what it reads, beside the keys of its traits; SL_KEYS_END ends them;
                           NULL: none */
    void (*defaults)(sl_algorithm_config *config); /* sets those that are not given */
    void (*tune)(sl_algorithm_config *config);     /* sets those of own_compressor; NULL: nothing */
    double (*lambda_min)(const sl_algorithm_config *config); /* which lambda_n of a fixed W must be
                                                                above; NULL: any that agrees */
    sl_stable_by stable_by;
    /* Which lambda_n, or a lower one, leaves less than half of the step that is stable with exact
     * averages; momentum: of mom(). NULL, or gives -INFINITY: none. */
    double (*lazy_below)(const sl_algorithm_config *config, double momentum);
    /* What else it refuses of a configuration and a topology; NULL: nothing. */
    int (*check)(const sl_algorithm_config *config, const sl_topology *topology, sl_error *error);
    /* Why it cannot go on with other members, words after its name; NULL, or gives NULL: it can. */
    const char *(*needs_all)(const sl_algorithm_config *config);
    void (*warn)(const sl_algorithm_config *config, char *out, size_t bytes);
    /* What it refuses of a model; NULL: nothing. */
    int (*check_shapes)(const sl_algorithm_config *config, const sl_shapes *shapes,
                        sl_error *error);
    bool takes_momentum, takes_local_steps;
    bool takes_sgd_only;    /* and no other optimizer, though it takes momentum */
    bool heavy_ball;        /* its momentum has no form of Nesterov's */
    bool averages_gradient; /* before mom(): g is the mean when settle begins */
    bool is_periodic;       /* exchanges every `period` rounds */
    /* Of the rounds from 1 on: does it exchange in this one? NULL: in each that is a multiple of
     * the interval. At least in one of as many rounds. */
    bool (*exchanges)(const sl_algorithm_config *config, uint64_t round);
    /* The same by what has come until now; period is the longest there will be. NULL: by the round
     * alone. */
    bool (*due)(const sl_state *s);
    uint32_t idle_rounds;     /* one after the other without an exchange, once in a run */
    bool begins_silent;       /* the first exchange has no message */
    bool works_on_ranges;     /* what a range of the message needs is that range of the gradient */
    bool keeps_gradient;      /* needs g after its message has been encoded */
    bool publishes_old_model; /* messages do not need this round's gradient: exchange and gradient
                                 overlap */
    bool (*waits)(const sl_state *s); /* but in these rounds it does need it; NULL: in none */
    size_t extra_vectors;
    size_t (*vectors)(const sl_algorithm_config *config);     /* NULL: extra_vectors */
    size_t (*own_numbers)(const sl_algorithm_config *config); /* NULL: none */
    /* The round's gradient is there, whole, before any of it is published. */
    void (*take_gradient)(sl_state *s);
    const sl_stage *stages;
    size_t stage_count;
    /* x is there, before the first round, and where all else begins anew */
    void (*start)(sl_state *s, size_t dimension);
    /* A view begins: what hangs on W or on neighbours restarts from the models. Replicas are 0. */
    void (*restart)(sl_state *s, size_t dimension);
    /* A round without an exchange: only a gradient step. */
    void (*local)(sl_state *s, size_t from, size_t count);
    /* Gradient there and everything combined. */
    void (*settle)(sl_state *s, size_t from, size_t count);
    /* After settle, once: swaps of whole vectors. */
    void (*finish)(sl_state *s);
    const float *(*point)(const sl_state *s); /* where the gradient is taken; NULL: x */
    const sl_async_rule *async;               /* NULL: nodes go in rounds that all share */
} sl_algorithm;

/* Finds an algorithm by name and variant (SL_VARIANT_DEFAULT: the first one of the name). NULL
 * with an error that lists what exists. */
SL_API const sl_algorithm *sl_algorithm_find(const char *name, sl_variant variant, sl_error *error);

/* The form that the whole configuration asks for. NULL with the same error. */
SL_API const sl_algorithm *sl_algorithm_of(const sl_algorithm_config *config, sl_error *error);
/* The algorithm's own vectors, beside model, gradient and momentum. */
SL_API size_t sl_algorithm_vectors(const sl_algorithm *algorithm,
                                   const sl_algorithm_config *config);

/* Its own numbers, at most SL_ALGORITHM_NUMBERS_MAX. */
SL_API size_t sl_algorithm_numbers(const sl_algorithm *algorithm,
                                   const sl_algorithm_config *config);

/* Its steps want (I + W)/2 in place of a W with an eigenvalue below this; -INFINITY: of none.
 * momentum: of the optimizer. */
SL_API double sl_algorithm_lazy_below(const sl_algorithm_config *config, double momentum);

/* Does a form of all-reduce carry all or some of its stages? */
SL_API bool sl_algorithm_reduces(const sl_algorithm *algorithm);

/* Do all wait for all? Then a cut exchange never took place; others are ended alone. */
SL_API bool sl_algorithm_voids(const sl_algorithm *algorithm);

/* Does it keep what all nodes must have alike? Then the first exchange of a later view averages
 * models, gradients and momentum in place of the algorithm's own stages. */
SL_API bool sl_algorithm_restates(const sl_algorithm *algorithm);
/* That exchange's step with the mean gradient. */
SL_API void sl_restate(sl_state *s, size_t from, size_t count);
/* Of its own stages, and those of that exchange, the one with this index; NULL: there is none. */
SL_API const sl_stage *sl_algorithm_stage(const sl_algorithm *algorithm, size_t index);
/* Does all that it keeps beside model and momentum begin anew with a view? */
SL_API bool sl_algorithm_begins_anew(const sl_algorithm *algorithm);

/* Does what is sent follow from how many elements of a sum are 0? */
SL_API bool sl_algorithm_sums_sparse(const sl_algorithm *algorithm);

/* Rounds from one exchange to the next, at most. */
SL_API uint64_t sl_algorithm_interval(const sl_algorithm *algorithm,
                                      const sl_algorithm_config *config);
SL_API bool sl_algorithm_exchanges(const sl_algorithm *algorithm, const sl_algorithm_config *config,
                                   uint64_t round);
/* Of one with SL_ROUTE_BOTH: exchanges from one exact average to the next. */
SL_API uint64_t sl_algorithm_average_period(const sl_algorithm *algorithm,
                                            const sl_algorithm_config *config);

/* How many rounds two nodes of a run can be apart: as many as it takes until each has heard, over
 * others, of all. SL_EINVAL: the topology is not connected. */
SL_API int sl_algorithm_spread(uint64_t *rounds, const sl_algorithm_config *config,
                               const sl_topology *topology, sl_error *error);

/* All names, in the order of the docs; ends with NULL. */
SL_API const char *sl_algorithm_name(size_t index);
/* All forms of all names, in the same order; NULL: past the end. */
SL_API const sl_algorithm *sl_algorithm_at(size_t index);
/* The keys that the form reads, the compressor's aside; NULL: past the end. */
SL_API const sl_key *sl_algorithm_key(const sl_algorithm *algorithm, size_t index);
/* Does the form read algorithm.KEY, "period" or "compressor.k", with this compressor? */
SL_API bool sl_algorithm_reads(const sl_algorithm *algorithm, sl_compressor_kind compressor,
                               const char *key);
/* Does a form of the configuration's name read algorithm.KEY? */
SL_API bool sl_algorithm_is_reader(const sl_algorithm_config *config, const char *key);
/* The forms of a shared object (starling/steps.h) at `path`, for a configuration; to be closed when
 * none with them is left. SL_EFILE, SL_EINVAL: it is none, or of another version, or its forms read
 * keys that there are not. */
SL_API int sl_algorithm_library_open(const struct sl_algorithm_library **out, const char *path,
                                     sl_error *error);
SL_API void sl_algorithm_library_close(const struct sl_algorithm_library **library);
/* The compressor of its messages: its own, or the configured one. */
SL_API sl_compressor_kind sl_algorithm_compressor(const sl_algorithm_config *config);

/* Do algorithm, topology, compressor and optimizer suit each other, for any model? SL_EINVAL with
 * key, value and remedy. Refuses W with rho >= 1 if the
 * algorithm mixes with W; that may take a second or two if W has negative weights. */
SL_API int sl_algorithm_check(const sl_algorithm_config *config, const sl_topology *topology,
                              const sl_optimizer_config *optimizer, sl_error *error);

/* The same of the model that its vectors are. SL_EINVAL. */
SL_API int sl_algorithm_check_shapes(const sl_algorithm_config *config, const sl_shapes *shapes,
                                     sl_error *error);
/* Does it send less than whole vectors by itself? Then *elements: how many an exchange adds up. */
SL_API bool sl_algorithm_shortens(size_t *elements, const sl_algorithm_config *config,
                                  const sl_shapes *shapes);

/* An algorithm's configuration for one model, with everything derived from it. */
#define SL_PLAN_TEXT_MAX 1024
typedef struct sl_plan {
    sl_algorithm_config config; /* with the compressor as it will be used */
    sl_quality quality;
    sl_compressor_config phases[SL_PHASES_MAX]; /* (phase_count) of the first exchanges */
    uint64_t phase_ends[SL_PHASES_MAX];         /* its last exchange, counted from 1 */
    uint32_t phase_count;
    bool phase_is_epoch; /* ends are passes over the data, not exchanges */
    double step_size;    /* consensus_step or eta in use; 0 where there is none */
    bool step_size_derived;
    double mixed; /* the largest share of a model that a mixing moves, max 1 - W_ii */
    char warning[SL_PLAN_TEXT_MAX]; /* empty: nothing to warn of */
} sl_plan;

/* fedavg: steps of a client with so many samples, of local_epochs passes over them. */
SL_API uint64_t sl_clients_steps(const sl_algorithm_config *config, double samples);

/* one-bit-adam: the first round after which warmup_ratio can end the warm-up. */
SL_API uint64_t sl_warm_up_earliest(const sl_algorithm_config *config);

/* Plans what sl_algorithm_check accepts. SL_EINVAL: the compressor does not suit the dimension. */
SL_API int sl_algorithm_plan(sl_plan *out, const sl_algorithm_config *config,
                             const sl_topology *topology, size_t dimension, sl_error *error);
/* What compresses an exchange's messages, in the plan. epoch_rounds: of a pass over the data. */
SL_API const sl_compressor_config *sl_plan_compressor(const sl_plan *plan, uint64_t epoch_rounds,
                                                      uint64_t exchange);
/* The consensus step that theory guarantees to converge; larger ones usually do. NaN: none is
 * known, or it takes more than about a second to compute. */
SL_API int sl_plan_theory(double *step, const sl_plan *plan, const sl_topology *topology,
                          sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
