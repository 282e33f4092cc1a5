/* fabric.c - opening the provider, listening, what the queues report, waiting; see fabric.h. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "world/fabric_state.h"
#include "world/sockets.h"

enum { COMPLETIONS_AT_ONCE = 32, EVENTS_AT_ONCE = 32, REASON_MAX = 256 };
enum { LOOKS_PER_EVENT = 4, LOOKS_TO_CLOSE = 64 };

#define NET "net"

/* ---- opening ---- */

static struct fi_info *make_hints(const char *provider, bool gpu) {
    struct fi_info *hints = fi_allocinfo();
    if (hints == NULL)
        return NULL;
    hints->caps = gpu ? FI_MSG | FI_HMEM : FI_MSG;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_MSG;
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | (gpu ? FI_MR_HMEM : 0);
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->fabric_attr->prov_name = strdup(provider);
    if (hints->fabric_attr->prov_name == NULL) { /* any would do then */
        fi_freeinfo(hints);
        return NULL;
    }
    return hints;
}

/* Asks for the provider; `host` and `service`: to listen there. */
static int ask(const char *provider, bool gpu, const char *host, const char *service,
               struct fi_info **hints, struct fi_info **info) {
    *hints = make_hints(provider, gpu);
    if (*hints == NULL)
        return -FI_ENOMEM;
    const uint64_t flags = host != NULL ? FI_SOURCE | FI_NUMERICHOST : 0;
    const int result = fi_getinfo(FI_VERSION(1, 17), host, service, flags, *hints, info);
    if (result != 0) {
        fi_freeinfo(*hints);
        *hints = NULL;
    }
    return result;
}

/* libfabric 1.17 has two providers for TCP, and `net`, which is the tcp of later ones, is quicker.
 */
static int find(const char *provider, bool gpu, const char *host, const char *service,
                struct fi_info **hints, struct fi_info **info) {
    const bool tcp = strcmp(provider, "tcp") == 0;
    const int result = tcp ? ask(NET, gpu, host, service, hints, info) : -FI_ENODATA;
    return result == -FI_ENODATA ? ask(provider, gpu, host, service, hints, info) : result;
}

int sl_fabric_offers(const char *provider, bool gpu, char *reason, size_t bytes) {
    struct fi_info *hints, *info;
    const int result = find(provider, gpu, NULL, NULL, &hints, &info);
    if (result == 0) {
        fi_freeinfo(hints);
        fi_freeinfo(info);
        return 0;
    }
    snprintf(reason, bytes, "provider '%s' offers no %sconnection-oriented endpoints here: %s",
             provider, gpu ? "GPU memory (FI_HMEM) on " : "", fi_strerror(-result));
    return result == -FI_ENOMEM ? SL_ENOMEM : SL_EINVAL;
}

static int fail(sl_error *error, int code, const char *what, int fi_code) {
    return sl_fail(error, code, "fabric: %s failed: %s", what, fi_strerror(-fi_code));
}

/* The numeric host, and the port. */
static uint16_t split_address(const struct sockaddr_storage *address, char host[INET6_ADDRSTRLEN]) {
    const struct sockaddr_in *v4 = (const void *)address;
    const struct sockaddr_in6 *v6 = (const void *)address;
    bool six = address->ss_family == AF_INET6;
    inet_ntop(address->ss_family, six ? (const void *)&v6->sin6_addr : &v4->sin_addr, host,
              INET6_ADDRSTRLEN);
    return ntohs(six ? v6->sin6_port : v4->sin_port);
}

static int find_provider(sl_fabric *f, const char *host, uint16_t port, sl_error *error) {
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    const char *provider = f->settings.provider;
    const int result = find(provider, f->settings.gpu, host, service, &f->hints, &f->info);
    if (result == -FI_ENOMEM)
        return sl_fail(error, SL_ENOMEM, "fabric: out of memory");
    if (result != 0)
        return sl_fail(error, SL_ENET,
                       "transport.provider '%s' cannot listen on %s: %s; \"tcp\" works everywhere, "
                       "\"verbs\" needs an RDMA device; `fi_info -t FI_EP_MSG` lists what this "
                       "host has",
                       provider, host, fi_strerror(-result));
    if (f->info->tx_attr->iov_limit < IOV_COUNT || f->info->rx_attr->iov_limit < IOV_COUNT)
        return sl_fail(error, SL_ENET,
                       "transport.provider '%s' sends or receives fewer than %d pieces at once",
                       provider, IOV_COUNT);
    f->is_net = strcmp(f->hints->fabric_attr->prov_name, NET) == 0;
    f->registers = (f->info->domain_attr->mr_mode & (FI_MR_LOCAL | FI_MR_HMEM)) != 0;
    return 0;
}

