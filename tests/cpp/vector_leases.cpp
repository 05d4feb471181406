// Implements the operations of the vectors on leases in C++.
#include "vector.hpp"

#include <string>
#include <utility>
#include <vector>

namespace vectors {

// Reads a list of NAME/COUNT.
std::vector<gcx::lease_size> Vector::sizes(const std::string& list) {
    std::vector<gcx::lease_size> sizes;
    for (const std::string& item : items(list)) {
        const Words fields = split_at(item, '/');
        const auto& lease = get<gcx::lease>(fields.at(0));
        if (fields.at(1) == "parked")
            sizes.emplace_back(lease, gcx::parked);
        else
            sizes.emplace_back(lease, sms_of(fields.at(1)));
    }
    return sizes;
}

Words Vector::of_leases(const std::string& operation, const Words& in) {
    if (operation == "lease") {
        gcx::lease_params params;
        params.name = in[6];
        params.flags = flags<gcx::lease_flags>(in[2]);
        params.family = from_word<gcx_sm_family>(kFamilies, in[3]);
        params.min_sm_count = count_of(in[4]);
        params.exclusive_sm_count = count_of(in[5]);
        gcx::lease made(ordinal(in[0]), sms_of(in[1]), params);
        const uint32_t sms = made.sm_count();
        keep(in[6], std::move(made));
        return outputs(sms);
    }
    if (operation == "resize") {
        gcx::resize(sizes(in[0]), flags<gcx::resize_flags>(in[1]));
        std::vector<uint32_t> now;
        for (const std::string& item : items(in[0]))
            now.push_back(get<gcx::lease>(split_at(item, '/').at(0)).sm_count());
        return outputs(list_of(now));
    }
    if (operation == "prepare")
        return gcx::prepare(sizes(in[0])), Words();
    if (operation == "held")
        return keep_counted(in[1], get<gcx::lease>(in[0]).get_resource());
    if (operation == "alone")
        return outputs(get<gcx::lease>(in[0]).info().exclusive_sm_count);
    std::string text;
    for (const gcx_live_lease& lease : gcx::live_leases(ordinal(in[0])))
        text += (text.empty() ? "" : ",") + std::to_string(lease.sm_count) + "/" +
                std::to_string(lease.stream_count) + "/" + std::to_string(lease.flags);
    return outputs(text.empty() ? "-" : text);
}

} // namespace vectors
