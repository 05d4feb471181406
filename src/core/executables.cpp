#include "core/executables.hpp"

#include "base/log.hpp"

namespace gcx {

Executable::Executable(Device& device, const PlaceKey& its_key, Places its_places,
                       std::vector<CapturedContext> its_captured)
    : key(its_key), places(std::move(its_places)), captured(std::move(its_captured)),
      driver_(device.driver()), primary_(device.hold_primary()) {
}

bool Executable::captured_alive() const {
    return std::all_of(captured.begin(), captured.end(),
                       [&](const CapturedContext& one) { return one.alive(driver_); });
}

bool Executable::alive() const {
    return captured_alive() &&
           std::all_of(places.begin(), places.end(), [&](const PartPlace& place) {
               return (place.id & PartPlace::kForeign) == 0 ||
                      driver_.context_has_id(place.context, place.id & ~PartPlace::kForeign);
           });
}

Executable::~Executable() {
    // Nobody could repeat a call that failed: a failure of the moment gets a second chance.
    for (const bool last : {false, true}) {
        try {
            destroy();
            return;
        } catch (const Error& error) {
            if (last)
                log::write(GCX_LOG_ERROR, "an executable graph is left behind: " + error.message);
        }
    }
}

void Executable::launch(CUstream stream) {
    GCX_CALL(driver_, cuGraphLaunch, native_, stream);
}

CUresult Executable::set_kernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2& params) {
    return driver_.cuGraphExecKernelNodeSetParams(native_, node, &params);
}

void Executable::destroy() {
    // With a reset of the device it went, and naming it might bring the process down.
    if (native_ != nullptr && primary_.alive())
        GCX_CALL(driver_, cuGraphExecDestroy, native_);
    native_ = nullptr;
}

Executables::Pointer Executables::find(const PlaceKey& key) {
    const std::lock_guard lock(mutex_);
    const auto is_it = [&](const Entry& entry) { return entry.executable->key == key; };
    if (last_ >= entries_.size() || !is_it(entries_[last_])) {
        const auto found = std::find_if(entries_.begin(), entries_.end(), is_it);
        if (found == entries_.end())
            return nullptr;
        last_ = static_cast<std::size_t>(found - entries_.begin());
    }
    entries_[last_].last_used = ++clock_;
    return entries_[last_].executable;
}

void Executables::add(Pointer made) {
    Pointer gone; // outside of the lock
    const std::lock_guard lock(mutex_);
    if (entries_.size() >= limit_) {
        const auto oldest =
            std::min_element(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
                return a.last_used < b.last_used;
            });
        gone = std::move(oldest->executable);
        *oldest = {std::move(made), ++clock_};
        evicted_++;
    } else {
        entries_.push_back({std::move(made), ++clock_});
    }
}

std::vector<Executables::Pointer> Executables::all() const {
    const std::lock_guard lock(mutex_);
    std::vector<Pointer> found;
    found.reserve(entries_.size());
    for (const Entry& entry : entries_)
        found.push_back(entry.executable);
    return found;
}

void Executables::replace(std::vector<Pointer> others) {
    std::vector<Entry> entries; // those that there were go outside of the lock
    const std::lock_guard lock(mutex_);
    for (Pointer& other : others) {
        const auto former = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
            return entry.executable->key == other->key;
        });
        entries.push_back({std::move(other), former->last_used});
    }
    std::swap(entries_, entries);
}

void Executables::remove(const Pointer& one) {
    const std::lock_guard lock(mutex_); // the caller's is not the last to go
    std::erase_if(entries_, [&](const Entry& entry) { return entry.executable == one; });
}

uint64_t Executables::evicted() const {
    const std::lock_guard lock(mutex_);
    return evicted_;
}

void Executables::destroy() {
    const std::lock_guard lock(mutex_);
    while (!entries_.empty()) {
        entries_.back().executable->destroy();
        entries_.pop_back();
    }
}

} // namespace gcx
