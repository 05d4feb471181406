// Tests the rule for structs that grow: programs of other versions of the header pass smaller and
// larger ones.

#include "graph_kernels.hpp"
#include "reservations.hpp"

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <sstream>

using namespace support;

namespace {

using Bytes = std::vector<unsigned char>;

constexpr unsigned char kCanary = 0xa5;
constexpr std::size_t kCanaries = 64;
constexpr std::size_t kMost = 64; // how much larger a caller's struct is at most

struct Case {
    std::string name;
    std::size_t size;   // in this version
    std::size_t oldest; // in the first version that had the struct
    bool input;
    Bytes valid; // what an input can be; a zeroed output
    std::function<gcx_result(void*)> call;
};

template <class T>
Case output(const char* name, std::function<gcx_result(T*)> call, std::size_t oldest = sizeof(T)) {
    return {name,  sizeof(T),        oldest,
            false, Bytes(sizeof(T)), [call](void* at) { return call(static_cast<T*>(at)); }};
}

template <class T>
Case input(const char* name, std::function<gcx_result(const T*)> call, const T& valid = T{}) {
    Bytes bytes(sizeof(T));
    std::memcpy(bytes.data(), &valid, sizeof valid);
    return {name, sizeof(T), sizeof(T),
            true, bytes,     [call](void* at) {
                return call(static_cast<const T*>(at)); }};
}

// Has a struct of some size in front of canaries.
class Buffer {
  public:
    Buffer(const Case& of, std::size_t size)
        : size_(size), words_((size + kCanaries) / 8 + 1, 0xa5a5a5a5a5a5a5a5U) {
        // An output has whatever its memory had, an input zeros where this version knows no field.
        if (of.input)
            std::memset(data(), 0, size);
        const std::size_t known = std::min(size, of.valid.size());
        if (of.input && known != 0)
            std::memcpy(data(), of.valid.data(), known);
        set_size(static_cast<uint32_t>(size));
    }
    unsigned char* data() { return reinterpret_cast<unsigned char*>(words_.data()); }
    void set_size(uint32_t size) { std::memcpy(data(), &size, sizeof size); }
    Bytes bytes() { return {data(), data() + size_}; }
    bool has_canaries() {
        return std::all_of(data() + size_, data() + size_ + kCanaries,
                           [](unsigned char byte) { return byte == kCanary; });
    }

  private:
    std::size_t size_;
    std::vector<uint64_t> words_;
};

void sizes_of_other_versions_work(const Case& of) {
    Buffer reference(of, of.size);
    CHECK_OK(of.call(reference.data()));
    for (std::size_t size = of.oldest; size <= of.size + kMost; size++) {
        Buffer buffer(of, size);
        const Bytes before = buffer.bytes();
        CHECK_OK(of.call(buffer.data()));
        CHECK(buffer.has_canaries());
        const Bytes after = buffer.bytes();
        if (of.input) {
            CHECK(after == before);
            continue;
        }
        Bytes expected = reference.bytes();
        expected.resize(size, 0);
        std::memcpy(expected.data(), before.data(), sizeof(uint32_t)); // the caller's size
        CHECK(after == expected);
    }
}

void impossible_sizes_are_refused(const Case& of) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4}, of.oldest - 1,
                                   std::size_t{65537}, std::size_t{UINT32_MAX}}) {
        Buffer buffer(of, of.size);
        buffer.set_size(static_cast<uint32_t>(size));
        const Bytes before = buffer.bytes();
        CHECK_EQ(of.call(buffer.data()), GCX_ERROR_INVALID_VALUE);
        CHECK(message_has("struct_size is " + std::to_string(size)));
        CHECK(buffer.bytes() == before);
    }
}

void unknown_fields_are_refused(const Case& of) {
    for (const std::size_t beyond : {std::size_t{0}, std::size_t{1}, kMost / 2, kMost - 1}) {
        Buffer buffer(of, of.size + kMost);
        buffer.data()[of.size + beyond] = 1;
        const Bytes before = buffer.bytes();
        CHECK_EQ(of.call(buffer.data()), GCX_ERROR_INVALID_VALUE);
        CHECK(message_has("byte " + std::to_string(of.size + beyond) + " of "));
        CHECK(buffer.bytes() == before);
    }
}

// Returns the names of the structs that have an _INIT macro.
std::set<std::string> declared_structs() {
    std::set<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(std::getenv("GCX_TEST_INCLUDE"))) {
        std::stringstream text;
        text << std::ifstream(file.path()).rdbuf();
        const std::string all = text.str();
        const std::regex macro(R"(#define \w+_INIT GCX_STRUCT_INIT\((\w+)\))");
        for (std::sregex_iterator found(all.begin(), all.end(), macro), end; found != end; ++found)
            names.insert((*found)[1].str());
    }
    return names;
}

// The input of a function that creates an object, which is destroyed again.
template <class T, class Handle, class Create>
Case creation(const char* name, gcx_result (*destroy)(Handle), Create create) {
    return input<T>(name, [destroy, create](const T* params) {
        Handle handle = nullptr;
        const gcx_result result = create(params, &handle);
        CHECK_EQ(result == GCX_SUCCESS, handle != nullptr);
        if (handle != nullptr)
            CHECK_OK(destroy(handle));
        return result;
    });
}

