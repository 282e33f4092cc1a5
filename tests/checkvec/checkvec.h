/* checkvec.h - devices, inputs and comparisons that the parts of checkvec share. */
#ifndef CHECKVEC_H
#define CHECKVEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "learner/layers/network.h"
#include "learner/model.h"
#include "starling/compressor.h"
#include "starling/vec.h"

enum { BENCH_PART_BYTES = 114688 };

typedef enum input_kind { RANDOM, EXTREME, EQUAL, ZERO, INPUT_KINDS } input_kind;
extern const char *const input_names[];

/* Numbers of elements to check, rising; the first is 0. */
extern const size_t *sizes;
extern int sizes_checked;
/* Only this one, instead. */
void choose_size(size_t size);

/* The memory; ends the program where there is none. */
void *need(void *memory);
float *host_vector(size_t count);
/* Different streams of one kind differ. */
float *make_input(input_kind kind, uint32_t stream, size_t count);

/* A device. */
typedef struct target {
    const sl_vec_ops *vec;
    const char *label;
} target;

float *upload(const target *t, const float *host, size_t count);
/* True if the device's vector has these bits; else prints the first element that differs. */
bool agrees(const target *t, const float *v, const float *expected, size_t count, const char *what);
/* `--only`; NULL: all are wanted. Does it name this? */
extern const char *only;
bool is_wanted(const char *name);
/* Prints and counts one check. */
void tell(const target *t, const char *name, bool good);
extern unsigned passed, failed;

/* compressors.c: each row is one configuration; kinds without a row get their usual one. */
typedef struct compressor_row {
    const char *name;
    sl_compressor_config config;
} compressor_row;
extern compressor_row compressors[];
void name_the_rest(void);
int count_compressors(void);
/* Bytes from one part of a message to the next. */
size_t stride_of(const sl_codec *codec);
/* Can the device encode and decode it? */
bool has_kernel(const target *t, const sl_codec *codec);
void check_compressors(const target *t);

/* models.c: a model whose gradients are computed, on noise. */
typedef struct model_row {
    const char *name;
    sl_model_config model;
    sl_shape in;
    uint32_t classes, rows;
} model_row;
/* False: it was said why not. */
bool open_network(sl_network *net, const target *t, const model_row *m);
/* x (dimension) as a run begins with it, on the device. */
float *initial_model(const target *t, const sl_network *net);
/* Another one for each number. */
void fill_batch(sl_network *net, const model_row *m, size_t number);

/* layers.c: each kind of layer, and the loss: do they agree with plain C on the CPU? And how long
 * one gradient of each model takes. */
void check_layers(const target *t);
void bench_models(const target *t);

/* graphs.c: gradients that a device repeats. */
void check_graphs(const target *t);

/* speed.c: prints the speed of operations, compressors and models on vectors of n elements. */
void bench_target(const target *t, size_t n);

#endif
