/* Diagnostics of the call that a thread is in. They are noted inside the library and given to the
 * language when the call is over: nothing of the language's runs inside the library.
 */
#ifndef GCX_SWIG_MESSAGES_H
#define GCX_SWIG_MESSAGES_H

#include <gcx.h>

#include <stdlib.h>
#include <string.h>

typedef struct message {
    struct message* next;
    gcx_log_level level;
    char text[];
} message;

/* Only threads that never come back to the language fill it up. */
#define MOST_MESSAGES 64

typedef struct message_list {
    message* first;
    message* last;
    int count;
} message_list;

static _Thread_local message_list messages;

static void note_message(gcx_log_level level, const char* text, void* unused) {
    const size_t size = strlen(text) + 1;
    message* noted = messages.count < MOST_MESSAGES ? malloc(sizeof(message) + size) : NULL;
    (void)unused;
    if (noted == NULL)
        return;
    noted->next = NULL;
    noted->level = level;
    memcpy(noted->text, text, size);
    if (messages.last != NULL)
        messages.last->next = noted;
    else
        messages.first = noted;
    messages.last = noted;
    messages.count++;
}

/* What was noted, the oldest first; the caller frees each. */
static message* take_messages(void) {
    message* const first = messages.first;
    if (first != NULL)
        memset(&messages, 0, sizeof(messages));
    return first;
}

#endif
