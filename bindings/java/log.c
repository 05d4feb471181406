#include "log.h"

#include "messages.h"

#include <pthread.h>

/* Not held while a message is noted: gcx_log_set_callback waits for the callback to return. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static jweak current;
static const void* current_owner;

gcx_result gcx_java_log_set(JNIEnv* jenv, gcx_log_level level, jobject receiver,
                            const void* owner) {
    jweak next = NULL;
    gcx_result result;
    if (receiver != NULL) {
        next = (*jenv)->NewWeakGlobalRef(jenv, receiver);
        if (next == NULL) /* the caller finds the OutOfMemoryError */
            return GCX_SUCCESS;
    }
    pthread_mutex_lock(&mutex);
    result = gcx_log_set_callback(level, next != NULL ? note_message : NULL, NULL);
    if (result == GCX_SUCCESS) {
        const jweak former = current;
        current = next;
        current_owner = next != NULL ? owner : NULL;
        next = former;
    }
    pthread_mutex_unlock(&mutex);
    if (next != NULL)
        (*jenv)->DeleteWeakGlobalRef(jenv, next);
    return result;
}

jobject gcx_java_log_receiver(JNIEnv* jenv) {
    jobject receiver;
    pthread_mutex_lock(&mutex);
    receiver = current != NULL ? (*jenv)->NewLocalRef(jenv, current) : NULL;
    pthread_mutex_unlock(&mutex);
    return receiver;
}

message* gcx_java_log_take(void) {
    return take_messages();
}

void gcx_java_log_forget(JNIEnv* jenv, const void* owner) {
    jweak former = NULL;
    pthread_mutex_lock(&mutex);
    if (current_owner == owner) {
        /* Waits until no thread is in the callback. */
        gcx_log_set_callback(GCX_LOG_NONE, NULL, NULL);
        former = current;
        current = NULL;
        current_owner = NULL;
    }
    pthread_mutex_unlock(&mutex);
    if (former != NULL)
        (*jenv)->DeleteWeakGlobalRef(jenv, former);
}
