// What the rows do, again and again; rows() says what each is.
#pragma once

#include "isolation.hpp"

#include <cstddef>
#include <cstdint>

#define NEED(call) need(call, #call)

namespace isolation {

inline constexpr std::size_t kMebibyte = std::size_t{1} << 20;

// Waits for the neighbour's first stream; always true, as a body's last word.
bool finish(const Neighbour& n);
// A kernel of 0.3 ms that fills the neighbour's SMs.
void fill(const Neighbour& n, CUstream stream);

// 15 branches of 4 kernels. What of it breaks isolation isn't known: kernels that fill A or small
// ones that last longer, an executable's first launch or a later one, many roots or one.
struct Branches {
    bool small = false;
    bool again = false;
    bool one_root = false;
};

// isolation_memory.cpp
Body allocate_and_free(Neighbour& n);
Body allocate_alone(Neighbour& n);
Body free_alone(Neighbour& n);
Body stream_ordered(Neighbour& n, uint64_t threshold);
Body pinned(Neighbour& n);
Body registered(Neighbour& n);
Body load_and_unload(Neighbour& n);
Body first_launches(Neighbour& n);
Body more_local_memory(Neighbour& n);
Body pageable_to_device(Neighbour& n);
Body pinned_to_device(Neighbour& n);
Body pinned_to_host(Neighbour& n);
Body within_device(Neighbour& n);
Body to_a_peer(Neighbour& n);
Body fill_in_stream(Neighbour& n);
Body fill_in_default_stream(Neighbour& n);
Body kernels_in_default_stream(Neighbour& n);
Body synchronize_context(Neighbour& n);
Body reading(Neighbour& n, std::size_t bytes);
Body computing(Neighbour& n);
Body nothing(Neighbour& n);

// isolation_work.cpp
Body capture(Neighbour& n);
Body make_executables(Neighbour& n);
Body upload(Neighbour& n);
Body launch_chain(Neighbour& n);
Body launch_branches(Neighbour& n, Branches how);
Body events(Neighbour& n);
Body blocking_events(Neighbour& n);
Body callbacks(Neighbour& n);
Body streams_made(Neighbour& n);
Body waiting_streams(Neighbour& n, unsigned count);
Body max_contexts(Neighbour& n);
Body resized_leases(Neighbour& n);
Body green_contexts(Neighbour& n);
Body plain_contexts(Neighbour& n);
Body other_processes(Neighbour& n);

} // namespace isolation
