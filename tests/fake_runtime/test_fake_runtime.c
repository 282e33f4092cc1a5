/* test_fake_runtime.c - the plug-in for GPUs over gpu/emulated/fake.h: order, notices, failures,
 * memory of other processes, and that what fake.h forbids ends the program. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scene.h"

/* ---- devices ---- */

static const struct {
    cudaError_t result;
    const char *said;
} counts[] = {
    {cudaErrorNoDevice, "no NVIDIA GPU that CUDA_VISIBLE_DEVICES=\"MIG-1234\" names"},
    {cudaErrorInsufficientDriver, "no NVIDIA driver, or one that is older than CUDA "},
    {cudaErrorIllegalAddress, "an illegal memory access was encountered"},
};

START_TEST(devices_are_counted_and_described) {
    device_properties p = {0};
    ck_assert_int_eq(device_count(text), 1);
    setenv("STARLING_DEVICES", "2", 1);
    ck_assert_int_eq(device_count(text), 2);
    ck_assert(device_describe(1, &p, text));
    ck_assert_str_eq(p.name, "emulated on the host");
    ck_assert(!device_describe(2, &p, text));
    ck_assert_str_eq(text, "cuda:2: invalid device ordinal");
    fake_set_capability(7);
    ck_assert(!device_describe(0, &p, text));
    ck_assert_ptr_nonnull(strstr(text, "compute capability 7.0; 8.0 or more is needed"));
    fake_set_devices(0, cudaSuccess);
    ck_assert_int_eq(device_count(text), 0);
    ck_assert_str_eq(text, "no NVIDIA GPU");
    setenv("CUDA_VISIBLE_DEVICES", "MIG-1234", 1);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        fake_set_devices(0, counts[i].result);
        ck_assert_int_eq(device_count(text), 0);
        ck_assert_msg(strstr(text, counts[i].said) == text, "%s", text);
    }
}

static const struct {
    fake_call call;
    const char *said;
} openings[] = {{FAKE_SET_DEVICE, "choosing the device"},
                {FAKE_PRIORITIES, "asking for priorities"},
                {FAKE_ATTRIBUTE, "asking for the size of its cache"},
                {FAKE_STREAM_CREATE, "creating a stream"},
                {FAKE_EVENT_CREATE, "creating an event"}};

START_LOOP_TEST(a_device_that_does_not_open_says_why, sizeof openings / sizeof *openings) {
    fake_fail(openings[_i].call, cudaErrorMemoryAllocation);
    ck_assert(!device_open(0, text));
    ck_assert_msg(strstr(text, "cuda:0: ") == text && strstr(text, openings[_i].said) != NULL, "%s",
                  text);
}

static const struct {
    const char *variable, *value, *said;
} without_products[] = {
    {"STARLING_CUBLAS", "/nowhere/libcublas.so",
     "matrix products need cuBLAS: /nowhere/libcublas.s"},
    {"NVIDIA_TF32_OVERRIDE", "1", "NVIDIA_TF32_OVERRIDE=1 in the environment"},
    {"CUBLAS_EMULATE_SINGLE_PRECISION", "1", "CUBLAS_EMULATE_SINGLE_PRECISION=1 in the env"}};

/* cuBLAS may be missing: all but products goes without. */
START_LOOP_TEST(products_that_do_not_open_say_why,
                sizeof without_products / sizeof *without_products) {
    setenv(without_products[_i].variable, without_products[_i].value, 1);
    open_device();
    ck_assert(!device_open_products(device_allocate(device_product_bytes()), text));
    ck_assert_msg(strstr(text, without_products[_i].said) == text, "%s", text);
    ck_assert_int_eq(device_fence(text), 0);
}

START_TEST(a_cublas_that_does_not_open_says_why) {
    open_device();
    fake_fail(FAKE_CREATE_PRODUCTS, cudaErrorMemoryAllocation);
    ck_assert(!device_open_products(device_allocate(device_product_bytes()), text));
    ck_assert_str_eq(text, "opening cuBLAS failed: the resource allocation failed");
    setenv("NVIDIA_TF32_OVERRIDE", "0", 1); /* which forbids it */
    open_products();
}

