/* keys.c - the keys that are no algorithm's or compressor's own, and the list of all; see keys.h.
 * Their values: key_values.c. What they mean, and to whom: key_readers.c. */
#include "config/keys.h"

#include <assert.h>
#include <string.h>

#define NAME(kind, text) text,
static const char *const variants[] = {SL_VARIANTS(NAME) NULL};
static const char *const scopes[] = {"model", "tensor", NULL};
static const char *const compressors[] = {
#define COMPRESSOR_NAME(kind, codec, text) text,
    SL_COMPRESSORS(COMPRESSOR_NAME)
#undef COMPRESSOR_NAME
        NULL};
static const char *const schedules[] = {SL_SCHEDULES(NAME) NULL};
static const char *const optimizers[] = {SL_OPTIMIZERS(NAME) NULL};
static const char *const models[] = {SL_MODELS(NAME) NULL};
static const char *const losses[] = {SL_LOSSES(NAME) NULL};
static const char *const layer_tables[] = {SL_LAYER_TABLES(NAME) NULL};
static const char *const data_sets[] = {
#define DATA_NAME(kind, name) #name,
    SL_DATA_SETS(DATA_NAME)
#undef DATA_NAME
        NULL};
static const char *const devices[] = {"cpu", "auto", "cuda", "cuda:0", NULL};
static const char *const providers[] = {"tcp", "verbs", "libfabric-tcp", NULL};
static const char *const securities[] = {"auto", "none", "key", "certificates", NULL};
static const char *const seals[] = {"auto", "on", "off", "handshake-only", NULL};
static const char *const on_losses[] = {"auto", "stop", "continue", NULL};
static const char *const restarts[] = {"never", "on-failure", "always", NULL};
static const char *const overlaps[] = {SL_OVERLAPS(NAME) NULL};
static const char *const bucketings[] = {SL_BUCKETINGS(NAME) NULL};
static const char *const gpu_directs[] = {"off", "auto", "on", NULL};
static const char *const memories[] = {"auto", "off", NULL};
static const char *const partitions[] = {
    SL_PARTITIONS(NAME) NULL,
};

static const char *const on_changes[] = {"keep", "share", NULL};

static const char *const kept_models[] = {"all", "mean", "none", NULL};

#define AT(field) .offset = offsetof(sl_experiment, field)
#define COUNTED(field, count) AT(field), .count_offset = offsetof(sl_experiment, count)
#define BETWEEN(low, high) SL_KEY_BETWEEN(low, high)
#define USED_BY(key, values) SL_KEY_USED_BY(key, values)

static const sl_key before[] = {
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
     .help = "where models are stored, trained, mixed and compressed: cpu, cuda:N, cuda (a "
             "host's GPUs in turn) or auto"},
    {"device_memory_gb", SL_KEY_REAL, AT(device_memory_gb), BETWEEN(0, 1e6), .fallback = "0",
     .help = "GPU memory that one agent may use, in 10^9 bytes; 0 = no limit",
     USED_BY("device", "!cpu")},
};

/* Beside the rows of src/algorithm/ and src/compress/. */
static const sl_key of_algorithm[] = {
    {"algorithm.name", SL_KEY_TEXT, AT(algorithm.name), .names = sl_algorithm_name,
     .fallback = "\"d-psgd\"", .help = "training algorithm; see docs/algorithms.md"},
    {"algorithm.library", SL_KEY_PATH, AT(library), .fallback = "\"\"",
     .help = "shared object with algorithms of your own, one of which `name` names"},
    {"algorithm.variant", SL_KEY_CHOICE, AT(algorithm.variant), .choices = variants,
     .fallback = "\"default\"",
     .help = "d-psgd, gradient-tracking: adapt-then-combine (default) or combine-while-adapt; "
             "choco-sgd: compress-then-mix (default) or mix-then-compress; clipped-gossip: clip "
             "(default), median or trimmed-mean"},
    {"algorithm.compressor.name", SL_KEY_CHOICE, AT(algorithm.compressor.kind),
     .choices = compressors, .fallback = "\"identity\"",
     .help = "compressor of the vectors that are sent; see docs/compressors.md"},
    {"algorithm.compressor.per", SL_KEY_CHOICE, AT(algorithm.compressor.scope), .choices = scopes,
     .fallback = "\"model\"",
     .help = "what is compressed at a time: the whole model, or each tensor",
     USED_BY("algorithm.compressor.name", "!identity")},
    {"algorithm.compressor.schedule", SL_KEY_ROWS, AT(algorithm.compressor_schedule),
     BETWEEN(0, 1e12), .length_max = SL_ROWS_NUMBERS_MAX, .is_later = true, .fallback = "[]",
     .help = "[exchange, value] each: the compressor's fraction, levels or bits from that exchange "
             "on",
     USED_BY("algorithm.compressor.name", "!identity")},
};

