/* test_data.c - readers of data sets and the digits: what they accept, and what they say about what
 * they refuse. */
#include <sys/stat.h>
#include <zlib.h>

#include "learner/data/data.h"
#include "temporary.h"

static sl_error error;
static sl_data data;

static void teardown(void) {
    sl_data_close(&data);
    remove_base();
}

static void write_file(const char *name, const void *bytes, size_t size) {
    FILE *file = fopen(at(name), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void write_gz(const char *name, const void *bytes, size_t size) {
    gzFile file = gzopen(at(name), "wb");
    ck_assert_int_eq(gzwrite(file, bytes, (unsigned)size), (int)size);
    gzclose(file);
}

/* Of the folder's files. */
static sl_data_config config_of(sl_data_kind kind) {
    sl_data_config config = {.kind = kind, .batch = 1};
    snprintf(config.path, sizeof config.path, "%s", base);
    return config;
}

static void assert_said(const char *part) {
    ck_assert_msg(strstr(error.text, part) != NULL, "\"%s\" should say \"%s\"", error.text, part);
}

static void expect_refusal(sl_data_kind kind, const char *said) {
    const sl_data_config config = config_of(kind);
    EXPECT_ERROR(sl_data_load(&data, &config, 1, &error), SL_EFILE, said);
}

/* ---- IDX ---- */

/* Three images of 2 x 2 and their labels 7, 0, 9. */
static const uint8_t images[] = {0, 0, 8, 3,  0,   0,   0, 3, 0, 0, 0, 2, 0, 0,
                                 0, 2, 0, 51, 102, 255, 1, 2, 3, 4, 5, 6, 7, 8};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 9};

static void write_mnist(void) {
    write_file("train-images-idx3-ubyte", images, sizeof images);
    write_gz("train-labels-idx1-ubyte.gz", labels, sizeof labels);
    write_gz("t10k-images-idx3-ubyte.gz", images, sizeof images);
    write_file("t10k-labels-idx1-ubyte", labels, sizeof labels);
}

static int load_mnist(void) {
    sl_data_config config = config_of(SL_DATA_MNIST);
    return sl_data_load(&data, &config, 1, &error);
}

static void expect_mnist(void) {
    float x[4];
    EXPECT_WELL(load_mnist());
    ck_assert_uint_eq(data.train.count, 3);
    ck_assert_uint_eq(data.test.features, 4);
    ck_assert_uint_eq(*sl_samples_get(&data.train, 0, x), 7);
    ck_assert_float_eq_tol(x[0] - 0, -0.1307f, 1e-6f);
    ck_assert_float_eq_tol(x[1], 0.2f - 0.1307f, 1e-6f);
    ck_assert_float_eq_tol(x[3], 1.0f - 0.1307f, 1e-6f);
    ck_assert_uint_eq(*sl_samples_get(&data.test, 2, x), 9);
}

FIXTURES(make_base, teardown);

START_TEST(idx_plain_and_gz_give_the_samples) {
    write_mnist();
    expect_mnist();
}

/* Packed or not; and folders of the other name beside them, as in an archive of Kaggle's. */
START_TEST(idx_with_points_in_the_names_is_the_same) {
    write_file("train-images.idx3-ubyte", images, sizeof images);
    write_gz("train-labels.idx1-ubyte.gz", labels, sizeof labels);
    write_gz("t10k-images.idx3-ubyte.gz", images, sizeof images);
    write_file("t10k-labels.idx1-ubyte", labels, sizeof labels);
    ck_assert_int_eq(mkdir(at("train-images-idx3-ubyte"), 0777), 0);
    expect_mnist();
}

START_TEST(a_data_set_that_is_near_is_found) {
    ck_assert_int_eq(mkdir(at("raw"), 0777), 0);
    write_file("raw/train-images-idx3-ubyte", images, sizeof images);
    expect_refusal(SL_DATA_MNIST, "/raw; name that as data.path");
    write_file("data_batch_1", "", 0);
    expect_refusal(SL_DATA_CIFAR10, "CIFAR-10's Python version");
}

START_TEST(idx_takes_the_first_samples_asked_for) {
    write_mnist();
    sl_data_config config = config_of(SL_DATA_MNIST);
    config.train_samples = 2;
    config.test_samples = 1;
    EXPECT_WELL(sl_data_load(&data, &config, 1, &error));
    ck_assert_uint_eq(data.train.count, 2);
    ck_assert_uint_eq(data.test.count, 1);
    sl_data_close(&data);
    config.train_samples = 4;
    EXPECT_ERROR(sl_data_load(&data, &config, 1, &error), SL_EINVAL, "data.train_samples is 4");
}

START_TEST(idx_missing_file_is_named) {
    expect_refusal(SL_DATA_MNIST, "train-images-idx3-ubyte: no such file");
    assert_said("nor train-images.idx3-ubyte");
}

/* Each row spoils one file: byte `at` becomes `value`, or the file is cut to `size`. */
static const struct {
    const char *name;
    bool is_labels;
    size_t at, size;
    uint8_t value;
    const char *said;
} spoiled[] = {
    {"train-images-idx3-ubyte", false, 3, 0, 1, "0x00000803"},
    {"train-images-idx3-ubyte", false, 7, 0, 4, "promises 16 bytes"},
    {"train-images-idx3-ubyte", false, 4, 0, 255, "size at byte 4"},
    {"train-images-idx3-ubyte", false, 11, 0, 0, "size at byte 8 is 0"},
    {"train-images-idx3-ubyte", false, 0, 27, 0, "truncated"},
    {"train-images-idx3-ubyte", false, 0, 9, 0, "header takes 16"},
    {"t10k-labels-idx1-ubyte", true, 10, 0, 10, "label at byte 10 is 10; allowed are 0 to 9"},
    {"t10k-labels-idx1-ubyte", true, 3, 0, 3, "0x00000801"},
};

START_LOOP_TEST(idx_spoiled_files_are_refused, sizeof spoiled / sizeof *spoiled) {
    uint8_t bytes[sizeof images];
    bool is_labels = spoiled[_i].is_labels;
    size_t size = spoiled[_i].size != 0 ? spoiled[_i].size
                  : is_labels           ? sizeof labels
                                        : sizeof images;
    write_mnist();
    memcpy(bytes, is_labels ? labels : images, is_labels ? sizeof labels : sizeof images);
    bytes[spoiled[_i].at] = spoiled[_i].value;
    write_file(spoiled[_i].name, bytes, size);
    expect_refusal(SL_DATA_MNIST, spoiled[_i].said);
    assert_said(spoiled[_i].name);
}

START_TEST(idx_counts_must_agree) {
    write_mnist();
    static const uint8_t two[] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 0};
    write_gz("train-labels-idx1-ubyte.gz", two, sizeof two);
    expect_refusal(SL_DATA_MNIST, "has 2 labels");
}

