// 108 + 24: two partitions of device 0, a stream in each, which SMs they have, and an error.
//
//     c++ -std=c++17 scenario.cpp $(pkg-config --cflags --libs gcx) -o scenario && ./scenario
#include <gcx.hpp>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <vector>

namespace {

// [scenario]
bool scenario() {
    const gcx::resource sms = gcx::device(0).sms();
    const auto [parts, rest] = sms.split({108, 24});
    const gcx::context compute(parts[0]), communicate(parts[1]);
    const gcx::stream a(compute), b(communicate); // a.native() is the cudaStream_t

    // Which SMs a kernel really runs on.
    const std::vector<uint32_t> on_a = a.sm_ids(), on_b = b.sm_ids();
    std::vector<uint32_t> shared;
    std::set_intersection(on_a.begin(), on_a.end(), on_b.begin(), on_b.end(),
                          std::back_inserter(shared));
    std::cout << on_a.size() << " and " << on_b.size() << " SMs, " << shared.size() << " shared\n";

    try {
        sms.split({140});
        return false;
    } catch (const gcx::error& error) {
        std::cout << error.what() << "\n";
    }
    return on_a.size() == 108 && on_b.size() == 24 && shared.empty();
} // Streams and contexts are given back here.
// [/scenario]

} // namespace

int main() {
    try {
        return scenario() ? 0 : 1;
    } catch (const gcx::error& error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
