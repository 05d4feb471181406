// What the room of work offers: contexts, streams and what they do, functions and their launches.
#pragma once

#include "sim/machine.hpp"

namespace gcx::sim {

// Contexts. What is not known or destroyed is refused.
Context& context_of(Machine& machine, CUcontext handle);
Context& current_context(Machine& machine);
Context& context_or_current(Machine& machine, CUcontext handle); // NULL: the current one
Context& new_context(Machine& machine, Device& device, Context::Kind kind);
void kill_context(Machine& machine, Context& context);
uint64_t context_busy_until(const Machine& machine, const Context& context);

// Assumed: what a context takes of device memory.
inline constexpr uint64_t kContextBytes = 400ULL << 20;

Context& retain_primary(Machine& machine, Device& device);
void release_primary(Machine& machine, Device& device);
bool fits_context_flags(unsigned flags);

// Streams, the NULL streams of the current context among them.
Stream& stream_of(Machine& machine, CUstream handle);
void submit(Machine& machine, Stream& stream, Work work);
uint64_t start_time(const Machine& machine, const Stream& stream);
void wait_until(Machine& machine, uint64_t time);
void refuse_dead_stream(const Machine& machine, CUstream handle); // where the real driver crashes

// The hardware's queues: when something starts that has nothing to wait for in its stream from a
// time on, if it wants a queue.
uint64_t start_in_queue(Machine& machine, Stream& stream, uint64_t ready);
// A queue is held by a branch of a graph on the stream.
void reservation_queue(Machine& machine, const Stream& stream, uint64_t until);

// Functions: of modules, and of libraries by their CUkernel as well.
Function* find_function(Machine& machine, Handle handle);
Function& function_of(Machine& machine, Handle handle,
                      CUresult otherwise = CUDA_ERROR_INVALID_HANDLE);

// Launches.
void check_launch(Machine& machine, const Context& context, Handle function,
                  const LaunchConfig& config);
// The part of it that needs no context's SMs: nodes of graphs are placed later.
void check_limits(const Device& device, const Function& function, const LaunchConfig& config);
void pack_arguments(const Function& function, void** parameters, void** extra, Work& work);
LaunchConfig read_config(const CUlaunchConfig& given); // without its attributes
void read_launch_attributes(const CUlaunchAttribute* attributes, unsigned count,
                            LaunchConfig& config, std::map<int, std::string>& kept);
uint64_t kernel_duration(Machine& machine, const Work& work);
void kernel_effect(Machine& machine, const Work& work);

// The SMs that kernels of a context run on: its own, and those that dynamic parallelism adds.
SmSet kernel_sms(const Machine& machine, const Context& context);

// Notes what ran, where a test asked for that.
void note_run(Machine& machine, const Stream& stream, const Work& work, uint64_t launch,
              uint64_t begin, uint64_t end);

// Occupancy.
unsigned blocks_per_sm(const Device& device, const Function& function, unsigned threads,
                       std::size_t dynamic_shared);
unsigned active_clusters(const Device& device, const Function& function, const Fragments& fragments,
                         const LaunchConfig& config);
unsigned max_cluster_size(const Device& device, const Function& function,
                          const Fragments& fragments, const LaunchConfig& config);

} // namespace gcx::sim