/* ---- order ---- */

START_TEST(background_copies_keep_their_order) {
    open_device();
    float *v = device_allocate(BYTES), *in = host_vector(5), *out = host_vector(0);
    sl_vec_event *used = device_event_open(), *copied = device_event_open(),
                 *sent = device_event_open();
    fake_hold_kernels(true);
    fill(v, 3);
    device_order_out(); /* after the kernel */
    device_begin_copy_out(out, v, BYTES);
    device_event_record_out(sent);
    device_event_follow(sent);
    device_event_record(used);
    /* after the copy out */
    device_begin_copies_in(&(sl_vec_rows){.to = v, .from = in, .bytes = BYTES, .rows = 1}, 1, used,
                           copied);
    ck_assert(!device_event_passed(sent, 0));
    ck_assert(!device_event_passed(copied, 0));
    fake_hold_kernels(false);
    device_event_follow(copied);
    device_event_wait(copied);
    expect_all(out, 3);
    ck_assert(device_event_passed(sent, 0));
    ck_assert_int_eq(device_fence(text), 0);
    device_copy_out(out, v, BYTES);
    ck_assert_mem_eq(out, in, BYTES);
    device_event_close(used);
    device_event_close(copied);
    device_event_close(sent);
    device_event_close(NULL);
}

static void *use_from_a_thread(void *v) {
    device_give_way();
    fill(v, 9);
    device_event_close(device_event_open());
    return (void *)(intptr_t)device_fence(text);
}

START_TEST(a_thread_has_a_lane_until_it_ends) {
    open_device();
    float *v = device_allocate(BYTES), *out = host_vector(0);
    ck_assert_int_eq(device_fence(text), 0);
    const int streams = fake_count(FAKE_STREAMS), events = fake_count(FAKE_EVENTS),
              first = fake_count(FAKE_STREAMS_FIRST);
    pthread_t thread;
    void *failed;
    ck_assert_int_eq(pthread_create(&thread, NULL, use_from_a_thread, v), 0);
    ck_assert_int_eq(pthread_join(thread, &failed), 0);
    ck_assert_ptr_null(failed);
    ck_assert_int_eq(fake_count(FAKE_STREAMS), streams);
    ck_assert_int_eq(fake_count(FAKE_EVENTS), events);
    device_copy_out(out, v, BYTES);
    expect_all(out, 9);
    ck_assert_int_eq(first, streams); /* but for that thread's, which gives way */
    ck_assert_int_eq(fake_count(FAKE_STREAMS_FIRST), first);
}

/* ---- notices ---- */

START_TEST(a_notice_comes_once) {
    open_device();
    const int fd = eventfd(0, 0);
    uint64_t rung;
    float *v = device_allocate(BYTES);
    sl_vec_event *e = device_event_open();
    fake_hold_kernels(true);
    fill(v, 1);
    device_event_record(e);
    ck_assert(!device_event_passed(e, fd));
    ck_assert(!device_event_passed(e, fd));
    fake_hold_kernels(false);
    ck_assert_int_eq(read(fd, &rung, sizeof rung), sizeof rung);
    ck_assert_uint_eq(rung, 1);
    ck_assert(device_event_passed(e, fd));
    device_event_close(e);
    close(fd);
}

static void CUDART_CB block(void *fd) {
    uint64_t told;
    ck_assert_int_eq(read((int)(intptr_t)fd, &told, sizeof told), sizeof told);
}

/* Of another session in the process, whose caller is slow. */
START_TEST(a_notice_waits_for_no_other_loops_events) {
    open_device();
    int fds[2], held[2];
    cudaStream_t streams[2];
    sl_vec_event *events[2];
    uint64_t rung;
    for (int i = 0; i < 2; i++) {
        fds[i] = eventfd(0, 0);
        held[i] = eventfd(0, 0);
        cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
        events[i] = device_event_open();
        cudaLaunchHostFunc(streams[i], block, (void *)(intptr_t)held[i]);
        device_guest_record(events[i], streams[i]);
        ck_assert(!device_event_passed(events[i], fds[i]));
    }
    eventfd_write(held[1], 1);
    struct pollfd second = {.fd = fds[1], .events = POLLIN};
    ck_assert_int_eq(poll(&second, 1, 20000), 1); /* else in 20 s */
    ck_assert_int_eq(read(fds[1], &rung, sizeof rung), sizeof rung);
    ck_assert(!device_event_passed(events[0], fds[0]));
    eventfd_write(held[0], 1);
    for (int i = 0; i < 2; i++)
        device_event_close(events[i]);
}

