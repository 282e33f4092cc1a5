/* fuzz_doctor.c - what another doctor says: it is refused, or its rank and release are some. */
#include <assert.h>
#include <string.h>

#include "doctor/words.h"
#include "starling/types.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char text[WORDS_MAX] = "";
    words said;
    memcpy(text, data, size < WORDS_MAX - 1 ? size : WORDS_MAX - 1);
    if (!words_read(&said, text))
        return 0;
    assert(!said.has_rank || said.rank < SL_NODES_MAX);
    assert(strlen(said.release) < RELEASE_MAX && said.release[0] != '\0');
    return 0;
}
