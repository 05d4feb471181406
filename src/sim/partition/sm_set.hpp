// Sets of SMs of one device. An SM is identified by its %smid.
#pragma once

#include <bitset>
#include <cstddef>
#include <vector>

namespace gcx::sim {

// Limited by the 92 bytes that CUdevResource reserves for the driver.
inline constexpr std::size_t kMaxSms = 384;

using SmSet = std::bitset<kMaxSms>;
using SmList = std::vector<unsigned>;

inline SmSet to_set(const SmList& sms) {
    SmSet set;
    for (const unsigned sm : sms)
        set.set(sm);
    return set;
}

inline SmList to_list(const SmSet& set) {
    SmList sms;
    for (unsigned sm = 0; sm < kMaxSms; sm++)
        if (set[sm])
            sms.push_back(sm);
    return sms;
}

} // namespace gcx::sim
