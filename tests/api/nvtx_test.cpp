// Tests what a profiler is told by NVTX: the names of streams on their SMs, and a range for each
// resize. The tool is nvtx_tool.c; with "none" as the argument there is no tool.

#include "leases.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

using namespace support;

namespace {

// What the tool has noted since the last call.
std::string notes() {
    static void* const tool = dlopen(std::getenv("NVTX_INJECTION64_PATH"), RTLD_LAZY);
    if (!CHECK(tool != nullptr))
        return "";
    using Notes = void (*)(char*, std::size_t);
    const auto get = reinterpret_cast<Notes>(dlsym(tool, "gcx_test_nvtx_notes"));
    std::string text(1 << 16, '\0');
    get(text.data(), text.size());
    return text.c_str();
}

std::string named(gcx_stream stream, const std::string& name) {
    char text[64];
    std::snprintf(text, sizeof text,
                  "stream %p gcx: ", static_cast<void*>(gcx_stream_native(stream)));
    return text + name + "\n";
}

void streams_have_the_names_of_their_sms() {
    CHECK_EQ(notes(), std::string()); // loads the tool, as NVTX does at gcx's first call of it
    const Partition part(split(whole_device(), {24}).groups[0]);
    CHECK_EQ(notes(), "domain gcx\n" + named(part.stream, "24 SMs, context " +
                                                              std::to_string(id_of(part.context))));
    const gcx_lease lease = acquire(32, "decode");
    gcx_stream stream = stream_of(lease);
    CHECK_EQ(notes(), named(stream, "\"decode\", 32 SMs"));
    const gcx_lease unnamed = acquire(16);
    gcx_stream other = stream_of(unnamed);
    const std::string label = "lease " + std::to_string(info_of(unnamed).id);
    CHECK_EQ(notes(), named(other, label + ", 16 SMs"));

    // A stream that follows its lease is another CUstream.
    CHECK_OK(resize({{lease, 64, 0}}));
    CHECK_EQ(notes(), std::string("begin resize: 64 for \"decode\"\nend\n"));
    const std::string moved = named(stream, "\"decode\", 64 SMs");
    CHECK_EQ(notes(), moved);
    CHECK_EQ(named(stream, "\"decode\", 64 SMs"), moved);
    CHECK_EQ(notes(), std::string()); // it was named once
    release_all({stream, other}, {lease, unnamed});
}

void resizes_are_ranges_also_if_they_fail() {
    const gcx_lease one = acquire(24, "one");
    const gcx_lease two = acquire(24, "%n\n\x1b");
    notes();
    CHECK_OK(resize({{one, 0, GCX_SIZE_PARKED}, {two, GCX_REST, 0}}));
    CHECK_EQ(notes(),
             std::string("begin resize: none for \"one\", the rest for \"%n\n\x1b\"\nend\n"));
    CHECK_EQ(resize({{one, 133, 0}}), GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK_EQ(notes(), std::string("begin resize: 133 for \"one\"\nend\n"));
    const gcx_lease_size size = {one, 8, 0};
    CHECK_EQ(gcx_lease_prepare(&size, 1), GCX_ERROR_ALREADY_ACQUIRED);
    release_all({}, {one, two});
    CHECK_EQ(notes(), std::string()); // neither is a resize
}

void threads_that_resize_open_as_many_ranges_as_they_close() {
    in_threads(4, [](unsigned) {
        const gcx_lease lease = acquire(8);
        for (int round = 0; round < 25; round++)
            CHECK_OK(resize({{lease, round % 2 == 0 ? 16U : 8U, 0}}));
        CHECK_OK(gcx_lease_release(lease));
    });
    const std::string text = notes();
    const auto count = [&](std::string_view what) {
        std::size_t found = 0;
        for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1))
            found++;
        return found;
    };
    CHECK_EQ(count("begin resize: "), 100U);
    CHECK_EQ(count("end\n"), 100U);
}

} // namespace

int main(int argc, char** argv) {
    const bool has_tool = argc < 2 || std::strcmp(argv[1], "none") != 0;
    on_machine("h100@13.0", [&] {
        if (has_tool) {
            streams_have_the_names_of_their_sms();
            resizes_are_ranges_also_if_they_fail();
            threads_that_resize_open_as_many_ranges_as_they_close();
        } else {
            // A tool that is not there, or is none, changes nothing.
            const gcx_lease lease = acquire(8, "one");
            gcx_stream stream = stream_of(lease);
            CHECK_OK(resize({{lease, 16, 0}}));
            CHECK(gcx_stream_native(stream) != nullptr);
            release_all({stream}, {lease});
        }
    });
    return check::summary("nvtx");
}
