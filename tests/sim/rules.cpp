// What the header of CUDA 13.1 to 13.5 says, rule by rule. No driver that has it was measured.
#include "rules.hpp"

#include <cstring>

namespace sim_test {

Structured structured(std::vector<cu::SmGroupParams> params, bool dry, const CUdevResource* input,
                      unsigned flags) {
    const CUdevResource device = query();
    Structured made;
    made.params = std::move(params);
    made.groups.resize(made.params.size());
    made.result = later().split(
        dry ? nullptr : made.groups.data(), static_cast<unsigned>(made.params.size()),
        input == nullptr ? &device : input, &made.remainder, flags, made.params.data());
    return made;
}

// Seen by a kernel, on a context of its own.
std::vector<unsigned> sms_of(const CUdevResource& resource) {
    Primary primary;
    const Partition part({resource});
    CHECK_OK(part.result);
    return primary.sms(part.stream);
}

} // namespace sim_test

using namespace sim_test;

int main() {
    int rules = 0;
    for (const auto& list : {structured_split_rules(), descriptor_rules(), context_rules()}) {
        for (const Rule& rule : list) {
            CHECK_EQ(gcx_sim_configure("h100@13.5"), 0);
            CHECK_OK(cuInit(0));
            const int before = check::failed.load();
            rule.test();
            if (check::failed.load() != before)
                std::fprintf(stderr, "  of the rule: %s\n", rule.text);
            rules++;
        }
    }
    std::printf("%d rules\n", rules);
    return check::summary("rules of the header");
}
