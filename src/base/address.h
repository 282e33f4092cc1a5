/* address.h - addresses of sockets. */
#ifndef SL_ADDRESS_H
#define SL_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { SL_IP_TEXT_MAX = 46, SL_ADDRESS_TEXT_MAX = 64 };

/* Is it an address of this host alone? A socket of the file system is. */
bool sl_address_is_loopback(const struct sockaddr_storage *address);
/* 0: it has none. */
uint16_t sl_address_port(const struct sockaddr_storage *address);
void sl_address_set_port(struct sockaddr_storage *address, uint16_t port);
socklen_t sl_address_bytes(const struct sockaddr_storage *address);
/* As numbers, without the port. */
void sl_address_text(const struct sockaddr_storage *address, char text[SL_IP_TEXT_MAX]);
/* With the port: "1.2.3.4:5", "[::1]:5". */
void sl_address_print(const struct sockaddr_storage *address, char out[SL_ADDRESS_TEXT_MAX]);
/* Reads such numbers, with port 0; false: they are none, as a name is. */
bool sl_address_parse(struct sockaddr_storage *out, const char *text);
bool sl_address_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/* Host and port. */
bool sl_address_equal(const struct sockaddr_storage *a, const struct sockaddr_storage *b);

/* An address without its port, in as few bytes as hold it. */
typedef struct sl_address {
    uint32_t family, scope; /* AF_INET, AF_INET6; 0: none. scope: of IPv6 */
    uint8_t bytes[16];
} sl_address;
sl_address sl_address_pack(const struct sockaddr_storage *address);
struct sockaddr_storage sl_address_unpack(const sl_address *address, uint16_t port);

#endif
