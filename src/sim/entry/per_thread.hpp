// An object of each thread that is usable as long as the thread runs. A thread_local object is not:
// it is destroyed before the destructors of pthread keys run, in which programs call the driver.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <new>

namespace gcx::sim {

// Returns the calling thread's object. It is created by the first use, and again by a use after its
// destruction.
template <class T>
T& per_thread() {
    static const pthread_key_t key = [] {
        pthread_key_t created = 0;
        if (pthread_key_create(&created, [](void* object) { delete static_cast<T*>(object); }) != 0)
            throw std::bad_alloc();
        return created;
    }();
    auto* object = static_cast<T*>(pthread_getspecific(key));
    if (object == nullptr) {
        object = new T;
        if (pthread_setspecific(key, object) != 0) {
            delete object;
            throw std::bad_alloc();
        }
    }
    return *object;
}

} // namespace gcx::sim