/* ---- CIFAR-10 ---- */

static sl_data_config write_cifar(size_t test_size) {
    static uint8_t records[2 * 3073];
    for (size_t i = 0; i < sizeof records; i++)
        records[i] = (uint8_t)(i % 251);
    for (int i = 1; i <= 5; i++) {
        records[0] = (uint8_t)i;
        records[3073] = (uint8_t)(i + 4);
        write_file(printed("data_batch_%d.bin", i), records, sizeof records);
    }
    if (test_size > 0)
        write_file("test_batch.bin", records, test_size);
    return config_of(SL_DATA_CIFAR10);
}

/* 128 MiB of zeros pack into 130 kB. */
START_TEST(what_unpacks_to_far_more_is_refused_while_it_unpacks) {
    static char zeros[1 << 20];
    const char *path = at("bomb.gz");
    gzFile file = gzopen(path, "wb");
    for (int i = 0; i < 128; i++)
        ck_assert_int_eq(gzwrite(file, zeros, sizeof zeros), sizeof zeros);
    gzclose(file);
    sl_bytes bytes;
    EXPECT_ERROR(sl_bytes_read(&bytes, path, SL_BYTES_MAX, &error), SL_EFILE,
                 "bomb.gz: unpacks to more than 67108864 bytes");
}

