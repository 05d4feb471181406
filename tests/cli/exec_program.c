/* A program that knows nothing of gcx: it opens libcuda and prints how many SMs it is told, for
 * each device. What it does before that is its first argument. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMultiprocessorCount = 16 };

static const char* library = "libcuda.so.1";

static void* find(const char* name) {
    void* const cuda = dlopen(library, RTLD_NOW);
    if (cuda == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    void* const function = dlsym(cuda, name);
    if (function == NULL) {
        fprintf(stderr, "there is no %s\n", name);
        exit(3);
    }
    return function;
}

static void check(int result, const char* what) {
    if (result != 0) {
        fprintf(stderr, "%s returned %d\n", what, result);
        exit(4);
    }
}

/* A function of libcuda by its name and the types of its parameters. */
#define CUDA(name, ...) ((int (*)(__VA_ARGS__))find(#name))

static void* tell(void* unused) {
    int devices = 0;
    check(CUDA(cuInit, unsigned)(0), "cuInit");
    check(CUDA(cuDeviceGetCount, int*)(&devices), "cuDeviceGetCount");
    for (int device = 0; device < devices; device++) {
        int sms = 0;
        int again = 0;
        void* found = NULL;
        check(CUDA(cuDeviceGetAttribute, int*, int, int)(&sms, kMultiprocessorCount, device),
              "cuDeviceGetAttribute");
        check(CUDA(cuGetProcAddress_v2, const char*, void**, int, unsigned long long,
                   void*)("cuDeviceGetAttribute", &found, 12000, 0, NULL),
              "cuGetProcAddress");
        check(((int (*)(int*, int, int))found)(&again, kMultiprocessorCount, device), "the other");
        if (sms != again)
            printf("%d by its name, ", again);
        printf("%d%s", sms, device + 1 < devices ? " " : "\n");
    }
    fflush(stdout);
    return unused;
}

/* Makes the partition, for which the process needs the reservation. */
static void use(void) {
    void* context = NULL;
    check(CUDA(cuInit, unsigned)(0), "cuInit");
    check(CUDA(cuDevicePrimaryCtxRetain, void**, int)(&context, 0), "cuDevicePrimaryCtxRetain");
}

static void wait_for(const char* file, const char* end) {
    char path[4096];
    snprintf(path, sizeof path, "%s%s", file, end);
    while (access(path, F_OK) != 0)
        usleep(5000);
}

static void tell_and_exit(int signal_number) {
    (void)signal_number;
    tell(NULL);
    _exit(5);
}

static void close_descriptors(void) {
    const int highest = (int)sysconf(_SC_OPEN_MAX);
    for (int descriptor = 0; descriptor < (highest < 4096 ? highest : 4096); descriptor++) {
        if (descriptor != STDOUT_FILENO)
            close(descriptor);
    }
    open("/dev/null", O_RDWR);
}

/* Forks twice and starts a session. Closes all descriptors but the one that the test reads. */
static void become_daemon(void) {
    if (fork() != 0)
        exit(0);
    setsid();
    if (fork() != 0)
        _exit(0);
    close_descriptors();
    if (chdir("/") != 0)
        _exit(6);
}

int main(int argc, char** argv) {
    const char* const what = argc > 1 ? argv[1] : "tell";
    if (strcmp(what, "path") == 0) {
        library = argv[2];
    } else if (strcmp(what, "fork") == 0) {
        const pid_t child = fork();
        if (child != 0) {
            int status = 0;
            waitpid(child, &status, 0);
            return status == 0 ? 0 : 1;
        }
    } else if (strcmp(what, "after") == 0) { /* loads libcuda, forks; the child execs itself */
        tell(NULL);
        if (fork() == 0) {
            execl("/proc/self/exe", argv[0], "tell", (char*)NULL);
            _exit(7);
        }
        wait(NULL);
        return 0;
    } else if (strcmp(what, "moved") == 0) { /* a path of its own choosing, for what it starts */
        setenv("LD_LIBRARY_PATH", argv[2], 1);
        execl("/proc/self/exe", argv[0], "tell", (char*)NULL);
        return 7;
    } else if (strcmp(what, "overwritten") == 0) { /* as those do that show a title of their own */
        char* const plan = getenv("GCX_EXEC_PLAN");
        if (plan == NULL)
            return 9;
        memset(plan, 'x', strlen(plan));
        unsetenv("GCX_EXEC_PLAN");
        unsetenv("LD_AUDIT");
    } else if (strcmp(what, "daemon") == 0) {
        become_daemon();
    } else if (strcmp(what, "server") == 0) { /* FILE HOW: uses the GPU when FILE.use is there, and
                                                 ends when FILE.end is; HOW it begins */
        const int times = argc > 4 ? atoi(argv[4]) : 0;
        if (strcmp(argv[3], "daemon") == 0) {
            become_daemon();
        } else if (strcmp(argv[3], "becomes") == 0) { /* other programs, so many in turn */
            char left[16];
            if (times == 0)
                become_daemon();
            close_descriptors();
            snprintf(left, sizeof left, "%d", times + 1);
            if (times < 200)
                execl("/proc/self/exe", argv[0], "server", argv[2], "becomes", left, (char*)NULL);
        }
        wait_for(argv[2], ".use");
        use();
        tell(NULL);
        wait_for(argv[2], ".end");
        return 0;
    } else if (strcmp(what, "signal") == 0) {
        signal(SIGUSR1, tell_and_exit);
        raise(SIGUSR1);
    } else if (strcmp(what, "killed") == 0) {
        tell(NULL);
        raise(SIGKILL);
    } else if (strcmp(what, "thread") == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, tell, NULL) != 0)
            return 8;
        pthread_join(thread, NULL);
        return 0;
    }
    tell(NULL);
    return argc > 2 && strcmp(what, "status") == 0 ? atoi(argv[2]) : 0;
}
