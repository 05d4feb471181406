// Tests gcx_verify through the API; tests/core/verification_test.cpp tests each kind of difference.

#include "leases.hpp"

#include <cstdlib>
#include <memory>

namespace {

using namespace support;

struct Answer {
    gcx_result result = GCX_SUCCESS;
    gcx_verification verification = GCX_VERIFICATION_INIT;
    std::vector<gcx_verified_stream> streams;
};

Answer verify(const std::vector<gcx_stream>& streams) {
    Answer answer;
    answer.streams.resize(streams.size());
    answer.result = gcx_verify(streams.data(), static_cast<uint32_t>(streams.size()),
                               answer.streams.data(), &answer.verification);
    return answer;
}

bool has_problem(const Answer& answer, const char* text) {
    return std::string(answer.verification.problems).find(text) != std::string::npos;
}

void disjoint_partitions_verify() {
    on_machine("2xh100@13.0", [] {
        const Split parts = split(whole_device(), {108, 24});
        const Partition a(parts.groups[0]);
        const Partition b(parts.groups[1]);
        const Answer answer = verify({a.stream, b.stream});
        CHECK_EQ(answer.result, GCX_SUCCESS);
        CHECK_EQ(answer.verification.ok, 1U);
        CHECK_EQ(answer.verification.device, 0);
        CHECK_EQ(answer.verification.problem_count, 0U);
        CHECK_EQ(answer.verification.overlap_count, 0U);
        CHECK_EQ(answer.verification.virtual_sm_numbers, 0U);
        CHECK_EQ(std::string(answer.verification.problems), "");
        CHECK_EQ(answer.streams[0].sm_count, 108U);
        CHECK_EQ(answer.streams[1].seen_count, 24U);
        CHECK(sm_ids(answer.streams[0].seen) == a.probe());
        CHECK(sm_ids(answer.streams[1].seen) == b.probe());
        gcx_verification alone = GCX_VERIFICATION_INIT;
        CHECK_OK(gcx_verify(&a.stream, 1, nullptr, &alone));
        CHECK_EQ(alone.ok, 1U);
    });
}

void overlapping_partitions_are_reported() {
    const Split outer = split(whole_device(), {24});
    const Partition a(outer.groups[0]);
    const Partition b(split(outer.groups[0], {8}).groups[0]);
    const Answer answer = verify({a.stream, b.stream, a.stream});
    CHECK_EQ(answer.result, GCX_SUCCESS);
    CHECK_EQ(answer.verification.ok, 0U);
    CHECK_EQ(answer.verification.overlap_count, 24U);
    CHECK(sm_ids(answer.verification.overlap) == a.probe());
    CHECK_EQ(answer.verification.problem_count, 2U);
    CHECK(has_problem(answer, "partitions A and B and C share 8 SMs"));
    CHECK(has_problem(answer, "\npartitions A and C share 16 SMs"));
    CHECK_EQ(answer.streams[1].ok, 0U);
}

void shared_leases_have_sms_in_common() {
    const gcx_lease one = acquire(72, "one", GCX_LEASE_SHARED);
    const gcx_lease two_too = acquire(72, "two", GCX_LEASE_SHARED);
    const Partition other(split(whole_device(), {132}).groups[0]);
    const std::vector<gcx_stream> streams = {stream_of(one), stream_of(two_too), other.stream};
    const Answer two = verify({streams[0], streams[1]});
    CHECK_EQ(two.verification.ok, 1U);
    CHECK_EQ(two.streams[0].shared_lease, 1U);
    CHECK_EQ(two.verification.overlap_count, 72U);
    const Answer three = verify(streams);
    CHECK_EQ(three.verification.ok, 0U);
    CHECK_EQ(three.streams[2].shared_lease, 0U);
    release_all({}, {one, two_too});
}

void virtual_numbers_are_reported() {
    setenv("GCX_SIM_MPS", "1", 1);
    on_machine("h100@13.0", [] {
        const Split parts = split(whole_device(), {24, 24});
        const Partition a(parts.groups[0]);
        const Partition b(parts.groups[1]);
        const Answer answer = verify({a.stream, b.stream});
        CHECK_EQ(answer.verification.ok, 1U);
        CHECK_EQ(answer.verification.virtual_sm_numbers, 1U);
        CHECK_EQ(answer.verification.overlap_count, 0U);
    });
    unsetenv("GCX_SIM_MPS");
}

void shared_sms_are_one_problem() {
    setenv("GCX_SIM_DYNAMIC_PARALLELISM", "1", 1);
    on_machine("h200@13.0", [] {
        const Split parts = split(whole_device(), {24, 16});
        const Partition a(parts.groups[0]);
        const Partition b(parts.groups[1]);
        const Answer answer = verify({a.stream, b.stream});
        CHECK_EQ(answer.verification.ok, 0U);
        CHECK_EQ(answer.verification.problem_count, 1U);
        CHECK(has_problem(answer, "SMs 124-125 are shared by all partitions of this process"));
        CHECK(sm_ids(answer.verification.shared_by_all) == SmIds({124, 125}));
        CHECK_EQ(answer.streams[0].seen_count, 26U);
    });
    unsetenv("GCX_SIM_DYNAMIC_PARALLELISM");
}

// The list has room for fewer problems than there are.
void excess_problems_are_counted() {
    const gcx_resource whole = whole_device();
    std::vector<std::unique_ptr<Partition>> parts;
    std::vector<gcx_stream> streams;
    for (uint32_t count = 8; count <= 128; count += 8) {
        for (int i = 0; i < 6; i++) {
            parts.push_back(std::make_unique<Partition>(split(whole, {count}).groups[0]));
            streams.push_back(parts.back()->stream);
        }
    }
    const Answer answer = verify(streams);
    CHECK_EQ(answer.verification.ok, 0U);
    CHECK(answer.verification.problem_count > 1);
    const std::string text = answer.verification.problems;
    CHECK(text.size() < sizeof answer.verification.problems);
    CHECK(text.ends_with(" more"));
}

void invalid_streams_are_refused() {
    on_machine("2xh100@13.0", [] {
        const Partition a(split(whole_device(0), {24}).groups[0]);
        const Partition b(split(whole_device(1), {24}).groups[0]);
        gcx_verification found = GCX_VERIFICATION_INIT;
        const gcx_stream both[] = {a.stream, b.stream};
        CHECK_REFUSED(gcx_verify(both, 2, nullptr, &found), GCX_ERROR_INVALID_VALUE);
        CHECK_REFUSED(gcx_verify(both, 0, nullptr, &found), GCX_ERROR_INVALID_VALUE);
        CHECK_REFUSED(gcx_verify(nullptr, 1, nullptr, &found), GCX_ERROR_INVALID_VALUE);
        CHECK_REFUSED(gcx_verify(both, 1, nullptr, nullptr), GCX_ERROR_INVALID_VALUE);
        const gcx_stream none = nullptr;
        CHECK_REFUSED(gcx_verify(&none, 1, nullptr, &found), GCX_ERROR_INVALID_HANDLE);
        found.struct_size = 8;
        CHECK_REFUSED(gcx_verify(both, 1, nullptr, &found), GCX_ERROR_INVALID_VALUE);
    });
}

} // namespace

int main() {
    for (const auto test : {overlapping_partitions_are_reported, shared_leases_have_sms_in_common,
                            excess_problems_are_counted})
        on_machine("h100@13.0", test);
    disjoint_partitions_verify();
    virtual_numbers_are_reported();
    shared_sms_are_one_problem();
    invalid_streams_are_refused();
    return support::summary("verify");
}
