// facts/h100-driver580-misuse.txt. Each case runs in a separate process, as it did when it was
// recorded.
#include "replay.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>

using namespace sim_test;

namespace {

// Cases print the same lines as the recorder.
using Case = std::function<void(Primary&, const CUdevResource& device)>;

void print(std::initializer_list<Piece> pieces) {
    std::printf("%s\n", line_of(pieces).c_str());
    std::fflush(stdout);
}

// Prints all bytes except the driver's between the tag and the union.
std::string hex(const CUdevResource& resource) {
    constexpr std::size_t kTagBytes = 4;
    constexpr std::size_t kHiddenBytes = 92;
    std::string text;
    const auto* bytes = reinterpret_cast<const unsigned char*>(&resource);
    for (std::size_t i = 0; i < sizeof resource; i++) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", bytes[i]);
        text += digits;
    }
    return text.replace(2 * kTagBytes, 2 * kHiddenBytes, line_of({"{*", 2 * kHiddenBytes, "}"}));
}

unsigned green_sms(CUgreenCtx green) {
    CUdevResource own;
    CHECK_OK(cuGreenCtxGetDevResource(green, &own, cu::kResourceSm));
    return sm_count(own);
}

CUresult split_result(const CUdevResource& input, unsigned flags = 0) {
    return split(input, 1, flags, 8).result;
}

void in_flight(Primary& primary, const CUdevResource& device) {
    Partition part({split(device, 1, 0, 24).groups[0]});
    CHECK_OK(primary.spin(part.stream, 50'000'000));
    const uint64_t begin = clock_ns();
    const CUresult stream = cuStreamDestroy_v2(part.stream);
    part.stream = nullptr;
    const CUresult context = part.destroy_context();
    const uint64_t end = clock_ns();
    CHECK(end - begin < 1'000'000); // neither waits for the 50 ms
    print({"R21 destroy with work in flight -> ", stream, " {}us ", context, " {}us sync ",
           cuCtxSynchronize()});
}

void after_destroy(Primary& primary, const CUdevResource& device) {
    Partition part({split(device, 1, 0, 24).groups[0]});
    CHECK_OK(part.destroy_context());
    print({"R16 use stream after ctx destroyed -> launch ", primary.spin(part.stream, 10)});
    print({"n=0"});
    // The sets-and-graphs log has the same for query, synchronize and destroy.
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
    CUcontext current = nullptr;
    print({"R19 destroy while current -> ", part.destroy_context(), " cur ",
           cuCtxGetCurrent(&current), " ", current == context, " sync ", cuCtxSynchronize(),
           " pop ", cuCtxPopCurrent_v2(nullptr)});
}

void combinations(const CUdevResource& device) {
    const Split base = split(device, 32, 0, 8);
    std::string line = line_of({"R23 n=", base.count, " "});
    for (const unsigned count : {2U, 3U, 8U}) {
        const Partition part({base.groups.begin(), base.groups.begin() + count});
        line += line_of({" combo ", count, " -> ", part.result, " sm=", green_sms(part.green)});
    }
    print({line});
}

void sub_split(const CUdevResource& device) {
    const Partition part({split(device, 1, 0, 24).groups[0]});
    CUdevResource own;
    print({"R24 cuCtxGetDevResource(green) ",
           cuCtxGetDevResource(part.context, &own, cu::kResourceSm), " sm=", sm_count(own),
           " id=2"});
    const Split made = split(own, 1, 0, 8);
    print({"split of green's resource 8-> ", made.result, " n=", made.count,
           " c=", sm_count(made.groups[0]), " rem=", sm_count(made.remainder)});
}

