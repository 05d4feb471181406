// The replay of facts/h100-driver580-probe.txt: its lines share a context.
#pragma once

#include "replay.hpp"

#include <memory>

namespace sim_test {

struct Probe : Log {
    std::unique_ptr<Primary> primary;
    CUdevResource device{};
    Split base;

    std::vector<Kind> kinds() override;
    std::vector<Kind> cost_kinds();
    void retain();
    void sms(const std::string& what, CUstream stream);
    std::string clusters(CUstream stream, const char* asked);
    void group(std::size_t index);
    void remainder();
    void combination(unsigned count);
    void with_remainder(unsigned count);
    void direct(unsigned count, unsigned flags);
    void fine();
    void sub_split();
    void creation_costs(unsigned count);
    void many();
    void priorities();
    void one_context();
    void graphs();
    void captured(const Partition& large, const Partition& small, CUstream plain);
    void forked(const Partition& large, const Partition& small, CUstream plain, CUevent fork);
    void launches(CUstream plain, CUstream small, CUstream large);
    void launch(CUstream stream, CUdeviceptr counts);
    unsigned counted(CUdeviceptr counts);
};

} // namespace sim_test
