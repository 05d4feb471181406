// Replays facts/h100-driver580-misuse.txt. Each case runs in a process of its own, as it did when
// it was recorded; where the real driver crashed (139) the simulation aborts (134) with a message.
#include "facts.hpp"
#include "support.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>

using namespace sim_test;

namespace {

// Cases print as the recorder did.
using Case = std::function<void(Primary&, const CUdevResource& device)>;

void say(const std::string& text) {
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
}

std::string hex(const CUdevResource& resource) {
    std::string text;
    const auto* bytes = reinterpret_cast<const unsigned char*>(&resource);
    for (std::size_t i = 0; i < sizeof resource; i++)
        text += format("%02x", bytes[i]);
    return text;
}

unsigned green_sms(CUgreenCtx green) {
    CUdevResource own;
    CHECK_OK(cuGreenCtxGetDevResource(green, &own, cu::kResourceSm));
    return sm_count(own);
}

std::string described(std::vector<CUdevResource> resources) {
    CUresult result = CUDA_SUCCESS;
    describe(std::move(resources), &result);
    return name_of(result);
}

std::string split_result(const CUdevResource& input, unsigned flags = 0) {
    return name_of(split(input, 1, flags, 8).result);
}

void in_flight(Primary& primary, const CUdevResource& device) {
    Partition part({split(device, 1, 0, 24).groups[0]});
    CHECK_OK(primary.spin(part.stream, 50'000'000));
    const uint64_t begin = clock_ns();
    const CUresult stream = cuStreamDestroy_v2(part.stream);
    part.stream = nullptr;
    const uint64_t middle = clock_ns();
    const CUresult context = part.destroy_context();
    const uint64_t end = clock_ns();
    CHECK(end - begin < 1'000'000); // neither waits for the 50 ms
    say(format("R21 destroy with work in flight -> %s %.0fus %s %.0fus sync %s",
               name_of(stream).c_str(), static_cast<double>(middle - begin) / 1000,
               name_of(context).c_str(), static_cast<double>(end - middle) / 1000,
               name_of(cuCtxSynchronize()).c_str()));
}

void after_destroy(Primary& primary, const CUdevResource& device) {
    Partition part({split(device, 1, 0, 24).groups[0]});
    CHECK_OK(part.destroy_context());
    say("R16 use stream after ctx destroyed -> launch " + name_of(primary.spin(part.stream, 10)));
    say("n=0");
    // sets-and-graphs: so do query, synchronize and destroy.
    CHECK_EQ(name_of(cuStreamQuery(part.stream)), "CUDA_ERROR_CONTEXT_IS_DESTROYED");
    CHECK_EQ(name_of(cuStreamSynchronize(part.stream)), "CUDA_ERROR_CONTEXT_IS_DESTROYED");
    CHECK_EQ(name_of(cuStreamDestroy_v2(part.stream)), "CUDA_ERROR_CONTEXT_IS_DESTROYED");
    part.stream = nullptr;
}

void while_current(Primary&, const CUdevResource& device) {
    Partition part({split(device, 1, 0, 24).groups[0]});
    CHECK_OK(cuCtxPushCurrent_v2(part.context));
    const CUcontext context = part.context;
    part.destroy_stream();
    const CUresult destroyed = part.destroy_context();
    CUcontext current = nullptr;
    const CUresult got = cuCtxGetCurrent(&current);
    const CUresult synchronized = cuCtxSynchronize();
    say(format("R19 destroy while current -> %s cur %s %d sync %s pop %s",
               name_of(destroyed).c_str(), name_of(got).c_str(), current == context,
               name_of(synchronized).c_str(), name_of(cuCtxPopCurrent_v2(nullptr)).c_str()));
}

void combinations(const CUdevResource& device) {
    const Split base = split(device, 32, 0, 8);
    std::string line = format("R23 n=%u ", base.count);
    for (const unsigned count : {2U, 3U, 8U}) {
        const Partition part({base.groups.begin(), base.groups.begin() + count});
        line += format(" combo %u -> %s sm=%u", count, name_of(part.result).c_str(),
                       green_sms(part.green));
    }
    say(line);
}

void sub_split(const CUdevResource& device) {
    const Partition part({split(device, 1, 0, 24).groups[0]});
    CUdevResource own;
    const CUresult code = cuCtxGetDevResource(part.context, &own, cu::kResourceSm);
    say(format("R24 cuCtxGetDevResource(green) %s sm=%u id=2", name_of(code).c_str(),
               sm_count(own)));
    const Split made = split(own, 1, 0, 8);
    say(format("split of green's resource 8-> %s n=%u c=%u rem=%u", name_of(made.result).c_str(),
               made.count, sm_count(made.groups[0]), sm_count(made.remainder)));
}

std::vector<Case> cases() {
    std::vector<Case> list(26);
    list[1] = [](Primary&, const CUdevResource&) {
        say("R1 inv type in -> " + split_result(CUdevResource{}));
    };
    list[2] = [](Primary&, const CUdevResource& device) {
        CUdevResource out;
        unsigned count = 0;
        const CUresult code = cuDevSmResourceSplitByCount(&out, &count, &device, nullptr, 0, 8);
        say(format("R2 nb=0 -> %s n=%u", name_of(code).c_str(), count));
    };
    list[3] = [](Primary&, const CUdevResource& device) {
        say("R3 flags=4 -> " + split_result(device, 4));
    };
    list[4] = [](Primary&, const CUdevResource& device) {
        say("R4 resplit group -> " + split_result(split(device, 1, 0, 64).groups[0]));
    };
    list[5] = [](Primary&, const CUdevResource& device) {
        say("R5 resplit remaining -> " + split_result(split(device, 1, 0, 64).remainder));
    };
    list[6] = [](Primary&, const CUdevResource&) {
        say("R6 desc of zero -> " + described({CUdevResource{}}));
    };
    list[7] = [](Primary&, const CUdevResource& device) {
        std::printf("R7 ");
        std::fflush(stdout);
        CUdevResource copy = device;
        CUdevResourceDesc descriptor = nullptr;
        cuDevResourceGenerateDesc(&descriptor, &copy, 0);
    };
    list[8] = [](Primary&, const CUdevResource& device) {
        const CUdevResource group = split(device, 1, 0, 24).groups[0];
        say("R8 desc same twice -> " + described({group, group}));
        const Partition part({group, group});
        say(" create " + name_of(part.result));
        say(format("  sm=%u", green_sms(part.green)));
    };
    list[9] = [](Primary&, const CUdevResource& device) {
        say("R9 desc from different split calls -> " +
            described({split(device, 1, 0, 24).groups[0], split(device, 1, 0, 8).groups[0]}));
    };
    list[10] = [](Primary&, const CUdevResource& device) {
        CUdevResource edited = split(device, 1, 0, 24).groups[0];
        cu::SmFields edit = fields(edited);
        edit.sm_count = 10;
        cu::set_fields(edited, edit);
        say("R10 handcrafted smCount -> " + described({edited}));
    };
    list[11] = [](Primary&, const CUdevResource& device) {
        const Partition part({device});
        say(format("R11 whole device ctx -> %s  sm=%u", name_of(part.result).c_str(),
                   green_sms(part.green)));
    };
    list[12] = [](Primary&, const CUdevResource& device) {
        CUgreenCtx green = nullptr;
        say("R12 flags=0 create -> " + name_of(cuGreenCtxCreate(&green, describe({device}), 0, 0)));
    };
    list[13] = [](Primary&, const CUdevResource&) {
        CUdevResource out;
        unsigned count = 1;
        say("R13 null input -> " +
            name_of(cuDevSmResourceSplitByCount(&out, &count, nullptr, nullptr, 0, 8)));
    };
    list[14] = [](Primary&, const CUdevResource& device) {
        CUdevResource copy = device;
        say("R14 desc null-> " + name_of(cuDevResourceGenerateDesc(nullptr, &copy, 1)));
    };
    list[15] = [](Primary&, const CUdevResource& device) {
        Partition part({device});
        part.destroy_stream();
        const CUgreenCtx green = part.green;
        CHECK_OK(part.destroy_context());
        say("R15 double destroy -> " + name_of(cuGreenCtxDestroy(green)));
    };
    list[16] = after_destroy;
    list[17] = [](Primary&, const CUdevResource& device) {
        Partition part({device});
        part.destroy_stream();
        const CUgreenCtx green = part.green;
        CHECK_OK(part.destroy_context());
        CUstream stream = nullptr;
        say("R17 stream create on destroyed -> " +
            name_of(later().green_stream_create(&stream, green, CU_STREAM_NON_BLOCKING, 0)));
    };
    list[18] = [](Primary& primary, const CUdevResource& device) {
        std::printf("R18 launch on destroyed stream -> ");
        std::fflush(stdout);
        Partition part({device});
        const CUstream stream = part.stream;
        part.destroy_stream();
        primary.spin(stream, 10);
    };
    list[19] = while_current;
    list[20] = [](Primary&, const CUdevResource&) {
        CUgreenCtx green = nullptr;
        say("R20 create null desc -> " + name_of(cuGreenCtxCreate(&green, nullptr, 0, 1)));
    };
    list[21] = in_flight;
    list[22] = [](Primary&, const CUdevResource& device) {
        const Split made = split(device, 1, 0, 24);
        const Partition part({made.groups[0], made.remainder});
        say(format("R22 group+remaining (all) -> %s  sm=%u", name_of(part.result).c_str(),
                   green_sms(part.green)));
    };
    list[23] = [](Primary&, const CUdevResource& device) { combinations(device); };
    list[24] = [](Primary&, const CUdevResource& device) { sub_split(device); };
    list[25] = [](Primary&, const CUdevResource& device) {
        const Split made = split(device, 1, 0, 24);
        say("R25 struct bytes of group: " + hex(made.groups[0]));
        say(" struct of devres: " + hex(device));
        say(" rem: " + hex(made.remainder));
    };
    return list;
}

// Runs one case in a child. What it printed, and its exit status as a shell has it.
std::string run(const Case& body, int& status) {
    int out[2];
    int err[2];
    if (pipe(out) != 0 || pipe(err) != 0)
        return "pipe failed";
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        close(out[0]);
        close(err[0]);
        CHECK_OK(cuInit(0));
        {
            Primary primary;
            body(primary, query());
        }
        std::fflush(nullptr);
        _exit(check::failed.load() == 0 ? 0 : 1);
    }
    close(out[1]);
    close(err[1]);
    const auto drain = [](int pipe_end) {
        std::string text;
        char buffer[4096];
        for (ssize_t got = 0; (got = read(pipe_end, buffer, sizeof buffer)) > 0;)
            text.append(buffer, static_cast<std::size_t>(got));
        close(pipe_end);
        return text;
    };
    const std::string text = drain(out[0]);
    const std::string errors = drain(err[0]);
    int raw = 0;
    CHECK_EQ(waitpid(child, &raw, 0), child);
    status = WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
    if (status == 134)
        CHECK(errors.find("SIMULATED") != std::string::npos &&
              errors.find("segmentation fault") != std::string::npos);
    else if (!errors.empty())
        std::fprintf(stderr, "%s", errors.c_str());
    return text;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2)
        return 2;
    CHECK_EQ(gcx_sim_configure("h100@13.0"), 0);
    const auto mask = [](const char* pattern, const char* replacement) {
        return Mask{std::regex(pattern), replacement};
    };
    Facts facts(argv[1], {
                             mask("[0-9]+us", "TIMEus"),
                             // The driver's own bytes between the tag and the union.
                             mask("(01000000)[0-9a-f]{184}", "$1 HIDDEN "),
                             mask("\\[rc 134\\]", "[rc 139]"), // it aborts, with a message
                         });
    const std::vector<Case> list = cases();
    for (std::size_t i = 1; i < list.size(); i++) {
        int status = 0;
        std::string text = run(list[i], status);
        for (std::size_t end = 0; (end = text.find('\n')) != std::string::npos;) {
            facts.expect(text.substr(0, end));
            text.erase(0, end + 1);
        }
        if (!text.empty())
            facts.expect(text); // the line that a crash left unfinished
        facts.expect(format("  [rc %d]", status));
    }
    facts.summary();
    return check::summary("replay of the misuse");
}
