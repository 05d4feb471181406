/* The private layer of the Java package: every function and constant of gcx.h, in Java's values.
 *
 *   resources   byte[], as long as the struct; many of them one after another
 *   structs     in arrays: long[], the fields of each one after another
 *   handles     long, also native ones; in parameters Context, Stream, Event, Lease, Reservation
 *               and Graph, which stay reachable until the call has returned
 *   structs     records, created by gcx.Upcalls from their fields in the header's order
 *   text        UTF-8 in byte[], since JNI's strings use modified UTF-8
 *   results     an exception, created by gcx.Upcalls
 *   messages    passed to gcx.Upcalls when the call that logs them returns; see log.h
 *
 * Functions.java has the functions that the package calls, and Natives.java those of JNI, which the
 * generated Raw.java calls. generated/types.i has what each function returns.
 */
%module(jniclassname="Natives") Functions

%pragma(java) jniclassclassmodifiers="final class"
%pragma(java) jniclassbase="Upcalls"
%pragma(java) jniclasscode=%{
  static {
    NativeLibrary.load();
  }
%}
%pragma(java) moduleclassmodifiers="final class"
%{
#include "values.h"
%}

%define FAIL { $cleanup return $null; } %enddef
%define GIVES(VALUE) $result = VALUE; %enddef
%define GIVES_NOTHING %enddef

/* ------------------------------------------------------------------------------------------
 * Types: in C, in JNI's class, in the package's
 * ---------------------------------------------------------------------------------------- */

%define AS(JNI, JAVA, TYPES...)
%typemap(jni) TYPES #JNI
%typemap(jtype) TYPES #JAVA
%typemap(jstype) TYPES #JAVA
%typemap(javain) TYPES "$javainput"
%typemap(javaout) TYPES { return $jnicall; }
%enddef

AS(jint, int, uint32_t)
AS(jint, int, unsigned int)
%typemap(out) unsigned int { $result = (jint)$1; }
AS(jint, int, int32_t)
AS(jlong, long, uint64_t)
AS(jint, int, gcx_result result)

AS(jbyteArray, byte[], const gcx_resource*)
%typemap(jstype) const gcx_resource* "Resource"
%typemap(javain) const gcx_resource* "$javainput.bytes"
%typemap(freearg) (const void* arguments, uint64_t argument_bytes) { free((void*)$1); }

/* Keeps the object reachable until the call has returned. */
%define OF_CLASS(JAVA, GIVEN, TYPES...)
%typemap(jstype) TYPES #JAVA
%typemap(javain, post="      java.lang.ref.Reference.reachabilityFence($javainput);") TYPES GIVEN
%enddef
%define HANDLE_OF(TYPE, CLASS)
AS(jlong, long, TYPE)
OF_CLASS(CLASS, "$javainput.handle()", TYPE)
%enddef

AS(void, void, gcx_result)
%typemap(javaout) gcx_result { $jnicall; }
%include "generated/types.i"
OF_CLASS(Reservation, "($javainput == null ? 0 : $javainput.handle())", gcx_reservation)
OF_CLASS(Wait.Token, "Wait.Token.handleOf($javainput)", gcx_cancel)
OF_CLASS(java.util.List<? extends Resource>, "Resource.joined($javainput)",
         (const gcx_resource* resources, uint32_t resource_count))
OF_CLASS(java.util.List<? extends Resource>, "Resource.joined($javainput)",
         (const gcx_resource* resources, uint32_t count))
OF_CLASS(java.util.List<SmRequest>, "SmRequest.joined($javainput)",
         (const gcx_sm_request* requests, uint32_t request_count))
OF_CLASS(java.util.List<LeaseSize>, "LeaseSize.joined($javainput)",
         (const gcx_lease_size* sizes, uint32_t count))
OF_CLASS(java.util.List<Stream>, "Stream.joined($javainput)",
         (const gcx_stream* streams, uint32_t count))

AS(jbyteArray, byte[], const char*)
%typemap(jstype) const char* "String"
%typemap(javain) const char* "Upcalls.bytes($javainput)"
%typemap(javaout) const char* { return Upcalls.text($jnicall); }
%typemap(in) const char* {
    $1 = NULL;
    if ($input != NULL && ($1 = to_text(jenv, $input)) == NULL)
        FAIL
}
%typemap(freearg) const char* { free($1); }
%typemap(out) const char* {
    DELIVER();
    $result = text_of(jenv, $1);
}

/* Messages go to the receiver or, if it is null, where they go by default. */
AS(jobject, java.util.function.ObjIntConsumer<byte[]>, jobject receiver)
%typemap(in) jobject receiver { $1 = $input; }
%typemap(in, numinputs=0) JNIEnv* log_environment { $1 = jenv; }

/* The library reports progress during a call: see report_progress of values.h. */
AS(jobject, Preparing, jobject preparing)
%typemap(in) jobject preparing { $1 = $input; }
%typemap(in, numinputs=0) (JNIEnv* jni, jclass upcalls) {
    $1 = jenv;
    $2 = jcls;
}
%typemap(out) gcx_result prepare_cache {
    if ((*jenv)->ExceptionCheck(jenv)) /* an exception of the progress */
        FAIL
    if ($1 != GCX_SUCCESS) {
        RAISE($1);
        FAIL
    }
    DELIVER();
    GIVES_NOTHING
}

%define CREATED(TYPE)
%typemap(in, numinputs=0) TYPE* (TYPE handle = NULL) { $1 = &handle; }
%typemap(argout) TYPE* { GIVES(HANDLE(*$1)) }
%enddef

%include "gcx_common.i"

%rename(gcx_log_set_callback) log_set_callback;
%inline %{
static gcx_result log_set_callback(gcx_log_level level, jobject receiver,
                                   JNIEnv* log_environment) {
    return gcx_java_log_set(log_environment, level, receiver, methods);
}
%}

%rename(gcx_cache_prepare) prepare_cache;
%inline %{
static gcx_result prepare_cache(const gcx_resource* resources, uint32_t count, uint32_t flags,
                                gcx_cancel cancel, jobject preparing, JNIEnv* jni, jclass upcalls) {
    progress reported = {jni, upcalls, preparing, cancel, NULL};
    gcx_prepare_params params = GCX_PREPARE_PARAMS_INIT;
    gcx_result result;
    params.flags = flags;
    params.cancel = cancel;
    params.progress = preparing != NULL ? report_progress : NULL;
    params.user_data = &reported;
    result = gcx_cache_prepare(resources, count, &params);
    if (reported.thrown != NULL) {
        deliver_messages(jni, upcalls);
        (*jni)->Throw(jni, reported.thrown);
    }
    return result;
}
%}
