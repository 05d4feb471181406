// The scenario that docs/reference/languages.md shows in each language: 108 SMs next to 24,
// verified to be disjoint.
//
//     c++ -std=c++17 scenario.cpp $(pkg-config --cflags --libs gcx) -o scenario && ./scenario
//
// Without a GPU: GCX_DRIVER=sim:h100@13.0 before it.
#include <gcx.hpp>

#include <cstdint>
#include <iostream>
#include <set>
#include <stdexcept>

namespace {

void scenario() {
    const gcx::resource device = gcx::device(0).sms();
    const auto [parts, rest] = device.split({108, 24});
    const gcx::context contexts[] = {gcx::context(parts[0]), gcx::context(parts[1])};
    // stream.native() is the cudaStream_t
    const gcx::stream streams[] = {gcx::stream(contexts[0]), gcx::stream(contexts[1])};

    std::set<uint32_t> seen;
    for (int i = 0; i < 2; i++) {
        const auto sms = streams[i].sm_ids(); // a kernel notes where it runs
        std::cout << "partition " << i << " runs on " << sms.size() << " SMs:";
        for (const uint32_t sm : sms) {
            std::cout << " " << sm;
            if (!seen.insert(sm).second)
                throw std::runtime_error("SM " + std::to_string(sm) + " is in both partitions");
        }
        std::cout << "\n";
    }
    std::cout << "no SM is in both\n";

    try {
        device.split({140});
        throw std::logic_error("140 SMs were given");
    } catch (const gcx::error& error) {
        std::cout << "140 SMs: " << error.what() << "\n";
    }
} // streams and contexts are given back here

} // namespace

int main() {
    try {
        const gcx_device_info info = gcx::device(0).info();
        std::cout << info.name << ", " << info.sm_count << " SMs\n";
        scenario();
        std::cout << "given back: " << gcx::cache_stats().in_use << " contexts in use\n";
    } catch (const std::exception& error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
