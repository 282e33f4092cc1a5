/* bytes.h - whole numbers as bytes, the lowest first. */
#ifndef SL_BYTES_H
#define SL_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* Each returns where the next one goes. */
static inline uint8_t *put16(uint8_t *p, uint16_t v) {
    v = htole16(v);
    memcpy(p, &v, sizeof v);
    return p + sizeof v;
}

static inline uint8_t *put32(uint8_t *p, uint32_t v) {
    v = htole32(v);
    memcpy(p, &v, sizeof v);
    return p + sizeof v;
}

static inline uint8_t *put64(uint8_t *p, uint64_t v) {
    v = htole64(v);
    memcpy(p, &v, sizeof v);
    return p + sizeof v;
}

static inline uint16_t get16(const uint8_t *p) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return le16toh(v);
}

static inline uint32_t get32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

static inline uint64_t get64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

#endif
