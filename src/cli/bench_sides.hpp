// The two sides that gcx bench compares: each does the same steps, by gcx or by the driver's own
// calls. Times are microseconds, of the part of a step that counts.
#pragma once

#include "cli/checked.hpp"
#include "cli/raw_driver.hpp"

#include <gcx.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gcx::cli {

// What both divide a device into.
struct BenchShape {
    int32_t device = 0;
    unsigned atom_count = 0; // equal ones, 31 at most
    unsigned atom_sms = 0;
    unsigned small = 0; // SMs of the smaller of two partitions
};

// Throws Failure if the device can't be divided.
BenchShape bench_shape(int32_t device);

class GcxSide {
  public:
    explicit GcxSide(const BenchShape& shape);

    // A context over the smaller partition.
    Context small_context() const;

    double query() const;
    // A split into all atoms, and a context over those in set, by bits.
    double first_context(uint32_t set) const;
    // A context over the smaller partition, which has or had one, and its destruction.
    double kept_context() const;
    double stream(const Context& context) const;
    // Split in two, a context and a stream in each, all destroyed.
    double round() const;

  private:
    BenchShape shape_;
    gcx_resource whole_{};
    gcx_resource small_{};
};

class DriverSide {
  public:
    DriverSide(const gcx_driver_info& driver, const BenchShape& shape);

    // A description of the smaller partition, of which contexts are made.
    RawHandle describe_small() const;
    // Bytes of device memory; needs a current context.
    std::size_t used_memory() const;

    double query() const;
    double first_context(uint32_t set) const;
    double kept_context(RawHandle description) const;
    double stream(RawHandle green) const;
    double round() const;

  private:
    RawResource split(RawResource& group) const;
    RawHandle describe(std::vector<RawResource>& resources) const;
    RawHandle make_green(RawHandle description) const;

    BenchShape shape_;
    RawDriver raw_;
    int device_;
    RawResource whole_;
};

} // namespace gcx::cli
