#include "api/pushed.hpp"

#include "api/library.hpp"
#include "base/log.hpp"

#include <pthread.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace gcx::pushed {
namespace {

using Stack = std::vector<Entry>;

// A key of pthreads tells when the thread ends: a thread_local with a destructor would keep the
// library from being unloaded while the thread lives.
constinit thread_local Stack* the_stack = nullptr; // null while nothing is pushed
constinit thread_local bool has_ended = false;

// CUDA's stack of contexts ends with its thread, and so does what gcx held for it.
void forget(void* stack) {
    the_stack = nullptr;
    has_ended = true;
    if (library_answers())
        delete static_cast<Stack*>(stack);
    log::deliver();
}

class ThreadEnds {
  public:
    ThreadEnds() {
        if (pthread_key_create(&key_, forget) != 0)
            fail(GCX_ERROR_OUT_OF_MEMORY, "the process has no pthread_key_t left");
    }
    ~ThreadEnds() { pthread_key_delete(key_); }
    ThreadEnds(const ThreadEnds&) = delete;
    ThreadEnds& operator=(const ThreadEnds&) = delete;

    bool watch(Stack* stack) const { return pthread_setspecific(key_, stack) == 0; }

  private:
    pthread_key_t key_ = 0;
};

const ThreadEnds& thread_ends() {
    static const ThreadEnds ends;
    return ends;
}

} // namespace

void reserve() {
    if (the_stack == nullptr) {
        auto fresh = std::make_unique<Stack>();
        if (!thread_ends().watch(fresh.get()))
            fail(GCX_ERROR_OUT_OF_MEMORY, "no memory to watch the thread's end");
        the_stack = fresh.release();
    }
    if (the_stack->size() == the_stack->capacity())
        the_stack->reserve(the_stack->size() * 2 + 1);
}

void put(Entry entry) noexcept {
    the_stack->push_back(std::move(entry));
}

void release_room() noexcept {
    if (the_stack == nullptr || !the_stack->empty())
        return;
    thread_ends().watch(nullptr);
    delete the_stack;
    the_stack = nullptr;
}

const Entry* top() {
    return the_stack != nullptr && !the_stack->empty() ? &the_stack->back() : nullptr;
}

void drop_top() {
    the_stack->pop_back();
    release_room();
}

bool contains(uint64_t handle) {
    return the_stack != nullptr &&
           std::any_of(the_stack->begin(), the_stack->end(),
                       [&](const Entry& entry) { return entry.handle == handle; });
}

bool ended() {
    return has_ended;
}

} // namespace gcx::pushed
