/*
 * gcx_sim.h - control of the simulated CUDA driver, libgcx-sim.
 *
 * libgcx-sim is a library with libcuda's ABI. A program needs this header only to steer the
 * simulation: to choose what is simulated, to make calls fail, to count what is alive.
 * All functions may be called from any thread. Whatever is simulated says SIMULATED.
 */
#ifndef GCX_SIM_H
#define GCX_SIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Counts the live objects of the simulated driver and what it has leaked. Times are of the
 * simulated clock. */
typedef struct gcx_sim_counts {
    uint64_t primary_retains;   /* cuDevicePrimaryCtxRetain not yet released */
    uint64_t contexts;          /* contexts of cuCtxCreate */
    uint64_t green_contexts;    /* green contexts not yet destroyed */
    uint64_t streams;           /* streams not yet destroyed */
    uint64_t events;            /* events not yet destroyed */
    uint64_t modules;           /* modules and libraries not yet unloaded */
    uint64_t graphs;            /* graphs and executables not yet destroyed */
    uint64_t allocations;       /* device and pinned allocations not yet freed */
    uint64_t allocated_bytes;   /* their bytes */
    uint64_t device_bytes_used; /* what cuMemGetInfo counts as used, losses included */
    uint64_t device_bytes_lost; /* leaked by creating and destroying green contexts */
    uint64_t descriptors;       /* made by cuDevResourceGenerateDesc; they are never freed */
    uint64_t calls;             /* driver calls since the last configure */
    uint64_t clock_ns;          /* the simulated clock */
} gcx_sim_counts;

/* What ran on the simulated device. */
typedef enum gcx_sim_run_kind {
    GCX_SIM_RUN_KERNEL = 0,
    GCX_SIM_RUN_COPY = 1,
    GCX_SIM_RUN_FILL = 2,
    GCX_SIM_RUN_HOST = 3, /* a function of the program: it has no SMs */
    GCX_SIM_RUN_OTHER = 4
} gcx_sim_run_kind;
typedef struct gcx_sim_run {
    uint64_t begin_ns; /* on the simulated clock; not slowed down by other streams. Of work behind a
                          host function: a guess until that has returned */
    uint64_t end_ns;
    uint64_t stream; /* the CUstream it was launched in; 0: a NULL stream */
    uint64_t launch; /* 1 and up: the graph launch that it was part of; 0: none */
    uint64_t sms[6]; /* bit n % 64 of sms[n / 64]: SM n, of the context that it ran in */
    uint32_t sm_count;
    int32_t kind;    /* a gcx_sim_run_kind */
    char kernel[64]; /* the kernel's name, cut to fit */
} gcx_sim_run;

/* Starts a new simulated machine and destroys all objects of the old one. Pending work does not
 * happen; a host function that runs is waited for. spec is [N
 * x]GPU[,GPU...][@DRIVER], such as "h100", "h100@12.4" or "2xh100,a100@13.1", or the path of a
 * recording of `gcx info --record`, "path/to/file[@DRIVER]". "none@13.0" has no device. NULL:
 * GCX_SIM in the environment, or else h100@13.0. Returns 0, or a CUresult with the reason in
 * gcx_sim_last_error(); the old machine stays then. If it was not called, the first driver call
 * calls it with NULL. A new machine reads CUDA_VISIBLE_DEVICES at its first cuInit. */
int gcx_sim_configure(const char* spec);

/* Returns why the last gcx_sim_ call of this thread failed, "" if none did. Valid until the
 * thread's next call. */
const char* gcx_sim_last_error(void);

/* Returns the present specification, a recording with its absolute path; "" if GCX_SIM or another
 * variable is wrong. Valid until the thread's next call. */
const char* gcx_sim_spec(void);

/* Return the names and one-line descriptions of the GPUs and driver versions that can be
 * simulated, by index; NULL past the last. The strings live as long as the library. */
const char* gcx_sim_gpu_name(size_t index);
const char* gcx_sim_gpu_description(size_t index);
const char* gcx_sim_driver_name(size_t index);
const char* gcx_sim_driver_description(size_t index);

/* Makes the nth call (1: the next) of a driver function fail with a CUresult. function NULL counts
 * calls of any function. A new call replaces the old one; nth 0 cancels it. The environment can
 * request the same: GCX_SIM_FAIL=cuGreenCtxCreate:3:2 (function or *, nth, result). */
int gcx_sim_fail(const char* function, uint64_t nth, int result);

/* Returns how often a driver function was called since the last configure; NULL: any function. */
uint64_t gcx_sim_calls(const char* function);

/* Returns the present counts. */
void gcx_sim_get_counts(gcx_sim_counts* counts);

/* There is no function for dynamic parallelism: loading a module whose PTX launches kernels, or the
 * environment's GCX_SIM_DYNAMIC_PARALLELISM=1, makes all partitions share SMs on compute capability
 * 9.x, see docs/reference/simulated-driver.md. */

/* Advances the simulated clock, with the effects of the work that ends until then. Host functions
 * that begin until then get up to 10 ms each to return. */
void gcx_sim_advance(uint64_t nanoseconds);

/* Records the next most kernels, copies, fills and host functions, including those of graphs, and
 * forgets earlier ones. 0, the initial state, records none. */
void gcx_sim_note_runs(size_t most);

/* Writes at most most recorded runs in order of submission; those of a graph in an order in
 * which they may run. Returns how many there are. out NULL: writes none. */
size_t gcx_sim_get_runs(gcx_sim_run* out, size_t most);

#ifdef __cplusplus
}
#endif

#endif