static int open_queues(sl_fabric *f, sl_error *error) {
    struct fi_eq_attr eq = {.wait_obj = FI_WAIT_FD};
    struct fi_cq_attr cq = {.wait_obj = f->is_net ? FI_WAIT_NONE : FI_WAIT_FD,
                            .format = FI_CQ_FORMAT_MSG,
                            .size = 4096};
    int result = fi_fabric(f->info->fabric_attr, &f->fabric, NULL);
    if (result != 0)
        return fail(error, SL_ENET, "fi_fabric", result);
    result = fi_eq_open(f->fabric, &eq, &f->eq, NULL);
    if (result != 0)
        return fail(error, SL_ENET, "fi_eq_open", result);
    result = fi_domain(f->fabric, f->info, &f->domain, NULL);
    if (result != 0)
        return fail(error, SL_ENET, "fi_domain", result);
    result = fi_cq_open(f->domain, &cq, &f->cq, NULL);
    return result != 0 ? fail(error, SL_ENET, "fi_cq_open", result) : 0;
}

static int find_own_address(const sl_fabric *f, struct sockaddr_storage *out) {
    size_t bytes = sizeof *out;
    return fi_getname(&f->listener->fid, out, &bytes);
}

static int listen_on(sl_fabric *f, const char *host, uint16_t port, sl_error *error) {
    struct sockaddr_storage address;
    int result = fi_passive_ep(f->fabric, f->info, &f->listener, NULL);
    if (result == 0)
        result = fi_pep_bind(f->listener, &f->eq->fid, 0);
    if (result == 0 && find_own_address(f, &address) == 0)
        sl_doorway_open(&f->doorway, &address, f->settings.reserve);
    if (result == 0)
        result = fi_listen(f->listener);
    if (result != 0)
        return sl_fail(error, SL_ENET, "cannot listen on %s port %u: %s%s", host, port,
                       fi_strerror(-result),
                       result == -FI_EADDRINUSE
                           ? "; another program uses it: choose another port in the roster"
                           : "");
    result = find_own_address(f, &address);
    if (result != 0)
        return fail(error, SL_ENET, "fi_getname", result);
    f->port = sl_address_port(&address);
    return 0;
}

int sl_fabric_open(sl_fabric **out, const sl_fabric_settings *settings, sl_error *error) {
    sl_fabric *f = calloc(1, sizeof *f);
    if (f == NULL)
        return sl_fail(error, SL_ENOMEM, "fabric: out of memory");
    f->settings = *settings;
    f->doorway.listener = f->doorway.spare = -1;
    char host[INET6_ADDRSTRLEN];
    uint16_t port = split_address(&settings->address, host);
    int result = find_provider(f, host, port, error);
    if (result == 0)
        result = open_queues(f, error);
    if (result == 0)
        result = listen_on(f, host, port, error);
    if (result != 0) {
        sl_fabric_close(&f);
        return result;
    }
    *out = f;
    return 0;
}

uint16_t sl_fabric_port(const sl_fabric *fabric) {
    return fabric->port;
}

/* ---- what happened ---- */

static void complete_with_error(sl_fabric *f) {
    struct fi_cq_err_entry entry = {0};
    if (fi_cq_readerr(f->cq, &entry, 0) > 0 && entry.op_context != NULL)
        sl_connection_complete_with_error(entry.op_context, entry.err);
}

static int drain_completions(sl_fabric *f) {
    struct fi_cq_msg_entry entries[COMPLETIONS_AT_ONCE];
    int total = 0;
    for (;;) {
        ssize_t count = fi_cq_read(f->cq, entries, COMPLETIONS_AT_ONCE);
        if (count == -FI_EAVAIL) {
            complete_with_error(f);
            total++;
            continue;
        }
        if (count <= 0)
            return total;
        for (ssize_t i = 0; i < count; i++) {
            sl_connection_complete(entries[i].op_context, entries[i].len);
            sl_pool_top_up(entries[i].op_context);
        }
        total += (int)count;
        /* Each read makes the provider look at its sockets, which costs more than coming back. */
        if (count < COMPLETIONS_AT_ONCE && f->closed == NULL)
            return total;
    }
}

