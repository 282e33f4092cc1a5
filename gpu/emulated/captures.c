/* captures.c - see fake.h: what is captured of a stream, and graphs, which are notes of it. */
#include <stdlib.h>
#include <string.h>

#include "gpu/emulated/streams.h"

typedef struct note {
    struct note *next;
    task_function *function;
    size_t bytes;
    _Alignas(max_align_t) char arguments[QUEUE_BYTES_MAX];
} note;

typedef struct notes {
    note *first, **end;
} notes;

struct CUgraph_st {
    notes *notes;
    bool taken; /* by an executable one */
};

struct CUgraphExec_st {
    notes *notes;
};

static _Atomic(cudaStream_t) captured_for_all; /* in the global mode; NULL: none is */

static notes *open_notes(void) {
    notes *n = fake_claim(sizeof *n);
    n->end = &n->first;
    return n;
}

static void close_notes(notes *n) {
    while (n->first != NULL) {
        note *first = n->first;
        n->first = first->next;
        free(first);
    }
    free(n);
}

void fake_note(notes *to, task_function *function, const void *arguments, size_t bytes) {
    note *n = fake_claim(sizeof *n);
    n->function = function;
    n->bytes = bytes;
    memcpy(n->arguments, arguments, bytes);
    *to->end = n;
    to->end = &n->next;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
    const enum cudaStreamCaptureMode before = fake_mine.mode;
    fake_enter("cudaThreadExchangeStreamCaptureMode");
    fake_mine.mode = *mode;
    *mode = before;
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *out) {
    fake_enter_device("cudaStreamIsCapturing");
    s = fake_stream_of(s);
    fake_expect_stream(s, "cudaStreamIsCapturing");
    *out = s->notes != NULL ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return fake_keep(fake_stays());
}

cudaError_t fake_check_captures(void) {
    const cudaStream_t s = captured_for_all;
    if (s == NULL || fake_mine.mode == cudaStreamCaptureModeRelaxed)
        return cudaSuccess;
    s->spoiled = true;
    return fake_keep(cudaErrorStreamCaptureUnsupported);
}

void fake_spoil_capture(void) {
    if (fake_mine.captured != NULL)
        fake_mine.captured->spoiled = true;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode) {
    const cudaError_t result = fake_begin("cudaStreamBeginCapture", FAKE_CAPTURE);
    if (result != cudaSuccess)
        return result;
    fake_expect_stream(s, "cudaStreamBeginCapture");
    if (mode == cudaStreamCaptureModeRelaxed || fake_mine.captured != NULL)
        fake_stop("cudaStreamBeginCapture", "the relaxed mode, or a second capture");
    if (mode == cudaStreamCaptureModeGlobal)
        captured_for_all = s;
    fake_mine.captured = s;
    s->spoiled = false;
    s->notes = open_notes();
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out) {
    fake_enter_device("cudaStreamEndCapture");
    if (s == NULL || fake_mine.captured != s)
        fake_stop("cudaStreamEndCapture", "a stream that is not captured");
    fake_mine.captured = NULL;
    if (captured_for_all == s)
        captured_for_all = NULL;
    notes *noted = s->notes;
    s->notes = NULL;
    if (s->spoiled) {
        close_notes(noted);
        return fake_keep(cudaErrorStreamCaptureInvalidated);
    }
    *out = fake_claim(sizeof **out);
    (*out)->notes = noted;
    fake_add(FAKE_GRAPHS, 1);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph,
                                          unsigned long long flags) {
    (void)flags;
    const cudaError_t result = fake_begin("cudaGraphInstantiateWithFlags", FAKE_GRAPH);
    if (result != cudaSuccess)
        return result;
    if (graph->taken)
        fake_stop("cudaGraphInstantiateWithFlags", "a second time");
    *out = fake_claim(sizeof **out);
    (*out)->notes = graph->notes;
    graph->taken = true;
    fake_add(FAKE_GRAPHS, 1);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    fake_enter("cudaGraphDestroy");
    if (!graph->taken)
        close_notes(graph->notes);
    free(graph);
    fake_add(FAKE_GRAPHS, -1);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t s) {
    fake_enter_device("cudaGraphLaunch");
    fake_expect_no_capture("cudaGraphLaunch");
    const cudaError_t result = fake_result(FAKE_LAUNCH);
    if (result != cudaSuccess)
        return result;
    fake_expect_stream(s, "cudaGraphLaunch");
    pthread_mutex_lock(&s->mutex);
    for (const note *n = graph->notes->first; n != NULL; n = n->next)
        queue_give(&s->work, n->function, n->arguments, n->bytes);
    pthread_mutex_unlock(&s->mutex);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
    fake_enter("cudaGraphExecDestroy");
    close_notes(graph->notes);
    free(graph);
    fake_add(FAKE_GRAPHS, -1);
    return fake_keep(fake_stays());
}
