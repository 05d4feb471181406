// gcx.hpp - gcx for C++17 and newer: gcx.h with owners, values and exceptions, and nothing else
//
//     const auto [parts, rest] = gcx::device(0).sms().split({108, 24});
//     const gcx::context context(parts[0]);
//     const gcx::stream stream(context);
//     kernel<<<grid, block, 0, stream.native()>>>();
//
// gcx.h is the reference. The comment of each function here names the C function that it calls;
// the rules of that one apply. C++ adds the following.
//
// Errors. A function that fails throws gcx::error with gcx's message and creates nothing. query()
//   returns false for GCX_ERROR_NOT_READY.
//
// Owners. gcx::context, stream, event, lease, reservation, graph and cancel own a handle. They can
//   be moved but not copied, and destroy the handle in their destructor or in close(), which may be
//   called again. A closed or moved-from object is empty: it converts to false, and using it throws
//   GCX_ERROR_INVALID_HANDLE. Destroy them in any order: a stream keeps its context alive, and a
//   lease its reservation; a lease's streams end with the lease. A destructor cannot report an
//   error: a context that is current at that time leaks its handle. Pop it first, as
//   gcx::current_guard does.
//
// Threads. Any number of threads may use one object. Close, move and destroy it while no other
//   thread uses it.
//
// Values. gcx::resource and gcx::device are values; copy them freely. Properties are returned in
//   the structs of gcx.h, such as gcx_device_info.
//
// Arrays are passed as gcx::view, which converts from a vector, an array, a std::span, a braced
// list or a single element. Arrays are returned as std::vector, or as std::array for a braced list
// of counts.
//
// gcx::raw has every function of gcx.h that can fail, for C handles: it throws on failure and
// returns the output. The classes use it.
//
// Works with -fno-rtti. All functions are inline; link with libgcx as from C.
#pragma once

#include "gcx/cache.hpp"
#include "gcx/cancel.hpp"
#include "gcx/error.hpp"
#include "gcx/generated/constants.hpp"
#include "gcx/generated/raw.hpp"
#include "gcx/graph.hpp"
#include "gcx/lease.hpp"
#include "gcx/library.hpp"
#include "gcx/objects.hpp"
#include "gcx/owner.hpp"
#include "gcx/publish.hpp"
#include "gcx/reservation.hpp"
#include "gcx/resource.hpp"
#include "gcx/view.hpp"