static const sl_key behind[] = {
    {"optimizer.name", SL_KEY_CHOICE, AT(optimizer.kind), .choices = optimizers,
     .fallback = "\"sgd\"",
     .help = "what a step is made of; other than sgd: where the algorithm takes momentum"},
    {"optimizer.learning_rate", SL_KEY_REAL, AT(optimizer.learning_rate), BETWEEN(0, 1e6),
     .fallback = "0.1", .help = "learning rate; 0 = pure gossip averaging"},
    {"optimizer.momentum", SL_KEY_REAL, AT(optimizer.momentum), BETWEEN(0, SL_BELOW_1),
     .fallback = "0",
     .help = "sgd, lars: momentum, as in PyTorch's SGD; its buffer is never mixed"},
    {"optimizer.nesterov", SL_KEY_BOOL, AT(optimizer.nesterov), .fallback = "false",
     .help = "use Nesterov momentum"},
    {"optimizer.weight_decay", SL_KEY_REAL, AT(optimizer.weight_decay), BETWEEN(0, 1e6),
     .fallback = "0",
     .help = "adds this times the model to the gradient; adamw, lamb: to the direction"},
    {"optimizer.beta1", SL_KEY_REAL, AT(optimizer.beta1), BETWEEN(0, SL_BELOW_1), .fallback = "0.9",
     .help = "adamw, lamb: factor of the first moment from round to round",
     USED_BY("optimizer.name", "adamw lamb")},
    {"optimizer.beta2", SL_KEY_REAL, AT(optimizer.beta2), BETWEEN(0, SL_BELOW_1),
     .fallback = "0.999", .help = "adamw, lamb: factor of the second moment from round to round",
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
    {"model.loss", .is_later = true, .type = SL_KEY_CHOICE, AT(model.loss), .choices = losses,
     .fallback = "\"squared\"",
     .help = "linear: squared, of labels that are numbers, or logistic, of two classes",
     USED_BY("model.name", "linear")},
    {"model.l2", .is_later = true, .type = SL_KEY_REAL, AT(model.l2), BETWEEN(0, 1e6),
     .fallback = "0",
     .help = "linear: l2 adds l2/2 times the squared norm of the model to the loss",
     USED_BY("model.name", "linear")},
    {"model.start", SL_KEY_PATH, AT(model.start), .fallback = "\"\"",
     .help = "first parameters of all nodes: a safetensors or .npy file, as a run writes them"},

    {"data.name", SL_KEY_CHOICE, AT(data.kind), .choices = data_sets, .fallback = "\"digits\"",
     .help = "data set; digits needs no file"},
    {"data.path", SL_KEY_PATH, AT(data.path), .fallback = "\"\"",
     .help = "folder (mnist, cifar10), file (libsvm, csv, text), or either (numpy)",
     USED_BY("data.name", "!digits")},
    {"data.test_path", SL_KEY_PATH, AT(data.test_path), .fallback = "\"\"",
     .help = "libsvm, csv, numpy: held-out samples; without it, the last fifth of data.path is "
             "held out, or what numpy has for it",
     USED_BY("data.name", "libsvm csv numpy")},
    {"data.label", .is_later = true, .type = SL_KEY_TEXT, AT(data.label), .fallback = "\"last\"",
     .help = "csv: column of the labels: last, first, its name, or its number from 1",
     USED_BY("data.name", "csv")},
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
    {"data.partition.path", .is_later = true, .type = SL_KEY_PATH, AT(data.owners),
     .fallback = "\"\"", .help = "listed: text or .npy file with the node of each training sample",
     USED_BY("data.partition.name", "listed")},
    {"data.on_change", .is_later = true, .type = SL_KEY_CHOICE, AT(data.on_change),
     .choices = on_changes, .fallback = "\"keep\"",
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
    {"record.trace", .is_later = true, .type = SL_KEY_BOOL, AT(record.trace), .fallback = "false",
     .help = "trace.json, of an agent trace-RANK.json, says what each node did when, for Perfetto "
             "and tools/plot"},
    {"record.tensorboard", .is_later = true, .type = SL_KEY_BOOL, AT(record.tensorboard),
     .fallback = "false",
     .help = "event files in tensorboard/, of each node and of the averaged model, for TensorBoard "
             "and what reads its files"},
    {"record.every_ms", .is_later = true, .type = SL_KEY_REAL, AT(record.every_ms),
     BETWEEN(0, 1e12), .fallback = "0",
     .help = "virtual milliseconds between records of all models as they are; 0 = by rounds"},
    {"record.models", .is_later = true, .type = SL_KEY_CHOICE, AT(record.models),
     .choices = kept_models, .fallback = "\"all\"",
     .help =
         "models that the run folder keeps: each node's and their mean (all), only the mean, or "
         "none"},
    {"record.safetensors", SL_KEY_BOOL, AT(record.safetensors), .fallback = "true",
     .help = "write averaged models as safetensors too, with names and shapes of tensors"},
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
     .help = "HOST:PORT where an agent says over HTTP what it does, read-only, and shows its page; "
             "{rank} in it is the rank, for agents on one host; without it `starling run` shows "
             "its own page there, and agents none"},
    {"monitor.public", SL_KEY_BOOL, AT(monitor.is_public), .fallback = "false",
     .help = "true lets monitor.listen be beyond loopback, where anybody may look, unencrypted; "
             "security.trusted_network does so, too"},

    {"transport.provider", SL_KEY_TEXT, AT(transport.provider), .choices = providers,
     .fallback = "\"tcp\"",
     .help = "tcp: Starling's own; libfabric's: verbs, and libfabric-tcp on trusted networks"},
    {"transport.gpu_direct", SL_KEY_CHOICE, AT(transport.gpu_direct), .choices = gpu_directs,
     .fallback = "\"off\"",
     .help = "send from GPU memory to GPU memory; where that is impossible, on is refused and auto "
             "goes through host memory, each with the reason"},
    {"transport.memory", SL_KEY_CHOICE, AT(transport.memory), .choices = memories,
     .fallback = "\"auto\"", .is_later = true,
     .help = "auto: agents of one host and user read what neighbours send in these neighbours' "
             "memory; off: all goes through connections"},
    /* 112 KiB: the kernel's copy, two neighbours' parts and the model's range fit in 512 KiB. */
    {"transport.chunk_bytes", SL_KEY_U32, AT(transport.chunk_bytes), BETWEEN(4096, 16777216),
     .fallback = "114688",
     .help = "payload of one frame, a multiple of 4096; on a GPU, which decodes each compressed "
             "part by itself, use 1048576 or more"},
    {"transport.checksums", SL_KEY_BOOL, AT(transport.checksums), .fallback = "true",
     .help = "the data that an agent sends has checksums; false is for links that check data "
             "themselves, as RDMA does, or that stay on this host"},
    {"transport.norm_limit", SL_KEY_REAL, AT(transport.norm_limit), BETWEEN(0, 1e30),
     .fallback = "0",
     .help = "gossip without a compressor, on the host: a neighbour whose part has more than so "
             "many times the norm of the own one has sent what makes no sense; 0 takes any"},
    {"transport.overlap", SL_KEY_CHOICE, AT(transport.overlap), .choices = overlaps,
     .fallback = "\"none\"", .is_later = true,
     .help =
         "what leaves before all of a gradient is there: layers = each, the last first; merged, "
         "partitioned = as network.* plans"},
    {"transport.buckets", SL_KEY_CHOICE, AT(transport.buckets), .choices = bucketings,
     .fallback = "\"auto\"", .is_later = true,
     .help = "ranges that are exchanged one by one, uncompressed; auto = transport.overlap's, on a "
             "GPU, and planned ones of all-reduce and servers"},
    {"transport.partition_bytes", SL_KEY_U64, AT(transport.partition_bytes),
     BETWEEN(4096, 1073741824), .fallback = "4194304", .is_later = true,
     .help = "partitioned: bytes of the vector in a piece, at most"},
    {"transport.window_chunks", SL_KEY_COUNT, AT(transport.window_chunks), BETWEEN(2, 64),
     .fallback = "\"auto\"",
     .help = "receive buffers per neighbour; auto = 56 on loopback (8 without transport.memory), "
             "else 32"},
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
     .help = "mode key: the file of `starling keys make`; certificates: NAME of this node's pair; "
             "{rank} in it is the agent's rank"},
    {"security.ca", SL_KEY_PATH, AT(security.ca), .as_named = true, .fallback = "\"\"",
     .help =
         "mode certificates: a PEM file of CAs, which have signed each node's certificate, with "
         "the CN \"starling rank N\"; the roster then needs no fingerprints"},
    {"security.revoked", SL_KEY_PATH, AT(security.revoked), .as_named = true, .fallback = "\"\"",
     .help = "with security.ca: a PEM file of their lists of revoked certificates (CRLs)"},
    {"security.seal", SL_KEY_CHOICE, AT(security.seal), .choices = seals, .fallback = "\"auto\"",
     .help = "with a key: encrypt and authenticate every frame (on), or only prove who connects "
             "(handshake-only; off, which is refused beyond loopback); auto = on beyond loopback, "
             "off on it"},
    {"security.overlap_s", SL_KEY_REAL, AT(security.overlap_s), BETWEEN(0, 604800),
     .fallback = "3600",
     .help = "when an agent has read another run's key again (SIGHUP, starling reload), the one "
             "before holds for so many seconds more"},
    {"security.trusted_network", SL_KEY_BOOL, AT(security.trusted_network), .fallback = "false",
     .help = "mode none: true lets an agent listen beyond loopback, where anybody may connect"},

    {"membership.on_loss", SL_KEY_CHOICE, AT(membership.on_loss), .choices = on_losses,
     .fallback = "\"auto\"",
     .help = "when a peer is lost the others continue without it, or stop; auto = continue, but "
             "stop where the algorithm's settings name ranks"},
    {"membership.grace_s", SL_KEY_REAL, AT(membership.grace_s), BETWEEN(0.5, 86400),
     .fallback = "30",
     .help = "on_loss continue: after so many seconds of silence a peer counts as lost"},
    {"membership.quorum", SL_KEY_U32, AT(membership.quorum), BETWEEN(0, SL_NODES_MAX),
     .fallback = "0",
     .help = "on_loss continue: so many members of a view have to agree on the next one; 0 = more "
             "than half of those that have not ended, or half with the lowest rank"},
    {"membership.minority_s", SL_KEY_REAL, AT(membership.minority_s), BETWEEN(1, 1e9),
     .fallback = "600",
     .help = "on_loss continue: an agent that reaches fewer members than that rests; after so many "
             "seconds it ends with 75"},
    {"membership.restart", SL_KEY_CHOICE, AT(membership.restart), .choices = restarts,
     .fallback = "\"never\"",
     .help =
         "on_loss continue: whom `starling run` starts again: who failed; always: who left too"},
    {"membership.joiners", .is_later = true, .type = SL_KEY_U32, AT(membership.joiners),
     BETWEEN(0, SL_NODES_MAX), .fallback = "0",
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
    {"network.compute_ms", .is_later = true, .type = SL_KEY_ROWS, AT(network.compute_ms),
     BETWEEN(0, 1e9), .length_max = SL_ROWS_NUMBERS_MAX, .fallback = "[]",
     .help = "virtual time: by rank, how long a gradient takes, or one such list for each gradient "
             "by turns; empty = from gradient_ms and speeds"},
    {"network.jitter", .is_later = true, .type = SL_KEY_REAL, AT(network.jitter), BETWEEN(0, 1),
     .fallback = "0",
     .help = "virtual time: a gradient takes up to this share more or less, at random"},
    {"network.straggler_share", .is_later = true, .type = SL_KEY_REAL, AT(network.straggler_share),
     BETWEEN(0, 1), .fallback = "0",
     .help =
         "virtual time: share of gradients that take straggler_factor times as long, at random"},
    {"network.straggler_factor", .is_later = true, .type = SL_KEY_REAL,
     AT(network.straggler_factor), BETWEEN(1, 1e6), .fallback = "10",
     .help = "virtual time: see straggler_share"},
};

/* ---- all of them ---- */

#define ADD_ALL(list, rows) add_all(list, rows, sizeof(rows) / sizeof *(rows))
static void add_all(sl_key_list *list, const sl_key *rows, size_t count) {
    assert(list->count + count <= SL_KEYS_MAX);
    for (size_t i = 0; i < count; i++)
        list->items[list->count++] = &rows[i];
}

size_t sl_key_offset(const sl_key *k) {
    switch (k->owner) {
    case SL_KEY_OF_EXPERIMENT:
        return k->offset;
    case SL_KEY_OF_ALGORITHM:
        return offsetof(sl_experiment, algorithm) + k->offset;
    case SL_KEY_OF_COMPRESSOR:
        return offsetof(sl_experiment, algorithm.compressor) + k->offset;
    }
    return 0;
}

/* Puts the key among those from `first` on, in the order of their fields, unless it is there. */
static void add_in_order(sl_key_list *list, size_t first, const sl_key *k) {
    const size_t offset = sl_key_offset(k);
    size_t at = first;
    for (size_t end = list->count; at < end;) {
        const size_t middle = at + (end - at) / 2;
        if (sl_key_offset(list->items[middle]) < offset)
            at = middle + 1;
        else
            end = middle;
    }
    if (at < list->count && sl_key_offset(list->items[at]) == offset)
        return;
    assert(list->count < SL_KEYS_MAX);
    memmove(list->items + at + 1, list->items + at, (list->count - at) * sizeof *list->items);
    list->items[at] = k;
    list->count++;
}

static void add_those_of_algorithms(sl_key_list *list) {
    const size_t first = list->count;
    const sl_algorithm *a;
    const sl_key *k;
    for (size_t i = 0; i < sizeof of_algorithm / sizeof *of_algorithm; i++)
        add_in_order(list, first, &of_algorithm[i]);
    for (size_t i = 0; (a = sl_algorithm_at(i)) != NULL; i++)
        for (size_t j = 0; (k = sl_algorithm_key(a, j)) != NULL; j++)
            add_in_order(list, first, k);
    for (int kind = 0; kind < SL_COMPRESSOR_COUNT; kind++)
        for (size_t j = 0; (k = sl_compressor_key((sl_compressor_kind)kind, j)) != NULL; j++)
            add_in_order(list, first, k);
}

void sl_experiment_keys(sl_key_list *list) {
    list->count = 0;
    ADD_ALL(list, before);
    add_those_of_algorithms(list);
    ADD_ALL(list, behind);
}

const sl_key *sl_key_find(const char *path) {
    sl_key_list keys;
    sl_experiment_keys(&keys);
    for (size_t i = 0; i < keys.count; i++)
        if (strcmp(keys.items[i]->path, path) == 0)
            return keys.items[i];
    return NULL;
}
