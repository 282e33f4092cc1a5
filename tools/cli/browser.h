/* browser.h - the user's browser. */
#ifndef BROWSER_H
#define BROWSER_H

/* Asks the desktop to show an address; a line says it where that cannot be. */
void browser_open(const char *address);

#endif