static void *release_callbacks(void *unused) {
    usleep(50000); /* device_event_close is under way; if not, the test shows less */
    fake_hold_callbacks(false);
    return unused;
}

/* A notice of an earlier time may still be under way when a later time has passed. */
START_TEST(no_notice_comes_after_the_event_is_closed) {
    open_device();
    const int fd = eventfd(0, 0);
    float *v = device_allocate(BYTES);
    sl_vec_event *e = device_event_open();
    fake_hold_callbacks(true);
    fake_hold_kernels(true);
    fill(v, 1);
    device_event_record(e);
    ck_assert(!device_event_passed(e, fd));
    fake_hold_kernels(false);
    device_event_record(e); /* again, before the notice has come */
    device_event_wait(e);
    ck_assert(device_event_passed(e, fd));
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, release_callbacks, NULL), 0);
    device_event_close(e);
    ck_assert_int_eq(fake_count(FAKE_CALLBACKS), 0);
    pthread_join(thread, NULL);
    close(fd);
}

/* ---- failures ---- */

START_TEST(out_of_memory_is_no_failure) {
    open_device();
    fake_fail(FAKE_MALLOC, cudaErrorMemoryAllocation);
    ck_assert_ptr_null(device_allocate(BYTES));
    fake_fail(FAKE_MALLOC_HOST, cudaErrorMemoryAllocation);
    ck_assert_ptr_null(device_allocate_host(BYTES));
    fake_fail(FAKE_EVENT_CREATE, cudaErrorMemoryAllocation);
    ck_assert_ptr_null(device_event_open());
    ck_assert_int_ne(device_status(text), 0); /* an event takes none of what is counted */
}

START_LOOP_TEST(an_allocation_after_a_fault_is_a_failure, 2) {
    open_device();
    fake_fail(_i == 0 ? FAKE_MALLOC : FAKE_MALLOC_HOST, cudaErrorIllegalAddress);
    ck_assert_ptr_null(_i == 0 ? device_allocate(BYTES) : device_allocate_host(BYTES));
    ck_assert_int_ne(device_status(text), 0);
    ck_assert_str_eq(text, "allocating memory failed: an illegal memory access was encountered");
}

START_TEST(a_kernel_that_stops_is_found_at_the_fence) {
    open_device();
    float *v = device_allocate(BYTES);
    sl_vec_event *e = device_event_open();
    ck_assert_int_eq(device_fence(text), 0);
    fake_fail_kernel(cudaErrorIllegalAddress);
    fake_hold_kernels(true); /* until the event is recorded: else that may fail first */
    fill(v, 1);
    device_event_record(e);
    fake_hold_kernels(false);
    device_event_wait(e);
    ck_assert(device_event_passed(e, 0)); /* nothing waits for a device that has failed */
    ck_assert_int_ne(device_fence(text), 0);
    ck_assert_str_eq(text, "a kernel or copy failed: an illegal memory access was encountered");
    device_event_close(e);
    device_release(v);
}

static void copy_in(float *v) {
    device_copy_in(v, (float[]){1}, sizeof(float));
}
static void copy_on(float *v) {
    device_copy(v, v + N / 2, sizeof(float));
}
static void clear(float *v) {
    device_clear(v, BYTES);
}
static void record(float *v) {
    (void)v;
    sl_vec_event *e = device_event_open();
    device_event_record(e);
    device_event_close(e);
}
static void launch_fill(float *v) {
    fill(v, 1);
}
static void count_digits_of(float *v) {
    launch_count_digits(&(count_digits_args){.v = v, .classes = (uint32_t *)v}, 1);
}
static void list_word_of(float *v) {
    launch_list_word(&(list_word_args){.words = (uint64_t *)v}, 1);
}
static void ask_for_a_notice(float *v) {
    sl_vec_event *e = device_event_open();
    fake_hold_kernels(true);
    fill(v, 1);
    device_event_record(e);
    device_event_passed(e, 1);
    fake_hold_kernels(false);
    device_event_close(e);
}