START_TEST(cifar10_batches_are_joined) {
    sl_data_config config = write_cifar(3073);
    static float x[3072];
    EXPECT_WELL(sl_data_load(&data, &config, 1, &error));
    ck_assert_uint_eq(data.train.count, 10);
    ck_assert_uint_eq(data.test.count, 1);
    ck_assert_uint_eq(*sl_samples_get(&data.train, 9, x), 9);
    ck_assert_uint_eq(*sl_samples_get(&data.train, 4, x), 3);
    ck_assert_float_eq_tol(x[0], 1.0f / 255 - 0.4914f, 1e-6f); /* byte 1 of a record */
    ck_assert_float_eq_tol(x[1024], (float)(1025 % 251) / 255 - 0.4822f, 1e-6f);
    ck_assert_float_eq_tol(x[3071], (float)(3072 % 251) / 255 - 0.4465f, 1e-6f);
}

START_TEST(cifar10_xz_is_explained_and_truncation_refused) {
    static const char xz[] = "\xFD\x37zXZ\0\0\4";
    write_cifar(0);
    write_file("test_batch.bin.xz", xz, sizeof xz - 1);
    expect_refusal(SL_DATA_CIFAR10, "xz -dk");
    write_cifar(3072);
    expect_refusal(SL_DATA_CIFAR10, "3072 bytes");
    write_cifar(3073);
    write_file("data_batch_3.bin", "\x0a", 1);
    expect_refusal(SL_DATA_CIFAR10, "data_batch_3.bin");
}

/* ---- LIBSVM ---- */

static int parse_svm(const char *train, const char *test) {
    sl_data_config config = {.kind = SL_DATA_LIBSVM};
    sl_bytes a = {.data = (uint8_t *)train, .size = strlen(train), .name = "train.txt"};
    sl_bytes b = {
        .data = (uint8_t *)test, .size = test != NULL ? strlen(test) : 0, .name = "test.txt"};
    return sl_libsvm_parse(&data, &a, test != NULL ? &b : NULL, &config, &error);
}

static const refusal bad_lines[] = {
    {"1 1:1\nx 1:1\n", "line 2: label \"x\""},
    {"1.5 1:1\n2 1:1\n", "line 1: label \"1.5\""},
    {"99999999999 1:1\n", "label \"99999999999\""},
    {"nan 1:1\n2 1:1\n", "label \"nan\""},
    {"# first\n1,2 1:1\n", "line 2: label \"1,2\""},
    {"3:1\n", "a line begins with one"},
    {"1 qid:7 1:1\n", "line 1: \"qid:7\" names a query"},
    {"# no samples\n", "holds no samples"},
    {"1 -3:1\n", "out of range"},
    {"1 99999999:1\n", "out of range"},
    {"1 2:1 2:2\n", "index 2 follows 2"},
    {"1 2:1 1:2\n", "index 1 follows 2"},
    {"1 a\n", "\"a\" is not index:value"},
    {"1 1:\n", "value of \"1:\""},
    {"1 1:nan\n", "value of \"1:nan\""},
    {"1 1:1e39\n", "value of \"1:1e39\""},
    {"1 1:2x\n", "value of \"1:2x\""},
    {"1 1:00000000000000000000000000000000000000000000000000000000000000000001\n",
     "is neither a label nor index:value"},
    {"", "holds no samples"},
    {"1 1:1\n1 1:1\n1 1:1\n1 1:1\n1 1:1\n", "has 1 different labels"},
    {"1 1:1\n2 1:1\n", "hold out a fifth"},
    {"1\n2\n1\n2\n1\n", "0 numbers a sample"},
};

START_LOOP_TEST(libsvm_bad_lines_are_named, sizeof bad_lines / sizeof *bad_lines) {
    EXPECT_ERROR(parse_svm(bad_lines[_i].text, NULL), SL_EFILE, "train.txt");
    assert_said(bad_lines[_i].said);
}

START_TEST(libsvm_unknown_held_out_label_is_refused) {
    EXPECT_ERROR(parse_svm("1 1:1\n2 1:1\n", "1 1:1\n3 1:1\n"), SL_EFILE,
                 "test.txt: sample 2: label 3 does not occur in train.txt");
}

