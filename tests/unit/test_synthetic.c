/* test_synthetic.c - models of others, by their sizes: against what is published of them; and the
 * task made of such a table. */
#include "learner/layer_table.h"
#include "learners.h"

static sl_error error;

/* Parameters; tensors; 10^9 multiplications a sample. Of networks of images as torchvision lists
 * them; of BERT counted by its paper's shapes. */
static const struct {
    sl_layer_table_kind kind;
    size_t dimension, tensors;
    double products;
    const char *first, *last;
} published[] = {
    {SL_LAYER_TABLE_RESNET18, 11689512, 62, 1.814, "conv1.weight", "fc.bias"},
    {SL_LAYER_TABLE_RESNET50, 25557032, 161, 4.089, "conv1.weight", "fc.bias"},
    {SL_LAYER_TABLE_ALEXNET, 61100840, 16, 0.714, "features.0.weight", "classifier.6.bias"},
    {SL_LAYER_TABLE_VGG16, 138357544, 32, 15.470, "features.0.weight", "classifier.6.bias"},
    {SL_LAYER_TABLE_BERT_BASE, 110106428, 206, 11.655, "embeddings.word_embeddings.weight",
     "cls.seq_relationship.bias"},
    {SL_LAYER_TABLE_BERT_LARGE, 336226108, 398, 40.107, "embeddings.word_embeddings.weight",
     "cls.seq_relationship.bias"},
};

START_LOOP_TEST(tables_have_the_published_sizes, sizeof published / sizeof *published) {
    sl_layer_table t;
    EXPECT_WELL(sl_layer_table_open(&t, published[_i].kind, &error));
    ck_assert_uint_eq(t.dimension, published[_i].dimension);
    ck_assert_uint_eq(t.count, published[_i].tensors);
    ck_assert_double_eq_tol(1e-9 * t.products, published[_i].products, 0.0006);
    ck_assert_str_eq(t.tensors[0].name, published[_i].first);
    ck_assert_str_eq(t.tensors[t.count - 1].name, published[_i].last);
    size_t sum = 0;
    for (size_t i = 0; i < t.count; i++) {
        sum += sl_tensor_size(&t.tensors[i]);
        for (size_t k = 0; k < i; k++)
            ck_assert_str_ne(t.tensors[i].name, t.tensors[k].name);
    }
    ck_assert_uint_eq(sum, t.dimension);
    sl_layer_table_close(&t);
}
