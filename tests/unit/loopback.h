/* loopback.h - 127.0.0.1, as the kernel and as a fabric want it. Port 0: any free one. */
#ifndef LOOPBACK_H
#define LOOPBACK_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

static inline struct sockaddr_in loopback(uint16_t port) {
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static inline struct sockaddr_storage loopback_address(uint16_t port) {
    const struct sockaddr_in local = loopback(port);
    struct sockaddr_storage address = {0};
    memcpy(&address, &local, sizeof local);
    return address;
}

#endif