static const struct {
    const char *train, *test;
    uint32_t features, classes;
    float values[12];   /* three samples */
    uint16_t labels[3]; /* and the held-out sample's, */
    float held_out[4];
    uint16_t label;
} svm_files[] = {
    ROW("+1 1:0.5 3:-2\n-1 2:1e1\r\n\n5\n", "-1 4:1\n", 4, 3, {0.5f, 0, -2, 0, 0, 10}, {1, 0, 2},
        {0, 0, 0, 1}, 0),
    /* as scikit-learn, Spark or pandas, and SVMlight write the same */
    ROW("# Generated by dump_svmlight_file from scikit-learn 1.2.1\n# Column indices are "
        "zero-based\n"
        "#\n0 0:0.5 2:-2\n1 1:10\n1 0:1\n",
        "1 2:3 \n", 3, 2, {0.5f, 0, -2, 0, 10, 0, 1}, {0, 1, 1}, {0, 0, 3}, 1),
    ROW("0.0 1:0.5 3:-2.0\n1.0 2:10.0\n1.0 1:1.0\n", "1.0 3:3\n", 3, 2, {0.5f, 0, -2, 0, 10, 0, 1},
        {0, 1, 1}, {0, 0, 3}, 1),
    ROW("-1 1:0.5 3:-2 # first\n+1 2:1e1#second \n\n# third\n+1.0 1:1  \t\n", "1 3:3 # t\n", 3, 2,
        {0.5f, 0, -2, 0, 10, 0, 1}, {0, 1, 1}, {0, 0, 3}, 1),
    /* index 0 in one of both files: both count from 0 */
    ROW("0 1:1\n1 2:1\n1\n", "1 0:5\n", 3, 2, {0, 1, 0, 0, 0, 1}, {0, 1, 1}, {5}, 1),
};

START_LOOP_TEST(libsvm_is_read_as_it_is_written, sizeof svm_files / sizeof *svm_files) {
    EXPECT_WELL(parse_svm(svm_files[_i].train, svm_files[_i].test));
    ck_assert_uint_eq(data.train.count, 3);
    ck_assert_uint_eq(data.train.features, svm_files[_i].features);
    ck_assert_uint_eq(data.train.classes, svm_files[_i].classes);
    ck_assert_mem_eq(data.train.values, svm_files[_i].values,
                     3 * svm_files[_i].features * sizeof(float));
    ck_assert_mem_eq(data.train.labels, svm_files[_i].labels, sizeof svm_files[_i].labels);
    ck_assert_mem_eq(data.test.values, svm_files[_i].held_out,
                     svm_files[_i].features * sizeof(float));
    ck_assert_uint_eq(data.test.labels[0], svm_files[_i].label);
}

/* ---- digits ---- */

/* The same pixels on every machine: a change here breaks the repeatability of recorded runs. */
START_TEST(digits_of_seed_1_never_change) {
    sl_data_config config = {.train_samples = 1000, .test_samples = 1};
    EXPECT_WELL(sl_data_load(&data, &config, 1, &error));
    uLong crc = crc32(0, data.train.pixels, 1000 * 784);
    ck_assert_msg(crc == 0xa463e122u, "CRC-32 of the pixels is 0x%08lx", crc);
}

/* ---- text ---- */

static int parse_text(const char *text, size_t size, sl_data_config config) {
    sl_bytes file = {.data = (uint8_t *)text, .size = size, .name = "text.txt"};
    config.kind = SL_DATA_TEXT;
    return sl_text_parse(&data, &file, &config, &error);
}

/* The place of a character among those of the text. */
static uint16_t code_of(const char *text, size_t size, char character) {
    uint16_t code = 0;
    for (uint16_t byte = 0; byte < (uint8_t)character; byte++)
        code += memchr(text, byte, size) != NULL;
    return code;
}

