/* cipher.c - see cipher.h. */
#include "secure/cipher.h"

#include <openssl/crypto.h>

size_t sl_cipher_libraries(const sl_cipher_library *out[SL_CIPHER_LIBRARIES]) {
    size_t count = 0;
    out[count++] = &sl_cipher_openssl;
#ifdef SL_HAS_IPSEC_MB
    if (sl_cipher_ipsec_mb.works())
        out[count++] = &sl_cipher_ipsec_mb;
#endif
    return count;
}

static bool is_openssl_slow(void) {
    return OPENSSL_version_major() == 3 && OPENSSL_version_minor() == 0;
}

const sl_cipher_library *sl_cipher_quickest(void) {
    const sl_cipher_library *libraries[SL_CIPHER_LIBRARIES];
    const size_t count = sl_cipher_libraries(libraries);
    return libraries[is_openssl_slow() ? count - 1 : 0];
}
