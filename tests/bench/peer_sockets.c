/* peer_sockets.c - what Starling's gossip round is measured against, second: plain non-blocking TCP
 * sockets.
 *
 *   peer_sockets N D ROUNDS
 *
 * Forks N processes on a ring, one loopback connection an edge. A process sends its vector to its
 * neighbours and receives theirs in pieces, into a few small buffers that stay in cache; a piece is
 * summed into the vector in place as soon as it has come from every neighbour and has itself left
 * to every neighbour. No checksums, no frames, no flow control but TCP's: what is left is what the
 * kernel's copies allow. Prints one JSON line (bench.h).
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "forked.h"

enum { PIECE_BYTES = 112 * 1024, SLOTS = 2 };

typedef struct edge {
    int fd;
    size_t sent, received; /* bytes of this round */
    char *slots;           /* (SLOTS, PIECE_BYTES): piece k is received into slot k mod SLOTS */
} edge;

typedef struct process {
    int rank, nodes, degree;
    size_t dimension, bytes;
    float *x;        /* (dimension) */
    size_t combined; /* pieces of this round */
    edge edges[2];
} process;

static void die(const char *what) {
    fprintf(stderr, "peer_sockets: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void *allocate(size_t bytes) {
    void *v = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!v) {
        die("memory");
    }
    memset(v, 0, bytes); /* page faults belong to no round */
    return v;
}

/* A connected pair of loopback TCP sockets. */
static void connect_pair(int ends[2]) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&address, &length) ||
        connect(ends[0], (struct sockaddr *)&address, sizeof address) ||
        (ends[1] = accept(listener, NULL, NULL)) < 0) {
        die("connect");
    }
    close(listener);
    for (int i = 0; i < 2; i++) {
        setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
}

static size_t piece_bytes(const process *p, size_t k) {
    size_t from = k * PIECE_BYTES;
    return from + PIECE_BYTES < p->bytes ? PIECE_BYTES : p->bytes - from;
}

/* Offers the rest of one piece. True if bytes moved. */
static bool send_some(process *p, edge *e) {
    if (e->sent == p->bytes) {
        return false;
    }
    size_t k = e->sent / PIECE_BYTES, rest = k * PIECE_BYTES + piece_bytes(p, k) - e->sent;
    ssize_t n = send(e->fd, (char *)p->x + e->sent, rest, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) {
        die("send");
    }
    e->sent += n > 0 ? (size_t)n : 0;
    return n > 0;
}

static bool may_receive(const process *p, const edge *e) {
    return e->received < p->bytes && e->received / PIECE_BYTES < p->combined + SLOTS;
}

static bool receive_some(process *p, edge *e) {
    if (!may_receive(p, e)) {
        return false;
    }
    size_t k = e->received / PIECE_BYTES, at = e->received - k * PIECE_BYTES;
    ssize_t n =
        recv(e->fd, e->slots + k % SLOTS * PIECE_BYTES + at, piece_bytes(p, k) - at, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        die("recv");
    }
    e->received += n > 0 ? (size_t)n : 0;
    return n > 0;
}

static void sum_piece(process *p, size_t k) {
    float w = bench_weight(p->nodes);
    size_t count = piece_bytes(p, k) / sizeof(float);
    float *restrict x = p->x + k * (PIECE_BYTES / sizeof(float));
    const float *restrict a = (const float *)(p->edges[0].slots + k % SLOTS * PIECE_BYTES);
    if (p->degree == 1) {
        for (size_t i = 0; i < count; i++) {
            x[i] = w * (x[i] + a[i]);
        }
        return;
    }
    const float *restrict b = (const float *)(p->edges[1].slots + k % SLOTS * PIECE_BYTES);
    for (size_t i = 0; i < count; i++) {
        x[i] = w * (x[i] + a[i] + b[i]);
    }
}

/* Sums the next piece if it is here from everyone and gone to everyone. */
static bool combine_some(process *p) {
    size_t end = p->combined * PIECE_BYTES + piece_bytes(p, p->combined);
    for (int i = 0; i < p->degree; i++) {
        if (p->edges[i].sent < end || p->edges[i].received < end) {
            return false;
        }
    }
    sum_piece(p, p->combined++);
    return true;
}

