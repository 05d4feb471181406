// What a green context is made of: the key by which it is kept.
#pragma once

#include "core/resource.hpp"

#include <memory>
#include <optional>
#include <span>

namespace gcx {

struct ContextKey {
    Device* device = nullptr;
    std::shared_ptr<Family> family; // null: no SMs, a part that is a workqueue alone
    AtomSet set;
    std::optional<Workqueue> workqueue;
    auto operator<=>(const ContextKey&) const = default;
};

// The key of a context over these parts, each of one resource. Throws if they don't go together.
ContextKey key_of(std::span<const ContextKey> parts);

} // namespace gcx