static void describe(const struct fi_info *info, char from[SL_ADDRESS_TEXT_MAX]) {
    char host[INET6_ADDRSTRLEN];
    struct sockaddr_storage address = {0};
    snprintf(from, SL_ADDRESS_TEXT_MAX, "an unknown address");
    if (info->dest_addr == NULL || info->dest_addrlen > sizeof address)
        return;
    memcpy(&address, info->dest_addr, info->dest_addrlen);
    uint16_t port = split_address(&address, host);
    snprintf(from, SL_ADDRESS_TEXT_MAX, address.ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host,
             port);
}

static bool let_in(sl_fabric *f, const struct fi_info *info) {
    struct sockaddr_storage address = {0};
    if (info->dest_addr != NULL && info->dest_addrlen <= sizeof address)
        memcpy(&address, info->dest_addr, info->dest_addrlen);
    return sl_doorway_let_in(&f->doorway, &address);
}

/* NULL, or why it could not. */
static const char *accept_with(sl_fabric *f, sl_connection *c, struct fi_info *info) {
    int result = let_in(f, info) ? sl_connection_open_endpoint(c, info) : -FI_ENOTCONN;
    if (result == 0)
        result = fi_accept(c->endpoint, NULL, 0);
    return result == 0 ? NULL : fi_strerror(-result);
}

static void accept_request(sl_fabric *f, struct fi_eq_cm_entry *entry, size_t greeting_bytes) {
    sl_connection *c = NULL;
    char from[SL_ADDRESS_TEXT_MAX], why[SL_GREETING_WHY_MAX] = "it is not an agent of this release";
    describe(entry->info, from);
    if (greeting_bytes >= SL_GREETING_BYTES)
        c = f->settings.requested(f->settings.context, entry->data, from, why);
    const char *reason = c != NULL ? accept_with(f, c, entry->info) : why;
    if (reason != NULL) /* else the provider would keep the request */
        fi_reject(f->listener, entry->info->handle, reason, strlen(reason));
    if (reason != NULL && c != NULL)
        sl_connection_take_down(c, reason);
    fi_freeinfo(entry->info);
}

static void handle_event(sl_fabric *f, uint32_t event, struct fi_eq_cm_entry *entry, size_t bytes) {
    sl_connection *c = entry->fid ? entry->fid->context : NULL;
    if (event == FI_CONNREQ) {
        accept_request(f, entry, bytes - sizeof *entry);
    } else if (event == FI_CONNECTED && c != NULL && !c->down) {
        c->established = true;
        c->handlers->connected(f->settings.context, c->owner);
    } else if (event == FI_SHUTDOWN && c != NULL) {
        sl_connection_take_down(c, "the connection was closed");
    }
}

/* Who rejects says why, which anybody may have written. */
static void describe_rejection(const struct fi_eq_err_entry *entry, char text[REASON_MAX]) {
    const uint8_t *said = entry->err_data;
    const size_t count = entry->err_data_size;
    snprintf(text, REASON_MAX, "%s%s", fi_strerror(entry->err), count > 0 ? ": " : "");
    for (size_t i = 0, at = strlen(text); i < count && at + 1 < REASON_MAX; i++, at++) {
        text[at] = said[i] >= ' ' && said[i] < 127 ? (char)said[i] : '?';
        text[at + 1] = '\0';
    }
}

static void handle_event_error(sl_fabric *f) {
    struct fi_eq_err_entry entry = {0};
    char reason[REASON_MAX];
    if (fi_eq_readerr(f->eq, &entry, 0) <= 0)
        return;
    describe_rejection(&entry, reason);
    if (entry.fid != NULL && entry.fid->context != NULL && entry.fid->fclass == FI_CLASS_EP)
        sl_connection_take_down(entry.fid->context, reason);
}

