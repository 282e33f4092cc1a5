/* compressed_c_sgd.c - C-SGD whose messages are compressed, with and without error feedback.
 *
 *   x <- x - gamma mom(s), or mom(Q); s and Q of squeeze.h with u_i = g_i(x)
 *
 *   parameter-server:  through one server, or shards over all ranks; `directions`: up, or both
 *   all-reduce:        everybody sends its q_i to everybody; or with algorithm.all_reduce the q_i
 *                      are summed by that form, of which what is not 0 is sent (SparCML: Renggli,
 *                      Ashkboos, Aghagolzadeh, Alistarh, Hoefler 2019)
 *
 * QSGD and TernGrad as published are an unbiased C without feedback (Alistarh et al. 2017; Wen et
 * al. 2017); EF-signSGD is scaled sign with it (Karimireddy, Rebjock, Stich, Jaggi 2019), mem-SGD
 * top-k with it (Stich, Cordonnier, Jaggi 2018); both ways: DoubleSqueeze (Tang et al. 2019),
 * dist-EF-SGD (Zheng, Huang, Kwok 2019). MXNet's BIT-SGD is threshold with feedback. Errors are
 * kept in units of the gradient; with a changing gamma that differs from EF-SGD, which compresses
 * gamma g + e.
 *
 * Momentum and weight decay come after averaging. Memory beside x, g, momentum: v, and with both
 * ways s. Wire: one compressed message up, a dense or compressed one down; all-reduce: n - 1 in and
 * out, which pays while n |C| < 64 d.
 */
#include "algorithm/squeeze.h"

static const sl_stage through_servers[] = {SL_SQUEEZE_STAGES(sl_squeeze_load, NULL)};

const sl_algorithm sl_parameter_server_compressed = {
    .name = "parameter-server",
    .when = sl_is_compressed,
    .route = SL_ROUTE_SERVER,
    .vectors = sl_squeeze_vectors,
    .stages = through_servers,
    .stage_count = SL_SQUEEZE_STAGE_COUNT,
    .works_on_ranges = true,
    SL_SQUEEZE_C_SGD,
};

static const sl_stage to_all[] = {SL_SQUEEZE_STAGE_TO_ALL(sl_squeeze_load, NULL)};

const sl_algorithm sl_all_reduce_compressed = {
    .name = "all-reduce",
    .when = sl_is_compressed,
    .route = SL_ROUTE_ALL,
    .vectors = sl_squeeze_vectors,
    .stages = to_all,
    .stage_count = 1,
    .works_on_ranges = true,
    SL_SQUEEZE_C_SGD,
};

static const sl_stage by_a_form[] = {
    SL_SPARSE_SUM_STAGES(sl_squeeze_load, sl_squeeze_send_and_add)};

const sl_algorithm sl_all_reduce_sparse = {
    .name = "all-reduce",
    .when = sl_sums_sparse,
    .route = SL_ROUTE_ALL_REDUCE,
    .host_only = true,
    .vectors = sl_squeeze_vectors,
    .stages = by_a_form,
    .stage_count = SL_SPARSE_SUM_STAGE_COUNT,
    SL_SQUEEZE_C_SGD,
};
