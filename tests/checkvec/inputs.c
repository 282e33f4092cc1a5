/* inputs.c - the vectors that checkvec gives to operations, and how it compares results. */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkvec.h"
#include "starling/rng.h"

static const size_t usual[] = {0,  1,    2,    3,    7,    8,    9,     63,           64,
                               65, 1000, 1023, 1024, 1025, 4099, 66001, (1 << 20) + 3};
enum { SIZES = sizeof usual / sizeof *usual };

const char *const input_names[] = {"random", "extreme", "equal", "zero"};

unsigned passed, failed;
const size_t *sizes = usual;
int sizes_checked = SIZES;

void choose_size(size_t size) {
    static size_t chosen[2];
    chosen[1] = size;
    sizes = chosen;
    sizes_checked = 2;
}

void *need(void *memory) {
    if (memory == NULL) {
        puts("not ok out of memory");
        exit(1);
    }
    return memory;
}

float *host_vector(size_t count) {
    return need(calloc(count + 1, sizeof(float)));
}

enum { POOL = (1 << 20) + 1024 };

/* EQUAL: few magnitudes, for ties. EXTREME stays so far from overflow that sums of squares fit a
 * float. */
static void fill_pool(input_kind kind, float *v) {
    static const float extremes[] = {0.0f,     -0.0f, FLT_MIN / 8, -FLT_MIN / 2, FLT_TRUE_MIN,
                                     -FLT_MIN, 1e15f, -3e15f,      1.0f,         0.5f};
    sl_rng rng = sl_rng_open(11, 0, kind, SL_PURPOSE_INIT);
    for (size_t i = 0; i < POOL; i++) {
        uint32_t pick = sl_rng_below(&rng, 10);
        if (kind == RANDOM || (kind == EXTREME && pick < 5))
            v[i] = (float)sl_rng_normal(&rng);
        else if (kind == EXTREME)
            v[i] = extremes[sl_rng_below(&rng, 10)];
        else if (kind == EQUAL)
            v[i] = pick % 2 ? 0.25f : pick == 0 ? -1.5f : -0.25f;
    }
}

/* Streams are pieces of one long vector, which is drawn once, and repeated. */
float *make_input(input_kind kind, uint32_t stream, size_t count) {
    static float *pools[INPUT_KINDS];
    if (pools[kind] == NULL)
        fill_pool(kind, pools[kind] = host_vector(POOL));
    float *v = host_vector(count);
    for (size_t i = 0; i < count; i++)
        v[i] = pools[kind][(i + 37 * stream) % POOL];
    return v;
}

float *upload(const target *t, const float *host, size_t count) {
    float *v = need(t->vec->allocate(count));
    t->vec->copy_in(v, host, count * sizeof *v);
    return v;
}

bool agrees(const target *t, const float *v, const float *expected, size_t count,
            const char *what) {
    float *got = host_vector(count);
    t->vec->copy_out(got, v, count * sizeof *got);
    size_t i = 0;
    while (i < count && memcmp(&got[i], &expected[i], sizeof *got) == 0)
        i++;
    if (i < count)
        printf("# %s: %s: element %zu of %zu is %.9g (%a), not %.9g (%a)\n", t->label, what, i,
               count, got[i], got[i], expected[i], expected[i]);
    free(got);
    return i == count;
}

const char *only; /* NULL: all */

bool is_wanted(const char *name) {
    return only == NULL || strstr(name, only) != NULL;
}

void tell(const target *t, const char *name, bool good) {
    printf("%s %s: %s\n", good ? "ok" : "not ok", t->label, name);
    fflush(stdout);
    *(good ? &passed : &failed) += 1;
}
