/* compressors.c - how long every compressor takes to encode a vector, and to decode and accumulate
 * it.
 *
 * Each codec runs on one thread, and on two, each with one half of the vector and its own encoder
 * and decoder. Beside them, as the limits of this machine: how long it takes to read the vector (a
 * sum), and to add a multiple of another to it (an axpy). All take turns. Where other tenants share
 * the cores, arithmetic takes up to twice as long while they compute, and no codec can help that: a
 * fixed amount of arithmetic is timed before and after each sample, on each thread, and a sample
 * that was disturbed is taken again, up to TRIES times, and counts only where there is no other.
 * What others do to the memory shows in the limits. Prints one line of JSON for each, medians in
 * milliseconds: of one thread its processor's time, in which waiting for a core does not count,
 * ("_1", "_2") how long one thread and two take by the clock, and ("_disturbed") the share of turns
 * in which no try was undisturbed. compressors.py makes the table.
 *
 *     compressors [DIMENSION [REPETITIONS]]
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "starling/compressor.h"
#include "starling/rng.h"

enum { PART_BYTES = 114688, ALIGNMENT = 64, REPETITIONS_MAX = 999, THREADS = 2 };

typedef struct contender {
    const char *label;
    sl_compressor_config config;
    double reads;   /* passes over the vector that encoding cannot do without */
    double touched; /* part of the elements that decoding has to touch; of a pass that skips the
                       others, reads too */
} contender;

static const contender contenders[] = {
    {"identity", {.kind = SL_COMPRESSOR_IDENTITY}, 0, 1},
    {"float16", {.kind = SL_COMPRESSOR_FLOAT16}, 1, 1},
    {"bfloat16", {.kind = SL_COMPRESSOR_BFLOAT16}, 1, 1},
    {"top-k 1 %", {.kind = SL_COMPRESSOR_TOP_K, .fraction = 0.01}, 1, 0.01},
    {"top-k 1 %, golomb",
     {.kind = SL_COMPRESSOR_TOP_K, .fraction = 0.01, .coding = SL_ENTROPY_GOLOMB},
     1,
     0.01},
    {"top-k 1 %, elias",
     {.kind = SL_COMPRESSOR_TOP_K, .fraction = 0.01, .coding = SL_ENTROPY_ELIAS},
     1,
     0.01},
    {"top-k 10 %", {.kind = SL_COMPRESSOR_TOP_K, .fraction = 0.1}, 1, 0.1},
    {"stc 1 %", {.kind = SL_COMPRESSOR_STC, .fraction = 0.01}, 1, 0.01},
    {"stc 1 %, golomb",
     {.kind = SL_COMPRESSOR_STC, .fraction = 0.01, .coding = SL_ENTROPY_GOLOMB},
     1,
     0.01},
    {"sbc 1 %", {.kind = SL_COMPRESSOR_SBC, .fraction = 0.01}, 1, 0.01},
    {"pos-neg 0.5 %", {.kind = SL_COMPRESSOR_POS_NEG, .fraction = 0.005}, 1, 0.01},
    {"strom 1 %", {.kind = SL_COMPRESSOR_STROM, .threshold = 2.5758}, 1, 0.01},
    {"random-k 1 %", {.kind = SL_COMPRESSOR_RANDOM_K, .fraction = 0.01, .scaled = true}, 0, 0.01},
    {"qsgd 4 bits, buckets of 512", {.kind = SL_COMPRESSOR_QSGD, .levels = 7, .bucket = 512}, 1, 1},
    {"qsgd 4 bits, one bucket", {.kind = SL_COMPRESSOR_QSGD, .levels = 7}, 2, 1},
    {"scaled-sign", {.kind = SL_COMPRESSOR_SCALED_SIGN}, 1, 1},
    {"1-bit, buckets of 512", {.kind = SL_COMPRESSOR_ONE_BIT, .bucket = 512}, 1, 1},
    {"terngrad, buckets of 512", {.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 512}, 1, 1},
    {"natural", {.kind = SL_COMPRESSOR_NATURAL}, 1, 1},
    {"drive", {.kind = SL_COMPRESSOR_DRIVE}, 1, 1},
    {"eden 2 bits", {.kind = SL_COMPRESSOR_EDEN, .bits = 2}, 1, 1},
    {"eden 4 bits", {.kind = SL_COMPRESSOR_EDEN, .bits = 4}, 1, 1},
    {"magnitude-dropping 1 %",
     {.kind = SL_COMPRESSOR_MAGNITUDE_DROPPING, .fraction = 0.01},
     3,
     0.01},
    {"adacomp, bins of 500", {.kind = SL_COMPRESSOR_ADACOMP, .bin = 500}, 2, 0.01},
    {"3lc", {.kind = SL_COMPRESSOR_THREE_LC, .multiplier = 1}, 2, 1},
    {"random-dropping 50 %",
     {.kind = SL_COMPRESSOR_RANDOM_DROPPING, .probability = 0.5, .scaled = true},
     0,
     0.5},
    {"random-dropping 1 %",
     {.kind = SL_COMPRESSOR_RANDOM_DROPPING, .probability = 0.01, .scaled = true},
     0,
     0.01},
    {"threshold", {.kind = SL_COMPRESSOR_THRESHOLD, .threshold = 1}, 1, 1},
};
enum { CONTENDERS = sizeof contenders / sizeof *contenders };

