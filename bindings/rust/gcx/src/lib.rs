//! SM partitioning for NVIDIA GPUs: streams whose kernels run on some of the streaming
//! multiprocessors (SMs) of a GPU only, by CUDA's green contexts.
//!
//! ```
//! let device = gcx::Device::new(0)?;
//! let parts = device.partition([108, 24])?; // counts are rounded up to what the device can give
//! let (prefill, decode) = (&parts[0], &parts[1]);
//!
//! let stream = decode.stream().native()?; // a CUstream, for cudarc or any other CUDA code
//! # let _ = stream;
//! prefill.wait(decode)?; // later work of prefill waits for decode's work so far
//!
//! println!("{}", gcx::verify(&parts)?); // which SMs each uses
//! # Ok::<(), gcx::Error>(())
//! ```
//!
//! | to | use |
//! | --- | --- |
//! | divide a device | [`Device::partition`]; [`SmResource`], [`Context`], [`Stream`], [`Event`] |
//! | give parts of a program exclusive SMs, and move them | [`Lease`] |
//! | give processes exclusive SMs | [`Reservation`] |
//! | launch a captured graph on any SMs | [`Graph`] |
//! | create contexts ahead of time | [`cache::prepare`], [`prepare`](prepare()) |
//! | see what runs where | [`verify`](verify()), [`leases`], [`publish`], [`log`] |
//!
//! **Without a GPU** use the simulated driver: `GCX_DRIVER=sim:h100@13.0` in the environment, or
//! [`open_driver`]`("sim:h100@13.0")` first. An installed gcx has it; a library that the crate
//! builds has it with the feature `simulator`. The examples of this documentation are tested on it.
//!
//! **Threads.** Everything but [`cache::PrepareOptions`] is [`Send`] and [`Sync`]: any thread may
//! use any object at any time. The current context is a thread's, see [`Context::with_current`].
//!
//! **Lifetimes.** Objects may be dropped in any order, also while kernels run: submitted work
//! finishes. A stream keeps its context; a stream of a lease ends with it. Native handles are raw
//! pointers, valid as long as the object that they come from.
//!
//! **Errors.** Every call that can fail returns an [`Error`] with the number and name of a
//! `CUresult`, or of gcx's own from 10000 on, and a message with the values and what to do. All can
//! fail with what opening the driver does, see [`open_driver`], and with
//! [`ErrorKind::NotInitialized`] in the child of a fork; the functions name the other kinds that a
//! program may want to handle.
//!
//! The README of `gcx-sys`, which is here as [`sys`], says how the C library is found, linked,
//! built or loaded. The pages in `docs` of the repository explain each subject.

#![warn(missing_docs)]
// Functions name the kinds of errors in their text; most values are only worth asking for.
#![allow(clippy::missing_errors_doc, clippy::must_use_candidate)]

pub mod cache;
mod call;
mod context;
mod convert;
mod device;
mod driver;
mod error;
mod event;
#[rustfmt::skip]
mod generated;
mod graph;
mod lease;
pub mod log;
mod partition;
pub mod publish;
mod reservation;
mod resource;
mod split;
mod stream;
mod verify;

pub use gcx_sys as sys;

pub use context::{current_context, live_contexts, Context, ContextBuilder, NotClosed};
pub use device::{devices, Device};
pub use driver::{
    driver_info, library_version, open_driver, queue_info, report_partition_counts,
    request_connections, simulator_path,
};
pub use error::{Error, Result};
pub use event::{Event, EventOptions, WaitFor};
pub use generated::*;
pub use graph::{Graph, GraphNode, GraphOptions, KernelNode, KernelParams};
pub use lease::{leases, prepare, resize, Cancel, Lease, LeaseBuilder, Resize, Sms};
pub use partition::{Partition, PartitionOptions, Partitions};
pub use reservation::{reservations, Reservation, ReservationBuilder};
pub use resource::{SmResource, WorkqueueResource};
pub use split::{LocalityDomain, Plan, SmRequest, Split, SplitOptions};
pub use stream::{KernelShape, Stream};
pub use verify::{verify, Verification};

/// Tests that calling what runs code of another library, or destroys what one may name, is unsafe.
/// Each unsafe call compiles, so that only the missing `unsafe` keeps the other from compiling.
///
/// ```compile_fail,E0133
/// let _ = gcx::open_driver("/any/library.so");
/// ```
/// ```no_run
/// let _ = unsafe { gcx::open_driver("/any/library.so") };
/// ```
/// ```compile_fail,E0133
/// let _ = gcx::cache::set_limit(0);
/// ```
/// ```no_run
/// let _ = unsafe { gcx::cache::set_limit(0) };
/// ```
#[cfg(doctest)]
mod unsafe_calls {}