std::vector<Case> cases() {
    std::vector<Case> list(26);
    list[1] = [](Primary&, const CUdevResource&) {
        print({"R1 inv type in -> ", split_result(CUdevResource{})});
    };
    list[2] = [](Primary&, const CUdevResource& device) {
        CUdevResource out;
        unsigned count = 0;
        print({"R2 nb=0 -> ", cuDevSmResourceSplitByCount(&out, &count, &device, nullptr, 0, 8),
               " n=", count});
    };
    list[3] = [](Primary&, const CUdevResource& device) {
        print({"R3 flags=4 -> ", split_result(device, 4)});
    };
    list[4] = [](Primary&, const CUdevResource& device) {
        print({"R4 resplit group -> ", split_result(split(device, 1, 0, 64).groups[0])});
    };
    list[5] = [](Primary&, const CUdevResource& device) {
        print({"R5 resplit remaining -> ", split_result(split(device, 1, 0, 64).remainder)});
    };
    list[6] = [](Primary&, const CUdevResource&) {
        print({"R6 desc of zero -> ", described({CUdevResource{}})});
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
        print({"R8 desc same twice -> ", described({group, group})});
        const Partition part({group, group});
        print({" create ", part.result});
        print({"  sm=", green_sms(part.green)});
    };
    list[9] = [](Primary&, const CUdevResource& device) {
        print({"R9 desc from different split calls -> ",
               described({split(device, 1, 0, 24).groups[0], split(device, 1, 0, 8).groups[0]})});
    };
    list[10] = [](Primary&, const CUdevResource& device) {
        CUdevResource edited = split(device, 1, 0, 24).groups[0];
        cu::SmFields edit = fields(edited);
        edit.sm_count = 10;
        cu::set_fields(edited, edit);
        print({"R10 handcrafted smCount -> ", described({edited})});
    };
    list[11] = [](Primary&, const CUdevResource& device) {
        const Partition part({device});
        print({"R11 whole device ctx -> ", part.result, "  sm=", green_sms(part.green)});
    };
    list[12] = [](Primary&, const CUdevResource& device) {
        CUgreenCtx green = nullptr;
        print({"R12 flags=0 create -> ", cuGreenCtxCreate(&green, describe({device}), 0, 0)});
    };
    list[13] = [](Primary&, const CUdevResource&) {
        CUdevResource out;
        unsigned count = 1;
        print({"R13 null input -> ",
               cuDevSmResourceSplitByCount(&out, &count, nullptr, nullptr, 0, 8)});
    };
    list[14] = [](Primary&, const CUdevResource& device) {
        CUdevResource copy = device;
        print({"R14 desc null-> ", cuDevResourceGenerateDesc(nullptr, &copy, 1)});
    };
    list[15] = [](Primary&, const CUdevResource& device) {
        Partition part({device});
        part.destroy_stream();
        const CUgreenCtx green = part.green;
        CHECK_OK(part.destroy_context());
        print({"R15 double destroy -> ", cuGreenCtxDestroy(green)});
    };
    list[16] = after_destroy;
    list[17] = [](Primary&, const CUdevResource& device) {
        Partition part({device});
        part.destroy_stream();
        const CUgreenCtx green = part.green;
        CHECK_OK(part.destroy_context());
        CUstream stream = nullptr;
        print({"R17 stream create on destroyed -> ",
               later().green_stream_create(&stream, green, CU_STREAM_NON_BLOCKING, 0)});
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
        print({"R20 create null desc -> ", cuGreenCtxCreate(&green, nullptr, 0, 1)});
    };
    list[21] = in_flight;
    list[22] = [](Primary&, const CUdevResource& device) {
        const Split made = split(device, 1, 0, 24);
        const Partition part({made.groups[0], made.remainder});
        print({"R22 group+remaining (all) -> ", part.result, "  sm=", green_sms(part.green)});
    };
    list[23] = [](Primary&, const CUdevResource& device) { combinations(device); };
    list[24] = [](Primary&, const CUdevResource& device) { sub_split(device); };
    list[25] = [](Primary&, const CUdevResource& device) {
        const Split made = split(device, 1, 0, 24);
        print({"R25 struct bytes of group: ", hex(made.groups[0])});
        print({" struct of devres: ", hex(device)});
        print({" rem: ", hex(made.remainder)});
    };
    return list;
}

// Runs one case in a child process and says its output and its exit status in the form of a shell.
// Where the real driver crashed (139), the simulation aborts (134) with a message.
void run(const Case& body) {
    int out[2];
    int err[2];
    if (!CHECK(pipe(out) == 0 && pipe(err) == 0))
        return;
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
    std::string text = drain(out[0]);
    const std::string errors = drain(err[0]);
    int raw = 0;
    CHECK_EQ(waitpid(child, &raw, 0), child);
    int status = WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
    if (status == 134 && errors.find("SIMULATED") != std::string::npos &&
        errors.find("segmentation fault") != std::string::npos)
        status = 139;
    else if (!errors.empty())
        std::fprintf(stderr, "%s", errors.c_str());
    if (!text.ends_with('\n'))
        text += '\n'; // the line that a crash left unfinished
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        say({line});
    say({"  [rc ", status, "]"});
}

struct Misuse : Log {
    std::vector<Kind> kinds() override {
        return {{"R#", [list = cases()](const Line& line) { run(list.at(line.numbers[0])); }}};
    }
};

} // namespace

std::unique_ptr<Log> sim_test::misuse_log() {
    return std::make_unique<Misuse>();
}