/* One codec over one range of the vector, with all that it needs. */
typedef struct lane {
    sl_codec *codec;
    sl_encoder *encoder;
    sl_decoder *decoder;
    const float *vector;
    float *acc;
    uint8_t *buffer; /* (parts, part_bytes_max rounded up); NULL where the codec borrows */
    size_t stride;
    sl_payload *payloads;
    uint64_t exchange;
} lane;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "compressors: %s: %s\n", what, why);
    exit(1);
}

static void open_lane(lane *l, const contender *c, const float *vector, float *acc,
                      size_t dimension) {
    sl_error error = {0};
    *l = (lane){.vector = vector, .acc = acc};
    if (sl_codec_open(&l->codec, &c->config, dimension, PART_BYTES, &error) != 0 ||
        sl_encoder_open(&l->encoder, l->codec, sl_vec_cpu(), &error) != 0 ||
        sl_decoder_open(&l->decoder, l->codec, sl_vec_cpu(), &error) != 0)
        fail(c->label, error.text);
    size_t parts = sl_codec_parts(l->codec);
    l->stride = (sl_codec_part_bytes_max(l->codec) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    l->buffer = sl_codec_borrows(l->codec) ? NULL : aligned_alloc(ALIGNMENT, parts * l->stride);
    l->payloads = calloc(parts, sizeof *l->payloads);
    if (l->payloads == NULL || (l->buffer == NULL && !sl_codec_borrows(l->codec)))
        fail(c->label, "out of memory");
}

static void close_lane(lane *l) {
    free(l->payloads);
    free(l->buffer);
    sl_decoder_close(&l->decoder);
    sl_encoder_close(&l->encoder);
    sl_codec_close(&l->codec);
}

static sl_message message_of(const lane *l) {
    return (sl_message){.seed = 1, .exchange = l->exchange, .sender = 1};
}

static void *encode(void *context) {
    lane *l = context;
    l->exchange++;
    sl_message message = message_of(l);
    sl_source source = {.vector = l->vector};
    int result = sl_encoder_begin(l->encoder, &message, &source);
    for (uint32_t p = 0; result == 0 && p < sl_codec_parts(l->codec); p++)
        result = sl_encoder_part(l->encoder, p, &source,
                                 l->buffer ? l->buffer + p * l->stride : NULL, &l->payloads[p]);
    if (result != 0)
        fail("encode", sl_error_meaning(result));
    return NULL;
}

/* As a receiver does: each part is checked, then added. */
static void *decode(void *context) {
    lane *l = context;
    sl_message message = message_of(l);
    for (uint32_t p = 0; p < sl_codec_parts(l->codec); p++) {
        if (sl_decoder_check(l->decoder, &message, p, l->payloads[p]) != 0)
            fail("decode", "a payload was refused");
        sl_decoder_add(l->decoder, &message, p, l->payloads[p], 0.25f, l->acc);
    }
    return NULL;
}

static size_t message_bytes(const lane *l) {
    size_t bytes = 0;
    for (uint32_t p = 0; p < sl_codec_parts(l->codec); p++)
        bytes += l->payloads[p].bytes;
    return bytes;
}

/* ---- the limits ---- */

/* What a thread reads, and adds to: a range of both vectors. */
typedef struct range {
    const float *vector;
    float *acc;
    size_t count;
    volatile float sum; /* so that nobody leaves it out */
} range;

static void *read_all(void *context) {
    range *r = context;
    float sums[64] = {0};
    for (size_t i = 0; i + 64 <= r->count; i += 64)
        for (size_t j = 0; j < 64; j++)
            sums[j] += r->vector[i + j];
    for (size_t j = 0; j < 64; j++)
        r->sum += sums[j];
    return NULL;
}

static void *axpy(void *context) {
    const range *r = context;
    const float *const in[] = {r->acc, r->vector};
    sl_vec_cpu()->combine(r->acc, in, (const float[]){1, 0.25f}, 2, r->count);
    return NULL;
}

/* ---- one measurement ---- */

enum { CORE_BLOCKS = 512, CORE_PASSES = 150, CORE_SAMPLES = 400, TRIES = 200, PAUSE_NS = 5000000 };
#define UNDISTURBED 1.12

static double processor_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* Processor's time, in milliseconds, of a fixed amount of arithmetic: more of it where other
 * tenants of the machine share the core. */
static double core_ms(void) {
    static const sl_rng_key key = {1, 2, 3, 4};
    uint32_t numbers[4 * CORE_BLOCKS];
    const double start = processor_ms();
    for (int pass = 0; pass < CORE_PASSES; pass++)
        sl_rng_blocks(&key, 0, CORE_BLOCKS, numbers);
    return processor_ms() - start;
}

static void pause_a_little(void) {
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/* The least of a few seconds. */
static double undisturbed_core_ms(void) {
    double least = INFINITY;
    for (int i = 0; i < CORE_SAMPLES; i++) {
        least = fmin(least, core_ms());
        pause_a_little();
    }
    return least;
}

/* Threads that all begin at once: each spins, since one that sleeps is late by what it takes to
 * wake. */
typedef struct start_line {
    atomic_int missing;
} start_line;

static void wait_for_all(start_line *line) {
    atomic_fetch_sub(&line->missing, 1);
    while (atomic_load(&line->missing) > 0)
        continue;
}

/* Begin and end by the clock, the processor's time between them, and the slower core_ms of those
 * before and after. */
typedef struct worker {
    void *(*work)(void *);
    void *item;
    start_line *line;
    int cpu; /* or -1: the caller's */
    double begin, end, processor, core;
} worker;

static void stay_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0)
        fail("pthread_setaffinity_np", "a processor for each thread is needed");
}

