/* test_contracts.c - the emulated device ends the program where a GPU would go wrong silently. */
#include <signal.h>
#include <stdlib.h>

#include "gpu/device.h"
#include "harness.h"

enum { N = 64, BYTES = N * sizeof(float) };

static char text[DEVICE_TEXT_MAX];
static float *v, *locked, *plain;

static void open_device(void) {
    ck_assert_msg(device_open(0, text), "%s", text);
    v = device_allocate(3 * BYTES);
    locked = device_allocate_host(BYTES);
    plain = malloc(BYTES);
    ck_assert(v != NULL && locked != NULL && plain != NULL);
}

static void begin_copy_in(void *to, const void *host, size_t bytes) {
    const sl_vec_rows row = {.to = to, .from = host, .bytes = bytes, .rows = 1};
    device_begin_copies_in(&row, 1, device_event_open(), device_event_open());
}

/* Copies of memory that is not page-locked: CUDA would copy it first, and the caller would wait. */
START_TEST(a_late_copy_in_of_pageable_memory) {
    device_copy_in_later(v, plain, BYTES);
}

START_TEST(a_background_copy_out_to_pageable_memory) {
    device_begin_copy_out(plain, v, BYTES);
}

START_TEST(a_background_copy_in_of_pageable_memory) {
    begin_copy_in(v, plain, BYTES);
}

/* Two rows, each of it page-locked, but not what lies between. */
START_TEST(a_copy_of_rows_of_two_allocations) {
    char *other = device_allocate_host(BYTES);
    const bool rises = other > (char *)locked;
    const sl_vec_rows rows = {.to = v,
                              .from = rises ? (char *)locked : other,
                              .bytes = BYTES,
                              .rows = 2,
                              .to_step = BYTES,
                              .from_step = (size_t)labs(other - (char *)locked)};
    device_begin_copies_in(&rows, 1, device_event_open(), device_event_open());
}

START_TEST(a_copy_beyond_page_locked_memory) {
    device_copy_in_later(v, locked, BYTES + 64);
}

START_TEST(a_copy_of_released_memory) {
    device_release_host(locked);
    device_copy_in_later(v, locked, BYTES);
}

START_TEST(memory_of_the_host_as_the_device_s) {
    device_expect(locked);
}

/* x is read as constant. */
static void normalise_to(float *y) {
    launch_normalise(&(normalise_args){.x = v,
                                       .scale = v + N,
                                       .shift = v + N,
                                       .saved = v + N,
                                       .y = y,
                                       .channels = 4,
                                       .span = 4},
                     N / 4);
    device_fence(text);
}

START_TEST(a_launch_that_writes_what_it_reads_as_constant) {
    const float ones[2 * N] = {1};
    device_copy_in(v, ones, sizeof ones);
    normalise_to(v);
}

START_TEST(what_is_allowed) {
    device_copy_in(v, plain, BYTES);
    device_copy_in_later(v, locked, BYTES);
    device_copy_in_later(v, locked + N / 2, BYTES / 2);
    device_order_out();
    device_begin_copy_out(locked, v, BYTES);
    normalise_to(v + 2 * N);
    device_copy_out(plain, v, BYTES);
    ck_assert_int_eq(device_fence(text), 0);
}

int main(void) {
    const TTest *const forbidden[] = {
        a_late_copy_in_of_pageable_memory,       a_background_copy_out_to_pageable_memory,
        a_background_copy_in_of_pageable_memory, a_copy_beyond_page_locked_memory,
        a_copy_of_rows_of_two_allocations,       a_copy_of_released_memory,
        memory_of_the_host_as_the_device_s,      a_launch_that_writes_what_it_reads_as_constant};
    setenv("STARLING_CONTRACTS", "1", 1);
    setenv("CK_FORK", "yes", 1); /* they end */
    Suite *suite = suite_create("contracts");
    TCase *ends = tcase_create("contracts");
    tcase_add_checked_fixture(ends, open_device, NULL);
    tcase_add_test(ends, what_is_allowed);
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
        tcase_add_test_raise_signal(ends, forbidden[i], SIGABRT);
    suite_add_tcase(suite, ends);
    return run_suite(suite);
}
