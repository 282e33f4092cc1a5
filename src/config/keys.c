/* keys.c - the table of keys; see keys.h. Their values: key_values.c. */
#include "config/keys.h"

#include <string.h>

#define NAME(kind, text) text,
static const char *const variants[] = {SL_VARIANTS(NAME) NULL};
static const char *const replicas[] = {"sum", "per-neighbour", NULL};
static const char *const clips[] = {"second-largest", NULL};
static const char *const directions[] = {"up", "both", NULL};
static const char *const bases[] = {"local-sgd", "d-psgd", "sgp", NULL};
static const char *const client_weights[] = {"samples", "uniform", NULL};
static const char *const period_schedules[] = {"constant",      "adaptive", "adaptive-halving",
                                               "adaptive-rate", "growing",  NULL};
static const char *const buffers[] = {"local", "average", "reset", NULL};
static const char *const all_reduces[] = {SL_ALL_REDUCES(NAME) NULL};
static const char *const matrices[] = {"lazy", "plain", NULL};
static const char *const scopes[] = {"model", "tensor", NULL};
static const char *const orders[] = {"random", "cyclic", NULL};
static const char *const norms[] = {"l2", "max", NULL};
static const char *const codings[] = {"none", "golomb", "elias", "huffman", NULL};
static const char *const compressors[] = {
#define COMPRESSOR_NAME(kind, codec, text) text,
    SL_COMPRESSORS(COMPRESSOR_NAME)
#undef COMPRESSOR_NAME
        NULL};
static const char *const schedules[] = {SL_SCHEDULES(NAME) NULL};
static const char *const optimizers[] = {SL_OPTIMIZERS(NAME) NULL};
static const char *const models[] = {SL_MODELS(NAME) NULL};
static const char *const layer_tables[] = {SL_LAYER_TABLES(NAME) NULL};
static const char *const data_sets[] = {
#define DATA_NAME(kind, name) #name,
    SL_DATA_SETS(DATA_NAME)
#undef DATA_NAME
        NULL};
static const char *const trees[] = {"spanning", "topology", NULL};
static const char *const devices[] = {"cpu", "auto", "cuda:0", NULL};
static const char *const providers[] = {"tcp", "verbs", NULL};
static const char *const securities[] = {"auto", "none", "key", "certificates", NULL};
static const char *const seals[] = {"auto", "on", "off", "handshake-only", NULL};
static const char *const on_losses[] = {"auto", "stop", "continue", NULL};
static const char *const restarts[] = {"never", "on-failure", "always", NULL};
static const char *const gpu_directs[] = {"off", "auto", "on", NULL};
static const char *const partitions[] = {
    SL_PARTITIONS(NAME) NULL,
};

static const char *const on_changes[] = {"keep", "share", NULL};

#define AT(field) .offset = offsetof(sl_experiment, field)
#define COUNTED(field, count) AT(field), .count_offset = offsetof(sl_experiment, count)
#define BETWEEN(low, high) .min = (low), .max = (high)
#define USED_BY(key, values) .user = key, .users = values
/* Used by those whose descriptors list the key. */
#define USED_BY_ALGORITHMS .user = "algorithm.name"
#define USED_BY_COMPRESSORS .user = "algorithm.compressor.name"
#define BELOW_1 0.99999999