/* Not all that there are: what was closed is freed before more comes. */
static int take_events(sl_fabric *f) {
    union {
        struct fi_eq_cm_entry entry;
        uint8_t bytes[sizeof(struct fi_eq_cm_entry) + 256];
    } buffer;
    int total = 0;
    f->looks = 0;
    for (; total < EVENTS_AT_ONCE; total++, f->signalled = true) {
        uint32_t event;
        errno = 0; /* net takes it for the reason where a read gets less than it wanted */
        ssize_t bytes = fi_eq_read(f->eq, &event, &buffer, sizeof buffer, 0);
        sl_doorway_count(&f->doorway);
        if (bytes == -FI_EAVAIL)
            handle_event_error(f);
        else if (bytes >= (ssize_t)sizeof buffer.entry)
            handle_event(f, event, &buffer.entry, (size_t)bytes);
        else
            break;
    }
    return total;
}

/* Events are rare, and a look for them makes net look at its sockets twice. */
int sl_fabric_poll(sl_fabric *f) {
    /* With the queue drained, everything that closed connections had under way has been reported.
     */
    const sl_connection *closed = f->closed;
    int total = drain_completions(f);
    if (closed != NULL && f->closed == closed)
        sl_connection_free_closed(f);
    return total > 0 || ++f->looks < LOOKS_PER_EVENT ? total : take_events(f);
}

size_t sl_fabric_end_silent(sl_fabric *f, double now_s) {
    return sl_doorway_tick(&f->doorway, now_s);
}

/* ---- waiting ---- */

/* net writes to a descriptor whenever something is complete, if the completion queue has one. The
 * event queue's tells of its sockets, too: it is enough. */
int sl_fabric_descriptors(const sl_fabric *f, int descriptors[2]) {
    descriptors[0] = descriptors[1] = -1;
    fi_control(&f->eq->fid, FI_GETWAIT, &descriptors[0]);
    if (f->is_net)
        return 1;
    fi_control(&f->cq->fid, FI_GETWAIT, &descriptors[1]);
    return 2;
}

/* After an event, net's descriptor stays readable until somebody waits in libfabric: net's
 * fi_trywait says yes without a look. So wait, as briefly as one can; true: nothing came. */
static bool clear_signal(sl_fabric *f) {
    struct fi_eq_cm_entry entry;
    uint32_t event;
    f->signalled = fi_eq_sread(f->eq, &event, &entry, sizeof entry, 1, FI_PEEK) != -FI_EAGAIN;
    return !f->signalled;
}

bool sl_fabric_may_block(sl_fabric *f) {
    struct fid *fids[2] = {&f->eq->fid, &f->cq->fid};
    if (take_events(f) > 0)
        return false;
    if (!f->is_net)
        return fi_trywait(f->fabric, fids, 2) == FI_SUCCESS;
    /* Looking for events may have completed something, which no descriptor tells. */
    return (!f->signalled || clear_signal(f)) && drain_completions(f) == 0;
}

/* ---- closing ---- */

static sl_connection *refuse(void *context, const uint8_t greeting[SL_GREETING_BYTES],
                             const char *from, char why[SL_GREETING_WHY_MAX]) {
    (void)context;
    (void)greeting;
    (void)from;
    snprintf(why, SL_GREETING_WHY_MAX, "it has ended");
    return NULL;
}

/* A provider that closes its listener leaves open whom it has accepted, and who has no answer. */
static void refuse_rest(sl_fabric *f) {
    f->settings.requested = refuse;
    for (int i = 0; i < LOOKS_TO_CLOSE && sl_doorway_shut(&f->doorway) > 0; i++)
        take_events(f);
}

void sl_fabric_close(sl_fabric **fabric) {
    sl_fabric *f = *fabric;
    if (f == NULL)
        return;
    sl_connection_free_closed(f);
    refuse_rest(f);
    sl_doorway_close(&f->doorway);
    for (size_t i = 0; i < f->region_count; i++)
        CLOSE(f->regions[i].mr);
    CLOSE(f->lent.mr);
    CLOSE(f->listener);
    CLOSE(f->cq);
    CLOSE(f->domain);
    CLOSE(f->eq);
    CLOSE(f->fabric);
    if (f->info != NULL) {
        fi_freeinfo(f->info);
        fi_freeinfo(f->hints);
    }
    free(f);
    *fabric = NULL;
}
