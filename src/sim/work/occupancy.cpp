// The number of blocks and clusters that fit.
#include "sim/entry/entry.hpp"
#include "sim/work/work.hpp"

#include <algorithm>

namespace gcx::sim {
namespace {

constexpr unsigned kPortableClusterSize = 8;

unsigned attribute_or(const Function& function, int attribute, unsigned otherwise) {
    const auto found = function.attributes.find(attribute);
    return found == function.attributes.end() ? otherwise : static_cast<unsigned>(found->second);
}

unsigned largest_allowed(const Device& device, const Function& function) {
    const auto largest = static_cast<unsigned>(device.profile.number("max_cluster_size"));
    return attribute_or(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 0) != 0
               ? largest
               : std::min(largest, kPortableClusterSize);
}

void give_active_blocks(Machine& machine, int* out, CUfunction handle, int threads,
                        std::size_t shared) {
    const Context& context = current_context(machine);
    const Function& function = function_of(machine, to_handle(handle));
    require(out != nullptr && threads >= 1 && threads <= 1024);
    *out = static_cast<int>(
        blocks_per_sm(*context.device, function, static_cast<unsigned>(threads), shared));
}

void give_best_block_size(Machine& machine, int* grid, int* block, CUfunction handle,
                          CUoccupancyB2DSize shared_of, std::size_t shared, int limit) {
    const Context& context = current_context(machine);
    const Function& function = function_of(machine, to_handle(handle));
    require(grid != nullptr && block != nullptr && limit >= 0);
    const int maximum = limit == 0 ? 1024 : std::min(limit, 1024);
    unsigned best = 0;
    for (int threads = maximum; threads >= 32; threads -= 32) {
        const std::size_t bytes = shared_of == nullptr ? shared : shared_of(threads);
        const unsigned blocks =
            blocks_per_sm(*context.device, function, static_cast<unsigned>(threads), bytes);
        if (blocks * static_cast<unsigned>(threads) > best) {
            best = blocks * static_cast<unsigned>(threads);
            *block = threads;
            *grid = static_cast<int>(blocks * context.sms.count());
        }
    }
}

// A launch with clusters, on the SMs of its stream.
struct ClusterQuery {
    ClusterQuery(Machine& machine, CUfunction handle, const CUlaunchConfig* launch)
        : context(*stream_of(machine, known(launch).hStream).context), device(*context.device),
          function(function_of(machine, to_handle(handle))), config(read_config(*launch)) {
        require(device.profile.major >= 9, CUDA_ERROR_NOT_SUPPORTED);
        std::map<int, std::string> ignored;
        read_launch_attributes(launch->attrs, launch->numAttrs, config, ignored);
    }

    const Context& context;
    const Device& device;
    const Function& function;
    LaunchConfig config;
};

} // namespace

unsigned blocks_per_sm(const Device& device, const Function& function, unsigned threads,
                       std::size_t dynamic_shared) {
    if (threads == 0)
        return 0;
    const Profile& profile = device.profile;
    constexpr unsigned kRegisters = 32; // of each simulated kernel
    const unsigned warps = (threads + 31) / 32;
    const auto by_threads = static_cast<unsigned>(profile.number("threads_per_sm")) / (warps * 32);
    const auto by_blocks = static_cast<unsigned>(profile.number("blocks_per_sm"));
    const auto by_registers =
        static_cast<unsigned>(profile.number("registers_per_sm")) / (warps * 32 * kRegisters);
    const std::size_t limit =
        attribute_or(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 49152);
    if (dynamic_shared > limit)
        return 0;
    const std::size_t shared = dynamic_shared + 1024; // reserved by the system for each block
    const auto by_shared = static_cast<unsigned>(
        static_cast<std::size_t>(profile.number("shared_memory_per_sm")) / shared);
    return std::min({by_threads, by_blocks, by_registers, by_shared});
}

// A GPC's part of the partition can hold clusters if it has one SM for each block of a cluster. It
// then holds as many as its SMs have room for. This yields every recorded number.
unsigned active_clusters(const Device& device, const Function& function, const Fragments& fragments,
                         const LaunchConfig& config) {
    const unsigned cluster = std::max(config.cluster_blocks(), 1U);
    const unsigned blocks = blocks_per_sm(device, function, config.threads(), config.shared_bytes);
    unsigned clusters = 0;
    for (const SmSet& fragment : fragments) {
        const auto sms = static_cast<unsigned>(fragment.count());
        if (sms >= cluster)
            clusters += sms * blocks / cluster;
    }
    return clusters;
}

unsigned max_cluster_size(const Device& device, const Function& function,
                          const Fragments& fragments, const LaunchConfig& config) {
    unsigned largest = 0;
    if (blocks_per_sm(device, function, config.threads(), config.shared_bytes) > 0)
        for (const SmSet& fragment : fragments)
            largest = std::max(largest, static_cast<unsigned>(fragment.count()));
    return std::min(largest, largest_allowed(device, function));
}

GCX_SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessor, int* out, CUfunction function, int threads,
            std::size_t shared) {
    GCX_SIM_BODY(give_active_blocks(machine, out, function, threads, shared));
}

GCX_SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int* out, CUfunction function,
            int threads, std::size_t shared, unsigned) {
    GCX_SIM_BODY(give_active_blocks(machine, out, function, threads, shared));
}

GCX_SIM_API(cuOccupancyMaxPotentialBlockSize, int* grid, int* block, CUfunction function,
            CUoccupancyB2DSize shared_of, std::size_t shared, int limit) {
    GCX_SIM_BODY(give_best_block_size(machine, grid, block, function, shared_of, shared, limit));
}

GCX_SIM_API(cuOccupancyMaxPotentialBlockSizeWithFlags, int* grid, int* block, CUfunction function,
            CUoccupancyB2DSize shared_of, std::size_t shared, int limit, unsigned) {
    GCX_SIM_BODY(give_best_block_size(machine, grid, block, function, shared_of, shared, limit));
}

GCX_SIM_API(cuOccupancyMaxPotentialClusterSize, int* out, CUfunction function,
            const CUlaunchConfig* launch) {
    GCX_SIM_BODY({
        const ClusterQuery query(machine, function, launch);
        give(out, static_cast<int>(max_cluster_size(query.device, query.function,
                                                    query.context.fragments, query.config)));
    });
}

GCX_SIM_API(cuOccupancyMaxActiveClusters, int* out, CUfunction function,
            const CUlaunchConfig* launch) {
    GCX_SIM_BODY({
        const ClusterQuery query(machine, function, launch);
        require(out != nullptr);
        require(query.config.cluster_blocks() <= largest_allowed(query.device, query.function),
                static_cast<CUresult>(CUDA_ERROR_INVALID_CLUSTER_SIZE));
        *out = static_cast<int>(
            active_clusters(query.device, query.function, query.context.fragments, query.config));
    });
}

} // namespace gcx::sim
