#include "order.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstring>

namespace random_programs {
namespace {

constexpr std::size_t kDeviceWords = 64;
constexpr std::size_t kPinnedWords = 48;
constexpr std::size_t kPageableWords = 12;
constexpr std::size_t kManagedWords = 8;
constexpr std::size_t kBufferWords = 2;
constexpr int kTries = 6; // to find a word that the model allows

constexpr unsigned bit(Memory memory) {
    return 1U << static_cast<unsigned>(memory);
}
constexpr unsigned kOnDevice = bit(Memory::kDevice) | bit(Memory::kAllocated);
constexpr unsigned kOnHost = bit(Memory::kPinned) | bit(Memory::kPageable);
constexpr unsigned kInKernels = kOnDevice | bit(Memory::kPinned) | bit(Memory::kManaged);

bool on_host(const Word& word) {
    return (bit(word.memory) & kOnHost) != 0;
}

uint32_t* pointer_to(const Word& word) {
    return reinterpret_cast<uint32_t*>(word.address);
}

// The driver's thread, the device and the host access the words of host memory.
uint32_t load(uint32_t* word) {
    return std::atomic_ref(*word).load(std::memory_order_relaxed);
}
void store(uint32_t* word, uint32_t value) {
    std::atomic_ref(*word).store(value, std::memory_order_relaxed);
}

uint32_t added(uint32_t before, uint32_t value) {
    return before * 3 + value;
}

// Variants of a fill.
constexpr uint8_t kWriteValue = 0;
constexpr uint8_t kFillBytes = 1;
constexpr uint8_t kFillRows = 2;

// A fill of bytes repeats one.
uint32_t filled(const Effect& effect) {
    return effect.variant == kFillBytes ? (effect.value & 0xff) * 0x01010101U : effect.value;
}

} // namespace

Order::Order(const Cuda& cuda, const OrderOptions& options) : cuda_(cuda), options_(options) {
    const auto add = [this](const char* name, unsigned weight, bool (Order::*call)(Turn&)) {
        operations_.push_back(
            {name, weight, [this, call](Turn& turn) { return (this->*call)(turn); }});
    };
    const auto add_work = [this](const char* name, unsigned weight, Effect::Kind kind) {
        operations_.push_back(
            {name, weight, [this, kind](Turn& turn) { return work(turn, kind); }});
    };
    add_work("store by a kernel", 20, Effect::kStore);
    add_work("add by a kernel", 18, Effect::kAdd);
    add_work("load by a kernel", 20, Effect::kLoad);
    add_work("fill", 10, Effect::kFill);
    add_work("copy", 22, Effect::kCopy);
    add_work("host function", 8, Effect::kHostAdd);
    add("spin", 8, &Order::spin_for);
    add("copy without a stream", 8, &Order::copy_now);
    add("fill without a stream", 5, &Order::fill_now);
    add("write on the host", 5, &Order::write_on_host);
    add("create a stream", 4, &Order::create_stream);
    add("destroy a stream", 3, &Order::destroy_stream);
    add("synchronize a stream", 3, &Order::synchronize_stream);
    add("query a stream", 5, &Order::query_stream);
    add("get a stream's flags", 2, &Order::get_flags);
    add("synchronize the context", 1, &Order::synchronize_context);
    add("create an event", 4, &Order::create_event);
    add("destroy an event", 3, &Order::destroy_event);
    add("record an event", 10, &Order::record);
    add("wait for an event", 10, &Order::wait);
    add("synchronize an event", 2, &Order::synchronize_event);
    add("query an event", 5, &Order::query_event);
    add("order two streams", 6, &Order::order_streams);
    add("pass a word", 10, &Order::pass_word);
    add("allocate memory", 5, &Order::allocate);
    add("free memory", 5, &Order::free_buffer);
    add("capture", 34, &Order::capture);
    add("launch a graph", 12, &Order::launch_graph);
    add("upload a graph", 2, &Order::upload_graph);
    add("update a graph", 3, &Order::update_graph);
    add("destroy a graph", 2, &Order::destroy_graph);
    cuda_.enter();
    make_memory();
}

Order::~Order() {
    // Host functions of a failed program may still run.
    if (cuda_.set_current(cuda_.context) == CUDA_SUCCESS)
        cuda_.synchronize_context();
}

void Order::make_memory() {
    cuda_.check(cuda_.allocate(&device_memory_, kDeviceWords * 4), "cuMemAlloc");
    cuda_.check(cuda_.allocate_host(&pinned_memory_, kPinnedWords * 4, 0), "cuMemHostAlloc");
    cuda_.check(cuda_.allocate_managed(&managed_memory_, kManagedWords * 4, CU_MEM_ATTACH_GLOBAL),
                "cuMemAllocManaged");
    pageable_memory_.resize(kPageableWords);
    cuda_.check(cuda_.fill_now.legacy(device_memory_, 0, kDeviceWords), "cuMemsetD32");
    cuda_.check(cuda_.fill_now.legacy(managed_memory_, 0, kManagedWords), "cuMemsetD32");
    cuda_.check(cuda_.synchronize_context(), "cuCtxSynchronize");
    std::memset(pinned_memory_, 0, kPinnedWords * 4);
    add_words(kDeviceWords, Memory::kDevice, device_memory_);
    add_words(kPinnedWords, Memory::kPinned, reinterpret_cast<uint64_t>(pinned_memory_));
    add_words(kPageableWords, Memory::kPageable,
              reinterpret_cast<uint64_t>(pageable_memory_.data()));
    add_words(kManagedWords, Memory::kManaged, managed_memory_);
    for (Buffer& buffer : buffers_)
        buffer.first = add_words(kBufferWords, Memory::kAllocated, 0);
    for (CUstream& stream : spare_streams_)
        cuda_.check(cuda_.create_stream(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

// Memory without an address is not allocated yet. All other words are 0.
std::size_t Order::add_words(std::size_t count, Memory memory, uint64_t address) {
    const std::size_t first = words_.size();
    std::size_t& known = word_count_[static_cast<std::size_t>(memory)];
    if (known == 0)
        first_word_[static_cast<std::size_t>(memory)] = first;
    known += count;
    for (std::size_t i = 0; i < count; i++) {
        Word word;
        word.memory = memory;
        word.address = address + i * 4;
        word.live = word.known = address != 0;
        words_.add(word);
    }
    return first;
}

void Order::enter(unsigned) {
    cuda_.enter();
}

void Order::leave(unsigned thread) {
    if (!capture_.active || capture_.thread != thread)
        return;
    if (const CUgraph graph = leave_capture(); graph != nullptr)
        cuda_.check(cuda_.destroy_graph(graph), "cuGraphDestroy");
}

void Order::finish() {
    cuda_.enter();
    cuda_.check(cuda_.synchronize_context(), "cuCtxSynchronize");
    host_waits(timelines_.all_work());
    for (std::size_t i = 0; i < words_.size(); i++) {
        const Word& word = words_[i];
        uint32_t value = 0;
        if (!word.live || !word.known || is_read_by_host(word.memory))
            continue;
        cuda_.check(cuda_.copy_to_host_now.legacy(&value, word.address, 4), "cuMemcpyDtoH");
        checked_++;
        if (value != word.value)
            throw Wrong(name_of(i) + " is " + std::to_string(value) + " and not " +
                        std::to_string(word.value));
    }
    for (const Stream& stream : streams_)
        if (stream.handle != nullptr)
            cuda_.check(cuda_.destroy_stream(stream.handle), "cuStreamDestroy");
    for (const CUstream stream : spare_streams_)
        cuda_.check(cuda_.destroy_stream(stream), "cuStreamDestroy");
    for (const Event& event : events_)
        if (event.handle != nullptr)
            cuda_.check(cuda_.destroy_event(event.handle), "cuEventDestroy");
    for (const Executable& executable : executables_)
        if (executable.handle != nullptr)
            cuda_.check(cuda_.destroy_executable(executable.handle), "cuGraphExecDestroy");
    for (const Buffer& buffer : buffers_)
        if (buffer.address != 0)
            cuda_.check(cuda_.free_memory(buffer.address), "cuMemFree");
    cuda_.check(cuda_.free_memory(device_memory_), "cuMemFree");
    cuda_.check(cuda_.free_memory(managed_memory_), "cuMemFree");
    cuda_.check(cuda_.free_host(pinned_memory_), "cuMemFreeHost");
}

std::string Order::summary() const {
    char text[200];
    std::snprintf(text, sizeof text,
                  "%10llu words of memory checked\n"
                  "%10llu accesses ordered after one in another stream by the device alone\n",
                  static_cast<unsigned long long>(checked_),
                  static_cast<unsigned long long>(ordered_on_device_));
    return text;
}

// --- streams and words -------------------------------------------------------------------------

bool Order::captured(Slot slot) const {
    return capture_.active && std::ranges::any_of(capture_.streams, [&](const Target& target) {
               return target.slot == slot;
           });
}

// An action in NULL ends the capture of a blocking stream, see break_capture().
bool Order::null_allowed() const {
    return !capture_.active || std::ranges::none_of(capture_.streams, [&](const Target& target) {
        return timelines_.blocking(target.slot);
    });
}

// cuThreadExchangeStreamCaptureMode: calls that are potentially unsafe fail in the thread that
// captures, and for a global capture in all threads.
bool Order::forbidden_by_capture(const Turn& turn) const {
    return capture_.active && capture_.mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
           (capture_.mode == CU_STREAM_CAPTURE_MODE_GLOBAL || capture_.thread == turn.thread);
}

std::string Order::name_of(const Target& target) const {
    std::string name =
        target.handle == CU_STREAM_LEGACY       ? "CU_STREAM_LEGACY"
        : target.handle == CU_STREAM_PER_THREAD ? "CU_STREAM_PER_THREAD"
        : target.handle == nullptr
            ? "NULL"
            : "stream " + std::to_string(target.slot) +
                  (timelines_.blocking(target.slot) ? " (blocking)" : " (non-blocking)");
    return name + (target.thread_variant ? " by _ptsz" : "");
}

std::string Order::name_of(std::size_t index) const {
    constexpr const char* kNames[] = {"device", "pinned", "pageable", "managed", "allocated"};
    return "word " + std::to_string(index) + " of " +
           kNames[static_cast<std::size_t>(words_[index].memory)] + " memory";
}

Target Order::default_stream(Turn& turn) const {
    const auto thread = static_cast<Slot>(kThreadStreams + turn.thread);
    const Target kinds[] = {
        {kNull, nullptr, false},         {kNull, CU_STREAM_LEGACY, false},
        {kNull, CU_STREAM_LEGACY, true}, {thread, CU_STREAM_PER_THREAD, false},
        {thread, nullptr, true},         {thread, CU_STREAM_PER_THREAD, true},
    };
    return kinds[turn.choices.below(options_.thread_streams ? 6 : 3)];
}

std::optional<Target> Order::pick_created(Turn& turn) const {
    const auto slot = static_cast<Slot>(kCreated + turn.choices.below(kSlots - kCreated));
    // Takes the next one, so that few streams are found as quickly as many.
    for (Slot i = 0; i < kSlots - kCreated; i++) {
        const auto at = static_cast<Slot>(kCreated + (slot - kCreated + i) % (kSlots - kCreated));
        if (streams_[at].handle != nullptr && !captured(at))
            return Target{at, streams_[at].handle, turn.choices.chance(64)};
    }
    return {};
}

std::optional<Target> Order::pick_stream(Turn& turn) const {
    if (!turn.choices.chance(96))
        return pick_created(turn);
    const Target target = default_stream(turn);
    if (captured(target.slot) || (target.slot == kNull && !null_allowed()))
        return {};
    return target;
}

std::optional<std::size_t> Order::pick_word(Turn& turn, unsigned memories,
                                            const Allowed& allowed) const {
    for (int i = 0; i < kTries; i++) {
        std::size_t index = 0;
        if (turn.choices.chance(140)) {
            index = turn.choices.of(recent_);
        } else {
            const uint32_t memory = turn.choices.below(kMemories);
            index = first_word_[memory] +
                    turn.choices.below(static_cast<uint32_t>(word_count_[memory]));
        }
        if ((bit(words_[index].memory) & memories) != 0 && allowed(index))
            return index;
    }
    return {};
}

// Most kernels take no time, and few the longest: they make a missing order visible.
uint64_t Order::pick_duration(Turn& turn) const {
    const uint8_t kind = turn.choices.byte();
    if (kind < 150)
        return 0;
    const uint64_t longest = kind < 220 ? options_.max_ns / 8 : options_.max_ns;
    return longest * turn.choices.byte() / 256;
}

bool Order::pick_words(Turn& turn, Effect& effect, unsigned excluded, const Allowed& writable,
                       const Allowed& readable) const {
    const bool by_host = effect.kind == Effect::kHostAdd;
    const bool by_copy = effect.kind == Effect::kCopy;
    unsigned memories = by_host   ? kOnHost | bit(Memory::kManaged)
                        : by_copy ? kOnHost | kInKernels
                                  : kInKernels;
    const auto to = pick_word(turn, memories & ~excluded, [&](std::size_t index) {
        return writable(index) && (!effect.reads_target() || words_[index].known);
    });
    if (!to)
        return false;
    effect.to = *to;
    if (effect.reads_from()) {
        // A copy between two words that the host can access is not of pageable memory.
        if (words_[*to].memory == Memory::kPageable)
            memories &= ~(kOnHost | bit(Memory::kManaged));
        else if (!by_copy || (bit(words_[*to].memory) & kOnDevice) == 0)
            memories &= ~bit(Memory::kPageable);
        const auto from = pick_word(turn, memories & ~excluded, [&](std::size_t index) {
            return index != *to && readable(index);
        });
        if (!from)
            return false;
        effect.from = *from;
    }
    effect.value = turn.choices.word();
    effect.variant = static_cast<uint8_t>(turn.choices.below(6));
    if (effect.kind == Effect::kStore || by_host)
        effect.after_ns = pick_duration(turn);
    return true;
}

// --- calls -------------------------------------------------------------------------------------

void Order::launch(CUfunction function, const Target& target, void** arguments,
                   unsigned variant) const {
    if (variant == 0) {
        CUlaunchConfig config{};
        config.gridDimX = config.gridDimY = config.gridDimZ = 1;
        config.blockDimX = config.blockDimY = config.blockDimZ = 1;
        config.hStream = target.handle;
        return cuda_.check(
            cuda_.launch_by_config.of(target.thread_variant)(&config, function, arguments, nullptr),
            "cuLaunchKernelEx");
    }
    if (variant == 1)
        return cuda_.check(cuda_.launch_cooperative.of(target.thread_variant)(
                               function, 1, 1, 1, 1, 1, 1, 0, target.handle, arguments),
                           "cuLaunchCooperativeKernel");
    cuda_.check(cuda_.launch.of(target.thread_variant)(function, 1, 1, 1, 1, 1, 1, 0, target.handle,
                                                       arguments, nullptr),
                "cuLaunchKernel");
}

void Order::submit(const Effect& effect, const Target& target, bool in_graph) {
    uint64_t to = words_[effect.to].address;
    uint64_t from = words_[effect.from].address;
    uint32_t value = effect.value;
    uint64_t after = effect.after_ns;
    void* with_value[] = {&to, &value, &after};
    void* with_source[] = {&to, &from};
    switch (effect.kind) {
    case Effect::kStore:
        return launch(cuda_.store, target, with_value, effect.variant);
    case Effect::kAdd:
        return launch(cuda_.add, target, with_value, effect.variant);
    case Effect::kLoad:
        return launch(cuda_.load, target, with_source, effect.variant);
    case Effect::kFill:
        return submit_fill(effect, target, in_graph);
    case Effect::kCopy:
        return submit_copy(effect, target, in_graph);
    case Effect::kHostAdd:
        return submit_host(effect, target, in_graph);
    }
}

// Only nodes of one dimension can be updated (cuGraphExecUpdate).
void Order::submit_fill(const Effect& effect, const Target& target, bool in_graph) const {
    const CUdeviceptr to = words_[effect.to].address;
    const bool variant = target.thread_variant;
    if (effect.variant == kWriteValue && !in_graph && cuda_.write_value.of(variant) != nullptr &&
        words_[effect.to].memory == Memory::kDevice)
        return cuda_.check(cuda_.write_value.of(variant)(target.handle, to, effect.value, 0),
                           "cuStreamWriteValue32");
    if (effect.variant == kFillBytes)
        return cuda_.check(
            cuda_.fill_bytes.of(variant)(to, static_cast<uint8_t>(effect.value), 4, target.handle),
            "cuMemsetD8Async");
    if (effect.variant == kFillRows && !in_graph)
        return cuda_.check(cuda_.fill_rows.of(variant)(to, 4, effect.value, 1, 1, target.handle),
                           "cuMemsetD2D32Async");
    cuda_.check(cuda_.fill.of(variant)(to, effect.value, 1, target.handle), "cuMemsetD32Async");
}

CUDA_MEMCPY2D Order::row_of(const Effect& effect) const {
    CUDA_MEMCPY2D row{};
    row.srcMemoryType = row.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    row.srcDevice = words_[effect.from].address;
    row.dstDevice = words_[effect.to].address;
    row.WidthInBytes = 4;
    row.Height = 1;
    return row;
}

void Order::submit_copy(const Effect& effect, const Target& target, bool in_graph) const {
    const Word& to = words_[effect.to];
    const Word& from = words_[effect.from];
    const bool variant = target.thread_variant;
    if (effect.variant == 0 && !in_graph) {
        const CUDA_MEMCPY2D row = row_of(effect);
        return cuda_.check(cuda_.copy_rows.of(variant)(&row, target.handle), "cuMemcpy2DAsync");
    }
    if (effect.variant <= 2 || (on_host(to) && on_host(from)))
        return cuda_.check(cuda_.copy.of(variant)(to.address, from.address, 4, target.handle),
                           "cuMemcpyAsync");
    if (on_host(to))
        return cuda_.check(
            cuda_.copy_to_host.of(variant)(pointer_to(to), from.address, 4, target.handle),
            "cuMemcpyDtoHAsync");
    if (on_host(from))
        return cuda_.check(
            cuda_.copy_to_device.of(variant)(to.address, pointer_to(from), 4, target.handle),
            "cuMemcpyHtoDAsync");
    cuda_.check(cuda_.copy_on_device.of(variant)(to.address, from.address, 4, target.handle),
                "cuMemcpyDtoDAsync");
}

void Order::submit_copy_now(const Effect& effect, bool variant) const {
    const Word& to = words_[effect.to];
    const Word& from = words_[effect.from];
    if (effect.variant <= 1) {
        const CUDA_MEMCPY2D row = row_of(effect);
        const auto& function =
            effect.variant == 0 ? cuda_.copy_rows_now : cuda_.copy_rows_unaligned_now;
        return cuda_.check(function.of(variant)(&row), "cuMemcpy2D");
    }
    if (effect.variant <= 3 || (on_host(to) && on_host(from)))
        return cuda_.check(cuda_.copy_now.of(variant)(to.address, from.address, 4), "cuMemcpy");
    if (on_host(to))
        return cuda_.check(cuda_.copy_to_host_now.of(variant)(pointer_to(to), from.address, 4),
                           "cuMemcpyDtoH");
    if (on_host(from))
        return cuda_.check(cuda_.copy_to_device_now.of(variant)(to.address, pointer_to(from), 4),
                           "cuMemcpyHtoD");
    cuda_.check(cuda_.copy_on_device_now.of(variant)(to.address, from.address, 4), "cuMemcpyDtoD");
}

void Order::run_host(void* data) {
    auto* const call = static_cast<HostCall*>(data);
    const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(call->ns);
    while (std::chrono::steady_clock::now() < end) {
    }
    store(call->word, added(load(call->word), call->value));
    if (call->once)
        delete call;
}

// The call's argument lives until it has run, or with the set if a graph has it.
void Order::submit_host(const Effect& effect, const Target& target, bool in_graph) {
    const HostCall call{pointer_to(words_[effect.to]), effect.value, effect.after_ns, !in_graph};
    HostCall* const argument = in_graph ? &graph_calls_.emplace_back(call) : new HostCall(call);
    const bool variant = target.thread_variant;
    CUresult result = CUDA_SUCCESS;
    if (effect.variant == 0 && !in_graph) // a callback can't be captured
        result = cuda_.add_callback.of(variant)(
            target.handle, [](CUstream, CUresult, void* data) { run_host(data); }, argument, 0);
    else
        result = cuda_.launch_host.of(variant)(target.handle, run_host, argument);
    if (result != CUDA_SUCCESS && !in_graph)
        delete argument;
    cuda_.check(result, "cuLaunchHostFunc or cuStreamAddCallback");
}

void Order::use(std::size_t index, const Action& action) {
    const Word& word = words_[index];
    if (word.writer != action.slot && !timelines_.host().covers(word.writer, word.written))
        ordered_on_device_++;
    recent_[next_recent_++ % recent_.size()] = index;
}

// Changes the model's values. The action has been submitted.
void Order::apply(const Effect& effect, const Action& action) {
    use(effect.to, action);
    uint32_t value = effect.value;
    if (effect.kind == Effect::kFill)
        value = filled(effect);
    if (effect.reads_target())
        value = added(words_[effect.to].value, effect.value);
    if (effect.reads_from()) {
        use(effect.from, action);
        value = words_[effect.from].value;
        words_.read(effect.from, action);
    }
    words_.write(effect.to, action, value);
}

void Order::check_words(const Clock& clock) {
    words_.check(clock, [&](std::size_t index) {
        const Word& word = words_[index];
        const uint32_t value = load(pointer_to(word));
        checked_++;
        if (value != word.value)
            throw Wrong(name_of(index) + " is " + std::to_string(value) + " and not " +
                        std::to_string(word.value) + ", which action " +
                        std::to_string(word.written) + " of timeline " +
                        std::to_string(word.writer) + " wrote");
    });
}

void Order::host_waits(const Clock& clock) {
    timelines_.host_waits(clock);
    check_words(timelines_.host());
}

// --- operations: work --------------------------------------------------------------------------

bool Order::work(Turn& turn, Effect::Kind kind) {
    const auto target = pick_stream(turn);
    if (!target)
        return false;
    const Action action = timelines_.plan(target->slot);
    const Clock& host = timelines_.host();
    // The driver may access pageable memory in the call. Then it may have to wait.
    const auto writable = [&](std::size_t index) {
        const Word& word = words_[index];
        const bool early = word.memory == Memory::kPageable && kind == Effect::kCopy;
        return Words::writable(word, early ? host : action.clock);
    };
    const auto readable = [&](std::size_t index) {
        const Word& word = words_[index];
        return Words::readable(word, word.memory == Memory::kPageable ? host : action.clock);
    };
    Effect effect;
    effect.kind = kind;
    const unsigned excluded = forbidden_by_capture(turn) ? bit(Memory::kPageable) : 0;
    if (!pick_words(turn, effect, excluded, writable, readable))
        return false;
    turn.note("in %s: word %zu from %zu, value %u, after %llu ns", name_of(*target).c_str(),
              effect.to, effect.from, effect.value,
              static_cast<unsigned long long>(effect.after_ns));
    perform(effect, *target);
    return true;
}

bool Order::spin_for(Turn& turn) {
    const auto target = pick_stream(turn);
    uint64_t ns = pick_duration(turn);
    if (!target)
        return false;
    turn.note("in %s: %llu ns", name_of(*target).c_str(), static_cast<unsigned long long>(ns));
    void* arguments[] = {&ns};
    launch(cuda_.spin, *target, arguments, turn.choices.below(6));
    timelines_.commit(timelines_.plan(target->slot));
    return true;
}

// The host waits for a copy that writes host memory, and for one that reads pinned memory. One that
// reads pageable memory has read it when it returns (API synchronization behavior).
bool Order::copy_now(Turn& turn) {
    const Target target = default_stream(turn);
    if (forbidden_by_capture(turn) || captured(target.slot) ||
        (target.slot == kNull && !null_allowed()))
        return false;
    // These functions have no stream: the variant selects it.
    const bool variant = target.slot != kNull;
    const Action action = timelines_.plan(target.slot);
    Effect effect;
    effect.kind = Effect::kCopy;
    const auto writable = [&](std::size_t index) {
        return Words::writable(words_[index], action.clock);
    };
    const auto readable = [&](std::size_t index) {
        const Word& word = words_[index];
        return Words::readable(word,
                               word.memory == Memory::kPageable ? timelines_.host() : action.clock);
    };
    if (!pick_words(turn, effect, 0, writable, readable))
        return false;
    const Word& to = words_[effect.to];
    const Word& from = words_[effect.from];
    turn.note("in %s: word %zu from %zu", variant ? "the thread's stream" : "NULL", effect.to,
              effect.from);
    submit_copy_now(effect, variant);
    timelines_.commit(action);
    const Clock readers = from.readers;
    apply(effect, action);
    if (from.memory == Memory::kPageable)
        words_[effect.from].readers = readers;
    if (on_host(to) || from.memory == Memory::kPinned)
        host_waits(action.clock);
    return true;
}

bool Order::fill_now(Turn& turn) {
    const Target target = default_stream(turn);
    if (forbidden_by_capture(turn) || captured(target.slot) ||
        (target.slot == kNull && !null_allowed()))
        return false;
    const bool variant = target.slot != kNull;
    const Action action = timelines_.plan(target.slot);
    Effect effect;
    effect.kind = Effect::kFill;
    const auto writable = [&](std::size_t index) {
        return Words::writable(words_[index], action.clock);
    };
    if (!pick_words(turn, effect, 0, writable, writable))
        return false;
    turn.note("in %s: word %zu, value %u", variant ? "the thread's stream" : "NULL", effect.to,
              effect.value);
    const Word& to = words_[effect.to];
    if (effect.variant == kFillBytes)
        cuda_.check(
            cuda_.fill_bytes_now.of(variant)(to.address, static_cast<uint8_t>(effect.value), 4),
            "cuMemsetD8");
    else if (effect.variant == kFillRows)
        cuda_.check(cuda_.fill_rows_now.of(variant)(to.address, 4, effect.value, 1, 1),
                    "cuMemsetD2D32");
    else
        cuda_.check(cuda_.fill_now.of(variant)(to.address, effect.value, 1), "cuMemsetD32");
    timelines_.commit(action);
    apply(effect, action);
    // API synchronization behavior: it waits for pinned and managed memory.
    if (is_read_by_host(to.memory))
        host_waits(action.clock);
    return true;
}

bool Order::write_on_host(Turn& turn) {
    const auto to = pick_word(turn, kOnHost | bit(Memory::kManaged), [&](std::size_t index) {
        return Words::writable(words_[index], timelines_.host());
    });
    if (!to)
        return false;
    const uint32_t value = turn.choices.word();
    turn.note("word %zu, value %u", *to, value);
    store(pointer_to(words_[*to]), value);
    words_.write(*to, timelines_.act_on_host(), value);
    return true;
}

// --- operations: streams -----------------------------------------------------------------------

bool Order::create_stream(Turn& turn) {
    const uint8_t kind = turn.choices.byte();
    const unsigned flags = kind % 8 < 3 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
    const int priority = std::min(0, 5 - kind / 8 % 8); // mostly none
    const Slot slot = timelines_.create(flags == CU_STREAM_DEFAULT);
    if (slot == kHost)
        return false;
    Stream& stream = streams_[slot];
    stream.flags = flags;
    stream.priority = priority != 0;
    turn.note("%u, flags %u, priority %d", slot, flags, priority);
    if (priority == 0)
        cuda_.check(cuda_.create_stream(&stream.handle, flags), "cuStreamCreate");
    else
        cuda_.check(cuda_.create_stream_with_priority(&stream.handle, flags, priority + 1),
                    "cuStreamCreateWithPriority");
    return true;
}

bool Order::destroy_stream(Turn& turn) {
    const auto target = pick_created(turn);
    if (!target)
        return false;
    turn.note("%s", name_of(*target).c_str());
    // Without waits for the context nothing else tells when a non-blocking stream's work is done,
    // and its slot is free again.
    if (options_.shared_context && !timelines_.blocking(target->slot)) {
        depend(*target, Target{});
        timelines_.wait(kNull, timelines_.record(target->slot).clock);
    }
    cuda_.check(cuda_.destroy_stream(target->handle), "cuStreamDestroy");
    streams_[target->slot].handle = nullptr;
    timelines_.destroy(target->slot);
    return true;
}

bool Order::synchronize_stream(Turn& turn) {
    const auto target = pick_stream(turn);
    if (!target || forbidden_by_capture(turn))
        return false;
    turn.note("%s", name_of(*target).c_str());
    cuda_.check(cuda_.synchronize.of(target->thread_variant)(target->handle),
                "cuStreamSynchronize");
    host_waits(timelines_.work_of(target->slot));
    return true;
}

// The model does not depend on the answer, so that the same bytes always mean the same program.
bool Order::query_stream(Turn& turn) {
    const auto target = pick_stream(turn);
    if (!target || forbidden_by_capture(turn))
        return false;
    const CUresult result = cuda_.query.of(target->thread_variant)(target->handle);
    turn.note("%s: %d", name_of(*target).c_str(), result);
    if (result == CUDA_ERROR_NOT_READY)
        return true;
    cuda_.check(result, "cuStreamQuery");
    Clock clock = timelines_.work_of(target->slot);
    clock.join(timelines_.host());
    check_words(clock);
    return true;
}

bool Order::get_flags(Turn& turn) {
    const auto target = pick_stream(turn);
    if (!target || !options_.flags)
        return false;
    turn.note("%s", name_of(*target).c_str());
    unsigned flags = ~0U;
    cuda_.check(cuda_.get_flags.of(target->thread_variant)(target->handle, &flags),
                "cuStreamGetFlags");
    const unsigned expected = target->slot < kCreated ? 0 : streams_[target->slot].flags;
    if (flags != expected)
        throw Wrong("cuStreamGetFlags of " + name_of(*target) + " says " + std::to_string(flags) +
                    " and not " + std::to_string(expected));
    return true;
}

bool Order::synchronize_context(Turn& turn) {
    // It fails while a stream of the context captures.
    if (capture_.active || options_.shared_context)
        return false;
    turn.note("all streams");
    cuda_.check(cuda_.synchronize_context(), "cuCtxSynchronize");
    host_waits(timelines_.all_work());
    return true;
}

// --- operations: events ------------------------------------------------------------------------

std::optional<std::size_t> Order::pick_event(Turn& turn) const {
    const std::size_t first = turn.choices.below(static_cast<uint32_t>(events_.size()));
    for (std::size_t i = 0; i < events_.size(); i++)
        if (const std::size_t at = (first + i) % events_.size(); events_[at].handle != nullptr)
            return at;
    return {};
}

bool Order::create_event(Turn& turn) {
    const auto free = std::ranges::find(events_, CUevent{}, &Event::handle);
    if (free == events_.end())
        return false;
    constexpr unsigned kFlags[] = {CU_EVENT_DEFAULT, CU_EVENT_DISABLE_TIMING,
                                   CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC};
    *free = {};
    cuda_.check(cuda_.create_event(&free->handle, turn.choices.of(kFlags)), "cuEventCreate");
    turn.note("%td", free - events_.begin());
    return true;
}

bool Order::destroy_event(Turn& turn) {
    const auto event = pick_event(turn);
    if (!event)
        return false;
    turn.note("%zu", *event);
    cuda_.check(cuda_.destroy_event(events_[*event].handle), "cuEventDestroy");
    events_[*event] = {};
    return true;
}

bool Order::record(Turn& turn) {
    const auto event = pick_event(turn);
    const auto target = pick_stream(turn);
    if (!event || !target)
        return false;
    turn.note("%zu in %s", *event, name_of(*target).c_str());
    cuda_.check(cuda_.record.of(target->thread_variant)(events_[*event].handle, target->handle),
                "cuEventRecord");
    events_[*event].clock = timelines_.record(target->slot).clock;
    events_[*event].recorded = true;
    return true;
}

bool Order::wait(Turn& turn) {
    const auto event = pick_event(turn);
    const auto target = pick_stream(turn);
    if (!event || !target)
        return false;
    turn.note("for %zu in %s", *event, name_of(*target).c_str());
    cuda_.check(cuda_.wait.of(target->thread_variant)(target->handle, events_[*event].handle, 0),
                "cuStreamWaitEvent");
    // The header: a wait for an event that was never recorded has no effect.
    if (events_[*event].recorded)
        timelines_.wait(target->slot, events_[*event].clock);
    return true;
}

bool Order::synchronize_event(Turn& turn) {
    const auto event = pick_event(turn);
    if (!event || forbidden_by_capture(turn))
        return false;
    turn.note("%zu", *event);
    cuda_.check(cuda_.synchronize_event(events_[*event].handle), "cuEventSynchronize");
    host_waits(events_[*event].clock);
    return true;
}

bool Order::query_event(Turn& turn) {
    const auto event = pick_event(turn);
    if (!event || forbidden_by_capture(turn))
        return false;
    const CUresult result = cuda_.query_event(events_[*event].handle);
    turn.note("%zu: %d", *event, result);
    if (result == CUDA_ERROR_NOT_READY)
        return true;
    cuda_.check(result, "cuEventQuery");
    Clock clock = events_[*event].clock;
    clock.join(timelines_.host());
    check_words(clock);
    return true;
}

// Uses an event once, and destroys it while it may be pending.
bool Order::order_streams(Turn& turn) {
    const auto before = pick_stream(turn);
    const auto after = pick_stream(turn);
    if (!before || !after)
        return false;
    turn.note("%s before %s", name_of(*before).c_str(), name_of(*after).c_str());
    depend(*before, *after);
    timelines_.wait(after->slot, timelines_.record(before->slot).clock);
    return true;
}

void Order::perform(const Effect& effect, const Target& target) {
    const Action action = timelines_.plan(target.slot);
    submit(effect, target, false);
    timelines_.commit(action);
    apply(effect, action);
}

// Writes a word slowly in one stream and reads it in another at once, behind an event unless NULL's
// order is enough.
bool Order::pass_word(Turn& turn) {
    const auto before = pick_stream(turn);
    const auto after = pick_stream(turn);
    if (!before || !after)
        return false;
    Effect store;
    const Clock first = timelines_.plan(before->slot).clock;
    const Allowed writable = [&](std::size_t index) {
        return Words::writable(words_[index], first);
    };
    if (!pick_words(turn, store, 0, writable, writable))
        return false;
    store.after_ns = std::max(store.after_ns, options_.max_ns / 4);
    Effect load;
    load.kind = turn.choices.chance(128) ? Effect::kLoad : Effect::kCopy;
    load.variant = 5; // cuMemcpyAsync and its like
    load.from = store.to;
    const Clock second = timelines_.plan(after->slot).clock;
    const auto to = pick_word(turn, bit(Memory::kPinned), [&](std::size_t index) {
        return index != store.to && Words::writable(words_[index], second);
    });
    if (!to)
        return false;
    load.to = *to;
    turn.note("%zu in %s to %zu in %s", store.to, name_of(*before).c_str(), load.to,
              name_of(*after).c_str());
    perform(store, *before);
    if (!Words::readable(words_[store.to], timelines_.plan(after->slot).clock)) {
        depend(*before, *after);
        timelines_.wait(after->slot, timelines_.record(before->slot).clock);
    }
    perform(load, *after);
    return true;
}

void Order::depend(const Target& before, const Target& after) const {
    CUevent event = nullptr;
    cuda_.check(cuda_.create_event(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    cuda_.check(cuda_.record.of(before.thread_variant)(event, before.handle), "cuEventRecord");
    cuda_.check(cuda_.wait.of(after.thread_variant)(after.handle, event, 0), "cuStreamWaitEvent");
    cuda_.check(cuda_.destroy_event(event), "cuEventDestroy");
}

// --- operations: allocations -------------------------------------------------------------------

bool Order::allocate(Turn& turn) {
    const auto free = std::ranges::find(buffers_, CUdeviceptr{0}, &Buffer::address);
    const bool in_order = turn.choices.chance(200);
    const auto target = pick_stream(turn);
    if (free == buffers_.end() || !target || forbidden_by_capture(turn))
        return false;
    Action action;
    free->in_order = in_order;
    if (in_order) {
        cuda_.check(cuda_.allocate_in_order.of(target->thread_variant)(
                        &free->address, kBufferWords * 4, target->handle),
                    "cuMemAllocAsync");
        action = timelines_.allocate(target->slot);
    } else {
        action = timelines_.act_on_host();
        cuda_.check(cuda_.allocate(&free->address, kBufferWords * 4), "cuMemAlloc");
    }
    turn.note("words from %zu on in %s", free->first,
              in_order ? name_of(*target).c_str() : "no stream");
    for (std::size_t i = 0; i < kBufferWords; i++) {
        Word& word = words_[free->first + i];
        word = {};
        word.memory = Memory::kAllocated;
        word.live = true;
        word.address = free->address + i * 4;
        word.writer = action.slot;
        word.written = action.clock.at(action.slot);
    }
    return true;
}

// cuMemFree waits for unfinished work (recorded on an H200), so that the memory may be in use.
bool Order::free_buffer(Turn& turn) {
    Buffer& buffer = buffers_[turn.choices.below(static_cast<uint32_t>(buffers_.size()))];
    const auto target = pick_stream(turn);
    if (buffer.address == 0 || !target || forbidden_by_capture(turn))
        return false;
    if (buffer.in_order) {
        const Action action = timelines_.plan(target->slot);
        for (std::size_t i = 0; i < kBufferWords; i++)
            if (!Words::writable(words_[buffer.first + i], action.clock))
                return false;
        cuda_.check(cuda_.free_in_order.of(target->thread_variant)(buffer.address, target->handle),
                    "cuMemFreeAsync");
        timelines_.commit(action);
    } else {
        cuda_.check(cuda_.free_memory(buffer.address), "cuMemFree");
    }
    turn.note("words from %zu on in %s", buffer.first,
              buffer.in_order ? name_of(*target).c_str() : "no stream");
    buffer.address = 0;
    for (std::size_t i = 0; i < kBufferWords; i++)
        words_[buffer.first + i].live = false;
    return true;
}

} // namespace random_programs
