// Kernel launches. Kernels are not executed; a few that are known by name have a duration or an
// effect of their own.
#include "sim/device/device.hpp"
#include "sim/entry/entry.hpp"
#include "sim/work/work.hpp"

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

// Assigns blocks to the SMs of the context in turn. Under MPS, %smid is virtual and counts the
// context's SMs from 0 (recorded with driver 580 and two partitions of a process).
void count_blocks(Machine& machine, const SmList& sms, uint64_t blocks,
                  const ProbeArguments& arguments) {
    std::byte* const counts =
        device_bytes(machine, arguments.counts, std::size_t{arguments.max_sms} * 4);
    if (counts == nullptr || sms.empty())
        return;
    for (std::size_t i = 0; i < sms.size(); i++) {
        const std::size_t number = machine.mps ? i : sms[i];
        if (number >= arguments.max_sms)
            continue;
        const auto more =
            static_cast<uint32_t>(blocks / sms.size() + (i < blocks % sms.size() ? 1 : 0));
        uint32_t count = 0;
        std::memcpy(&count, counts + number * 4, sizeof count);
        count += more;
        std::memcpy(counts + number * 4, &count, sizeof count);
    }
}

using KernelEffect = std::function<void(Machine&)>;

KernelEffect probe_effect(Machine& machine, const Work& work) {
    return [sms = to_list(kernel_sms(machine, *work.context)), blocks = work.config.blocks(),
            arguments = probe_arguments(work)](Machine& later) {
        count_blocks(later, sms, blocks, arguments);
    };
}

uint64_t probe_duration(const Machine& machine, const Work& work) {
    // Two blocks run on each SM at a time.
    const uint64_t blocks_per_round =
        std::max<uint64_t>(kernel_sms(machine, *work.context).count() * 2, 1);
    return (work.config.blocks() + blocks_per_round - 1) / blocks_per_round *
           probe_arguments(work).spin_ns;
}

// Reads and writes numbers of 32 bits in the memory of the machine; nothing if there is none.
uint32_t read_number(Machine& machine, uint64_t address) {
    uint32_t number = 0;
    if (const std::byte* const data = device_bytes(machine, address, sizeof number))
        std::memcpy(&number, data, sizeof number);
    return number;
}

void write_number(Machine& machine, uint64_t address, uint32_t number) {
    if (std::byte* const data = device_bytes(machine, address, sizeof number))
        std::memcpy(data, &number, sizeof number);
}

KernelEffect store_effect(Machine&, const Work& work) {
    return [to = read_argument<uint64_t>(work, 0), value = read_argument<uint32_t>(work, 8)](
               Machine& later) { write_number(later, to, value); };
}

KernelEffect load_effect(Machine&, const Work& work) {
    return [to = read_argument<uint64_t>(work, 0), from = read_argument<uint64_t>(work, 8)](
               Machine& later) { write_number(later, to, read_number(later, from)); };
}

KernelEffect add_effect(Machine&, const Work& work) {
    return [to = read_argument<uint64_t>(work, 0), value = read_argument<uint32_t>(work, 8)](
               Machine& later) { write_number(later, to, read_number(later, to) * 3 + value); };
}

// The kernels that are known by name. Cubins and fatbins do not list parameters.
struct KnownKernel {
    std::string_view name;
    std::vector<KernelParameter> parameters;
    uint64_t (*duration)(const Machine&, const Work&); // null: that of unknown kernels
    KernelEffect (*effect)(Machine&, const Work&);     // null: none
};