static void *run_worker(void *context) {
    worker *w = context;
    if (w->cpu >= 0)
        stay_on(w->cpu);
    const double before = core_ms();
    wait_for_all(w->line);
    w->begin = bench_now_ms();
    w->processor = processor_ms();
    w->work(w->item);
    w->processor = processor_ms() - w->processor;
    w->end = bench_now_ms();
    w->core = fmax(before, core_ms());
    return NULL;
}

typedef struct sample {
    double clock, processor, core; /* of all threads, of the first, and of the slowest */
} sample;

/* All threads do `work`, each on its own item. */
static sample sample_of(void *(*work)(void *), void *items, size_t item_bytes, int threads) {
    pthread_t others[THREADS];
    worker workers[THREADS];
    start_line line = {threads};
    for (int t = threads - 1; t >= 0; t--) {
        workers[t] = (worker){.work = work,
                              .item = (char *)items + t * item_bytes,
                              .line = &line,
                              .cpu = t > 0 ? t : -1};
        if (t > 0 && pthread_create(&others[t], NULL, run_worker, &workers[t]) != 0)
            fail("pthread_create", "no thread");
    }
    run_worker(&workers[0]);
    sample s = {.clock = -workers[0].begin, .processor = workers[0].processor};
    double end = 0;
    for (int t = 0; t < threads; t++) {
        if (t > 0)
            pthread_join(others[t], NULL);
        s.clock = fmax(s.clock, -workers[t].begin);
        s.core = fmax(s.core, workers[t].core);
        end = fmax(end, workers[t].end);
    }
    s.clock += end;
    return s;
}

/* A core_ms above it: somebody else had a part of the core. */
static double disturbance_limit(void) {
    static double alone_ms;
    if (alone_ms == 0)
        alone_ms = undisturbed_core_ms();
    return UNDISTURBED * alone_ms;
}

/* The first sample that nobody disturbed, or the one of TRIES that was disturbed least. */
static sample undisturbed(void *(*work)(void *), void *items, size_t item_bytes, int threads) {
    const double limit = disturbance_limit();
    sample best = sample_of(work, items, item_bytes, threads);
    for (int t = 1; t < TRIES && best.core > limit; t++) {
        pause_a_little();
        const sample s = sample_of(work, items, item_bytes, threads);
        best = s.core < best.core ? s : best;
    }
    return best;
}

/* ---- all of them ---- */

/* The undisturbed samples of one kind of work on so many threads; while there is none, the one that
 * was disturbed least. */
typedef struct series {
    double clock[REPETITIONS_MAX], processor[REPETITIONS_MAX];
    size_t count;
    double core; /* of that one */
} series;

