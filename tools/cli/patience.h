/* patience.h - a line every five seconds while something takes long and says nothing. */
#ifndef PATIENCE_H
#define PATIENCE_H

typedef struct patience patience;

/* "starling: still ranking topologies of 2000 nodes (5 s)" to standard error, until patience_end.
 * The text after "still" is copied. NULL where there is no thread to be had: then it is silent. */
patience *patience_begin(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Changes the text from now on. p may be NULL. */
void patience_change(patience *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Waits until no line is under way. p may be NULL. */
void patience_end(patience *p);

#endif