void structs_of_all_sizes() {
    const gcx_resource part = sets({24})[0];
    const gcx_context context = make_context(part);
    const gcx_stream stream = make_stream(context);
    gcx_lease lease = nullptr;
    CHECK_OK(gcx_lease_acquire(0, 16, nullptr, &lease));
    const gcx_reservation reservation = ::reservations::reserve(8);
    const GraphKernels kernels;
    CUgraph captured = capture(
        kernels.plain, [&] { kernels.probe(kernels.plain, GraphKernels::From::library, 0); });
    gcx_graph graph = nullptr;
    CHECK_OK(gcx_graph_create(captured, nullptr, &graph));

    gcx_kernel_fit_params launch{};
    launch.block_threads = 256;
    gcx_kernel_params node{};
    for (uint32_t i = 0; i < 3; i++)
        node.grid[i] = node.block[i] = 1;

#define OUTPUT(type, ...) output<type>(#type, __VA_ARGS__)
#define INPUT(type, ...) input<type>(#type, __VA_ARGS__)
#define CREATION(type, ...) creation<type>(#type, __VA_ARGS__)
    const std::vector<Case> cases = {
        OUTPUT(gcx_driver_info, gcx_driver_get_info),
        OUTPUT(gcx_device_info, [](auto* info) { return gcx_device_get_info(0, info); }),
        OUTPUT(gcx_queue_info, gcx_queue_get_info),
        OUTPUT(gcx_resource_info, [&](auto* info) { return gcx_resource_get_info(&part, info); }),
        OUTPUT(gcx_context_info, [&](auto* info) { return gcx_context_get_info(context, info); }),
        OUTPUT(gcx_stream_info, [&](auto* info) { return gcx_stream_get_info(stream, info); }),
        OUTPUT(gcx_lease_info, [&](auto* info) { return gcx_lease_get_info(lease, info); }),
        OUTPUT(gcx_reservation_info,
               [&](auto* info) { return gcx_reservation_get_info(reservation, info); }),
        OUTPUT(gcx_graph_info, [&](auto* info) { return gcx_graph_get_info(graph, info); }),
        OUTPUT(gcx_cache_stats, gcx_cache_get_stats, offsetof(gcx_cache_stats, prepared)),
        OUTPUT(gcx_cache_trimmed, [](auto* trimmed) { return gcx_cache_trim(64, trimmed); }),
        OUTPUT(gcx_kernel_fit,
               [&](auto* fit) {
                   launch.struct_size = sizeof launch;
                   return gcx_stream_get_kernel_fit(stream, kernels.library_probe, &launch, fit);
               }),
        OUTPUT(gcx_verification,
               [&](auto* found) { return gcx_verify(&stream, 1, nullptr, found); }),
        INPUT(
            gcx_kernel_fit_params,
            [&](auto* params) {
                gcx_kernel_fit fit = GCX_KERNEL_FIT_INIT;
                return gcx_stream_get_kernel_fit(stream, kernels.library_probe, params, &fit);
            },
            launch),
        INPUT(gcx_prepare_params,
              [&](auto* params) { return gcx_cache_prepare(&part, 1, params); }),
        INPUT(
            gcx_kernel_params, [&](auto* params) { return gcx_graph_set_kernel(graph, 0, params); },
            node),
        CREATION(gcx_context_params, gcx_context_destroy,
                 [&](auto... to) { return gcx_context_create(&part, 1, to...); }),
        CREATION(gcx_stream_params, gcx_stream_destroy,
                 [&](auto... to) { return gcx_stream_create(context, to...); }),
        CREATION(gcx_lease_params, gcx_lease_release,
                 [](auto... to) { return gcx_lease_acquire(0, 8, to...); }),
        CREATION(gcx_reservation_params, gcx_reservation_release,
                 [](auto... to) { return gcx_reservation_acquire(0, 8, to...); }),
        CREATION(gcx_graph_params, gcx_graph_destroy,
                 [&](auto... to) { return gcx_graph_create(captured, to...); }),
    };
#undef OUTPUT
#undef INPUT
#undef CREATION
    std::set<std::string> tested;
    for (const Case& of : cases) {
        const int failed = check::failed;
        tested.insert(of.name);
        sizes_of_other_versions_work(of);
        impossible_sizes_are_refused(of);
        if (of.input)
            unknown_fields_are_refused(of);
        if (check::failed != failed)
            std::fprintf(stderr, "    with %s\n", of.name.c_str());
    }
    CHECK(tested == declared_structs());

    CHECK_OK(gcx_graph_destroy(graph));
    CHECK_NATIVE(cuGraphDestroy, captured);
    ::reservations::release(reservation);
    CHECK_OK(gcx_lease_release(lease));
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_OK(gcx_context_destroy(context));
}

} // namespace

int main() {
    const publish::Folder folder;
    on_machine("h100@13.0", structs_of_all_sizes);
    return check::summary("struct sizes");
}
