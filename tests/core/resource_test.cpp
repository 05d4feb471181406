// gcx_resource values: a sealed one can be read, and any other is refused.

#include "core/resource.hpp"

#include "base/error.hpp"

#include "check.hpp"

#include <cstring>
#include <random>

namespace {

using namespace gcx;

gcx_result refusal(const gcx_resource* resource) {
    try {
        unseal(resource);
    } catch (const Error& error) {
        CHECK(!error.message.empty());
        return error.result;
    }
    return GCX_SUCCESS;
}

ResourceWords random_words(std::mt19937& random) {
    ResourceWords words;
    const gcx_resource_type types[] = {GCX_RESOURCE_SM, GCX_RESOURCE_WORKQUEUE_CONFIG,
                                       GCX_RESOURCE_WORKQUEUE};
    words.type = types[random() % 3];
    words.device = static_cast<int32_t>(random() % 64);
    words.family = static_cast<gcx_sm_family>(random() % 5);
    for (std::size_t i = random() % 100; i > 0; i--)
        words.set.add(random() % AtomSet::kCapacity);
    const auto number = [&] { return (uint64_t{random()} << 32) | random(); };
    if (words.family == GCX_SM_FAMILY_STRUCTURED) {
        words.split = {number(), number()};
        return words;
    }
    words.workqueue.scope = static_cast<gcx_workqueue_scope>(random() % 2);
    words.workqueue.concurrency_limit = static_cast<uint32_t>(random());
    words.workqueue.queue = number();
    return words;
}

void sealed_resource_is_unsealed() {
    std::mt19937 random(2);
    for (int round = 0; round < 500; round++) {
        const ResourceWords words = random_words(random);
        const gcx_resource sealed = seal(words);
        const ResourceWords out = unseal(&sealed);
        CHECK_EQ(out.type, words.type);
        CHECK_EQ(out.device, words.device);
        CHECK_EQ(out.family, words.family);
        CHECK(out.set == words.set && out.split == words.split);
        CHECK(out.workqueue == words.workqueue);
    }
}

void equal_values_are_equal_bytes() {
    std::mt19937 random(3);
    for (int round = 0; round < 100; round++) {
        const ResourceWords words = random_words(random);
        const gcx_resource one = seal(words);
        const gcx_resource other = seal(words);
        CHECK_EQ(std::memcmp(&one, &other, sizeof one), 0);
        ResourceWords changed = words;
        changed.set.add(words.set.contains(7) ? 511 : 7);
        if (!(changed.set == words.set)) {
            const gcx_resource another = seal(changed);
            CHECK(std::memcmp(&one, &another, sizeof one) != 0);
        }
    }
}

void null_and_zero_are_refused() {
    CHECK_EQ(refusal(nullptr), GCX_ERROR_INVALID_VALUE);
    const gcx_resource zero{};
    CHECK_EQ(refusal(&zero), GCX_ERROR_INVALID_RESOURCE_TYPE);
}

void any_changed_bit_is_refused() {
    std::mt19937 random(4);
    const ResourceWords words = random_words(random);
    const gcx_resource sealed = seal(words);
    for (std::size_t bit = 0; bit < sizeof sealed * 8; bit++) {
        gcx_resource damaged = sealed;
        damaged.opaque[bit / 64] ^= uint64_t{1} << (bit % 64);
        CHECK_EQ(refusal(&damaged), GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    }
}

void noise_and_mixtures_are_refused() {
    std::mt19937_64 random(5);
    std::mt19937 source(6);
    for (int round = 0; round < 200; round++) {
        gcx_resource noise;
        for (uint64_t& word : noise.opaque)
            word = random();
        CHECK_EQ(refusal(&noise), GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
        // The first half of one value and the second half of another.
        const gcx_resource one = seal(random_words(source));
        gcx_resource mixed = seal(random_words(source));
        std::memcpy(&mixed, &one, sizeof mixed / 2);
        CHECK_EQ(refusal(&mixed), GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    }
}

} // namespace

int main() {
    sealed_resource_is_unsealed();
    equal_values_are_equal_bytes();
    null_and_zero_are_refused();
    any_changed_bit_is_refused();
    noise_and_mixtures_are_refused();
    return check::summary("resource");
}
