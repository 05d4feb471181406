#include "holds.hpp"

#include <algorithm>

namespace holds {
namespace {

uint32_t sms_of(const gcx_live_hold& hold) {
    uint32_t sms = 0;
    for (uint32_t atom = 0; atom < 512; atom++) {
        if ((hold.atoms[atom / 64] >> (atom % 64) & 1) == 0)
            continue;
        CHECK(atom < hold.atom_count);
        sms += atom + 1 == hold.atom_count ? hold.last_atom_sm_count : hold.atom_sm_count;
    }
    return sms;
}

bool same_sms(const gcx_live_hold& a, const gcx_live_hold& b) {
    if (std::memcmp(a.device_uuid, b.device_uuid, sizeof a.device_uuid) != 0 || a.waits != 0 ||
        b.waits != 0)
        return false;
    uint64_t common = 0;
    for (std::size_t word = 0; word < 8; word++)
        common |= a.atoms[word] & b.atoms[word];
    return common != 0;
}

// Whether one reservation is a part of the other, directly or not.
bool is_part_of(const gcx_live_hold& part, const gcx_live_hold& whole,
                const std::vector<gcx_live_hold>& found) {
    uint64_t parent = part.parent;
    for (std::size_t step = 0; parent != 0 && step <= found.size(); step++) {
        if (parent == whole.id)
            return true;
        uint64_t next = 0;
        for (const gcx_live_hold& hold : found)
            next = hold.id == parent ? hold.parent : next;
        parent = next;
    }
    return false;
}

bool is_within(const gcx_live_hold& part, const gcx_live_hold& whole) {
    uint64_t beyond = 0;
    for (std::size_t word = 0; word < 8; word++)
        beyond |= part.atoms[word] & ~whole.atoms[word];
    return beyond == 0;
}

bool agree(const gcx_live_hold& a, const gcx_live_hold& b,
           const std::vector<gcx_live_hold>& found) {
    if (is_part_of(a, b, found))
        return is_within(a, b);
    return is_part_of(b, a, found) || !same_sms(a, b);
}

} // namespace

gcx_result take(uint32_t sm_count, const Wanted& wanted, gcx_hold* hold) {
    gcx_hold_params params = GCX_HOLD_PARAMS_INIT;
    params.name = wanted.name;
    params.timeout_ms = wanted.timeout_ms;
    params.family = wanted.family;
    params.min_sm_count = wanted.least;
    params.flags = wanted.flags;
    params.cancel = wanted.cancel;
    params.folder = wanted.folder;
    return gcx_hold_create(wanted.device, sm_count, &params, hold);
}

gcx_hold taken(uint32_t sm_count, const Wanted& wanted) {
    gcx_hold hold = nullptr;
    CHECK_OK(take(sm_count, wanted, &hold));
    return hold;
}

void give_back(gcx_hold hold) {
    CHECK_OK(gcx_hold_destroy(hold));
}

gcx_hold_info info_of(gcx_hold hold) {
    gcx_hold_info info = GCX_HOLD_INFO_INIT;
    CHECK_OK(gcx_hold_get_info(hold, &info));
    return info;
}

std::string token_of(gcx_hold hold) {
    std::string token(GCX_MAX_HOLD_TOKEN, 'x'); // it brings its final 0 along
    CHECK_OK(gcx_hold_get_token(hold, token.data(), GCX_MAX_HOLD_TOKEN));
    const std::size_t size = token.find('\0');
    CHECK(size != std::string::npos);
    return token.substr(0, size);
}

std::vector<gcx_live_hold> listed(const char* folder) {
    std::vector<gcx_live_hold> found(1024);
    uint32_t count = 0;
    CHECK_OK(gcx_hold_list(folder, found.data(), static_cast<uint32_t>(found.size()), &count));
    found.resize(count);
    bool right = true;
    for (const gcx_live_hold& hold : found) {
        right = right && (hold.waits != 0 ? sms_of(hold) == 0 : sms_of(hold) == hold.sm_count);
        for (const gcx_live_hold& other : found)
            right = right && (&hold == &other || agree(hold, other, found));
    }
    CHECK(right);
    return found;
}

uint32_t held_sms(const std::vector<gcx_live_hold>& found) {
    uint32_t held = 0;
    for (const gcx_live_hold& hold : found) {
        const bool counted = hold.parent != 0 && std::any_of(found.begin(), found.end(),
                                                             [&](const gcx_live_hold& other) {
                                                                 return other.id == hold.parent;
                                                             });
        held += hold.waits != 0 || counted ? 0 : hold.sm_count;
    }
    return held;
}

} // namespace holds
