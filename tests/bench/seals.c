/* seals.c - how fast frames are sealed and opened, by each library that works here.
 *
 *   seals
 *
 * One thread, frames of 112 KiB. Prints GB/s for each, of the fastest of 15 times, and which one
 * agents use.
 */
#include "bench.h"
#include "secure/cipher.h"

enum { BYTES = 114688, FRAMES = 256, REPETITIONS = 15 };

static void pass(const sl_cipher_library *library, void *cipher, uint8_t *payload, uint8_t *tag) {
    uint8_t nonce[SL_CIPHER_NONCE_BYTES] = {0}, header[32] = {0};
    library->begin(cipher, nonce, header, sizeof header);
    library->add(cipher, payload, payload, BYTES);
    library->end(cipher, tag);
}

/* Half of the frames are sealed, half opened, as by an agent. */
static double measure(const sl_cipher_library *library) {
    static uint8_t payload[BYTES];
    uint8_t key[SL_CIPHER_KEY_BYTES] = {1}, tag[SL_CIPHER_TAG_BYTES] = {0};
    double fastest = 0;
    for (int i = 0; i < REPETITIONS; i++) {
        void *ciphers[2] = {library->open(true), library->open(false)};
        for (int side = 0; side < 2; side++)
            library->set_key(ciphers[side], key);
        const double began_ms = bench_now_ms();
        for (int frame = 0; frame < FRAMES; frame++)
            pass(library, ciphers[frame % 2], payload, tag);
        const double rate = FRAMES * (double)BYTES / (bench_now_ms() - began_ms) / 1e6;
        fastest = rate > fastest ? rate : fastest;
        for (int side = 0; side < 2; side++)
            library->close(ciphers[side]);
    }
    return fastest;
}

int main(void) {
    const sl_cipher_library *libraries[SL_CIPHER_LIBRARIES];
    const size_t count = sl_cipher_libraries(libraries);
    printf("{");
    for (size_t i = 0; i < count; i++)
        printf("\"%s\": %.3g, ", libraries[i]->name, measure(libraries[i]));
    printf("\"agents use\": \"%s\"}\n", sl_cipher_quickest()->name);
    return 0;
}
