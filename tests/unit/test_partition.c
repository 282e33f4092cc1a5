/* test_partition.c - samples to nodes, and a node's samples to batches: every sample exactly once,
 * from the seed alone. */
#include "harness.h"
#include "learner/data/listed.h"
#include "learner/data/shares.h"

static sl_error error;

#define SAMPLES 997

/* Samples and partitions are closed behind the test. */
static void close_samples(void *samples) {
    sl_samples_close(samples);
    free(samples);
}

static void close_partition(void *partition) {
    sl_partition_close(partition);
    free(partition);
}

static sl_samples *allocate(sl_samples_kind kind, uint32_t count, uint32_t features) {
    sl_samples *samples = malloc(sizeof *samples);
    EXPECT_WELL(sl_samples_allocate(samples, kind, count, features, "test", &error));
    return close_behind(samples, close_samples);
}

static sl_samples *labelled(uint32_t count, uint32_t classes) {
    sl_samples *samples = allocate(SL_SAMPLES_PIXELS, count, 1);
    samples->classes = classes;
    for (uint32_t i = 0; i < count; i++)
        samples->labels[i] = (uint16_t)(i * 7919u % classes);
    return samples;
}

static sl_partition *open_partition(const sl_data_config *config, const sl_samples *samples,
                                    uint32_t nodes, uint32_t joiners, uint64_t seed) {
    sl_partition *p = malloc(sizeof *p);
    EXPECT_WELL(sl_partition_open(p, config, samples, nodes, joiners, seed, &error));
    return close_behind(p, close_partition);
}

static void expect_refusal(const sl_data_config *config, const sl_samples *samples, uint32_t nodes,
                           const char *said) {
    sl_partition p;
    EXPECT_ERROR(sl_partition_open(&p, config, samples, nodes, 0, 1, &error), SL_EINVAL, said);
}

static const struct {
    sl_data_config config;
    uint32_t nodes;
} partitions[] = {
    {{.partition = SL_PARTITION_IID}, 1},
    {{.partition = SL_PARTITION_IID}, 8},
    {{.partition = SL_PARTITION_IID}, SAMPLES},
    {{.partition = SL_PARTITION_SHARDS, .shards_per_node = 2}, 10},
    {{.partition = SL_PARTITION_SHARDS, .shards_per_node = 1}, SAMPLES},
    {{.partition = SL_PARTITION_DIRICHLET, .alpha = 1}, 8},
    {{.partition = SL_PARTITION_DIRICHLET, .alpha = 0.1}, 100},
    {{.partition = SL_PARTITION_DIRICHLET, .alpha = 1e-4}, 50},
    {{.partition = SL_PARTITION_DIRICHLET, .alpha = 1e-300}, 3},
    {{.partition = SL_PARTITION_DIRICHLET, .alpha = 1e6}, 30},
    {{.partition = SL_PARTITION_DIRICHLET, .alpha = 0.5}, SAMPLES},
};

START_LOOP_TEST(every_sample_belongs_to_exactly_one_node_and_every_node_has_one,
                sizeof partitions / sizeof partitions[0]) {
    const sl_samples *samples = labelled(SAMPLES, 10);
    uint32_t nodes = partitions[_i].nodes, seen[SAMPLES] = {0}, total = 0;
    sl_partition *p = open_partition(&partitions[_i].config, samples, nodes, 0, 11),
                 *again = open_partition(&partitions[_i].config, samples, nodes, 0, 11);
    for (uint32_t node = 0; node < nodes; node++) {
        ck_assert_uint_ge(sl_partition_size(p, node), 1);
        total += sl_partition_size(p, node);
    }
    ck_assert_uint_eq(total, SAMPLES);
    for (uint32_t i = 0; i < SAMPLES; i++)
        seen[p->members[i]]++;
    for (uint32_t i = 0; i < SAMPLES; i++)
        ck_assert_uint_eq(seen[i], 1);
    ck_assert_mem_eq(p->members, again->members, sizeof seen);
    ck_assert_mem_eq(p->starts, again->starts, (nodes + 1) * sizeof *p->starts);
}

/* The mean share of a node in a label is 1/n; its variance under Dirichlet(alpha) is (1/n)(1 -
 * 1/n)/(n alpha + 1). */
START_TEST(dirichlet_shares_have_the_right_variance) {
    const uint32_t nodes = 5, classes = 400, each = 200;
    const double alphas[] = {0.1, 0.5, 2};
    for (int a = 0; a < 3; a++) {
        const sl_samples *samples = labelled(classes * each, classes);
        sl_data_config config = {.partition = SL_PARTITION_DIRICHLET, .alpha = alphas[a]};
        sl_partition *p = open_partition(&config, samples, nodes, 0, 17);
        static uint32_t counts[5][400];
        memset(counts, 0, sizeof counts);
        double variance = 0, expected = (1.0 / nodes) * (1 - 1.0 / nodes) / (nodes * alphas[a] + 1);
        for (uint32_t node = 0; node < nodes; node++)
            for (uint32_t i = p->starts[node]; i < p->starts[node + 1]; i++)
                counts[node][samples->labels[p->members[i]]]++;
        for (uint32_t node = 0; node < nodes; node++)
            for (uint32_t label = 0; label < classes; label++)
                variance +=
                    pow((double)counts[node][label] / each - 1.0 / nodes, 2) / (nodes * classes);
        ck_assert_double_eq_tol(variance / expected, 1, 0.1);
    }
}

