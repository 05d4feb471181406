// Kernel launches. Kernels are not executed: two that are known by name have their effect and time.
#include "sim/edge/entry.hpp"

#include <algorithm>
#include <cstring>

namespace gcx::sim {
namespace {

// gcx_probe(CUdeviceptr counts, uint32_t max_sms, uint32_t spin_ns): each block adds one to
// counts[%smid] where that is below max_sms, then spins.
struct ProbeArguments {
    CUdeviceptr counts = 0;
    uint32_t max_sms = 0;
    uint32_t spin_ns = 0;
};
constexpr const char* kProbe = "gcx_probe";

// gcx_spin(uint64_t nanoseconds)
constexpr const char* kSpin = "gcx_spin";

std::vector<KernelParameter> parameters_of(const KernelCode& code) {
    if (!code.parameters.empty())
        return code.parameters;
    // Of cubins and fatbins only these two are known.
    if (code.name == kProbe)
        return {{0, 8}, {8, 4}, {12, 4}};
    if (code.name == kSpin)
        return {{0, 8}};
    return {};
}

template <class T>
T read_argument(const Work& work, std::size_t offset) {
    T value{};
    if (offset + sizeof value <= work.arguments.size())
        std::memcpy(&value, work.arguments.data() + offset, sizeof value);
    return value;
}

ProbeArguments probe_arguments(const Work& work) {
    return {read_argument<CUdeviceptr>(work, 0), read_argument<uint32_t>(work, 8),
            read_argument<uint32_t>(work, 12)};
}

// Blocks go to the SMs of the context in turn.
void count_blocks(Machine& machine, const Work& work, const ProbeArguments& arguments) {
    const SmList sms = to_list(work.context->sms);
    std::byte* const counts =
        device_bytes(machine, arguments.counts, std::size_t{arguments.max_sms} * 4);
    if (counts == nullptr || sms.empty())
        return;
    const uint64_t blocks = work.config.blocks();
    for (std::size_t i = 0; i < sms.size(); i++) {
        if (sms[i] >= arguments.max_sms)
            continue;
        const auto more =
            static_cast<uint32_t>(blocks / sms.size() + (i < blocks % sms.size() ? 1 : 0));
        uint32_t count = 0;
        std::memcpy(&count, counts + std::size_t{sms[i]} * 4, sizeof count);
        count += more;
        std::memcpy(counts + std::size_t{sms[i]} * 4, &count, sizeof count);
    }
}

bool take_buffer(void** extra, std::vector<std::byte>& arguments) {
    const std::byte* buffer = nullptr;
    std::size_t size = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = static_cast<const std::byte*>(extra[1]);
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            std::memcpy(&size, extra[1], sizeof size);
        else
            return false;
    }
    if (buffer != nullptr)
        arguments.assign(buffer, buffer + size);
    return true;
}

CUresult launch(Machine& machine, CUfunction function_handle, CUstream stream_handle,
                const LaunchConfig& config, void** parameters, void** extra,
                std::map<int, std::string> attributes = {}) {
    if (machine.dead_streams.contains(to_handle(stream_handle)))
        crash("a launch on a destroyed stream");
    const Function* const function = find_function(machine, to_handle(function_handle));
    if (function == nullptr)
        return CUDA_ERROR_INVALID_HANDLE;
    Stream* stream = nullptr;
    if (const CUresult code = check_stream(machine, stream_handle, stream); code != CUDA_SUCCESS)
        return code;
    if (const CUresult code = check_launch(machine, *stream->context, function->handle, config);
        code != CUDA_SUCCESS)
        return code;
    Work work;
    work.kind = Work::Kind::Kernel;
    work.context = stream->context;
    work.function = function->handle;
    work.by_kernel = function->kernel != 0;
    work.config = config;
    work.attributes = std::move(attributes);
    if (const CUresult code = pack_arguments(*function, parameters, extra, work);
        code != CUDA_SUCCESS)
        return code;
    return submit(machine, *stream, std::move(work));
}

} // namespace

