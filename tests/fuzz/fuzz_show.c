/* fuzz_show.c - text from outside, as it is shown: the first byte says in how much room. */
#include <assert.h>
#include <string.h>

#include "base/show.h"
#include "starling/text.h"

enum { ROOM_MIN = 4, ROOM_MAX = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char out[ROOM_MAX], again[ROOM_MAX];
    if (size < 1)
        return 0;
    const size_t room = data[0] < ROOM_MIN ? ROOM_MIN : data[0];
    sl_text_show(out, room, (const char *)data + 1, size - 1);
    const size_t shown = strlen(out);
    assert(shown < room && (size == 1 || shown > 0));
    for (size_t i = 0; i < shown; i++) {
        uint32_t character;
        assert((uint8_t)out[i] >= ' ' && out[i] != 0x7F);
        assert(sl_text_obeyed(&character, out + i, shown - i) == 0);
    }
    sl_text_show(again, room, out, shown);
    assert(strcmp(again, out) == 0);
    return 0;
}