/* Of so many members each has what it would have in a run of so many nodes. */
static void check_shares(sl_shares *s, uint32_t count) {
    sl_partition *p = open_partition(&s->config, s->samples, count, 0, 5);
    for (uint32_t place = 0; place < count; place++) {
        const uint32_t rank = s->ranks_max - count + place, *indices, *own;
        EXPECT_WELL(sl_shares_deal(s, rank, place, count, &error));
        ck_assert_uint_eq(sl_shares_size(s, rank), sl_partition_size(p, place));
        const uint32_t batch = sl_shares_batch(s, rank, 9, 16, &indices);
        ck_assert_uint_eq(batch, sl_partition_batch(p, place, 9, 16, &own));
        ck_assert_mem_eq(indices, own, batch * sizeof *own);
    }
}

START_TEST(members_share_samples_anew) {
    const sl_samples *samples = labelled(SAMPLES, 10);
    const sl_data_config config = {
        .partition = SL_PARTITION_DIRICHLET, .alpha = 0.1, .on_change = SL_ON_CHANGE_SHARE};
    sl_shares s;
    EXPECT_WELL(sl_shares_open(&s, &config, samples, 6, 2, 5, &error));
    check_shares(&s, 5);
    check_shares(&s, 8);
    check_shares(&s, 5);
    sl_shares_close(&s);
    EXPECT_ERROR(sl_shares_open(&s, &config, samples, SAMPLES - 1, 2, 5, &error), SL_EINVAL,
                 "997 training samples for 998 nodes");
    sl_shares_close(&s);
}

START_TEST(impossible_partitions_are_refused) {
    const sl_samples *samples = labelled(10, 2);
    expect_refusal(&(sl_data_config){.partition = SL_PARTITION_IID}, samples, 11,
                   "10 training samples for 11 nodes");
    expect_refusal(&(sl_data_config){.partition = SL_PARTITION_SHARDS, .shards_per_node = 3},
                   samples, 4, "data.partition.shards_per_node is 3; allowed are 1 to 2");
    expect_refusal(&(sl_data_config){.partition = SL_PARTITION_DIRICHLET, .alpha = NAN}, samples, 4,
                   "alpha");
}

/* A text of `speakers` of whom speaker s has s % 7 samples: every seventh none. */
static sl_samples *spoken(uint32_t count, uint32_t speakers) {
    sl_samples *samples = allocate(SL_SAMPLES_CODES, count, 5);
    samples->classes = 2;
    samples->group_count = speakers;
    samples->speakers = true;
    uint32_t row = 0;
    for (uint32_t s = 0; s < speakers; s++)
        for (uint32_t i = 0; i < s % 7; i++)
            samples->groups[row++] = s;
    ck_assert_uint_eq(row, count);
    return samples;
}

START_TEST(speakers_are_dealt_whole_and_evenly) {
    const sl_samples *samples = spoken(6 * 21, 42);
    sl_data_config config = {.partition = SL_PARTITION_SPEAKERS};
    for (uint32_t nodes = 1; nodes <= 36; nodes++) {
        sl_partition *p = open_partition(&config, samples, nodes, 0, 1);
        int owners[42];
        memset(owners, -1, sizeof owners);
        for (uint32_t node = 0; node < nodes; node++) {
            ck_assert_uint_ge(sl_partition_size(p, node), 1);
            for (uint32_t i = p->starts[node]; i < p->starts[node + 1]; i++) {
                int *owner = &owners[samples->groups[p->members[i]]];
                ck_assert(*owner == -1 || *owner == (int)node);
                *owner = (int)node;
            }
        }
        ck_assert_uint_eq(p->starts[nodes], samples->count);
        for (uint32_t node = 0; node < nodes && nodes <= 6; node++)
            ck_assert_int_le(abs((int)sl_partition_size(p, node) - (int)(samples->count / nodes)),
                             6);
    }
}

START_TEST(speakers_that_are_too_few_or_none_are_refused) {
    const sl_samples *text = spoken(6 * 21, 42), *images = labelled(100, 10);
    const sl_data_config config = {.partition = SL_PARTITION_SPEAKERS};
    expect_refusal(&config, text, 37, "36 speakers with a whole sample and the topology 37 nodes");
    expect_refusal(&config, images, 2, "data.partition.name: speakers needs a text");
}

