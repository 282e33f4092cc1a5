/* provider.h - message endpoints over TCP sockets behind libfabric's calls, for networks with
 * strangers.
 *
 * libfabric's own tcp provider is written for trusted networks: it follows what a head of a message
 * says. Here the only head is the one of our frames, of which the provider reads how long the
 * message is, and nothing else. So whatever comes costs a connection at most.
 *
 * Before a connection is reported, both sides prove themselves (secure/greeting.h):
 *
 *   dialer   GREETING  48 bytes
 *   listener           CHALLENGE 32 bytes        or REFUSAL, a text
 *   dialer   PROOF
 *   listener           WELCOME, with its proof   or REFUSAL
 *
 * Each is a byte for its kind, its length in 16 bits, and that much. Without credentials CHALLENGE
 * and PROOF are left out, and WELCOME is empty. Whoever has asked and proved nothing has one of
 * few places, and seconds for all that it says.
 *
 * What is here of libfabric's interface is what src/world calls: one event queue and one completion
 * queue a fabric, and one descriptor to wait for, the event queue's. It is used by one thread at a
 * time.
 */
#ifndef SL_PROVIDER_H
#define SL_PROVIDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#include "secure/greeting.h"

/* Who may connect, and how this side proves itself. */
typedef struct sl_gate {
    void *context;
    bool proves; /* both sides do; else nobody does */
    /* Is whoever greets so worth a challenge? If not, it is told why. */
    bool (*admits)(void *context, const uint8_t greeting[SL_GREETING_BYTES],
                   char why[SL_GREETING_WHY_MAX]);
    /* Returns the proof's bytes; 0: it cannot be made. */
    size_t (*prove)(void *context, const uint8_t greeting[SL_GREETING_BYTES],
                    const uint8_t challenge[SL_CHALLENGE_BYTES], bool dials,
                    uint8_t out[SL_PROOF_BYTES_MAX]);
    /* Is this the proof of the other side, which has dialed or not? */
    bool (*accepts)(void *context, const uint8_t greeting[SL_GREETING_BYTES],
                    const uint8_t challenge[SL_CHALLENGE_BYTES], bool dialed, const uint8_t *proof,
                    size_t bytes, char why[SL_GREETING_WHY_MAX]);
    /* Somebody at this address was not admitted, or accepted. greeting: NULL: it has none. */
    void (*refused)(void *context, const uint8_t *greeting, const struct sockaddr_storage *from,
                    const char *why);
} sl_gate;

typedef struct sl_provider_settings {
    sl_gate gate;
    unsigned reserve; /* descriptors that strangers leave free */
} sl_provider_settings;

/* 0, or a negative code of libfabric's. fi_close of the fabric frees all; before it, endpoints and
 * listeners are closed. */
int sl_provider_open(struct fid_fabric **out, const sl_provider_settings *settings);
/* To listen at this address, or to dial it. The caller's, for fi_freeinfo; NULL: out of memory. */
struct fi_info *sl_provider_info(const struct sockaddr_storage *address);
/* Ends whose time to prove itself is over, and lets others come. To be called often. Returns how
 * many were ended since the last call that had not greeted. */
size_t sl_provider_tick(struct fid_pep *listener);
/* Bytes that have come over a connection, of messages that are not whole too. */
uint64_t sl_provider_received(const struct fid_ep *endpoint);
/* Of its bytes, as the kernel measures it; 0: not known. */
double sl_provider_round_trip_s(const struct fid_ep *endpoint);

#endif
