// Requests of structured splits, packed and unpacked.

#include "core/split.hpp"

#include "check.hpp"

#include <cstring>
#include <random>

namespace {

using namespace gcx;
using Requests = std::vector<cu::SmGroupParams>;

bool equal(const Requests& a, const Requests& b) {
    return a.size() == b.size() &&
           std::memcmp(a.data(), b.data(), a.size() * sizeof(cu::SmGroupParams)) == 0;
}

cu::SmGroupParams request(uint32_t sm_count, uint32_t coscheduled) {
    cu::SmGroupParams one{};
    one.sm_count = sm_count;
    one.coscheduled_sm_count = coscheduled;
    return one;
}

void what_is_packed_comes_out() {
    std::mt19937 random(1);
    const auto number = [&] { return static_cast<uint32_t>(random() >> random() % 32); };
    for (int round = 0; round < 20000; round++) {
        Requests requests;
        for (std::size_t i = 1 + random() % 9; i > 0; i--) {
            cu::SmGroupParams one = request(number(), random() % 2 == 0 ? 0 : number());
            one.preferred_coscheduled_sm_count = random() % 3 == 0 ? number() : 0;
            one.flags = random() % 3 == 0 ? number() : 0;
            one.locality_domain_id = random() % 3 == 0 ? UINT32_MAX : 0;
            requests.insert(requests.end(), 1 + random() % 3, one);
        }
        const std::string packed = pack_requests(requests);
        CHECK(equal(unpack_requests(packed), requests));
        CHECK(packed == pack_requests(requests));
        requests.back().sm_count ^= 1;
        CHECK(packed != pack_requests(requests));
    }
}

void the_usual_ones_are_short() {
    CHECK_EQ(pack_requests(Requests(66, request(2, 2))).size(), 4U);
    CHECK_EQ(pack_requests(Requests{request(24, 8), request(108, 16)}).size(), 6U);
}

} // namespace

int main() {
    what_is_packed_comes_out();
    the_usual_ones_are_short();
    return check::summary("structured");
}
