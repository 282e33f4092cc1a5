/* compressed_fedavg.c - FedAvg whose clients send the compressed change of the model, with and
 * without error feedback: fedavg.c with the messages of squeeze.h; a is the last common model.
 *
 *   k in S, after its H_k steps:  v_k = x_k - a (+ e_k);  q_k = C(v_k);  (e_k = v_k - q_k)
 *   up:        a <- a + s,  s = sum_{k in S} (n_k / sum_{j in S} n_j) q_k
 *   both:      s (+ E);  Q = C(s);  (E = s - Q);  a <- a + Q;  then on all nodes  x <- a
 *
 * With C of STC (Sattler, Wiedemann, Mueller, Samek 2019) and both ways that is their Algorithm 2.
 * A node that waits keeps its error for its next turn. All nodes must start from the same model.
 * Memory beside x, g, momentum: v, a, and with both ways s. Wire, every H rounds: one compressed
 * message up from each k in S, with n_k in the header; a dense or compressed one down to all.
 */
#include "algorithm/local/clients.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"
#include "algorithm/squeeze.h"

static size_t vectors(const sl_algorithm_config *config) {
    return sl_squeeze_vectors(config) + 1;
}

static float *common_model(const sl_state *s) {
    return s->extra[sl_squeeze_vectors(s->config)];
}

static void start(sl_state *s, size_t dimension) {
    sl_copy(s, common_model(s), s->x, dimension);
}

/* The sum is in g until it is divided. */
static void load_change(sl_state *s, size_t from, size_t count) {
    sl_clients_step(s, from, count);
    if (!sl_clients_is_one(s)) {
        s->vec->fill(s->g + from, 0, count);
        return;
    }
    sl_subtract(s, s->g + from, s->x + from, common_model(s) + from, count);
    sl_squeeze_load(s, from, count);
}

static void send_and_add(sl_state *s, const sl_part *mine) {
    sl_squeeze_send(s, mine);
    if (mine->weight > 0)
        sl_part_add(mine, (float)sl_clients_weight(s), s->g);
}

static float told(const sl_state *s, const sl_part *part) {
    (void)s;
    return (float)part->scalar;
}

static void add(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from, (void)count;
    sl_mix_add_by(s, mix, told, s->g);
    sl_clients_hear(s, mix);
}

static void divide(sl_state *s, size_t from, size_t count) {
    sl_clients_divide(s, s->g + from, s->g + from, count);
}

/* The mean goes to what servers compress, and g is free for what comes of that. */
static void divide_and_serve(sl_state *s, size_t from, size_t count) {
    float *served = s->extra[SL_SQUEEZE_SERVED] + from, *mean = s->g + from;
    const bool keeps = s->config->error_feedback == SL_SWITCH_ON;
    divide(s, from, count);
    s->vec->combine(served, (const float *const[]){mean, served}, (const float[]){1, 1},
                    keeps ? 2 : 1, count);
    s->vec->fill(mean, 0, count);
}

static const sl_stage stages[] = {
    {.speaks = sl_clients_is_one,
     .says = sl_clients_weight,
     .prepare = load_change,
     .vector = sl_squeeze_sent,
     .fresh = sl_squeeze_fresh,
     .own = send_and_add,
     .combine = add},
    {.plain = true,
     .gather = true,
     .wanted = sl_squeeze_is_up,
     .prepare = divide,
     .vector = sl_publish_gradient,
     .combine = sl_copy_gradient},
    {.gather = true,
     .wanted = sl_squeeze_is_both,
     .prepare = divide_and_serve,
     .vector = sl_squeeze_served,
     .own = sl_squeeze_serve,
     .combine = sl_squeeze_follow},
};

static void settle(sl_state *s, size_t from, size_t count) {
    float *a = common_model(s) + from;
    s->vec->combine(a, (const float *const[]){a, s->g + from}, (const float[]){1, 1}, 2, count);
    sl_copy(s, s->x + from, a, count);
    sl_clients_forget(s, from, count);
}

static const sl_key keys[] = {
    SL_ROWS_CLIENTS,
    SL_ROWS_SQUEEZE,
    SL_KEYS_END,
};

const sl_algorithm sl_fedavg_compressed = {
    .name = "fedavg",
    .when = sl_is_compressed,
    .route = SL_ROUTE_SERVER,
    .compressor = SL_TAKES_ANY,
    .keys = keys,
    .takes_momentum = true,
    .takes_sgd_only = true,
    .takes_local_steps = true,
    .keeps_gradient = true,
    .vectors = vectors,
    .own_numbers = sl_clients_numbers,
    .check = sl_clients_check,
    .needs_all = sl_clients_need_all,
    .take_gradient = sl_clients_choose,
    .stages = stages,
    .stage_count = 3,
    .start = start,
    .local = sl_clients_step,
    .settle = settle,
};
