/* fuzz_board.c - a run folder as a page shows it: the input is its files, with a byte 0xff between.
 * The last of them grows between two looks. */
#include <stdint.h>
#include <string.h>

#include <jansson.h>

#include "folder.h"
#include "starling/board.h"

static const char *const names[] = {"run.json", "metrics-0.jsonl", "events-0.jsonl",
                                    "consensus.jsonl", "events-2.jsonl"};
enum { FILES = sizeof names / sizeof *names };
static const char config[] = "{\"rounds\": 20, \"topology\": {\"nodes\": 3, \"family\": \"ring\"},"
                             " \"membership\": {\"joiners\": 1}}";

/* It is one JSON object, of all or of what has changed. */
static void check_text(sl_board *board, uint64_t since) {
    char *text = sl_board_text(board, since);
    assert(text != NULL);
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert(json_is_object(object));
    json_decref(object);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sl_board *board;
    sl_error error = {0};
    folder_write("config.json", config, sizeof config - 1);
    const char *last = names[0];
    for (int i = 0; i < FILES && size > 0; i++) {
        const uint8_t *end = memchr(data, 0xff, size);
        const size_t bytes = end != NULL ? (size_t)(end - data) : size;
        if (bytes > 0)
            folder_write(last = names[i], data, bytes);
        data += bytes + (end != NULL);
        size -= bytes + (end != NULL);
    }
    if (sl_board_open(&board, folder_path(), &error) != 0) {
        assert(error.text[0] != '\0');
    } else {
        const uint64_t version = sl_board_version(board);
        check_text(board, 0);
        folder_write(last, data, size);
        assert(sl_board_look(board, 0, &error) == 0);
        check_text(board, version);
        char *metrics = sl_board_metrics(board);
        assert(metrics != NULL);
        free(metrics);
        sl_board_close(&board);
    }
    folder_clear();
    return 0;
}
