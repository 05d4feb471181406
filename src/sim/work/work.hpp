// Contexts, streams and their work, functions and their launches.
#pragma once

#include "sim/entry/clock.hpp"

namespace gcx::sim {

// Contexts. Refuse handles that are unknown or destroyed.
Context& context_of(Machine& machine, CUcontext handle);
Context& current_context(Machine& machine);
Context& context_or_current(Machine& machine, CUcontext handle); // NULL means the current one
void refuse_dead_context(Machine& machine);                      // if it is current
Context& new_context(Machine& machine, Device& device, Context::Kind kind);
void kill_context(Machine& machine, Context& context);

// Assumed: the device memory that a context uses.
inline constexpr uint64_t kContextBytes = 400ULL << 20;

Context& retain_primary(Machine& machine, Device& device);
void release_primary(Machine& machine, Device& device);

// Streams, including the NULL streams of the current context.
Stream& stream_of(Machine& machine, CUstream handle);
void submit(Machine& machine, Stream& stream, Work work);
// Returns when the stream's next action begins, and notes that it has one until a moment.
Moment start_time(const Machine& machine, const Stream& stream);
// The same for actions that do not make a blocking stream wait for the NULL stream. What follows them
// in the stream does.
Moment start_beside_null(const Machine& machine, const Stream& stream);
void note_action(Stream& stream, const Moment& end);
// Lets a task happen that begins at a moment. Returns its end.
Moment perform(Machine& machine, const Stream& stream, const Work& work, Moment begin,
               uint64_t launch);
// In a green context no stream is one of these two: the driver orders none with the NULL stream.
bool is_blocking(const Stream& stream);
bool is_legacy(const Stream& stream); // the NULL stream that waits for the blocking ones
// Refuses a call that can't be captured, and invalidates the stream's capture.
void refuse_capturing(const Stream& stream);
// Aborts if the stream was destroyed, since the real driver crashes.
void refuse_dead_stream(const Machine& machine, CUstream handle);

// Returns when a task starts that needs a hardware queue and is ready in its stream at a time.
Moment start_in_queue(Machine& machine, Stream& stream, Moment ready);
// Lets a branch of a graph on the stream occupy a queue.
void occupy_queue(Machine& machine, const Stream& stream, uint64_t until);

// Reads PTX text, a cubin or a fatbin, whose length is unknown. Fails with CUDA_ERROR_INVALID_IMAGE
// or CUDA_ERROR_INVALID_PTX.
void read_image(const void* image, Module& module);

// Functions of modules and libraries. The handle may also be a CUkernel.
Function* find_function(Machine& machine, Handle handle);
Function& function_of(Machine& machine, Handle handle,
                      CUresult otherwise = CUDA_ERROR_INVALID_HANDLE);

// Launches.
void check_launch(Machine& machine, const Context& context, Handle function,
                  const LaunchConfig& config);
// Checks what does not depend on the SMs of a context, which graph nodes get later.
void check_limits(const Device& device, const Function& function, const LaunchConfig& config);
void pack_arguments(const Function& function, void** parameters, void** extra, Work& work);
LaunchConfig read_config(const CUlaunchConfig& given); // ignores the attributes
void read_launch_attributes(const CUlaunchAttribute* list, unsigned count, LaunchConfig& config,
                            std::map<int, std::string>& attributes);
uint64_t kernel_duration(Machine& machine, const Work& work);
// Returns what the kernel does at its end; empty if it is not known by name.
std::function<void(Machine&)> kernel_effect(Machine& machine, const Work& work);

// Returns the SMs of the context and those that dynamic parallelism adds.
SmSet kernel_sms(const Machine& machine, const Context& context);

// Records a run for gcx_sim_get_runs(), if requested.
void note_run(Machine& machine, const Stream& stream, const Work& work, uint64_t launch,
              const Moment& begin, uint64_t duration);

// Occupancy.
unsigned blocks_per_sm(const Device& device, const Function& function, unsigned threads,
                       std::size_t dynamic_shared);
unsigned active_clusters(const Device& device, const Function& function, const Fragments& fragments,
                         const LaunchConfig& config);
unsigned max_cluster_size(const Device& device, const Function& function,
                          const Fragments& fragments, const LaunchConfig& config);

} // namespace gcx::sim