CUresult pack_arguments(const Function& function, void** parameters, void** extra, Work& work) {
    if (parameters != nullptr && extra != nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    work.arguments.clear();
    work.argument_offsets.clear();
    const std::vector<KernelParameter> known = parameters_of(function.code);
    for (const KernelParameter& parameter : known)
        work.argument_offsets.push_back(parameter.offset);
    if (extra != nullptr)
        return take_buffer(extra, work.arguments) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (known.empty())
        return CUDA_SUCCESS;
    if (parameters == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    work.arguments.resize(known.back().offset + known.back().size);
    for (std::size_t i = 0; i < known.size(); i++)
        if (parameters[i] != nullptr)
            std::memcpy(work.arguments.data() + known[i].offset, parameters[i], known[i].size);
    return CUDA_SUCCESS;
}

CUresult check_launch(Machine& machine, const Context& context, Handle function_handle,
                      const LaunchConfig& config) {
    const Function* const function = find_function(machine, function_handle);
    const Device& device = *context.device;
    if (function == nullptr)
        return CUDA_ERROR_INVALID_HANDLE;
    const auto zero = [](const unsigned* size) { return size[0] * size[1] * size[2] == 0; };
    if (zero(config.grid) || zero(config.block) || config.threads() > 1024 ||
        config.block[2] > 64 || config.grid[0] > 2147483647U || config.grid[1] > 65535 ||
        config.grid[2] > 65535)
        return CUDA_ERROR_INVALID_VALUE;
    const auto shared = function->attributes.find(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    if (config.shared_bytes >
        (shared == function->attributes.end() ? 49152U : static_cast<unsigned>(shared->second)))
        return CUDA_ERROR_INVALID_VALUE;
    if (const unsigned cluster = config.cluster_blocks(); cluster > 1) {
        if (device.profile.major < 9)
            return CUDA_ERROR_NOT_SUPPORTED;
        for (int i = 0; i < 3; i++)
            if (config.grid[i] % config.cluster[i] != 0)
                return CUDA_ERROR_INVALID_VALUE;
        // Recorded: refused where no cluster of that size fits the partition.
        if (cluster > max_cluster_size(device, *function, context.fragments, config) ||
            active_clusters(device, *function, context.fragments, config) == 0)
            return static_cast<CUresult>(CUDA_ERROR_INVALID_CLUSTER_SIZE);
    }
    if (config.cooperative) {
        const uint64_t capacity =
            uint64_t{blocks_per_sm(device, *function, config.threads(), config.shared_bytes)} *
            context.sms.count();
        if (config.blocks() > capacity)
            return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    }
    return CUDA_SUCCESS;
}

uint64_t kernel_duration(Machine& machine, const Work& work) {
    const Function* const function = find_function(machine, work.function);
    if (function == nullptr)
        return machine.kernel_ns;
    if (function->code.name == kSpin)
        return read_argument<uint64_t>(work, 0);
    if (function->code.name == kProbe) {
        // Two blocks at once on each SM.
        const uint64_t at_once = std::max<uint64_t>(work.context->sms.count() * 2, 1);
        return (work.config.blocks() + at_once - 1) / at_once * probe_arguments(work).spin_ns;
    }
    return machine.kernel_ns;
}

void kernel_effect(Machine& machine, const Work& work) {
    const Function* const function = find_function(machine, work.function);
    if (function != nullptr && function->code.name == kProbe)
        count_blocks(machine, work, probe_arguments(work));
}

void read_launch_attributes(const CUlaunchAttribute* attributes, unsigned count,
                            LaunchConfig& config, std::map<int, std::string>& kept) {
    for (unsigned i = 0; i < count; i++) {
        const CUlaunchAttribute& attribute = attributes[i];
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            config.cluster[0] = attribute.value.clusterDim.x;
            config.cluster[1] = attribute.value.clusterDim.y;
            config.cluster[2] = attribute.value.clusterDim.z;
        } else if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
            config.cooperative = attribute.value.cooperative != 0;
        }
        kept[attribute.id] =
            std::string(reinterpret_cast<const char*>(&attribute.value), sizeof attribute.value);
    }
}

GCX_SIM_API(cuLaunchKernel, CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, CUstream stream,
            void** parameters, void** extra) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const LaunchConfig config{
            {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, {0, 0, 0}, false};
        return launch(machine, function, stream, config, parameters, extra);
    });
}

GCX_SIM_API(cuLaunchCooperativeKernel, CUfunction function, unsigned grid_x, unsigned grid_y,
            unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
            CUstream stream, void** parameters) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const LaunchConfig config{
            {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, {0, 0, 0}, true};
        return launch(machine, function, stream, config, parameters, nullptr);
    });
}

GCX_SIM_API(cuLaunchKernelEx, const CUlaunchConfig* launch_config, CUfunction function,
            void** parameters, void** extra) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (launch_config == nullptr ||
            (launch_config->attrs == nullptr && launch_config->numAttrs))
            return CUDA_ERROR_INVALID_VALUE;
        LaunchConfig config{
            {launch_config->gridDimX, launch_config->gridDimY, launch_config->gridDimZ},
            {launch_config->blockDimX, launch_config->blockDimY, launch_config->blockDimZ},
            launch_config->sharedMemBytes,
            {0, 0, 0},
            false};
        std::map<int, std::string> attributes;
        read_launch_attributes(launch_config->attrs, launch_config->numAttrs, config, attributes);
        return launch(machine, function, launch_config->hStream, config, parameters, extra,
                      std::move(attributes));
    });
}

} // namespace gcx::sim