static const struct {
    fake_call call;
    void (*act)(float *v);
    const char *said;
} operations[] = {{FAKE_MEMCPY, copy_in, "a copy to the device"},
                  {FAKE_MEMCPY, copy_on, "a copy on the device"},
                  {FAKE_MEMSET, clear, "clearing memory"},
                  {FAKE_EVENT_RECORD, record, "recording an event"},
                  {FAKE_LAUNCH, launch_fill, "launching fill_four"},
                  {FAKE_LAUNCH, count_digits_of, "launching count_digits"},
                  {FAKE_LAUNCH, list_word_of, "launching list_word"},
                  {FAKE_PRODUCT, multiply, "a matrix product"},
                  {FAKE_CALLBACK, ask_for_a_notice, "asking for a notice"}};

START_LOOP_TEST(the_first_failure_is_kept, sizeof operations / sizeof *operations) {
    open_device();
    open_products();
    float *v = device_allocate(BYTES);
    fake_fail(operations[_i].call, cudaErrorInvalidValue);
    operations[_i].act(v);
    fake_fail(FAKE_MEMSET, cudaErrorIllegalAddress);
    device_clear(v, BYTES);
    ck_assert_int_ne(device_status(text), 0);
    ck_assert_msg(strstr(text, operations[_i].said) == text, "%s", text);
    ck_assert_int_ne(device_fence(text), 0);
}

/* ---- what fake.h forbids ---- */

static void copy_pageable_memory_in_the_background(cudaStream_t s, float *v, float *plain) {
    device_begin_copy_out(plain, v, BYTES);
}

static void copy_pageable_memory_in_later(cudaStream_t s, float *v, float *plain) {
    device_copy_in_later(v, plain, BYTES);
}

static void copy_in_from(float *v, const void *host, size_t rows, size_t step) {
    const sl_vec_rows r = {v, host, BYTES, rows, .to_step = BYTES, .from_step = step};
    device_begin_copies_in(&r, 1, device_event_open(), device_event_open());
}

static void copy_pageable_memory_in_in_the_background(cudaStream_t s, float *v, float *plain) {
    copy_in_from(v, plain, 1, 0);
}

/* Two rows, each of it page-locked, but not what lies between. */
static void copy_rows_of_two_allocations(cudaStream_t s, float *v, float *plain) {
    const char *a = device_allocate_host(BYTES), *b = device_allocate_host(BYTES);
    copy_in_from(v, a < b ? a : b, 2, (size_t)labs(b - a));
}

static void copy_beyond_page_locked_memory(cudaStream_t s, float *v, float *plain) {
    device_copy_in_later(v, host_vector(0), BYTES + 64);
}

static void copy_released_memory(cudaStream_t s, float *v, float *plain) {
    void *host = device_allocate_host(BYTES);
    device_release_host(host);
    device_copy_in_later(v, host, BYTES);
}

static void take_memory_of_the_host_for_the_devices(cudaStream_t s, float *v, float *plain) {
    device_clear(plain, BYTES);
}

static void compute_with_memory_of_the_host(cudaStream_t s, float *v, float *plain) {
    device_expect(host_vector(0));
}

/* x is read as constant: a GPU may read it early. */
static void normalise_to(float *x, float *y) {
    const float first[N] = {1};
    device_copy_in(x, first, BYTES);
    launch_normalise(&(normalise_args){.x = x,
                                       .scale = x + N / 2,
                                       .shift = x + N / 2,
                                       .saved = x + N / 2,
                                       .y = y,
                                       .channels = 4,
                                       .span = 4},
                     16);
}

static void write_what_is_read_as_constant(cudaStream_t s, float *v, float *plain) {
    normalise_to(v, v);
}