const KnownKernel* find_known(std::string_view name) {
    static const auto* const kernels = new std::vector<KnownKernel>{
        {"gcx_probe", {{0, 8}, {8, 4}, {12, 4}}, probe_duration, probe_effect},
        // gcx_spin(uint64_t nanoseconds)
        {"gcx_spin",
         {{0, 8}},
         [](const Machine&, const Work& work) { return read_argument<uint64_t>(work, 0); },
         nullptr},
        // gcx_store(uint32_t* to, uint32_t value, uint64_t after_ns): *to = value
        {"gcx_store",
         {{0, 8}, {8, 4}, {16, 8}},
         [](const Machine&, const Work& work) { return read_argument<uint64_t>(work, 16); },
         store_effect},
        // gcx_load(uint32_t* to, const uint32_t* from): *to = *from
        {"gcx_load", {{0, 8}, {8, 8}}, nullptr, load_effect},
        // gcx_add(uint32_t* to, uint32_t value): *to = *to * 3 + value
        {"gcx_add", {{0, 8}, {8, 4}}, nullptr, add_effect},
    };
    if (!name.starts_with("gcx_"))
        return nullptr;
    const auto found = std::ranges::find(*kernels, name, &KnownKernel::name);
    return found == kernels->end() ? nullptr : &*found;
}

const KnownKernel* find_known(Machine& machine, const Work& work) {
    const Function* const function = find_function(machine, work.function);
    return function == nullptr ? nullptr : find_known(function->code.name);
}

std::vector<KernelParameter> parameters_of(const KernelCode& code) {
    const KnownKernel* const known = code.parameters.empty() ? find_known(code.name) : nullptr;
    return known == nullptr ? code.parameters : known->parameters;
}

void take_buffer(void** extra, std::vector<std::byte>& arguments) {
    const std::byte* buffer = nullptr;
    std::size_t size = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = static_cast<const std::byte*>(extra[1]);
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            std::memcpy(&size, extra[1], sizeof size);
        else
            refuse(CUDA_ERROR_INVALID_VALUE);
    }
    if (buffer != nullptr)
        arguments.assign(buffer, buffer + size);
}

void launch(Machine& machine, CUfunction function_handle, CUstream stream_handle,
            const LaunchConfig& config, void** parameters, void** extra,
            std::map<int, std::string> attributes = {}) {
    refuse_dead_stream(machine, stream_handle);
    const Function& function = function_of(machine, to_handle(function_handle));
    Stream& stream = stream_of(machine, stream_handle);
    try {
        check_launch(machine, *stream.context, function.handle, config);
    } catch (const Refusal& refusal) { // recorded
        if (refusal.result == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE && stream.capture != nullptr)
            stream.capture->invalid = true;
        throw;
    }
    Work work(Work::Kind::Kernel);
    work.context = stream.context;
    work.function = function.handle;
    work.by_kernel = function.kernel != 0;
    work.config = config;
    work.attributes = std::move(attributes);
    pack_arguments(function, parameters, extra, work);
    submit(machine, stream, std::move(work));
}

void check_clusters(const Device& device, const Function& function, const Fragments& fragments,
                    const LaunchConfig& config) {
    // Recorded: refused if no cluster of that size fits in the partition.
    require(config.cluster_blocks() <= max_cluster_size(device, function, fragments, config) &&
                active_clusters(device, function, fragments, config) != 0,
            static_cast<CUresult>(CUDA_ERROR_INVALID_CLUSTER_SIZE));
}

} // namespace

// Recorded on an H200: contexts made before the module was loaded share the SMs too.
SmSet kernel_sms(const Machine& machine, const Context& context) {
    const Device& device = *context.device;
    const bool shares = machine.dynamic_parallelism || device.dynamic_parallelism;
    return shares ? context.sms | device.profile.dynamic_parallelism_sms : context.sms;
}

void pack_arguments(const Function& function, void** parameters, void** extra, Work& work) {
    require(parameters == nullptr || extra == nullptr);
    work.arguments.clear();
    work.argument_offsets.clear();
    const std::vector<KernelParameter> known = parameters_of(function.code);
    for (const KernelParameter& parameter : known)
        work.argument_offsets.push_back(parameter.offset);
    if (extra != nullptr)
        return take_buffer(extra, work.arguments);
    if (known.empty())
        return;
    require(parameters != nullptr);
    work.arguments.resize(known.back().offset + known.back().size);
    for (std::size_t i = 0; i < known.size(); i++)
        if (parameters[i] != nullptr)
            std::memcpy(work.arguments.data() + known[i].offset, parameters[i], known[i].size);
}