/* Sample `row` of the table is `said`, and what follows. */
static void assert_sample(const sl_samples *table, uint32_t row, const char *said, const char *text,
                          size_t size) {
    float x[8];
    const uint16_t *next = sl_samples_get(table, row, x);
    for (uint32_t i = 0; i < table->features; i++) {
        ck_assert_float_eq(x[i], code_of(text, size, said[i]));
        ck_assert_uint_eq(next[i], code_of(text, size, said[i + 1]));
    }
}

START_TEST(text_becomes_sequences_labelled_by_what_follows) {
    char text[25 * 4 + 1 + 2];
    for (uint32_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i * i / 7 % 20);
    EXPECT_WELL(parse_text(
        text, sizeof text,
        (sl_data_config){.sequence = 4})); /* 25 samples, two characters too few for one more */
    const sl_samples *tables[] = {&data.train, &data.test};
    ck_assert_uint_eq(data.train.count,
                      23); /* two sources of 12 and 13 samples, a tenth of each held out */
    ck_assert_uint_eq(data.test.count, 2);
    ck_assert_uint_eq(data.train.group_count, 2);
    ck_assert_uint_eq(data.train.speakers, false);
    const uint32_t held_out[] = {11, 24};
    for (int part = 0; part < 2; part++)
        for (uint32_t row = 0, at = 0; row < tables[part]->count; row++, at++) {
            at = part == 1 ? held_out[row] : at == 11 ? 12 : at;
            ck_assert_uint_eq(tables[part]->groups[row], at >= 12);
            assert_sample(tables[part], row, text + 4 * at, text, sizeof text);
        }
}

START_TEST(text_of_speakers_is_strung_together_by_speaker) {
    static const char play[] =
        "BOB:\nabcde\n\nAL:\nxxxxx\nxxxxx\nxxxxxx\n\nBOB:\nfgh\n\nno name\n\n\nAL:\nzz";
    static const char al[] = "xxxxx\nxxxxx\nxxxxxx\n\nzz", bob[] = "abcde\n\nfgh\n\nno name\n\n\n";
    EXPECT_WELL(parse_text(play, strlen(play), (sl_data_config){.sequence = 2}));
    ck_assert_uint_eq(data.train.speakers, true);
    ck_assert_uint_eq(data.train.group_count, 2);
    ck_assert_uint_eq(data.train.count, 18); /* 10 samples each, the last of each held out */
    ck_assert_uint_eq(data.test.count, 2);
    for (uint32_t group = 0; group < 2; group++)
        for (uint32_t i = 0; i < 10; i++) {
            const sl_samples *table = i < 9 ? &data.train : &data.test;
            uint32_t row = i < 9 ? 9 * group + i : group;
            ck_assert_uint_eq(table->groups[row], group);
            assert_sample(table, row, (group == 0 ? al : bob) + 2 * i, play, strlen(play));
        }
}

static const struct {
    const char *text;
    size_t size;
    uint32_t sequence;
    const char *said;
} bad_texts[] = {
    {"", 0, 80, "text.txt: is empty"},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 40, 1, "only one character, 0x61"},
    {"abababababababababab", 20, 2,
     "has only 9 samples of data.sequence 2 characters; at least 10"},
    {"a", 1, 4096, "only one character"},
    {"A:\nabcdefghijk\n\nB:\nabcdefghijk\n\nC:\nabc", 38, 2,
     "no speaker has more than 6 samples of data.sequence 2"},
    {"abababababababababab", 20, 0, "data.sequence is 0"},
};

START_LOOP_TEST(text_that_gives_no_samples_is_refused, sizeof bad_texts / sizeof *bad_texts) {
    ck_assert_int_ne(parse_text(bad_texts[_i].text, bad_texts[_i].size,
                                (sl_data_config){.sequence = bad_texts[_i].sequence}),
                     0);
    assert_said(bad_texts[_i].said);
}

START_TEST(text_is_not_standardised) {
    sl_data_config config = {.kind = SL_DATA_TEXT, .sequence = 1, .standardise = SL_SWITCH_ON};
    EXPECT_ERROR(sl_data_load(&data, &config, 1, &error), SL_EINVAL,
                 "data.standardise: true needs pixels");
}
