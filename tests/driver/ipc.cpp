// Memory and events of one process in another.
#include "targets.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace conformance {
namespace {

struct Handles {
    CUipcMemHandle memory;
    CUipcEventHandle event;
    int green; // whether the other process uses a green context
};

// Reads for at most 10 s.
bool read_all(int descriptor, void* to, std::size_t size) {
    pollfd waiting = {descriptor, POLLIN, 0};
    return poll(&waiting, 1, 10'000) == 1 &&
           read(descriptor, to, size) == static_cast<ssize_t>(size);
}

// Returns what the other process answers.
std::string ask_other_process(const Handles& handles) {
    int to[2];
    int from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
        throw Stop("no pipe");
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        execl("/proc/self/exe", "driver-conformance", "--ipc", nullptr);
        _exit(127);
    }
    close(from[1]);
    char answer[512] = {};
    std::string text = "the other process does not answer";
    pollfd waiting = {from[0], POLLIN, 0};
    if (write(to[1], &handles, sizeof handles) == sizeof handles &&
        poll(&waiting, 1, 15'000) == 1 && read(from[0], answer, sizeof answer - 1) > 0)
        text = answer;
    else
        kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return text;
}

// The other process waits for the event of a slow launch, reads what it wrote, and writes.
std::string memory_and_event() {
    CUcontext current = nullptr;
    MUST(cuCtxGetCurrent, &current);
    Handles handles{};
    handles.green = current == gpu.primary ? 0 : 1;
    const CUdeviceptr memory = device_words(1 << 21);
    const CUevent event = make_event(CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
    std::string answer = "memory " + name_of(CU(cuIpcGetMemHandle)(&handles.memory, memory));
    answer += ", event " + name_of(CU(cuIpcGetEventHandle)(&handles.event, event));
    const CUstream stream = non_blocking_stream();
    must(store(stream, memory, 42, 3'000 * kMillisecond), "the slow launch");
    MUST(cuEventRecord, event, stream);
    answer += "; the other process: " + ask_other_process(handles);
    return answer + "; it wrote " + std::to_string(read_word(memory));
}

std::string answer_of_other(const Handles& handles) {
    prepare(handles.green != 0 ? Needs::kGreen : Needs::kPrimary);
    if (handles.green != 0)
        make_current(gpu.green);
    const CUdeviceptr words = device_words();
    const CUstream stream = non_blocking_stream();
    CUdeviceptr memory = 0;
    CUevent event = nullptr;
    const CUresult opened =
        CU(cuIpcOpenMemHandle_v2)(&memory, handles.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    const CUresult shared = CU(cuIpcOpenEventHandle)(&event, handles.event);
    std::string answer = "opens the memory " + name_of(opened) + ", the event " + name_of(shared);
    if (opened != CUDA_SUCCESS || shared != CUDA_SUCCESS)
        return answer;
    MUST(cuStreamWaitEvent, stream, event, 0);
    must(load(stream, words, memory), "the launch");
    answer += ", reads " + std::to_string(read_word(words));
    must(store(stream, memory, 43, 1), "the store");
    settle();
    return answer + ", closes " + name_of(CU(cuIpcCloseMemHandle)(memory));
}

} // namespace

void answer_ipc() {
    Handles handles{};
    std::string answer = "no handles";
    if (read_all(STDIN_FILENO, &handles, sizeof handles)) {
        try {
            answer = answer_of_other(handles);
        } catch (const Stop& stop) {
            answer = stop.what();
        }
    }
    _exit(write(STDOUT_FILENO, answer.data(), answer.size()) > 0 ? 0 : 1);
}

void add_ipc(Checks& checks) {
    checks.add_both("claim_15_memory_and_event_in_another_process", memory_and_event);
}

} // namespace conformance