void check_limits(const Device& device, const Function& function, const LaunchConfig& config) {
    const auto some = [](const unsigned* size) {
        return size[0] != 0 && size[1] != 0 && size[2] != 0;
    };
    require(some(config.grid) && some(config.block) && config.block[0] <= 1024 &&
            config.block[1] <= 1024 && config.block[2] <= 64 && config.threads() <= 1024 &&
            config.grid[0] <= 2147483647U && config.grid[1] <= 65535 && config.grid[2] <= 65535);
    const auto shared = function.attributes.find(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    require(config.shared_bytes <=
            (shared == function.attributes.end() ? 49152U : static_cast<unsigned>(shared->second)));
    if (config.cluster_blocks() <= 1)
        return;
    require(device.profile.major >= 9, CUDA_ERROR_NOT_SUPPORTED);
    for (int i = 0; i < 3; i++)
        require(config.grid[i] % config.cluster[i] == 0);
}

void check_launch(Machine& machine, const Context& context, Handle function_handle,
                  const LaunchConfig& config) {
    const Function& function = function_of(machine, function_handle);
    const Device& device = *context.device;
    check_limits(device, function, config);
    if (config.cluster_blocks() > 1)
        check_clusters(device, function, context.fragments, config);
    if (config.cooperative) {
        // Assumed: SMs shared through dynamic parallelism do not count.
        const uint64_t capacity =
            uint64_t{blocks_per_sm(device, function, config.threads(), config.shared_bytes)} *
            context.sms.count();
        require(config.blocks() <= capacity, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    }
}

uint64_t kernel_duration(Machine& machine, const Work& work) {
    const KnownKernel* const known = find_known(machine, work);
    return known == nullptr || known->duration == nullptr ? machine.kernel_ns
                                                          : known->duration(machine, work);
}

std::function<void(Machine&)> kernel_effect(Machine& machine, const Work& work) {
    const KnownKernel* const known = find_known(machine, work);
    return known == nullptr || known->effect == nullptr ? KernelEffect()
                                                        : known->effect(machine, work);
}

LaunchConfig read_config(const CUlaunchConfig& given) {
    return {{given.gridDimX, given.gridDimY, given.gridDimZ},
            {given.blockDimX, given.blockDimY, given.blockDimZ},
            given.sharedMemBytes,
            {0, 0, 0},
            false};
}

void read_launch_attributes(const CUlaunchAttribute* list, unsigned count, LaunchConfig& config,
                            std::map<int, std::string>& attributes) {
    for (unsigned i = 0; i < count; i++) {
        const CUlaunchAttribute& attribute = list[i];
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            config.cluster[0] = attribute.value.clusterDim.x;
            config.cluster[1] = attribute.value.clusterDim.y;
            config.cluster[2] = attribute.value.clusterDim.z;
        } else if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
            config.cooperative = attribute.value.cooperative != 0;
        }
        attributes[attribute.id] =
            std::string(reinterpret_cast<const char*>(&attribute.value), sizeof attribute.value);
    }
}

