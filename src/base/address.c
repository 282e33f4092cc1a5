/* address.c - see address.h. */
#include "base/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static const struct sockaddr_in *v4(const struct sockaddr_storage *a) {
    return (const struct sockaddr_in *)a;
}

static const struct sockaddr_in6 *v6(const struct sockaddr_storage *a) {
    return (const struct sockaddr_in6 *)a;
}

bool sl_address_is_loopback(const struct sockaddr_storage *a) {
    if (a->ss_family == AF_INET)
        return ntohl(v4(a)->sin_addr.s_addr) >> 24 == 127;
    if (a->ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&v6(a)->sin6_addr) ||
               (IN6_IS_ADDR_V4MAPPED(&v6(a)->sin6_addr) && v6(a)->sin6_addr.s6_addr[12] == 127);
    return a->ss_family == AF_UNIX;
}

uint16_t sl_address_port(const struct sockaddr_storage *a) {
    if (a->ss_family == AF_INET)
        return ntohs(v4(a)->sin_port);
    return a->ss_family == AF_INET6 ? ntohs(v6(a)->sin6_port) : 0;
}

void sl_address_set_port(struct sockaddr_storage *a, uint16_t port) {
    if (a->ss_family == AF_INET)
        ((struct sockaddr_in *)a)->sin_port = htons(port);
    else
        ((struct sockaddr_in6 *)a)->sin6_port = htons(port);
}

socklen_t sl_address_bytes(const struct sockaddr_storage *a) {
    return a->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

void sl_address_text(const struct sockaddr_storage *a, char text[SL_IP_TEXT_MAX]) {
    if (a->ss_family == AF_INET)
        inet_ntop(AF_INET, &v4(a)->sin_addr, text, SL_IP_TEXT_MAX);
    else
        inet_ntop(AF_INET6, &v6(a)->sin6_addr, text, SL_IP_TEXT_MAX);
}

void sl_address_print(const struct sockaddr_storage *a, char out[SL_ADDRESS_TEXT_MAX]) {
    char ip[SL_IP_TEXT_MAX];
    sl_address_text(a, ip);
    snprintf(out, SL_ADDRESS_TEXT_MAX, a->ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", ip,
             sl_address_port(a));
}

bool sl_address_parse(struct sockaddr_storage *out, const char *text) {
    struct sockaddr_in as_v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 as_v6 = {.sin6_family = AF_INET6};
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, text, &as_v4.sin_addr) == 1)
        memcpy(out, &as_v4, sizeof as_v4);
    else if (inet_pton(AF_INET6, text, &as_v6.sin6_addr) == 1)
        memcpy(out, &as_v6, sizeof as_v6);
    return out->ss_family != AF_UNSPEC;
}

bool sl_address_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b) {
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET)
        return v4(a)->sin_addr.s_addr == v4(b)->sin_addr.s_addr;
    return a->ss_family == AF_UNIX ||
           (a->ss_family == AF_INET6 && IN6_ARE_ADDR_EQUAL(&v6(a)->sin6_addr, &v6(b)->sin6_addr));
}

bool sl_address_equal(const struct sockaddr_storage *a, const struct sockaddr_storage *b) {
    return sl_address_port(a) == sl_address_port(b) && sl_address_same_host(a, b);
}

sl_address sl_address_pack(const struct sockaddr_storage *from) {
    sl_address a = {.family = from->ss_family};
    if (a.family == AF_INET) {
        memcpy(a.bytes, &v4(from)->sin_addr, sizeof v4(from)->sin_addr);
    } else if (a.family == AF_INET6) {
        memcpy(a.bytes, &v6(from)->sin6_addr, sizeof v6(from)->sin6_addr);
        a.scope = v6(from)->sin6_scope_id;
    }
    return a;
}

struct sockaddr_storage sl_address_unpack(const sl_address *a, uint16_t port) {
    struct sockaddr_storage address = {.ss_family = (sa_family_t)a->family};
    struct sockaddr_in *four = (void *)&address;
    struct sockaddr_in6 *six = (void *)&address;
    if (a->family == AF_INET) {
        memcpy(&four->sin_addr, a->bytes, sizeof four->sin_addr);
    } else if (a->family == AF_INET6) {
        memcpy(&six->sin6_addr, a->bytes, sizeof six->sin6_addr);
        six->sin6_scope_id = a->scope;
    }
    if (a->family != 0)
        sl_address_set_port(&address, port);
    return address;
}
