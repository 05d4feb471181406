#include "core/resource.hpp"

#include "base/error.hpp"
#include "base/random.hpp"

#include <algorithm>
#include <cstring>

namespace gcx {
namespace {

constexpr std::size_t kWords = 16;
enum Word : std::size_t { kCheck, kKind, kFamily, kWorkqueue, kSource, kSet, kUsed = kSet + 8 };
static_assert(AtomSet::kWords == 8 && kUsed <= kWords);
static_assert(sizeof gcx_resource::opaque == kWords * sizeof(uint64_t));

uint64_t pack(uint32_t high, uint32_t low) {
    return (uint64_t{high} << 32) | low;
}

uint32_t high_of(uint64_t word) {
    return static_cast<uint32_t>(word >> 32);
}

uint32_t low_of(uint64_t word) {
    return static_cast<uint32_t>(word);
}

// Random in each process, so that values of other processes are refused.
uint64_t process_secret() {
    static const uint64_t secret = random_bits();
    return secret;
}

uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
    return hash ^ (hash >> 29);
}

// Detects damage and accidental forgery, not attacks. In one hash each multiplication would wait for
// the one before it, so there are four, which the processor computes concurrently.
uint64_t check_word(const gcx_resource& resource) {
    static_assert(kCheck == 0 && kWords % 4 == 0);
    const uint64_t* words = resource.opaque;
    const uint64_t secret = process_secret();
    uint64_t a = secret;
    uint64_t b = mix(secret, words[1]);
    uint64_t c = mix(secret, words[2]);
    uint64_t d = mix(secret, words[3]);
    for (std::size_t i = 4; i < kWords; i += 4) {
        a = mix(a, words[i]);
        b = mix(b, words[i + 1]);
        c = mix(c, words[i + 2]);
        d = mix(d, words[i + 3]);
    }
    const uint64_t hash = mix(mix(mix(a, b), c), d);
    return hash | 1; // never 0, which a zeroed value has
}

} // namespace

gcx_resource seal(const ResourceWords& words) {
    gcx_resource resource{};
    resource.opaque[kKind] =
        pack(static_cast<uint32_t>(words.type), static_cast<uint32_t>(words.device));
    resource.opaque[kFamily] = uint64_t{static_cast<uint32_t>(words.family)};
    switch (words.family) {
    case GCX_SM_FAMILY_STRUCTURED:
        resource.opaque[kWorkqueue] = words.split[0];
        resource.opaque[kSource] = words.split[1];
        std::copy_n(words.set.words().data(), AtomSet::kWords, resource.opaque + kSet);
        break;
    case GCX_SM_FAMILY_EXTERNAL:
        resource.opaque[kSet] = pack(words.external.sm_count, words.external.min_partition_size);
        resource.opaque[kSet + 1] =
            pack(words.external.coscheduled_alignment, words.external.flags);
        break;
    default:
        resource.opaque[kWorkqueue] =
            pack(static_cast<uint32_t>(words.workqueue.scope), words.workqueue.concurrency_limit);
        resource.opaque[kSource] = words.workqueue.queue;
        std::copy_n(words.set.words().data(), AtomSet::kWords, resource.opaque + kSet);
    }
    resource.opaque[kCheck] = check_word(resource);
    return resource;
}

ResourceWords unseal(const gcx_resource* resource) {
    if (resource == nullptr)
        fail(GCX_ERROR_INVALID_VALUE, "the resource is NULL");
    const bool zero = std::all_of(std::begin(resource->opaque), std::end(resource->opaque),
                                  [](uint64_t word) { return word == 0; });
    if (zero)
        fail(GCX_ERROR_INVALID_RESOURCE_TYPE, "the resource is all zero: it was never filled in by "
                                              "gcx_device_get_resource or a split");
    if (resource->opaque[kCheck] != check_word(*resource))
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             "the resource is not one that gcx made in this process, or was changed since");
    ResourceWords words;
    // Valid enumerators, because the check word proves that seal() wrote them.
    words.type =
        static_cast<gcx_resource_type>( // NOLINT(clang-analyzer-optin.core.EnumCastOutOfRange)
            resource->opaque[kKind] >> 32);
    words.device = static_cast<int32_t>(resource->opaque[kKind] & 0xffffffffU);
    words.family =
        static_cast<gcx_sm_family>( // NOLINT(clang-analyzer-optin.core.EnumCastOutOfRange)
            resource->opaque[kFamily]);
    switch (words.family) {
    case GCX_SM_FAMILY_STRUCTURED:
        words.split = {resource->opaque[kWorkqueue], resource->opaque[kSource]};
        words.set = AtomSet::of_words(resource->opaque + kSet);
        break;
    case GCX_SM_FAMILY_EXTERNAL: {
        const uint64_t counts = resource->opaque[kSet];
        const uint64_t rest = resource->opaque[kSet + 1];
        words.external = {high_of(counts), low_of(counts), high_of(rest), low_of(rest)};
        break;
    }
    default:
        words.workqueue.scope =
            static_cast<gcx_workqueue_scope>(high_of(resource->opaque[kWorkqueue]));
        words.workqueue.concurrency_limit = low_of(resource->opaque[kWorkqueue]);
        words.workqueue.queue = resource->opaque[kSource];
        words.set = AtomSet::of_words(resource->opaque + kSet);
    }
    return words;
}

} // namespace gcx