GCX_SIM_STREAM_API(cuLaunchKernel, _ptsz,
                   (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                    CUstream stream, void** parameters, void** extra),
                   (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                    parameters, extra)) {
    GCX_SIM_BODY({
        const LaunchConfig config{
            {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, {0, 0, 0}, false};
        launch(machine, function, stream, config, parameters, extra);
    });
}

GCX_SIM_STREAM_API(cuLaunchCooperativeKernel, _ptsz,
                   (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                    CUstream stream, void** parameters),
                   (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                    parameters)) {
    GCX_SIM_BODY({
        const LaunchConfig config{
            {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, {0, 0, 0}, true};
        launch(machine, function, stream, config, parameters, nullptr);
    });
}

GCX_SIM_STREAM_API(cuLaunchKernelEx, _ptsz,
                   (const CUlaunchConfig* given, CUfunction function, void** parameters,
                    void** extra),
                   (given, function, parameters, extra)) {
    GCX_SIM_BODY({
        require(given != nullptr && (given->attrs != nullptr || given->numAttrs == 0));
        LaunchConfig config = read_config(*given);
        std::map<int, std::string> attributes;
        read_launch_attributes(given->attrs, given->numAttrs, config, attributes);
        launch(machine, function, given->hStream, config, parameters, extra, std::move(attributes));
    });
}

// The launches of CUDA 3, whose functions hold the shape and the arguments. Recorded: they are actions
// in NULL.

namespace {

void set_argument(Machine& machine, CUfunction handle, int offset, const void* value,
                  std::size_t bytes) {
    Function& function = function_of(machine, to_handle(handle));
    require(offset >= 0 && value != nullptr);
    const auto begin = static_cast<std::size_t>(offset);
    auto& arguments = function.legacy_arguments;
    arguments.resize(std::max(arguments.size(), begin + bytes));
    std::memcpy(arguments.data() + begin, value, bytes);
}

void launch_legacy(Machine& machine, CUfunction handle, int width, int height,
                   CUstream stream = nullptr) {
    require(width > 0 && height > 0);
    Function& function = function_of(machine, to_handle(handle));
    LaunchConfig config = function.legacy_config;
    config.grid[0] = static_cast<unsigned>(width);
    config.grid[1] = static_cast<unsigned>(height);
    std::size_t size = function.legacy_arguments.size();
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, function.legacy_arguments.data(),
                     CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    launch(machine, handle, stream, config, nullptr, extra);
}

} // namespace

GCX_SIM_API(cuFuncSetBlockShape, CUfunction handle, int x, int y, int z) {
    GCX_SIM_BODY({
        require(x > 0 && y > 0 && z > 0);
        unsigned* const block = function_of(machine, to_handle(handle)).legacy_config.block;
        block[0] = static_cast<unsigned>(x);
        block[1] = static_cast<unsigned>(y);
        block[2] = static_cast<unsigned>(z);
    });
}

GCX_SIM_API(cuFuncSetSharedSize, CUfunction handle, unsigned bytes) {
    GCX_SIM_BODY(function_of(machine, to_handle(handle)).legacy_config.shared_bytes = bytes);
}

GCX_SIM_API(cuParamSetSize, CUfunction handle, unsigned bytes) {
    GCX_SIM_BODY(function_of(machine, to_handle(handle)).legacy_arguments.resize(bytes));
}

GCX_SIM_API(cuParamSeti, CUfunction handle, int offset, unsigned value) {
    GCX_SIM_BODY(set_argument(machine, handle, offset, &value, sizeof value));
}

GCX_SIM_API(cuParamSetf, CUfunction handle, int offset, float value) {
    GCX_SIM_BODY(set_argument(machine, handle, offset, &value, sizeof value));
}

GCX_SIM_API(cuParamSetv, CUfunction handle, int offset, void* value, unsigned bytes) {
    GCX_SIM_BODY(set_argument(machine, handle, offset, value, bytes));
}

GCX_SIM_API(cuLaunch, CUfunction handle) {
    GCX_SIM_BODY(launch_legacy(machine, handle, 1, 1));
}

GCX_SIM_API(cuLaunchGrid, CUfunction handle, int width, int height) {
    GCX_SIM_BODY(launch_legacy(machine, handle, width, height));
}

GCX_SIM_API(cuLaunchGridAsync, CUfunction handle, int width, int height, CUstream stream) {
    GCX_SIM_BODY(launch_legacy(machine, handle, width, height, stream));
}

} // namespace gcx::sim
