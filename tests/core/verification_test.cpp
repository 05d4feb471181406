// verify(): the problems it reports for probes that saw other SMs than promised.

#include "probe/verification.hpp"

#include "check.hpp"

#include <numeric>

namespace {

using namespace gcx;
using Sms = std::vector<uint32_t>;

Sms from_to(uint32_t first, uint32_t last) {
    Sms sms(last - first + 1);
    std::iota(sms.begin(), sms.end(), first);
    return sms;
}

bool says(const Verification& found, std::size_t problem, const char* text) {
    return problem < found.problems.size() &&
           found.problems[problem].find(text) != std::string::npos;
}

void promised_sms_are_no_problem() {
    const Verification found =
        verify({{8, from_to(0, 7)}, {4, from_to(100, 103)}}, false, {}, true);
    CHECK(found.problems.empty());
    CHECK(found.overlap.empty());
    CHECK(found.fine == std::vector<uint8_t>({1, 1}));
}

void fewer_sms_is_a_problem() {
    const Verification found = verify({{8, {0, 1, 2, 5, 6}}, {4, {}}}, false, {}, false);
    CHECK_EQ(found.problems.size(), 2U);
    CHECK(says(found, 0,
               "partition A: its kernels were to run on 8 SMs and were seen on 5 (0-2 5-6)"));
    CHECK(says(found, 0, "stop it and verify again"));
    CHECK(
        says(found, 1, "partition B: its kernels were to run on 4 SMs and were seen on 0 (none)"));
    CHECK(found.fine == std::vector<uint8_t>({0, 0}));
}

void more_sms_is_a_problem() {
    const Verification found = verify({{8, from_to(0, 9)}, {4, from_to(20, 23)}}, false, {}, false);
    CHECK_EQ(found.problems.size(), 1U);
    CHECK(says(found, 0, "were to run on 8 SMs and were seen on 10 (0-9)"));
    CHECK(!says(found, 0, "dynamic parallelism"));
    CHECK(found.fine == std::vector<uint8_t>({0, 1}));
}

void two_more_sms_may_be_dynamic_parallelism() {
    CHECK(says(verify({{8, from_to(0, 9)}}, true, {}, true), 0, "dynamic parallelism"));
    CHECK(!says(verify({{8, from_to(0, 10)}}, true, {}, true), 0, "dynamic parallelism"));
}

void sms_in_two_streams_are_a_problem() {
    const Verification found = verify(
        {{4, {0, 1, 2, 3}}, {4, {3, 4, 5, 6}}, {3, {3, 6, 7}}, {2, {8, 9}}}, false, {}, false);
    CHECK(found.overlap == Sms({3, 6}));
    CHECK_EQ(found.problems.size(), 2U);
    CHECK(says(found, 0, "partitions A and B and C share 1 SM: 3"));
    CHECK(says(found, 1, "partitions B and C share 1 SM: 6"));
    CHECK(found.fine == std::vector<uint8_t>({0, 0, 0, 1}));
}

void virtual_numbers_show_no_overlap() {
    const Verification found = verify({{4, from_to(0, 3)}, {4, from_to(0, 3)}}, true, {}, false);
    CHECK(found.problems.empty());
    CHECK(found.overlap.empty());
}

void shared_leases_may_share() {
    const ProbedStream one{4, {0, 1, 2, 3}, true};
    const ProbedStream other{4, {2, 3, 4, 5}, true};
    const Verification two = verify({one, other}, false, {}, false);
    CHECK(two.problems.empty());
    CHECK(two.overlap == Sms({2, 3}));
    const Verification three = verify({one, other, {2, {3, 9}}}, false, {}, false);
    CHECK_EQ(three.problems.size(), 1U);
    CHECK(says(three, 0, "partitions A and B and C share 1 SM: 3"));
}

void sms_shared_by_all_are_one_problem() {
    const Verification found = verify(
        {{4, {0, 1, 2, 3, 124, 125}}, {4, {8, 9, 10, 11, 124, 125}}, {2, {124, 125}}, {1, {20}}},
        false, {124, 125}, true);
    CHECK_EQ(found.problems.size(), 1U);
    CHECK(says(found, 0, "SMs 124-125 are shared by all partitions of this process"));
    CHECK(found.overlap == Sms({124, 125}));
    CHECK(found.fine == std::vector<uint8_t>({0, 0, 1, 1}));
}

void streams_are_named_by_letters() {
    std::vector<ProbedStream> streams(28, {1, {}});
    const Verification found = verify(streams, false, {}, false);
    CHECK_EQ(found.problems.size(), 28U);
    CHECK(says(found, 25, "partition Z:"));
    CHECK(says(found, 26, "partition AA:"));
    CHECK(says(found, 27, "partition AB:"));
}

} // namespace

int main() {
    promised_sms_are_no_problem();
    fewer_sms_is_a_problem();
    more_sms_is_a_problem();
    two_more_sms_may_be_dynamic_parallelism();
    sms_in_two_streams_are_a_problem();
    virtual_numbers_show_no_overlap();
    shared_leases_may_share();
    sms_shared_by_all_are_one_problem();
    streams_are_named_by_letters();
    return check::summary("verification");
}
