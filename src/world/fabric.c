/* fabric.c - opening the provider, listening, what the queues report, waiting; see fabric.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "starling/text.h"
#include "world/fabric_state.h"

enum { COMPLETIONS_AT_ONCE = 32, EVENTS_AT_ONCE = 128, REASON_MAX = 256 };
enum { LOOKS_PER_EVENT = 4, REJECTION_MAX = 127 /* what any provider has room for */ };

/* Names of transport.provider; any other one is libfabric's. */
static const char own[] = "tcp", libfabric_tcp[] = "libfabric-tcp";

static bool is_own(const char *provider) {
    return strcmp(provider, own) == 0;
}

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

/* Asks libfabric for the provider; `host` and `service`: to listen there. */
static int find(const char *provider, bool gpu, const char *host, const char *service,
                struct fi_info **hints, struct fi_info **info) {
    *hints = make_hints(strcmp(provider, libfabric_tcp) == 0 ? "tcp" : provider, gpu);
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

int sl_fabric_offers(const char *provider, bool gpu, char *reason, size_t bytes) {
    struct fi_info *hints, *info;
    if (is_own(provider) && !gpu)
        return 0;
    const int result =
        is_own(provider) ? -FI_ENODATA : find(provider, gpu, NULL, NULL, &hints, &info);
    if (result == 0) {
        fi_freeinfo(hints);
        fi_freeinfo(info);
        return 0;
    }
    snprintf(reason, bytes, "provider '%s' offers no %sconnection-oriented endpoints here: %s",
             provider, gpu ? "GPU memory (FI_HMEM) on " : "", fi_strerror(-result));
    return result == -FI_ENOMEM ? SL_ENOMEM : SL_EINVAL;
}

static int fail(sl_error *error, const char *what, int fi_code) {
    return sl_fail(error, sl_fabric_code(fi_code), "fabric: %s failed: %s", what,
                   fi_strerror(-fi_code));
}

static int find_provider(sl_fabric *f, const char *host, uint16_t port, sl_error *error) {
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    const char *provider = f->settings.provider;
    int result = 0;
    f->is_own = is_own(provider);
    if (f->is_own)
        f->info = sl_provider_info(&f->settings.address);
    else
        result = find(provider, f->settings.gpu, host, service, &f->hints, &f->info);
    if (result == -FI_ENOMEM || (result == 0 && f->info == NULL))
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
    f->registers = (f->info->domain_attr->mr_mode & (FI_MR_LOCAL | FI_MR_HMEM)) != 0;
    return 0;
}

static int open_queues(sl_fabric *f, sl_error *error) {
    struct fi_eq_attr eq = {.wait_obj = FI_WAIT_FD};
    struct fi_cq_attr cq = {.wait_obj = FI_WAIT_FD, .format = FI_CQ_FORMAT_MSG, .size = 4096};
    const sl_provider_settings settings = {f->settings.gate, f->settings.reserve};
    int result = f->is_own ? sl_provider_open(&f->fabric, &settings)
                           : fi_fabric(f->info->fabric_attr, &f->fabric, NULL);
    if (result != 0)
        return fail(error, "fi_fabric", result);
    result = fi_eq_open(f->fabric, &eq, &f->eq, NULL);
    if (result != 0)
        return fail(error, "fi_eq_open", result);
    result = fi_domain(f->fabric, f->info, &f->domain, NULL);
    if (result != 0)
        return fail(error, "fi_domain", result);
    result = fi_cq_open(f->domain, &cq, &f->cq, NULL);
    return result != 0 ? fail(error, "fi_cq_open", result) : 0;
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
    if (result == 0)
        result = fi_listen(f->listener);
    if (result != 0)
        return sl_fail(error, sl_fabric_code(result), "cannot listen on %s port %u: %s%s", host,
                       port, fi_strerror(-result),
                       result == -FI_EADDRINUSE
                           ? "; another program uses it: choose another port in the roster"
                           : "");
    result = find_own_address(f, &address);
    if (result != 0)
        return fail(error, "fi_getname", result);
    f->port = sl_address_port(&address);
    return 0;
}

int sl_fabric_open(sl_fabric **out, const sl_fabric_settings *settings, sl_error *error) {
    sl_fabric *f = calloc(1, sizeof *f);
    if (f == NULL)
        return sl_fail(error, SL_ENOMEM, "fabric: out of memory");
    f->settings = *settings;
    char host[SL_IP_TEXT_MAX];
    const uint16_t port = sl_address_port(&settings->address);
    sl_address_text(&settings->address, host);
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
    struct sockaddr_storage address = {0};
    snprintf(from, SL_ADDRESS_TEXT_MAX, "an unknown address");
    if (info->dest_addr == NULL || info->dest_addrlen > sizeof address)
        return;
    memcpy(&address, info->dest_addr, info->dest_addrlen);
    sl_address_print(&address, from);
}

/* NULL, or why it could not. */
static const char *accept_with(sl_connection *c, struct fi_info *info) {
    int result = sl_connection_open_endpoint(c, info);
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
    const char *reason = c != NULL ? accept_with(c, entry->info) : why;
    if (reason != NULL) /* else the provider would keep the request */
        fi_reject(f->listener, entry->info->handle, reason,
                  strnlen(reason, f->is_own ? SL_GREETING_WHY_MAX : REJECTION_MAX));
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
    const size_t count = entry->err_data_size;
    snprintf(text, REASON_MAX / 2, "%s%s", fi_strerror(entry->err), count > 0 ? ": " : "");
    const size_t used = strlen(text);
    sl_text_show(text + used, REASON_MAX - used, entry->err_data, count);
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
    for (; total < EVENTS_AT_ONCE; total++) {
        uint32_t event;
        ssize_t bytes = fi_eq_read(f->eq, &event, &buffer, sizeof buffer, 0);
        if (bytes == -FI_EAVAIL)
            handle_event_error(f);
        else if (bytes >= (ssize_t)sizeof buffer.entry)
            handle_event(f, event, &buffer.entry, (size_t)bytes);
        else
            break;
    }
    return total;
}

/* Events are rare, and a look for them is a call of the kernel: each fourth time does. */
int sl_fabric_poll(sl_fabric *f) {
    /* With the queue drained, everything that closed connections had under way has been reported.
     */
    const sl_connection *closed = f->closed;
    int total = drain_completions(f);
    if (closed != NULL && f->closed == closed)
        sl_connection_free_closed(f);
    return total > 0 || ++f->looks < LOOKS_PER_EVENT ? total : take_events(f);
}

size_t sl_fabric_end_silent(sl_fabric *f) {
    return f->is_own ? sl_provider_tick(f->listener) : 0;
}

/* ---- waiting ---- */

int sl_fabric_descriptors(const sl_fabric *f, int descriptors[2]) {
    int count = 0;
    count += fi_control(&f->eq->fid, FI_GETWAIT, &descriptors[count]) == 0;
    count += fi_control(&f->cq->fid, FI_GETWAIT, &descriptors[count]) == 0;
    return count;
}

bool sl_fabric_may_block(sl_fabric *f) {
    struct fid *fids[2] = {&f->eq->fid, &f->cq->fid};
    return take_events(f) == 0 && fi_trywait(f->fabric, fids, 2) == FI_SUCCESS;
}

/* ---- closing ---- */

void sl_fabric_close(sl_fabric **fabric) {
    sl_fabric *f = *fabric;
    if (f == NULL)
        return;
    sl_connection_free_closed(f);
    for (size_t i = 0; i < f->region_count; i++)
        CLOSE(f->regions[i].mr);
    CLOSE(f->lent.mr);
    CLOSE(f->listener);
    CLOSE(f->cq);
    CLOSE(f->domain);
    CLOSE(f->eq);
    CLOSE(f->fabric);
    if (f->info != NULL)
        fi_freeinfo(f->info);
    if (f->hints != NULL)
        fi_freeinfo(f->hints);
    free(f);
    *fabric = NULL;
}
