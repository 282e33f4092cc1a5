/* note.c - what of a folder could not be read, each sentence once. */
#include <stdlib.h>
#include <string.h>

#include "board/state.h"

void sl_board_note(sl_board_state *s, const char *text) {
    for (size_t i = 0; i < s->note_count; i++)
        if (strcmp(s->notes[i], text) == 0)
            return;
    char *copy = s->note_count < SL_NOTES_MAX ? strdup(text) : NULL;
    if (copy != NULL)
        s->notes[s->note_count++] = copy;
}
