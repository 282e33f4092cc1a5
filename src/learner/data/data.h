/* data.h - data sets: what data.kind and data.path name, as a training and a held-out table.
 *
 * One reader per file; each parses a buffer in memory, checks sizes against the header before
 * anything is allocated, and names file, offset or line, value and what is allowed.
 */
#ifndef SL_LEARNER_DATA_H
#define SL_LEARNER_DATA_H

#include "base/bytes.h"
#include "learner/data/samples.h"
#include "starling/data.h"

typedef struct sl_data {
    sl_samples train, test;
    bool is_tail; /* the held-out samples are the end of the training file */
} sl_data;

/* One data set, at the end of its file. */
typedef struct sl_data_reader {
    int (*load)(sl_data *out, const sl_data_config *config, uint64_t seed, sl_error *error);
    const char *raw;  /* what it holds in place of pixels, for an error; NULL: it holds pixels */
    bool real_labels; /* its labels may be numbers in place of classes */
} sl_data_reader;
#define SL_DATA_READER(kind, name) extern const sl_data_reader sl_##name##_reader;
SL_DATA_SETS(SL_DATA_READER)
#undef SL_DATA_READER

int sl_data_load(sl_data *out, const sl_data_config *config, uint64_t seed, sl_error *error);
void sl_data_close(sl_data *data);
/* Moves the data to *out if result is 0, or else closes them. Returns result. */
int sl_data_hand_over(sl_data *out, sl_data *data, int result);

/* What is wrong with the held-out samples: classes that are not trained, or trained ones that they
 * lack, though there is room for all. "": nothing. SL_ENOMEM. */
#define SL_DATA_WARNING_MAX 600
int sl_data_warn(const sl_data *data, char out[SL_DATA_WARNING_MAX], sl_error *error);

/* Does it hold pixels? */
bool sl_data_has_pixels(sl_data_kind kind);
/* As experiments name it. */
const char *sl_data_name(sl_data_kind kind);

/* What a file of a data set is called. */
typedef struct sl_data_names {
    const char *const *names; /* (count) any of them */
    size_t count;
    const char *const *places; /* up to NULL: folders below data.path where it may be; NULL: none */
    const char *unlike;        /* a file that shows another form of the data set; NULL: none */
    const char *unlike_means;  /* what to say then */
} sl_data_names;
/* Reads folder/NAME or folder/NAME.gz, of the first name that is there. SL_EFILE says where it is,
 * if it is near. */
int sl_data_find(sl_bytes *out, const char *folder, const sl_data_names *names, sl_error *error);

/* How many of the `available` samples are taken when `wanted` are asked for; 0 asks for all. */
int sl_data_count(uint32_t *out, uint32_t wanted, uint64_t available, const char *key,
                  const char *where, sl_error *error);

/* idx.c: MNIST's files. Parses a pair of images and labels; the first `wanted` samples (0 = all)
 * become the table. */
int sl_idx_parse(sl_samples *out, const sl_bytes *images, const sl_bytes *labels, uint32_t wanted,
                 const char *key, sl_error *error);

/* cifar10.c: the binary version: five files to train on, then the held-out one. */
enum { SL_CIFAR10_FILES = 6 };
int sl_cifar10_parse(sl_data *out, const sl_bytes files[SL_CIFAR10_FILES],
                     const sl_data_config *config, sl_error *error);

/* libsvm.c: text. */
int sl_libsvm_parse(sl_data *out, const sl_bytes *train, const sl_bytes *test,
                    const sl_data_config *config, sl_error *error);

/* csv.c: text. */
int sl_csv_parse(sl_data *out, const sl_bytes *train, const sl_bytes *test,
                 const sl_data_config *config, sl_error *error);

/* numpy.c: an .npz archive, whose arrays' names say what they are. */
int sl_npz_parse(sl_data *out, const sl_bytes *archive, const sl_data_config *config,
                 sl_error *error);

/* text.c: characters of any file. */
int sl_text_parse(sl_data *out, const sl_bytes *file, const sl_data_config *config,
                  sl_error *error);

#endif
