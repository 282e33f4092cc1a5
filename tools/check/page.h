/* page.h - what `starling check` prints: labelled texts under headings, on a page that a screen
 * holds.
 *
 * A row that does not fit goes on below its text. Where the rows are more than the page has lines,
 * the last of those that are details are left out, and their number is said.
 */
#ifndef PAGE_H
#define PAGE_H

#include <stdbool.h>

enum { PAGE_LINES = 40, PAGE_COLUMNS = 100 };

typedef struct page page;

/* NULL: out of memory. The other functions then do nothing. */
page *page_open(void);
void page_close(page **p);
/* A heading is printed with the first row below it. */
void page_heading(page *p, const char *heading);
typedef void page_row(page *p, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
page_row page_say, page_detail;
/* A line of a table, as it is. */
void page_line(page *p, bool is_detail, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The first line, and the last. */
void page_begin(page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void page_end(page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* whole: all rows, however many. */
void page_print(const page *p, bool whole);

#endif
