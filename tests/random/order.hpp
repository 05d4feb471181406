// Random operations on streams, events, memory and graphs, each of which leaves determined values
// by the order that plain CUDA promises, and the check of these values.
#pragma once

#include "cuda.hpp"
#include "order_model.hpp"
#include "runner.hpp"

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace random_programs {

struct OrderOptions {
    uint64_t max_ns = 50'000; // of a slow kernel
    bool thread_streams = true;
    bool null_ends_captures = true;
    bool flags = true; // are those that were asked for
    // Several sets share the context at the same time: a capture must not be affected by what the
    // other threads do, nor forbid it.
    bool shared_context = false;
};

// A stream and how it is passed.
struct Target {
    Slot slot = kNull;
    CUstream handle = nullptr;
    bool thread_variant = false; // the function whose NULL is the thread's stream
};

// What one action does to words of memory.
struct Effect {
    enum Kind : uint8_t {
        kStore,   // by a kernel, after a time
        kAdd,     // by a kernel
        kLoad,    // a kernel copies a word
        kFill,    // by cuMemset... or cuStreamWriteValue
        kCopy,    // by cuMemcpy...
        kHostAdd, // by a host function or a callback, after a time
    };
    Kind kind = kStore;
    std::size_t to = 0;
    std::size_t from = 0;
    uint32_t value = 0;
    uint8_t variant = 0; // which of the functions for this is called
    uint64_t after_ns = 0;

    bool reads_from() const { return kind == kLoad || kind == kCopy; }
    bool reads_target() const { return kind == kAdd || kind == kHostAdd; }
};

class Order : public Set {
  public:
    Order(const Cuda& cuda, const OrderOptions& options);
    ~Order() override;
    Order(const Order&) = delete;
    Order& operator=(const Order&) = delete;

    void enter(unsigned thread) override;
    void leave(unsigned thread) override;
    void finish() override;
    std::string summary() const override;

  private:
    struct Stream {
        CUstream handle = nullptr; // null: no such stream now
        unsigned flags = 0;
        bool priority = false; // it was created with one
    };
    struct Event {
        CUevent handle = nullptr;
        Clock clock; // of its last record
        bool recorded = false;
    };
    // Memory that the program allocates while it runs.
    struct Buffer {
        CUdeviceptr address = 0; // 0: not allocated
        std::size_t first = 0;   // word
        bool in_order = false;   // by cuMemAllocAsync
    };
    // The argument of a host function.
    struct HostCall {
        uint32_t* word;
        uint32_t value;
        uint64_t ns;
        bool once; // deletes itself
    };
    // A step of a capture: work in one of its streams, or a dependency between two of them.
    struct Step {
        enum Kind : uint8_t { kWork, kFork, kJoin };
        Kind kind = kWork;
        uint8_t stream = 0; // of Capture::streams
        Effect effect;
    };
    struct Executable {
        CUgraphExec handle = nullptr;
        std::vector<Step> steps;
        bool priority = false; // its nodes may have one
        Clock last;            // launch
    };
    struct Capture {
        bool active = false;
        bool invalid = false;
        unsigned thread = 0;
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
        std::vector<Target> streams;     // the first began it
        std::vector<uint32_t> ancestors; // of each stream's next node, as a mask of nodes
        std::vector<Step> steps;
        std::vector<Effect> nodes;
        std::vector<uint32_t> node_ancestors;
    };

    // Says of a word whether the model allows an access.
    using Allowed = std::function<bool(std::size_t)>;

    // order.cpp
    void make_memory();
    std::size_t add_words(std::size_t count, Memory memory, uint64_t address);
    bool captured(Slot slot) const;
    bool null_allowed() const;
    bool forbidden_by_capture(const Turn& turn) const;
    std::string name_of(const Target& target) const;
    std::string name_of(std::size_t word) const;
    std::optional<Target> pick_stream(Turn& turn) const;
    std::optional<Target> pick_created(Turn& turn) const;
    Target default_stream(Turn& turn) const;
    std::optional<std::size_t> pick_word(Turn& turn, unsigned memories,
                                         const Allowed& allowed) const;
    uint64_t pick_duration(Turn& turn) const;
    bool pick_words(Turn& turn, Effect& effect, unsigned excluded, const Allowed& writable,
                    const Allowed& readable) const;
    void submit(const Effect& effect, const Target& target, bool in_graph);
    void submit_fill(const Effect& effect, const Target& target, bool in_graph) const;
    void submit_copy(const Effect& effect, const Target& target, bool in_graph) const;
    void submit_host(const Effect& effect, const Target& target, bool in_graph);
    static void run_host(void* data);
    void submit_copy_now(const Effect& effect, bool thread_variant) const;
    CUDA_MEMCPY2D row_of(const Effect& effect) const;
    void launch(CUfunction function, const Target& target, void** arguments,
                unsigned variant) const;
    void apply(const Effect& effect, const Action& action);
    void use(std::size_t word, const Action& action);
    void commit(const Target& target, Action action);
    void check_words(const Clock& clock);
    void host_waits(const Clock& clock);

    bool work(Turn& turn, Effect::Kind kind);
    bool spin_for(Turn& turn);
    bool copy_now(Turn& turn);
    bool fill_now(Turn& turn);
    bool write_on_host(Turn& turn);
    bool create_stream(Turn& turn);
    bool destroy_stream(Turn& turn);
    bool synchronize_stream(Turn& turn);
    bool query_stream(Turn& turn);
    bool get_flags(Turn& turn);
    bool synchronize_context(Turn& turn);
    bool create_event(Turn& turn);
    bool destroy_event(Turn& turn);
    bool record(Turn& turn);
    bool wait(Turn& turn);
    bool synchronize_event(Turn& turn);
    bool query_event(Turn& turn);
    bool order_streams(Turn& turn);
    bool pass_word(Turn& turn);
    void perform(const Effect& effect, const Target& target);
    bool allocate(Turn& turn);
    bool free_buffer(Turn& turn);
    std::optional<std::size_t> pick_event(Turn& turn) const;

    // order_graphs.cpp
    bool capture(Turn& turn);
    bool begin_capture(Turn& turn);
    bool capture_null(Turn& turn, const Target& null);
    bool capture_work(Turn& turn);
    bool fork(Turn& turn);
    bool join(Turn& turn);
    void depend(const Target& before, const Target& after) const;
    bool end_capture(Turn& turn);
    bool query_capture(Turn& turn);
    bool break_capture(Turn& turn);
    CUresult act_in_null(Turn& turn);
    CUgraph leave_capture();
    bool launch_graph(Turn& turn);
    bool upload_graph(Turn& turn);
    bool update_graph(Turn& turn);
    bool destroy_graph(Turn& turn);
    CUgraph capture_again(const std::vector<Step>& steps);
    Executable* pick_executable(Turn& turn);

    const Cuda& cuda_;
    const OrderOptions options_;
    Timelines timelines_;
    Words words_;
    std::array<std::size_t, kMemories> first_word_{};
    std::array<std::size_t, kMemories> word_count_{};
    CUdeviceptr device_memory_ = 0;
    CUdeviceptr managed_memory_ = 0;
    void* pinned_memory_ = nullptr;
    std::vector<uint32_t> pageable_memory_;
    std::array<Stream, kSlots> streams_;
    std::array<Event, 10> events_;
    std::array<Buffer, 12> buffers_;
    std::array<std::size_t, 16> recent_{}; // words
    std::size_t next_recent_ = 0;
    std::deque<HostCall> graph_calls_;
    std::array<CUstream, 3> spare_streams_{}; // for captures that updates are made of
    std::array<Executable, 5> executables_;
    Capture capture_;
    uint64_t ordered_on_device_ = 0; // accesses after one in another stream without a host's wait
    uint64_t checked_ = 0;
};

} // namespace random_programs
