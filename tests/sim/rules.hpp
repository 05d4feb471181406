// One test for each rule of the header's text, named after it.
#pragma once

#include "support.hpp"

#include <functional>
#include <string>
#include <vector>

namespace sim_test {

struct Rule {
    const char* text;
    std::function<void()> test;
};

std::vector<Rule> structured_split_rules();
std::vector<Rule> descriptor_rules();
std::vector<Rule> context_rules();

// cuDevSmResourceSplit of the device's SMs.
struct Structured {
    CUresult result = CUDA_SUCCESS;
    std::vector<CUdevResource> groups;
    CUdevResource remainder{};
    std::vector<cu::SmGroupParams> params;
};
Structured structured(std::vector<cu::SmGroupParams> params, bool dry = false,
                      const CUdevResource* input = nullptr, unsigned flags = 0);

std::vector<unsigned> sms_of(const CUdevResource& resource);

inline constexpr auto kOk = CUDA_SUCCESS;
inline constexpr auto kInvalid = CUDA_ERROR_INVALID_VALUE;
inline constexpr auto kImpossible = static_cast<CUresult>(915);
inline constexpr auto kWrongType = static_cast<CUresult>(914);

} // namespace sim_test