static void wait_for_sockets(process *p) {
    struct pollfd fds[2];
    for (int i = 0; i < p->degree; i++) {
        edge *e = &p->edges[i];
        fds[i].fd = e->fd;
        fds[i].events =
            (short)((may_receive(p, e) ? POLLIN : 0) | (e->sent < p->bytes ? POLLOUT : 0));
    }
    if (poll(fds, (nfds_t)p->degree, -1) < 0 && errno != EINTR) {
        die("poll");
    }
}

static void gossip(process *p) {
    size_t pieces = (p->bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    p->combined = 0;
    for (int i = 0; i < p->degree; i++) {
        p->edges[i].sent = p->edges[i].received = 0;
    }
    while (p->combined < pieces) {
        bool moved = false;
        for (int i = 0; i < p->degree; i++) {
            moved |= send_some(p, &p->edges[i]);
        }
        for (int i = 0; i < p->degree; i++) {
            moved |= receive_some(p, &p->edges[i]);
        }
        while (p->combined < pieces && combine_some(p)) {
            moved = true;
        }
        if (!moved) {
            wait_for_sockets(p);
        }
    }
}

static void rounds_of_process(process *p, forked *shared, size_t rounds) {
    bench_fill(p->x, p->dimension, p->rank);
    for (size_t i = 1; i <= FORKED_WARMUP + rounds; i++) {
        pthread_barrier_wait(&shared->barrier);
        shared->start[i][p->rank] = bench_now_ms();
        gossip(p);
        shared->end[i][p->rank] = bench_now_ms();
        if (i == 1) {
            shared->wrong[p->rank] = bench_wrong(p->x, p->dimension, p->rank, p->nodes);
        }
    }
}

/* The body of one forked process: closes the sockets that are not its own and runs. */
static void run_process(process *p, int (*pairs)[2], int pair_count, forked *shared,
                        size_t rounds) {
    int left = (p->rank + p->nodes - 1) % p->nodes;
    p->degree = p->nodes == 2 ? 1 : 2;
    p->edges[0].fd = p->nodes == 2 ? pairs[0][p->rank] : pairs[left][1];
    p->edges[1].fd = p->nodes == 2 ? -1 : pairs[p->rank][0];
    for (int i = 0; i < 2 * pair_count; i++) {
        int fd = pairs[i / 2][i % 2];
        if (fd != p->edges[0].fd && fd != p->edges[1].fd) {
            close(fd);
        }
    }
    p->x = allocate(p->bytes);
    for (int i = 0; i < p->degree; i++) {
        p->edges[i].slots = allocate(SLOTS * PIECE_BYTES);
    }
    rounds_of_process(p, shared, rounds);
}

int main(int argc, char **argv) {
    process p = {.nodes = argc > 1 ? atoi(argv[1]) : 0,
                 .dimension = argc > 2 ? strtoull(argv[2], NULL, 10) : 0};
    const size_t rounds = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    p.bytes = p.dimension * sizeof(float);
    if (!forked_fits(p.nodes, p.dimension, rounds)) {
        fprintf(stderr, "usage: peer_sockets N D ROUNDS\n");
        return 2;
    }
    forked *shared = forked_open(p.nodes);
    int pairs[FORKED_NODES_MAX][2],
        pair_count = p.nodes == 2 ? 1 : p.nodes; /* pair i joins i and i + 1 */
    for (int i = 0; i < pair_count; i++) {
        connect_pair(pairs[i]);
    }
    pid_t children[FORKED_NODES_MAX];
    for (p.rank = 0; p.rank < p.nodes; p.rank++) {
        children[p.rank] = fork();
        if (children[p.rank] < 0) {
            die("fork");
        }
        if (children[p.rank] == 0) {
            run_process(&p, pairs, pair_count, shared, rounds);
            exit(0);
        }
    }
    for (int i = 0; i < pair_count; i++) {
        close(pairs[i][0]);
        close(pairs[i][1]);
    }
    return forked_tell("sockets", shared, children, p.nodes, p.dimension, rounds);
}