const sl_key sl_keys[] = {
    {"name", SL_KEY_TEXT, AT(name), .fallback = "\"experiment\"", .help = "name of the run folder"},
    {"seed", SL_KEY_U64, AT(seed), BETWEEN(0, 9007199254740992.0), .fallback = "1",
     .help = "seed of all random numbers"},
    {"rounds", SL_KEY_U64, AT(rounds), BETWEEN(0, 1e12), .fallback = "0",
     .help = "rounds to train; give this or epochs"},
    {"epochs", SL_KEY_REAL, AT(epochs), BETWEEN(0, 1e9), .fallback = "0",
     .help = "passes over the training data; give this or rounds"},
    {"final_average", SL_KEY_BOOL, AT(final_average), .fallback = "false",
     .help = "after the last round, all nodes take the exact average of their models"},

    {"loss_limit", SL_KEY_REAL, AT(loss_limit), BETWEEN(0, 1e300), .fallback = "0",
     .help = "a batch loss above this ends the run as diverged; 0 = a million times the first"},

    {"device", SL_KEY_TEXT, AT(device), .choices = devices, .fallback = "\"cpu\"",
     .help = "where models are stored, trained, mixed and compressed: cpu, cuda:N or auto"},
    {"device_memory_gb", SL_KEY_REAL, AT(device_memory_gb), BETWEEN(0, 1e6), .fallback = "0",
     .help = "GPU memory that one agent may use, in 10^9 bytes; 0 = no limit",
     USED_BY("device", "!cpu")},

    {"algorithm.name", SL_KEY_TEXT, AT(algorithm.name), .names = sl_algorithm_name,
     .fallback = "\"d-psgd\"", .help = "training algorithm; see docs/algorithms.md"},
    {"algorithm.variant", SL_KEY_CHOICE, AT(algorithm.variant), .choices = variants,
     .fallback = "\"default\"",
     .help = "d-psgd: adapt-then-combine (default) or combine-while-adapt; choco-sgd: "
             "compress-then-mix (default) or mix-then-compress; clipped-gossip: clip (default), "
             "median or trimmed-mean"},
    {"algorithm.replicas", SL_KEY_CHOICE, AT(algorithm.replicas), .choices = replicas,
     .fallback = "\"sum\"",
     .help = "choco-sgd, dcd-psgd: store the weighted sum of the neighbours' replicas, or each "
             "replica (per-neighbour), which schedules need",
     USED_BY_ALGORITHMS},
    {"algorithm.consensus_step", SL_KEY_REAL, AT(algorithm.consensus_step), BETWEEN(0, 1),
     .fallback = "0",
     .help = "choco-sgd, beer: step size of the mixing; 0 = derived from the compressor; noloco: 0 "
             "= algorithm.outer.learning_rate",
     USED_BY_ALGORITHMS},
    {"algorithm.eta", SL_KEY_REAL, AT(algorithm.eta), BETWEEN(0, 1), .fallback = "0",
     .help = "deep-squeeze: step size of the mixing; 0 = derived from the compressor",
     USED_BY_ALGORITHMS},
    {"algorithm.local_steps", SL_KEY_U64_BY_RANK,
     COUNTED(algorithm.local_steps, algorithm.steps_of), BETWEEN(1, 1e9),
     .length_max = SL_COUNTS_MAX, .fallback = "1",
     .help = "gossip algorithms, fedavg: gradient steps per exchange; fedavg: or a list by rank"},
    {"algorithm.local_epochs", SL_KEY_U64, AT(algorithm.local_epochs), BETWEEN(0, 1e6),
     .fallback = "0",
     .help = "fedavg: passes of a client over its samples between exchanges; 0 = local_steps",
     USED_BY_ALGORITHMS},
    {"algorithm.period", SL_KEY_U64, AT(algorithm.period), BETWEEN(0, 1e9), .fallback = "0",
     .help = "rounds from one exchange to the next, slowmo: from one average; 0 = local-sgd, easgd "
             "10, slowmo 12, diloco, noloco 500",
     USED_BY_ALGORITHMS},
    {"algorithm.period_schedule", SL_KEY_CHOICE, AT(algorithm.period_schedule),
     .choices = period_schedules, .fallback = "\"constant\"",
     .help = "local-sgd: the period stays, falls with the root of the loss (halving: and is halved "
             "where that does not; rate: times that of the learning rate), or grows up to period",
     USED_BY_ALGORITHMS},
    {"algorithm.first_period", SL_KEY_U64, AT(algorithm.first_period), BETWEEN(1, 1e9),
     .fallback = "1", .help = "local-sgd, growing period: the first one", USED_BY_ALGORITHMS},
    {"algorithm.growth", SL_KEY_REAL, AT(algorithm.growth), BETWEEN(0, 1e6), .fallback = "1",
     .help = "local-sgd, growing period: what each average adds, in first periods",
     USED_BY_ALGORITHMS},
    {"algorithm.switch_round", SL_KEY_U64, AT(algorithm.switch_round), BETWEEN(0, 1e12),
     .fallback = "0",
     .help = "local-sgd: up to this round all gradients are averaged; the period counts from it",
     USED_BY_ALGORITHMS},
    {"algorithm.average_period", SL_KEY_U64, AT(algorithm.average_period), BETWEEN(1, 1e9),
     .fallback = "6", .help = "gossip-pga: every so many exchanges, all nodes' exact average",
     USED_BY_ALGORITHMS},
    {"algorithm.correction_period", SL_KEY_U64, AT(algorithm.correction_period), BETWEEN(1, 1e9),
     .fallback = "5", .help = "cd-sgd: every so many rounds, the gradient is sent uncompressed",
     USED_BY_ALGORITHMS},
    {"algorithm.warmup_rounds", SL_KEY_COUNT, AT(algorithm.warmup_rounds), BETWEEN(0, 1e12),
     .fallback = "\"auto\"",
     .help = "cd-sgd, one-bit-adam, powersgd: rounds of uncompressed messages at the start; auto = "
             "1, powersgd 0, with warmup_ratio no bound",
     USED_BY_ALGORITHMS},
    {"algorithm.warmup_ratio", SL_KEY_REAL, AT(algorithm.warmup_ratio), BETWEEN(0, 1),
     .fallback = "0",
     .help = "one-bit-adam: the warm-up ends once the second moment is at least so much of what it "
             "was 1/(1 - beta2) rounds ago; 0 = by warmup_rounds only; the paper's is 0.96",
     USED_BY_ALGORITHMS},
    {"algorithm.warmup", SL_KEY_FACTORS, COUNTED(algorithm.warmup, algorithm.warmup_count),
     BETWEEN(1e-9, 1), .length_max = SL_PHASES_MAX, .fallback = "[]",
     .help = "dgc: fraction of the entries sent in each of the first epochs", USED_BY_ALGORITHMS},
    {"algorithm.warmup_k", SL_KEY_U32S, COUNTED(algorithm.warmup_k, algorithm.warmup_k_count),
     BETWEEN(1, 4294967295.0), .length_max = SL_PHASES_MAX, .fallback = "[]",
     .help = "dgc: number of entries sent in each of the first rounds, in place of warmup",
     USED_BY_ALGORITHMS},
    {"algorithm.threshold", SL_KEY_REAL, AT(algorithm.threshold), BETWEEN(1e-30, 1e30),
     .fallback = "0.1",
     .help = "cd-sgd: tau; a coordinate of at least tau is sent as tau, with its sign",
     USED_BY_ALGORITHMS},
    {"algorithm.local_learning_rate", SL_KEY_REAL, AT(algorithm.local_learning_rate),
     BETWEEN(0, 1e6), .fallback = "0",
     .help = "cd-sgd: learning rate of the local step; 0 = optimizer.learning_rate",
     USED_BY_ALGORITHMS},
    {"algorithm.alpha", SL_KEY_PARAMETER, AT(algorithm.alpha), BETWEEN(0, 1),
     .fallback = "\"auto\"",
     .help = "lead: share of a message that its replicas follow, auto = 0.5; ecq-sgd: share of "
             "what was lost that is sent again, auto = 0.2; diana: share of a message that is "
             "remembered, auto = 1/(1 + omega)",
     USED_BY_ALGORITHMS},
    {"algorithm.gamma", SL_KEY_REAL, AT(algorithm.gamma), BETWEEN(0, 1), .fallback = "1",
     .help = "lead: step size of the mixing", USED_BY_ALGORITHMS},
    {"algorithm.beta", SL_KEY_PARAMETER, AT(algorithm.beta), BETWEEN(0, BELOW_1),
     .fallback = "\"auto\"",
     .help = "qgm, decentlam, slowmo: the algorithm's own momentum; ecq-sgd: share of what was "
             "lost that stays; diana, sign-vote, fetch-sgd: their momentum; auto = 0.9, slowmo "
             "0.5, diana, "
             "sign-vote 0",
     USED_BY_ALGORITHMS},
    {"algorithm.mu", SL_KEY_PARAMETER, AT(algorithm.mu), BETWEEN(0, BELOW_1),
     .fallback = "\"auto\"",
     .help = "qgm: factor of the momentum buffer from round to round; auto = beta",
     USED_BY_ALGORITHMS},
    {"algorithm.clip", SL_KEY_PARAMETER, AT(algorithm.clip), BETWEEN(0, 1e30), .choices = clips,
     .fallback = "\"second-largest\"",
     .help =
         "clipped-gossip: distance from which on a neighbour's pull is clipped; second-largest = "
         "that of the neighbours; dgc: length to which n gradients are clipped, each to "
         "clip/sqrt(n); second-largest = 0, not at all",
     USED_BY_ALGORITHMS},
    {"algorithm.trim", SL_KEY_U32, AT(algorithm.trim), BETWEEN(0, SL_NODES_MAX), .fallback = "1",
     .help = "clipped-gossip trimmed-mean: values that are cut off at each end",
     USED_BY_ALGORITHMS},
    {"algorithm.trigger", SL_KEY_PARAMETER, AT(algorithm.trigger), BETWEEN(0, 1e30),
     .fallback = "\"auto\"",
     .help = "lag-3pc, clag: a message is silent unless what it would tell is longer than so many "
             "times the last step of the gradient, both squared, auto = 1; choco-sgd: than so many "
             "times the learning rate, auto = 0, never silent",
     USED_BY_ALGORITHMS},
    {"algorithm.trigger_growth", SL_KEY_REAL, AT(algorithm.trigger_growth), BETWEEN(0, BELOW_1),
     .fallback = "0",
     .help = "choco-sgd: the trigger grows with the round to this power, 1 - epsilon of SPARQ-SGD",
     USED_BY_ALGORITHMS},
    {"algorithm.depth", SL_KEY_U32, AT(algorithm.depth), BETWEEN(1, SL_DEPTH_MAX), .fallback = "10",
     .help = "lag-wk, laq: steps of the model that are remembered", USED_BY_ALGORITHMS},
    {"algorithm.xi", SL_KEY_PARAMETER, AT(algorithm.xi), BETWEEN(0, 1e30), .fallback = "\"auto\"",
     .help = "lag-wk, laq: weight of each remembered step; larger: silent more often; auto = "
             "1/depth, laq 0.8/depth",
     USED_BY_ALGORITHMS},
    {"algorithm.clock", SL_KEY_U64, AT(algorithm.clock), BETWEEN(1, 1e12), .fallback = "100",
     .help = "laq: after so many silent messages it sends one", USED_BY_ALGORITHMS},
    {"algorithm.bits", SL_KEY_COUNT, AT(algorithm.bits), BETWEEN(1, 24), .fallback = "\"auto\"",
     .help = "moniqua, laq: bits of an element; auto = 8, laq 4", USED_BY_ALGORITHMS},
    {"algorithm.theta", SL_KEY_REAL, AT(algorithm.theta), BETWEEN(1e-30, 1e30), .fallback = "2",
     .help = "moniqua: more than any element of two neighbours' models is ever apart",
     USED_BY_ALGORITHMS},
    {"algorithm.nesterov", SL_KEY_BOOL, AT(algorithm.nesterov), .fallback = "false",
     .help = "qgm: look ahead along the momentum", USED_BY_ALGORITHMS},
    {"algorithm.sketch.rows", SL_KEY_U32, AT(algorithm.sketch.rows), BETWEEN(1, 15),
     .fallback = "5",
     .help = "fetch-sgd: places of an element in the sketch; their median is its estimate",
     USED_BY_ALGORITHMS},
    {"algorithm.sketch.columns", SL_KEY_U64, AT(algorithm.sketch.columns), BETWEEN(0, 1e12),
     .fallback = "0",
     .help = "fetch-sgd: numbers in a row of the sketch; 0 = a tenth of the parameters in all rows",
     USED_BY_ALGORITHMS},
    {"algorithm.sketch.k", SL_KEY_U64, AT(algorithm.sketch.k), BETWEEN(0, 1e12), .fallback = "0",
     .help = "fetch-sgd: parameters that a round moves; 0 = a tenth of the columns",
     USED_BY_ALGORITHMS},
    {"algorithm.outer.learning_rate", SL_KEY_PARAMETER, AT(algorithm.outer.learning_rate),
     BETWEEN(0, 10), .fallback = "\"auto\"",
     .help = "diloco, noloco: share of what the inner steps moved that the common model follows; "
             "auto = 0.7",
     USED_BY_ALGORITHMS},
    {"algorithm.outer.momentum", SL_KEY_PARAMETER, AT(algorithm.outer.momentum),
     BETWEEN(0, BELOW_1), .fallback = "\"auto\"",
     .help = "diloco, noloco: momentum of the outer steps; auto = 0.9, noloco 0.5",
     USED_BY_ALGORITHMS},
    {"algorithm.outer.nesterov", SL_KEY_BOOL, AT(algorithm.outer.nesterov), .fallback = "true",
     .help = "diloco: look ahead along the outer momentum", USED_BY_ALGORITHMS},
    {"algorithm.slow_rate", SL_KEY_REAL, AT(algorithm.slow_rate), BETWEEN(0, 10), .fallback = "1",
     .help = "slowmo: share of the slow momentum's step that is taken", USED_BY_ALGORITHMS},
    {"algorithm.base", SL_KEY_CHOICE, AT(algorithm.base), .choices = bases,
     .fallback = "\"local-sgd\"", .help = "slowmo: what nodes do from one average to the next",
     USED_BY_ALGORITHMS},
    {"algorithm.buffers", SL_KEY_CHOICE, AT(algorithm.buffers), .choices = buffers,
     .fallback = "\"local\"",
     .help = "local-sgd, slowmo: when models are averaged, buffers of optimizer.momentum stay "
             "(local), are averaged too, or begin at 0 again (reset)",
     USED_BY_ALGORITHMS},
    {"algorithm.clients", SL_KEY_REAL_OR_SETS, COUNTED(algorithm.clients, algorithm.clients_of),
     BETWEEN(1e-9, 1), .length_max = SL_COUNTS_MAX, .fallback = "1",
     .help = "fedavg: fraction of the nodes that train from one exchange to the next, at least "
             "one; or lists of their ranks, taken by turns",
     USED_BY_ALGORITHMS},
    {"algorithm.client_weights", SL_KEY_CHOICE_OR_REALS,
     COUNTED(algorithm.client_weights, algorithm.weights_of), BETWEEN(0, 1e9),
     .length_max = SL_COUNTS_MAX, .choices = client_weights, .fallback = "\"samples\"",
     .help = "fedavg: models are weighed by their nodes' training samples, all alike, or by a list",
     USED_BY_ALGORITHMS},
    {"algorithm.elastic", SL_KEY_REAL, AT(algorithm.elastic), BETWEEN(0, 1), .fallback = "0",
     .help = "easgd: share of its distance by which a node and the centre move; 0 = 0.9/nodes",
     USED_BY_ALGORITHMS},
    {"algorithm.beta1", SL_KEY_REAL, AT(algorithm.beta1), BETWEEN(0, BELOW_1), .fallback = "0.9",
     .help = "d-adam, d-amsgrad, one-bit-adam: factor of the first moment from round to round",
     USED_BY_ALGORITHMS},
    {"algorithm.beta2", SL_KEY_REAL, AT(algorithm.beta2), BETWEEN(0, BELOW_1), .fallback = "0.999",
     .help = "d-adam, d-amsgrad, one-bit-adam: factor of the second moment from round to round",
     USED_BY_ALGORITHMS},
    {"algorithm.epsilon", SL_KEY_REAL, AT(algorithm.epsilon), BETWEEN(1e-30, 1), .fallback = "1e-8",
     .help = "d-adam, one-bit-adam: added to the root of the second moment; d-amsgrad: least value "
             "of the second moment that all agree on",
     USED_BY_ALGORITHMS},
    {"algorithm.matrix", SL_KEY_CHOICE, AT(algorithm.matrix), .choices = matrices,
     .fallback = "\"lazy\"",
     .help = "exact-diffusion: mix with (I + W)/2 (lazy) or with W (plain), which is D2",
     USED_BY_ALGORITHMS},
    {"algorithm.tree", SL_KEY_CHOICE, AT(algorithm.tree), .choices = trees,
     .fallback = "\"spanning\"",
     .help = "relaysum: edges that span the topology (spanning), or all, which must be a tree "
             "(topology)",
     USED_BY_ALGORITHMS},
    {"algorithm.rank", SL_KEY_U32, AT(algorithm.rank), BETWEEN(1, 1e6), .fallback = "2",
     .help = "powersgd, power-gossip: columns of a matrix's two factors", USED_BY_ALGORITHMS},
    {"algorithm.start", SL_KEY_ROWS, AT(algorithm.start), BETWEEN(-1e30, 1e30),
     .length_max = SL_ROWS_NUMBERS_MAX, .fallback = "[]",
     .help = "powersgd, power-gossip: first factors Q, of power-gossip each edge's: a row of "
             "algorithm.rank numbers for each column of each matrix; [] = random ones",
     USED_BY_ALGORITHMS},
    {"algorithm.error_feedback", SL_KEY_SWITCH, AT(algorithm.error_feedback),
     .fallback = "\"auto\"",
     .help = "parameter-server, all-reduce, local-sgd, fedavg: keep what a message lost and add it "
             "to the next; auto = where the compressor is biased",
     USED_BY_ALGORITHMS},
    {"algorithm.directions", SL_KEY_CHOICE, AT(algorithm.directions), .choices = directions,
     .fallback = "\"up\"",
     .help = "parameter-server, local-sgd, fedavg with a compressor: compress messages to servers "
             "(up), or theirs, too (both)",
     USED_BY_ALGORITHMS},
    {"algorithm.delay", SL_KEY_U64, AT(algorithm.delay), BETWEEN(0, SL_ALGORITHM_VECTORS_MAX),
     .fallback = "0",
     .help = "all-reduce: rounds that a mean gradient is late; its exchange is beside the next one",
     USED_BY_ALGORITHMS},
    {"algorithm.all_reduce", SL_KEY_CHOICE, AT(algorithm.all_reduce), .choices = all_reduces,
     .fallback = "\"ring\"",
     .help = "all-reduce, powersgd, fetch-sgd, local-sgd, gossip-pga, slowmo: who sends what to "
             "whom; all "
             "nodes get the same average",
     USED_BY_ALGORITHMS},
    {"algorithm.group", SL_KEY_U32, AT(algorithm.group), BETWEEN(0, SL_NODES_MAX), .fallback = "0",
     .help = "torus-2d, two-rings: nodes in a row, a divisor of their number; hierarchical: nodes "
             "in a group; 0 = about the square root",
     USED_BY("algorithm.all_reduce", "hierarchical torus-2d two-rings")},
    {"algorithm.server", SL_KEY_SERVER, AT(algorithm.server), BETWEEN(0, SL_NODES_MAX - 1),
     .fallback = "0",
     .help = "algorithms with servers: rank of the server; sharded = each rank serves its shard",
     USED_BY_ALGORITHMS},
    {"algorithm.compressor.name", SL_KEY_CHOICE, AT(algorithm.compressor.kind),
     .choices = compressors, .fallback = "\"identity\"",
     .help = "compressor of the vectors that are sent; see docs/compressors.md"},
    {"algorithm.compressor.k", SL_KEY_U64, AT(algorithm.compressor.k), BETWEEN(0, 1e12),
     .fallback = "0",
     .help =
         "top-k, random-k, shared-mask, stc, sbc: number of entries sent, pos-neg: of each sign, "
         "magnitude-dropping: on average; 0 = use fraction",
     USED_BY_COMPRESSORS},
    {"algorithm.compressor.fraction", SL_KEY_REAL, AT(algorithm.compressor.fraction),
     BETWEEN(1e-9, 1), .fallback = "0.01",
     .help = "top-k, random-k, shared-mask, stc, sbc: fraction of the entries that is sent, "
             "pos-neg: of each "
             "sign, magnitude-dropping: on average",
     USED_BY_COMPRESSORS},
    {"algorithm.compressor.order", SL_KEY_CHOICE, AT(algorithm.compressor.order), .choices = orders,
     .fallback = "\"random\"",
     .help = "shared-mask: coordinates at random, or block after block of 1/fraction blocks",
     USED_BY_COMPRESSORS},
    {"algorithm.compressor.levels", SL_KEY_U32, AT(algorithm.compressor.levels), BETWEEN(1, 32767),
     .fallback = "7", .help = "qsgd, rotated-qsgd: number of levels, s", USED_BY_COMPRESSORS},
    {"algorithm.compressor.bits", SL_KEY_U32, AT(algorithm.compressor.bits), BETWEEN(1, 4),
     .fallback = "2", .help = "eden: bits of an element", USED_BY_COMPRESSORS},
    {"algorithm.compressor.bucket", SL_KEY_U32, AT(algorithm.compressor.bucket),
     BETWEEN(0, 4294967295.0), .fallback = "0",
     .help = "qsgd, scaled-sign, 1-bit, terngrad, rotated-qsgd, rotated-terngrad: elements per "
             "scale; 0 = one scale for the whole vector",
     USED_BY_COMPRESSORS},
    {"algorithm.compressor.norm", SL_KEY_CHOICE, AT(algorithm.compressor.norm), .choices = norms,
     .fallback = "\"l2\"", .help = "qsgd, rotated-qsgd: norm that scales a bucket",
     USED_BY_COMPRESSORS},
    {"algorithm.compressor.probability", SL_KEY_REAL, AT(algorithm.compressor.probability),
     BETWEEN(1e-4, 1), .fallback = "0.1",
     .help = "random-dropping: probability of sending an element", USED_BY_COMPRESSORS},
    {"algorithm.compressor.threshold", SL_KEY_REAL, AT(algorithm.compressor.threshold),
     BETWEEN(1e-30, 1e30), .fallback = "0.1",
     .help = "threshold, strom: tau; an element of at least tau is sent as tau, with its sign",
     USED_BY_COMPRESSORS},
    {"algorithm.compressor.multiplier", SL_KEY_REAL, AT(algorithm.compressor.multiplier),
     BETWEEN(1, 2 * BELOW_1), .fallback = "1",
     .help = "3lc: s; what is below s/2 times the largest magnitude is not sent",
     USED_BY_COMPRESSORS},
    {"algorithm.compressor.bin", SL_KEY_U32, AT(algorithm.compressor.bin), BETWEEN(1, 16384),
     .fallback = "500", .help = "adacomp: T; elements of which the largest says what is sent",
     USED_BY_COMPRESSORS},
    {"algorithm.compressor.clip_sigma", SL_KEY_REAL, AT(algorithm.compressor.clip_sigma),
     BETWEEN(0, 1000), .fallback = "0",
     .help = "terngrad, rotated-terngrad: c; what is beyond c deviations of its bucket is cut off, "
             "as published with 2.5; 0 = nothing is",
     USED_BY_COMPRESSORS},
    {"algorithm.compressor.share_scale", SL_KEY_BOOL, AT(algorithm.compressor.share_scale),
     .fallback = "false",
     .help = "terngrad, C-SGD: nodes first agree on the largest of their scales",
     USED_BY_COMPRESSORS},
    {"algorithm.compressor.coding", SL_KEY_CHOICE, AT(algorithm.compressor.coding),
     .choices = codings, .fallback = "\"none\"",
     .help =
         "lossless code: of indices (top-k, stc, sbc, pos-neg, strom) golomb or elias, of levels "
         "(qsgd, terngrad, natural) huffman or, but for natural, elias",
     USED_BY_COMPRESSORS},
    {"algorithm.compressor.per", SL_KEY_CHOICE, AT(algorithm.compressor.scope), .choices = scopes,
     .fallback = "\"model\"",
     .help = "what is compressed at a time: the whole model, or each tensor",
     USED_BY("algorithm.compressor.name", "!identity")},
    {"algorithm.compressor.scaled", SL_KEY_SWITCH, AT(algorithm.scaled), .fallback = "\"auto\"",
     .help =
         "random-k, random-dropping: scale up, to be unbiased; auto = where the algorithm needs it",
     USED_BY_COMPRESSORS},
    {"algorithm.compressor.contractive", SL_KEY_SWITCH, AT(algorithm.contractive),
     .fallback = "\"auto\"",
     .help = "unbiased compressors: divide by 1 + omega; auto = where the algorithm needs it"},

    {"optimizer.name", SL_KEY_CHOICE, AT(optimizer.kind), .choices = optimizers,
     .fallback = "\"sgd\"",
     .help = "what a step is made of; other than sgd: where the algorithm takes momentum"},
    {"optimizer.learning_rate", SL_KEY_REAL, AT(optimizer.learning_rate), BETWEEN(0, 1e6),
     .fallback = "0.1", .help = "learning rate; 0 = pure gossip averaging"},
    {"optimizer.momentum", SL_KEY_REAL, AT(optimizer.momentum), BETWEEN(0, BELOW_1),
     .fallback = "0",
     .help = "sgd, lars: momentum, as in PyTorch's SGD; its buffer is never mixed"},
    {"optimizer.nesterov", SL_KEY_BOOL, AT(optimizer.nesterov), .fallback = "false",
     .help = "use Nesterov momentum"},
    {"optimizer.weight_decay", SL_KEY_REAL, AT(optimizer.weight_decay), BETWEEN(0, 1e6),
     .fallback = "0",
     .help = "adds this times the model to the gradient; adamw, lamb: to the direction"},
    {"optimizer.beta1", SL_KEY_REAL, AT(optimizer.beta1), BETWEEN(0, BELOW_1), .fallback = "0.9",
     .help = "adamw, lamb: factor of the first moment from round to round",
     USED_BY("optimizer.name", "adamw lamb")},
    {"optimizer.beta2", SL_KEY_REAL, AT(optimizer.beta2), BETWEEN(0, BELOW_1), .fallback = "0.999",
     .help = "adamw, lamb: factor of the second moment from round to round",
     USED_BY("optimizer.name", "adamw lamb")},
    {"optimizer.epsilon", SL_KEY_REAL, AT(optimizer.epsilon), BETWEEN(1e-30, 1), .fallback = "1e-8",
     .help = "adamw, lamb: added to the root of the second moment",
     USED_BY("optimizer.name", "adamw lamb")},
    {"optimizer.trust", SL_KEY_REAL, AT(optimizer.trust), BETWEEN(0, 1e6), .fallback = "0",
     .help = "lars, lamb: step of a tensor, as a share of its norm; 0 = 0.001 (lars), 1 (lamb)",
     USED_BY("optimizer.name", "lars lamb")},
    {"optimizer.clip_norm", SL_KEY_REAL, AT(optimizer.clip_norm), BETWEEN(0, 1e30), .fallback = "0",
     .help = "longest gradient of a node, a longer one is scaled; 0 = any"},
    {"optimizer.schedule.name", SL_KEY_CHOICE, AT(optimizer.schedule.kind), .choices = schedules,
     .fallback = "\"constant\"", .help = "schedule of the learning rate"},
    {"optimizer.schedule.milestones", SL_KEY_REALS,
     COUNTED(optimizer.schedule.milestones, optimizer.schedule.milestone_count), BETWEEN(0, 1),
     .length_max = SL_MILESTONES_MAX, .fallback = "[]",
     .help = "step: fractions of the run at which the rate is multiplied by factor",
     USED_BY("optimizer.schedule.name", "step")},
    {"optimizer.schedule.factor", SL_KEY_REAL, AT(optimizer.schedule.factor), BETWEEN(0, 1),
     .fallback = "0.1", .help = "step: factor of each milestone",
     USED_BY("optimizer.schedule.name", "step")},
    {"optimizer.schedule.minimum", SL_KEY_REAL, AT(optimizer.schedule.minimum), BETWEEN(0, 1),
     .fallback = "0", .help = "cosine: final rate, as a fraction of learning_rate",
     USED_BY("optimizer.schedule.name", "cosine")},
    {"optimizer.schedule.warmup_rounds", SL_KEY_U64, AT(optimizer.schedule.warmup_rounds),
     BETWEEN(0, 1e12), .fallback = "0", .help = "rounds of linear warm-up"},

    {"model.name", SL_KEY_CHOICE, AT(model.kind), .choices = models, .fallback = "\"mlp\"",
     .help = "model to train"},
    {"model.hidden", SL_KEY_U32S, COUNTED(model.hidden, model.hidden_count), BETWEEN(1, 1000000),
     .length_max = SL_HIDDEN_MAX, .fallback = "[256]", .help = "mlp: width of each hidden layer",
     USED_BY("model.name", "mlp")},
    {"model.layers", SL_KEY_U32, AT(model.layers), BETWEEN(0, SL_MODEL_LAYERS_MAX), .fallback = "0",
     .help = "lstm, transformer: number of layers; 0 = default (lstm 2, transformer 4)",
     USED_BY("model.name", "lstm transformer")},
    {"model.units", SL_KEY_U32, AT(model.units), BETWEEN(0, 4096), .fallback = "0",
     .help = "lstm, transformer: width of each layer; 0 = default (lstm 256, transformer 128)",
     USED_BY("model.name", "lstm transformer")},
    {"model.embedding", SL_KEY_U32, AT(model.embedding), BETWEEN(1, 4096), .fallback = "8",
     .help = "lstm: size of a character's embedding", USED_BY("model.name", "lstm")},
    {"model.heads", SL_KEY_U32, AT(model.heads), BETWEEN(1, 256), .fallback = "4",
     .help = "transformer: attention heads; must divide units",
     USED_BY("model.name", "transformer")},
    {"model.table", SL_KEY_CHOICE, AT(model.table), .choices = layer_tables,
     .fallback = "\"resnet50\"", .help = "synthetic: the model whose sizes and times it has",
     USED_BY("model.name", "synthetic")},
    {"model.gflops", SL_KEY_REAL, AT(model.gflops), BETWEEN(0, 1e9), .fallback = "0",
     .help = "synthetic: 10^9 operations a second, so that a gradient takes the model's time; 0 = "
             "it takes none of its own",
     USED_BY("model.name", "synthetic")},
    {"model.path", SL_KEY_PATH, AT(model.path), .fallback = "\"\"",
     .help = "quadratic: file with A, b and x0", USED_BY("model.name", "quadratic")},
    {"model.matrix", SL_KEY_U32S, COUNTED(model.matrix, model.matrix_count), BETWEEN(1, 1e8),
     .length_max = SL_MATRIX_AXES, .fallback = "[]",
     .help = "quadratic: [rows, columns]; its first parameters are such a matrix",
     USED_BY("model.name", "quadratic")},
    {"model.start", SL_KEY_PATH, AT(model.start), .fallback = "\"\"",
     .help = "first parameters of all nodes: a safetensors or .npy file, as a run writes them"},

    {"data.name", SL_KEY_CHOICE, AT(data.kind), .choices = data_sets, .fallback = "\"digits\"",
     .help = "data set; digits needs no file"},
    {"data.path", SL_KEY_PATH, AT(data.path), .fallback = "\"\"",
     .help = "folder (mnist, cifar10) or file (libsvm, text)", USED_BY("data.name", "!digits")},
    {"data.test_path", SL_KEY_PATH, AT(data.test_path), .fallback = "\"\"",
     .help =
         "libsvm: file of held-out samples; without it, the last fifth of data.path is held out",
     USED_BY("data.name", "libsvm")},
    {"data.train_samples", SL_KEY_U32, AT(data.train_samples), BETWEEN(0, 100000000),
     .fallback = "0", .help = "training samples to use; 0 = all (digits: 12000)"},
    {"data.test_samples", SL_KEY_U32, AT(data.test_samples), BETWEEN(0, 100000000), .fallback = "0",
     .help = "held-out samples to use; 0 = all (digits: 2000)"},
    {"data.batch", SL_KEY_U32, AT(data.batch), BETWEEN(1, 1000000), .fallback = "32",
     .help = "samples per gradient on one node"},
    {"data.sequence", SL_KEY_U32, AT(data.sequence), BETWEEN(1, 4096), .fallback = "80",
     .help = "text: characters per sample", USED_BY("data.name", "text")},
    {"data.partition.name", SL_KEY_CHOICE, AT(data.partition), .choices = partitions,
     .fallback = "\"iid\"", .help = "how samples are divided among the nodes"},
    {"data.partition.shards_per_node", SL_KEY_U32, AT(data.shards_per_node), BETWEEN(1, 1000000),
     .fallback = "2", .help = "shards: pieces of the label-sorted data per node",
     USED_BY("data.partition.name", "shards")},
    {"data.partition.alpha", SL_KEY_REAL, AT(data.alpha), BETWEEN(1e-6, 1e6), .fallback = "0.1",
     .help = "dirichlet: concentration; smaller is more uneven",
     USED_BY("data.partition.name", "dirichlet")},
    {"data.on_change", SL_KEY_CHOICE, AT(data.on_change), .choices = on_changes,
     .fallback = "\"keep\"",
     .help = "when peers are lost or join, training samples keep their ranks, or are shared anew "
             "among the members"},
    {"data.standardise", SL_KEY_SWITCH, AT(data.standardise), .fallback = "\"auto\"",
     .help = "divide pixels by their channel's standard deviation; auto = for lenet5 and resnet20"},
    {"data.augment", SL_KEY_SWITCH, AT(data.augment), .fallback = "\"auto\"",
     .help =
         "shift training images by up to 4 pixels and mirror them at random; auto = for resnet20"},

    {"record.every", SL_KEY_U64, AT(record.every), BETWEEN(0, 1e12), .fallback = "0",
     .help = "rounds between evaluations; 0 = about 20 evaluations in a run"},
    {"record.evaluate", SL_KEY_U32, AT(record.evaluate), BETWEEN(0, SL_NODES_MAX), .fallback = "0",
     .help = "nodes whose models are evaluated, evenly spread; 0 = all, or 32 of more than 100"},
    {"record.safetensors", SL_KEY_BOOL, AT(record.safetensors), .fallback = "true",
     .help = "write models as safetensors too, with names and shapes of tensors"},
    {"record.parameters_at", SL_KEY_U64S, COUNTED(record.parameters_at, record.parameters_at_count),
     BETWEEN(0, 1e12), .length_max = SL_RECORD_ROUNDS_MAX, .fallback = "[]",
     .help = "rounds after which parameters are recorded; 0 = before the first"},

    {"checkpoint.every", SL_KEY_U64, AT(checkpoint.every), BETWEEN(0, 1e12), .fallback = "0",
     .help = "rounds between checkpoints, from which --resume goes on; 0 = none"},
    {"checkpoint.keep", SL_KEY_U64, AT(checkpoint.keep), BETWEEN(1, 1000), .fallback = "3",
     .help = "checkpoints kept of each node; every * (keep - 1) must reach over the topology"},
    {"checkpoint.path", SL_KEY_PATH, AT(checkpoint.path), .fallback = "\"\"",
     .help = "folder of the checkpoints, which must be there; without it, checkpoints in the run "
             "folder"},

    {"monitor.listen", SL_KEY_TEXT, AT(monitor.listen), .fallback = "\"\"",
     .help = "HOST:PORT where an agent says over HTTP what it does, read-only; {rank} in it is the "
             "rank, for agents on one host"},

    {"transport.provider", SL_KEY_TEXT, AT(transport.provider), .choices = providers,
     .fallback = "\"tcp\"", .help = "libfabric provider: tcp or verbs"},
    {"transport.gpu_direct", SL_KEY_CHOICE, AT(transport.gpu_direct), .choices = gpu_directs,
     .fallback = "\"off\"",
     .help = "send from GPU memory to GPU memory; where that is impossible, on is refused and auto "
             "goes through host memory, each with the reason"},
    {"transport.chunk_bytes", SL_KEY_U32, AT(transport.chunk_bytes), BETWEEN(4096, 16777216),
     .fallback = "114688",
     .help = "payload of one frame, a multiple of 4096; on a GPU, which decodes each compressed "
             "part by itself, use 1048576 or more"},
    {"transport.checksums", SL_KEY_BOOL, AT(transport.checksums), .fallback = "true",
     .help = "the data that an agent sends has checksums; false is for links that check data "
             "themselves, as RDMA does, or that stay on this host"},
    {"transport.window_chunks", SL_KEY_U32, AT(transport.window_chunks), BETWEEN(2, 64),
     .fallback = "8", .help = "receive buffers per neighbour"},
    {"transport.timeout_s", SL_KEY_REAL, AT(transport.timeout_s), BETWEEN(0.5, 86400),
     .fallback = "30", .help = "seconds of silence after which a neighbour counts as dead"},
    {"transport.connect_timeout_s", SL_KEY_REAL, AT(transport.connect_timeout_s),
     BETWEEN(0.5, 86400), .fallback = "60",
     .help = "seconds to wait for all neighbours to connect"},
    {"transport.reconnect_s", SL_KEY_REAL, AT(transport.reconnect_s), BETWEEN(0, 86400),
     .fallback = "10",
     .help = "seconds to connect anew when a connection breaks; 0: a broken "
             "connection ends the run"},
    {"transport.round_timeout_s", SL_KEY_REAL, AT(transport.round_timeout_s), BETWEEN(0.5, 604800),
     .fallback = "600",
     .help = "longest wait for a neighbour that is alive, in seconds; it begins "
             "anew while one that is behind trains on"},

    {"security.mode", SL_KEY_CHOICE, AT(security.mode), .choices = securities,
     .fallback = "\"auto\"",
     .help = "how neighbours prove who they are: none = whoever connects is trusted; auto = key if "
             "security.key is given, else none, but starling run makes a key of its own"},
    {"security.key", SL_KEY_PATH, AT(security.key), .as_named = true, .fallback = "\"\"",
     .help = "mode key: the file of `starling keys make`; certificates: NAME of this node's pair"},
    {"security.seal", SL_KEY_CHOICE, AT(security.seal), .choices = seals, .fallback = "\"auto\"",
     .help = "with a key: encrypt and authenticate every frame (on), or only prove who connects "
             "(handshake-only; off, which is refused beyond loopback); auto = on beyond loopback, "
             "off on it"},
    {"security.trusted_network", SL_KEY_BOOL, AT(security.trusted_network), .fallback = "false",
     .help = "mode none: true lets an agent listen beyond loopback, where anybody may connect"},

    {"membership.on_loss", SL_KEY_CHOICE, AT(membership.on_loss), .choices = on_losses,
     .fallback = "\"auto\"",
     .help = "when a peer is lost the others continue without it, or stop; auto = continue where "
             "the algorithm can and a healthy run pays nothing for it, as check says, else stop"},
    {"membership.grace_s", SL_KEY_REAL, AT(membership.grace_s), BETWEEN(0.5, 86400),
     .fallback = "30",
     .help = "on_loss continue: after so many seconds of silence a peer counts as lost"},
    {"membership.restart", SL_KEY_CHOICE, AT(membership.restart), .choices = restarts,
     .fallback = "\"never\"",
     .help =
         "on_loss continue: whom `starling run` starts again: who failed; always: who left too"},
    {"membership.joiners", SL_KEY_U32, AT(membership.joiners), BETWEEN(0, SL_NODES_MAX),
     .fallback = "0",
     .help = "on_loss continue: how many ranks beyond topology.nodes may join while the run goes "
             "on; 0 = none"},

    {"network.bandwidth_mbit", SL_KEY_REAL, AT(network.bandwidth_mbit), BETWEEN(0, 1e9),
     .fallback = "0",
     .help = "predicted time: bandwidth of each node's link, each way, in Mbit/s; 0 = infinite"},
    {"network.latency_ms", SL_KEY_REAL, AT(network.latency_ms), BETWEEN(0, 1e6), .fallback = "0",
     .help = "predicted time: latency from one node's link to another's"},
    {"network.gradient_ms", SL_KEY_REAL, AT(network.gradient_ms), BETWEEN(0, 1e9), .fallback = "0",
     .help = "predicted time: one gradient on a node of speed 1; 0 = as measured in the run"},
    {"network.coding", SL_KEY_SWITCH, AT(network.coding), .fallback = "\"auto\"",
     .help = "predicted time: include the measured time of encoding and combining; auto = where "
             "gradient_ms is 0"},
    {"network.speeds", SL_KEY_FACTORS, COUNTED(network.speeds, network.speed_count),
     BETWEEN(1e-6, 1e6), .length_max = SL_SPEEDS_MAX, .fallback = "[]",
     .help = "predicted time: relative speed of each node, by rank; empty = all 1"},
    {"network.links", SL_KEY_ROWS, AT(network.links), BETWEEN(0, 1e9),
     .length_max = SL_ROWS_NUMBERS_MAX, .fallback = "[]",
     .help = "predicted time: slower links of single pairs of nodes, [i, j, bandwidth_mbit] each, "
             "or with latency_ms"},
};
const size_t sl_key_count = sizeof sl_keys / sizeof *sl_keys;

const sl_key *sl_experiment_keys(size_t *count) {
    *count = sl_key_count;
    return sl_keys;
}

const sl_key *sl_key_find(const char *path) {
    for (size_t i = 0; i < sl_key_count; i++)
        if (strcmp(sl_keys[i].path, path) == 0)
            return &sl_keys[i];
    return NULL;
}