START_TEST(an_epoch_shows_each_sample_once_and_the_next_in_another_order) {
    const sl_samples *samples = labelled(120, 10);
    sl_data_config config = {.partition = SL_PARTITION_IID};
    sl_partition *p = open_partition(&config, samples, 3, 0, 1);
    const uint32_t *indices;
    uint32_t seen[120] = {0}, first[2][10];
    for (uint64_t round = 1; round <= 8; round++) { /* 40 samples, batches of 10 */
        ck_assert_uint_eq(sl_partition_batch(p, 1, round, 10, &indices), 10);
        for (int i = 0; i < 10; i++)
            seen[indices[i]]++;
        if (round == 1 || round == 5)
            memcpy(first[round == 5], indices, sizeof first[0]);
    }
    for (uint32_t i = p->starts[1]; i < p->starts[2]; i++)
        ck_assert_uint_eq(seen[p->members[i]], 2);
    ck_assert_mem_ne(first[0], first[1], sizeof first[0]);
}

START_TEST(who_joins_has_all_samples_and_the_others_theirs) {
    const sl_samples *samples = labelled(103, 10);
    sl_data_config config = {.partition = SL_PARTITION_IID};
    sl_partition *p = open_partition(&config, samples, 4, 0, 1),
                 *grown = open_partition(&config, samples, 4, 2, 1);
    const uint32_t *a, *b;
    for (uint32_t rank = 0; rank < 4; rank++) {
        ck_assert_uint_eq(sl_partition_batch(p, rank, 3, 8, &a), 8);
        ck_assert_uint_eq(sl_partition_batch(grown, rank, 3, 8, &b), 8);
        ck_assert_mem_eq(a, b, 8 * sizeof *a);
    }
    for (uint32_t rank = 4; rank < 6; rank++) {
        uint32_t seen[103] = {0};
        ck_assert_uint_eq(sl_partition_batch(grown, rank, 1, 1000, &a), 103);
        for (uint32_t i = 0; i < 103; i++)
            seen[a[i]]++;
        for (uint32_t i = 0; i < 103; i++)
            ck_assert_uint_eq(seen[i], 1);
    }
}

/* ---- listed ---- */

enum { LISTED = 5, LISTED_NODES = 3, LIST_MAX = 256 };

static int parse_list(uint32_t owners[LISTED], const void *bytes, size_t size) {
    uint8_t copy[LIST_MAX];
    memcpy(copy, bytes, size);
    sl_bytes file = {.data = copy, .size = size, .name = "users"};
    return sl_listed_parse(owners, &file, LISTED, LISTED_NODES, &error);
}

static void assert_owners(const uint32_t owners[LISTED]) {
    const uint32_t expected[LISTED] = {2, 0, SL_LISTED_NOBODY, 1, 2};
    ck_assert_mem_eq(owners, expected, sizeof expected);
}

static const char *const lists[] = {"2\n0\n-1\n1\n2\n", "2\n0\n-1\n1\n2",
                                    "\xEF\xBB\xBF"
                                    "2\r\n0\r\n-1\r\n1\r\n2",
                                    "2.0e+00\n0.0\n-1.0 \n 1\n2\n"};

START_LOOP_TEST(a_list_of_nodes_is_read_however_it_was_written, sizeof lists / sizeof *lists) {
    uint32_t owners[LISTED];
    EXPECT_WELL(parse_list(owners, lists[_i], strlen(lists[_i])));
    assert_owners(owners);
}

static const refusal wrong_lists[] = {
    {"0\n1\n2\n3\n0\n", "the node of sample 3 is 3; allowed are 0 to 2, and -1 for nobody"},
    {"0\n1\n2\n-2\n0\n", "the node of sample 3 is -2"},
    {"0\n1\n2\n0.5\n0\n", "the node of sample 3 is 0.5"},
    {"0\n1\n2\nnan\n0\n", "the node of sample 3 is nan"},
    {"0\n1\n2\n0\n", "names the nodes of 4 samples, but there are 5 training samples"},
    {"0\n1\n2\n0\n1\n2\n", "names the nodes of 6 samples, but there are 5"},
    {"0\n1\n1\n0\n-1\n", "gives no sample to node 2"},
    {"0\n1\nanna\n0\n1\n", "line 3: \"anna\" is not the number of a node"},
    {"0, 1, 2\n", "line 1: \"0, 1, 2\" is not the number"},
    {"0\n\n1\n2\n0\n1\n", "line 2: \"\" is not the number"},
    {"", "names the nodes of 0 samples"},
    {"\x93NUMPY\x01", "its .npy header would have 0 bytes"},
};

START_LOOP_TEST(a_wrong_list_of_nodes_gets_one_sentence, sizeof wrong_lists / sizeof *wrong_lists) {
    uint32_t owners[LISTED];
    ck_assert_int_ne(parse_list(owners, wrong_lists[_i].text, strlen(wrong_lists[_i].text)), 0);
    ck_assert_msg(strncmp(error.text, "data.partition.path: users: ", 28) == 0 &&
                      strstr(error.text, wrong_lists[_i].said) != NULL,
                  "%s", error.text);
}

START_TEST(a_list_cannot_be_shared_anew_and_has_a_file) {
    const sl_samples *samples = labelled(100, 10);
    sl_data_config config = {.partition = SL_PARTITION_LISTED, .on_change = SL_ON_CHANGE_SHARE};
    expect_refusal(&config, samples, 2, "data.on_change: share");
    config.on_change = SL_ON_CHANGE_KEEP;
    expect_refusal(&config, samples, 2, "data.partition.path: missing");
}
