// gcx.hpp - gcx for C++17 and newer: gcx.h with owners, values and exceptions, and nothing else
//
//     const auto [parts, rest] = gcx::device(0).sms().split({108, 24});
//     const gcx::context context(parts[0]);
//     const gcx::stream stream(context);
//     kernel<<<grid, block, 0, stream.native()>>>();
//
// gcx.h is the manual: what it says of a function holds for the one here that calls it, and each
// says which that is. This is what C++ adds.
//
// Errors. What fails throws gcx::error, with gcx's message, and leaves nothing made. Only the
//   functions that ask whether something has finished answer false in place of "not ready".
//
// Owners. gcx::context, stream, event, lease, reservation, graph and cancel own a handle. They can
// be
//   moved and not copied, and give the handle up when they end or by close(); closing again does
//   nothing. One that was closed or moved from is empty: it converts to false, and using it throws
//   GCX_ERROR_INVALID_HANDLE. They may end in any order, since a stream keeps its context and a
//   lease its reservation; a lease's streams end with the lease. A destructor can't say that it
//   failed: a context that is current when it ends keeps its handle for good. Pop it first, as
//   gcx::current_guard does.
//
// Threads. As gcx.h, any number of threads may use one object. Closing it, moving it and ending it
//   is for one thread, when no other uses it, as with all of C++'s objects.
//
// Values. gcx::resource and gcx::device only describe; copy them at will. Information comes in
//   gcx.h's own structs, such as gcx_device_info.
//
// Arrays go in as gcx::view, which takes a vector, an array, a std::span, a braced list or a
// single element. What comes out is a std::vector, or with a braced list of counts a std::array
// of as many.
//
// gcx::raw has every function of gcx.h that can fail, for C's handles: it throws, and returns what
// C's writes. The classes are made of it.
//
// Works with -fno-rtti. The functions are inline and call C's; link with libgcx as from C.
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