static void note_an_allocation(cudaStream_t s, float *v, float *plain) {
    device_graph_begin();
    device_allocate(BYTES);
}

/* ---- memory of several processes ---- */

/* A process makes it, and is killed; this one reads it until it closes it. */
START_TEST(memory_of_a_killed_process_stays) {
    int pair[2], descriptor = -1;
    char path[64];
    ck_assert_int_eq(pipe(pair), 0);
    const pid_t owner = fork();
    if (owner == 0) {
        open_device();
        device_share *mine = device_share_open(BYTES, &descriptor, text);
        fill(device_share_memory(mine), 3);
        device_fence(text);
        const bool told = write(pair[1], &descriptor, sizeof descriptor) == sizeof descriptor;
        _exit(told && pause());
    }
    ck_assert_int_eq(read(pair[0], &descriptor, sizeof descriptor), sizeof descriptor);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)owner, descriptor);
    descriptor = open(path, O_RDWR);
    kill(owner, SIGKILL);
    ck_assert_int_eq(waitpid(owner, NULL, 0), owner);
    open_device();
    float *v = host_vector(0);
    for (int i = 0; i < 2; i++) { /* addresses come again */
        device_share *its = device_share_map(descriptor, BYTES, text);
        ck_assert_msg(its != NULL, "%s", text);
        device_copy_out(v, device_share_memory(its), BYTES);
        expect_all(v, 3);
        device_share_close(its);
    }
    setenv("STARLING_NO_PEERS", "1", 1);
    ck_assert_ptr_null(device_share_map(descriptor, BYTES, text));
    ck_assert_str_eq(text, "access from this GPU: operation not supported");
    setenv("STARLING_OLD_DRIVER", "1", 1);
    ck_assert_ptr_null(device_share_open(BYTES, &descriptor, text));
    ck_assert_str_eq(text, "this driver cannot share memory of the GPU");
}

static void CUDART_CB call_from_a_callback(void *unused) {
    (void)unused;
    cudaGetLastError();
}

static void call_back_and_call(cudaStream_t s, float *v, float *plain) {
    cudaLaunchHostFunc(s, call_from_a_callback, NULL);
    cudaStreamSynchronize(s);
}

static void *clear_on_no_device(void *stream) {
    cudaMemsetAsync(NULL, 0, 0, stream);
    return NULL;
}

static void clear_in_a_thread_without_a_device(cudaStream_t s, float *v, float *plain) {
    pthread_t thread;
    pthread_create(&thread, NULL, clear_on_no_device, s);
    pthread_join(thread, NULL);
}

typedef void misuse(cudaStream_t s, float *v, float *plain);
static misuse *const forbidden[] = ROW(
    copy_pageable_memory_in_the_background, copy_pageable_memory_in_later,
    copy_pageable_memory_in_in_the_background, copy_rows_of_two_allocations,
    copy_beyond_page_locked_memory, copy_released_memory, take_memory_of_the_host_for_the_devices,
    compute_with_memory_of_the_host, write_what_is_read_as_constant, note_an_allocation,
    call_back_and_call, clear_in_a_thread_without_a_device);

START_LOOP_TEST(what_is_forbidden_ends_the_program, sizeof forbidden / sizeof *forbidden) {
    const pid_t child = fork();
    int status;
    if (child == 0) {
        cudaStream_t s;
        setenv("STARLING_CONTRACTS", "1", 1);
        open_device();
        cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
        forbidden[_i](s, device_allocate(2 * BYTES), malloc(BYTES));
        device_status(text); /* what is late is forbidden by the next call */
        device_fence(text);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* What it allows beside the above. */
START_TEST(what_is_not_written_may_be_read_as_constant) {
    setenv("STARLING_CONTRACTS", "1", 1);
    open_device();
    float *v = device_allocate(2 * BYTES);
    normalise_to(v, v + N);
    ck_assert_int_eq(device_fence(text), 0);
}

int main(void) {
    setenv("CK_FORK", "yes", 1); /* what was told to fail stays so */
    return run_tests("fake_runtime");
}
