/* captures.c - the plug-in for GPUs over fake.h: what is captured, here or by others, and streams
 * and memory of others. */
#include "scene.h"

/* ---- repeated operations ---- */

static const float seven[N] = {[0 ... N - 1] = 7};

START_TEST(a_graph_is_noted_and_repeated) {
    open_device();
    float *a = device_allocate(BYTES), *b = device_allocate(BYTES), found[N];
    device_fence(text);
    ck_assert(device_graph_begin());
    device_copy(b, a, BYTES);
    fill(a, 5);
    sl_vec_graph *graph = device_graph_end();
    ck_assert_ptr_nonnull(graph);
    device_copy_out(found, a, BYTES);
    expect_all(found, 0); /* noted, not done */
    device_copy_in(a, seven, BYTES);
    for (int i = 0; i < 2; i++) {
        device_graph_run(graph);
        device_copy_out(found, b, BYTES);
        expect_all(found, i == 0 ? 7 : 5);
    }
    ck_assert_int_eq(fake_count(FAKE_GRAPHS), 1);
    device_graph_close(graph);
    device_graph_close(NULL);
    ck_assert_int_eq(fake_count(FAKE_GRAPHS), 0);
    ck_assert_int_eq(device_fence(text), 0);
}

START_TEST(what_cannot_be_noted_is_no_failure) {
    open_device();
    float *a = device_allocate(BYTES);
    fake_fail(FAKE_CAPTURE, cudaErrorStreamCaptureUnsupported);
    ck_assert(!device_graph_begin());
    fake_fail(FAKE_GRAPH, cudaErrorMemoryAllocation);
    ck_assert(device_graph_begin());
    fill(a, 1);
    ck_assert_ptr_null(device_graph_end());
    ck_assert_int_eq(fake_count(FAKE_GRAPHS), 0);
    ck_assert_int_eq(device_fence(text), 0);
}

/* Of what a gradient does, in a capture: the agent goes on without. */
START_LOOP_TEST(what_fails_while_it_is_noted_is_no_failure, 2) {
    open_device();
    open_products();
    float *a = device_allocate(BYTES), found[N];
    ck_assert(device_graph_begin());
    fake_fail(_i == 0 ? FAKE_LAUNCH : FAKE_PRODUCT, cudaErrorStreamCaptureInvalidated);
    _i == 0 ? fill(a, 1) : multiply(a);
    ck_assert_ptr_null(device_graph_end());
    ck_assert_msg(device_fence(text) == 0, "%s", text);
    fill(a, 2);
    device_copy_out(found, a, BYTES);
    expect_all(found, 2);
    ck_assert_int_eq(fake_count(FAKE_GRAPHS), 0);
}

/* ---- streams and memory of others ---- */

/* A loop asks for events, and a worker allocates. */
static void *work_meanwhile(void *v) {
    sl_vec_event *e = device_event_open();
    device_event_record(e);
    device_event_passed(e, 0);
    device_release(device_allocate(BYTES));
    fill(v, 4);
    device_event_close(e);
    return (void *)(intptr_t)device_fence(text);
}

/* As torch.cuda.graph does. */
START_TEST(others_may_capture_meanwhile) {
    open_device();
    float *v = device_allocate(BYTES), *theirs = device_allocate(BYTES);
    device_fence(text);
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    cudaStream_t stream;
    cudaGraph_t graph;
    pthread_t thread;
    void *failed;
    cudaThreadExchangeStreamCaptureMode(&mode); /* as a thread of others has it */
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    ck_assert(!device_guest_is_captured(stream));
    ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    ck_assert(device_guest_is_captured(stream));
    ck_assert(!device_guest_is_captured(NULL));
    pthread_create(&thread, NULL, work_meanwhile, v);
    pthread_join(thread, &failed);
    ck_assert_msg(failed == NULL, "%s", text);
    cudaMemsetAsync(theirs, 0, BYTES, stream);
    ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    mode = cudaStreamCaptureModeThreadLocal;
    cudaThreadExchangeStreamCaptureMode(&mode);
    ck_assert_int_eq(mode, cudaStreamCaptureModeGlobal); /* our calls have left it as it was */
    cudaGraphDestroy(graph);
}

static void *visit(void *x) {
    static float found[N];
    int device = -1;
    sl_vec_event *event = device_event_open(); /* of our lane */
    cudaSetDevice(1);
    device_guest_record(event, NULL);
    device_guest_follow(event, NULL);
    device_guest_enter(NULL), device_copy_out(found, x, BYTES), device_guest_leave();
    cudaGetDevice(&device);
    device_event_close(event);
    return (void *)(intptr_t)device;
}

START_TEST(a_thread_of_others_keeps_its_device) {
    open_device();
    float *x = device_allocate(BYTES);
    device_fence(text);
    pthread_t thread;
    void *device;
    pthread_create(&thread, NULL, visit, x);
    pthread_join(thread, &device);
    ck_assert_ptr_eq(device, (void *)1);
}

START_TEST(memory_is_told_apart) {
    open_device();
    float *x = device_allocate(BYTES), plain[1], *elsewhere;
    ck_assert(device_guest_owns(x + N - 1, text, sizeof text));
    ck_assert(!device_guest_owns(plain, text, sizeof text));
    ck_assert_str_eq(text, "memory of the host");
    ck_assert(!device_guest_owns(device_allocate_host(BYTES), text, sizeof text));
    ck_assert_str_eq(text, "memory of the host");
    cudaSetDevice(1);
    cudaMalloc((void **)&elsewhere, BYTES);
    ck_assert(!device_guest_owns(elsewhere, text, sizeof text));
    ck_assert_str_eq(text, "memory of cuda:1");
}
