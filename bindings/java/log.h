/* The log of the process, for all class loaders that have the package. Each class loader has its
 * bridge (libgcx-java.so), but all bridges share one libgcx, which has one log callback. So the
 * callback, the receiver and the noted messages are in another shared library,
 * libgcx-java-log.so.
 *
 * A message is noted inside the library and delivered at the end of the call, by the bridge of the
 * call.
 */
#ifndef GCX_JAVA_LOG_H
#define GCX_JAVA_LOG_H

#include <gcx.h>

#include <jni.h>

struct message;

/* Sends the log up to a level to a receiver, or with NULL to where it goes by default. Keeps a weak
 * reference: the class loader keeps the receiver. The owner is an address in the caller's bridge.
 */
GCX_API gcx_result gcx_java_log_set(JNIEnv* jenv, gcx_log_level level, jobject receiver,
                                    const void* owner);

/* Returns a local reference to the receiver; NULL if there is none, or it was collected. */
GCX_API jobject gcx_java_log_receiver(JNIEnv* jenv);

/* Returns what the calling thread has noted, the oldest first; the caller frees each message. */
GCX_API struct message* gcx_java_log_take(void);

/* Restores the default if the receiver was set with this owner. A bridge calls this before it is
 * unloaded. */
GCX_API void gcx_java_log_forget(JNIEnv* jenv, const void* owner);

#endif
