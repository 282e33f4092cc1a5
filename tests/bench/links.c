/* links.c - a switch that joins N network cards by slow and distant links, where the kernel has no
 * module for that. It needs root, and Linux.
 *
 * usage: links N MBIT MS
 *
 * Makes N virtual cards (TAP devices), tap1 to tapN, in its network namespace, and writes "ready"
 * once they are there; the caller moves them to other namespaces and gives card i the address
 * 02:00:00:00:00:i (in hexadecimal), by which packets find their way. Each card sends and receives
 * at MBIT Mbit/s, and a packet takes MS milliseconds from card to card. A packet that would wait
 * longer than QUEUE_NS at a card is lost, as in a router. Ends when its input ends. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { CARDS_MAX = 64, FRAME_MAX = 1514, FRAME_GAP = 24, AT_ONCE = 16 };
static const int64_t QUEUE_NS = 50000000;

typedef struct packet {
    struct packet *next;
    int64_t due_ns;
    int to, bytes;
    unsigned char data[];
} packet;

/* What goes through one side of a card, one after the other. */
typedef struct line {
    packet *first, *last;
    int64_t free_ns; /* when the last one is through */
} line;

typedef struct network {
    int count;
    double ns_per_byte;
    int64_t delay_ns;
    int cards[CARDS_MAX];
    line out[CARDS_MAX], in[CARDS_MAX];
} network;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int open_card(int number) {
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    int card = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    snprintf(request.ifr_name, sizeof request.ifr_name, "tap%d", number);
    if (card < 0 || ioctl(card, TUNSETIFF, &request) < 0) {
        fprintf(stderr, "links: %s: %s\n", request.ifr_name, strerror(errno));
        exit(1);
    }
    return card;
}

/* The packet is due once it is through and `more_ns` have gone by; it is lost if too many wait. */
static void append(const network *n, line *l, packet *p, int64_t now, int64_t more_ns) {
    const int64_t start = l->free_ns > now ? l->free_ns : now;
    if (start - now > QUEUE_NS) {
        free(p);
        return;
    }
    l->free_ns = start + (int64_t)(n->ns_per_byte * (p->bytes + FRAME_GAP));
    p->due_ns = l->free_ns + more_ns;
    p->next = NULL;
    if (l->first == NULL)
        l->first = p;
    else
        l->last->next = p;
    l->last = p;
}

static packet *take_due(line *l, int64_t now) {
    packet *p = l->first;
    if (p == NULL || p->due_ns > now)
        return NULL;
    l->first = p->next;
    return p;
}

static void send_packet(network *n, int from, int to, const unsigned char *data, int bytes) {
    packet *p = malloc(sizeof *p + (size_t)bytes);
    if (p == NULL)
        return;
    memcpy(p->data, data, (size_t)bytes);
    p->to = to;
    p->bytes = bytes;
    append(n, &n->out[from], p, now_ns(), n->delay_ns);
}

static void read_card(network *n, int card) {
    unsigned char data[FRAME_MAX];
    for (int i = 0; i < AT_ONCE; i++) {
        const int bytes = (int)read(n->cards[card], data, sizeof data);
        if (bytes < 14)
            return;
        const int to = data[5] - 1;
        if (data[0] == 2 && to >= 0 && to < n->count)
            send_packet(n, card, to, data, bytes);
        else
            for (int each = 0; each < n->count; each++)
                if (each != card)
                    send_packet(n, card, each, data, bytes);
    }
}

static int64_t earlier(int64_t time, const line *l) {
    return l->first != NULL && l->first->due_ns < time ? l->first->due_ns : time;
}

/* Moves what is due; returns when the next one is, or INT64_MAX. */
static int64_t move(network *n, int64_t now) {
    int64_t next = INT64_MAX;
    packet *p;
    for (int i = 0; i < n->count; i++)
        while ((p = take_due(&n->out[i], now)) != NULL)
            append(n, &n->in[p->to], p, now, 0);
    for (int i = 0; i < n->count; i++) {
        while ((p = take_due(&n->in[i], now)) != NULL) {
            if (write(n->cards[i], p->data, (size_t)p->bytes) < 0 && errno != EIO &&
                errno != EAGAIN)
                fprintf(stderr, "links: tap%d: %s\n", i + 1, strerror(errno));
            free(p); /* EIO: the card is not up yet */
        }
        next = earlier(earlier(next, &n->out[i]), &n->in[i]);
    }
    return next;
}

static void run(network *n) {
    struct pollfd ready[CARDS_MAX + 1];
    for (int i = 0; i < n->count; i++)
        ready[i] = (struct pollfd){.fd = n->cards[i], .events = POLLIN};
    ready[n->count] = (struct pollfd){.fd = 0, .events = POLLIN};
    for (;;) {
        const int64_t next = move(n, now_ns()), wait = next - now_ns();
        const struct timespec until = {wait / 1000000000, wait % 1000000000};
        const struct timespec none = {0, 0};
        const struct timespec *timeout = wait < 0 ? &none : &until;
        if (ppoll(ready, (nfds_t)n->count + 1, next == INT64_MAX ? NULL : timeout, NULL) < 0)
            return;
        for (int i = 0; i < n->count; i++)
            if (ready[i].revents & POLLIN)
                read_card(n, i);
        if (ready[n->count].revents != 0)
            return;
    }
}

int main(int argc, char **argv) {
    static network n;
    if (argc != 4 || atoi(argv[1]) < 1 || atoi(argv[1]) > CARDS_MAX || atof(argv[2]) <= 0)
        return fprintf(stderr, "usage: links N MBIT MS, for at most %d cards\n", CARDS_MAX), 2;
    n.count = atoi(argv[1]);
    n.ns_per_byte = 8e3 / atof(argv[2]);
    n.delay_ns = (int64_t)(1e6 * atof(argv[3]));
    for (int i = 0; i < n.count; i++)
        n.cards[i] = open_card(i + 1);
    puts("ready");
    fflush(stdout);
    run(&n);
    return 0;
}