typedef struct timing {
    series alone, together;
} timing;

static void keep(series *s, sample x) {
    const bool clean = x.core <= disturbance_limit();
    if (!clean && (s->count > 0 || (s->core > 0 && x.core > s->core)))
        return;
    s->clock[s->count] = x.clock;
    s->processor[s->count] = x.processor;
    s->core = x.core;
    s->count += clean;
}

static void take_turn(timing *t, void *(*work)(void *), void *one, void *two, size_t bytes) {
    keep(&t->alone, undisturbed(work, one, bytes, 1));
    keep(&t->together, undisturbed(work, two, bytes, THREADS));
}

static double median(double *times, size_t count) {
    count = count > 0 ? count : 1;
    qsort(times, count, sizeof *times, bench_compare);
    return (times[(count - 1) / 2] + times[count / 2]) / 2;
}

static void report(timing *t, size_t repetitions, const char *name, const char *end) {
    const double clean = (double)(t->alone.count + t->together.count) / (double)(2 * repetitions);
    printf("\"%s\": %.3f, \"%s_1\": %.3f, \"%s_2\": %.3f, \"%s_disturbed\": %g%s", name,
           median(t->alone.processor, t->alone.count), name, median(t->alone.clock, t->alone.count),
           name, median(t->together.clock, t->together.count), name, 1 - clean, end);
}

static void fill(float *vector, size_t dimension) {
    sl_rng rng = sl_rng_open(1, 0, 0, SL_PURPOSE_INIT);
    for (size_t i = 0; i < dimension; i++)
        vector[i] = (float)sl_rng_normal(&rng);
}

static void measure(const float *vector, float *acc, size_t dimension, size_t repetitions) {
    static lane one[CONTENDERS], two[CONTENDERS][THREADS];
    static timing encoding[CONTENDERS], decoding[CONTENDERS], reading, adding;
    size_t half = dimension / 2;
    range whole = {vector, acc, dimension, 0},
          halves[THREADS] = {{vector, acc, half, 0},
                             {vector + half, acc + half, dimension - half, 0}};
    for (int c = 0; c < CONTENDERS; c++) {
        open_lane(&one[c], &contenders[c], vector, acc, dimension);
        open_lane(&two[c][0], &contenders[c], vector, acc, half);
        open_lane(&two[c][1], &contenders[c], vector + half, acc + half, dimension - half);
        encode(&one[c]); /* all memory is touched before anything is timed */
        encode(&two[c][0]);
        encode(&two[c][1]);
    }
    for (size_t r = 0; r < repetitions; r++) {
        take_turn(&reading, read_all, &whole, halves, sizeof whole);
        take_turn(&adding, axpy, &whole, halves, sizeof whole);
        for (int c = 0; c < CONTENDERS; c++) {
            take_turn(&encoding[c], encode, &one[c], two[c], sizeof one[c]);
            take_turn(&decoding[c], decode, &one[c], two[c], sizeof one[c]);
        }
    }
    printf("{\"dimension\": %zu, ", dimension);
    report(&reading, repetitions, "read", ", ");
    report(&adding, repetitions, "axpy", "}\n");
    for (int c = 0; c < CONTENDERS; c++) {
        printf("{\"codec\": \"%s\", \"bytes\": %zu, \"reads\": %g, \"touched\": %g, ",
               contenders[c].label, message_bytes(&one[c]), contenders[c].reads,
               contenders[c].touched);
        report(&encoding[c], repetitions, "encode", ", ");
        report(&decoding[c], repetitions, "decode", "}\n");
        close_lane(&one[c]);
        close_lane(&two[c][0]);
        close_lane(&two[c][1]);
    }
}

int main(int argc, char **argv) {
    size_t dimension = argc > 1 ? strtoull(argv[1], NULL, 10) : 25557032;
    size_t repetitions = argc > 2 ? strtoull(argv[2], NULL, 10) : 5;
    if (dimension < THREADS || repetitions < 1 || repetitions > REPETITIONS_MAX)
        fail("usage", "compressors [DIMENSION [REPETITIONS]]");
    float *vector = sl_vec_cpu()->allocate(dimension), *acc = sl_vec_cpu()->allocate(dimension);
    if (vector == NULL || acc == NULL)
        fail("vectors", "out of memory");
    stay_on(0);
    fill(vector, dimension);
    measure(vector, acc, dimension, repetitions);
    sl_vec_cpu()->release(vector);
    sl_vec_cpu()->release(acc);
    return 0;
}
