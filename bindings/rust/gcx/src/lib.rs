//! SM partitioning for NVIDIA GPUs: divides the streaming multiprocessors (SMs) of a GPU into
//! partitions and hands out streams whose kernels run on one partition's SMs alone, by CUDA's green
//! contexts.
//!
//! ```
//! let device = gcx::Device::new(0)?;
//! let parts = device.partition([108, 24])?; // counts are rounded up to what the device can give
//! let (prefill, decode) = (&parts[0], &parts[1]);
//!
//! let stream = decode.stream().native()?; // a CUstream, for cudarc or any other CUDA code
//! # let _ = stream;
//! prefill.wait(decode)?; // what prefill gets from now on waits for decode's work so far
//!
//! println!("{}", gcx::verify(&parts)?); // which SMs each really uses
//! # Ok::<(), gcx::Error>(())
//! ```
//!
//! The long way has a value for everything: a device's [`SmResource`] is [split](SmResource::split),
//! joined and taken apart as sets are, a [`Context`] is made of a part, a [`Stream`] of the context.
//!
//! A [`Lease`] has SMs that nobody else in the process has, and is given other sizes while its streams
//! work, which follow it.
//!
//! A [`Graph`] that was captured once runs on the SMs of any stream. What takes long is made ahead of
//! time: [`cache::prepare`]. Other processes of the user see leases that are [published](publish); a
//! [`Reservation`] has SMs that none of them has.
//!
//! **Without a GPU** ask for a simulated one: `GCX_DRIVER=sim:h100@13.0` in the environment, or
//! first of all [`open_driver`]`("sim:h100@13.0")`. An installed gcx has it; the library that the crate
//! builds has it with the feature `simulator`. The examples of this documentation are tested on
//! it.
//!
//! **Threads.** Everything but [`cache::PrepareOptions`] is [`Send`] and [`Sync`], and may be used from
//! any thread at any time, also the same object. Which context is current is of a thread:
//! [`Context::with_current`].
//!
//! **Lifetimes.** A stream keeps its context, by the library's own counting; a stream of a lease ends
//! with that. Things may be dropped in any order, also while kernels run: work that was submitted
//! finishes. Native handles are raw pointers, valid as long as what they came from.
//!
//! **Errors.** Every call that can fail gives an [`Error`] with a `CUresult`'s number and name, and a
//! message with the values and what would work.
//!
//! How the C library is found, linked, built or loaded, and from which Rust on all this works, is in
//! the README of `gcx-sys`, which is here as [`sys`].

#![warn(missing_docs)]

mod acquire;
mod atoms;
pub mod cache;
mod context;
mod context_builder;
mod convert;
mod counts;
mod device;
mod driver;
mod error;
mod event;
mod fit;
#[rustfmt::skip]
mod generated;
mod graph;
mod graph_node;
mod lease;
mod live;
pub mod log;
mod order;
mod partition;
mod prepare;
pub mod publish;
mod queue;
mod request;
mod reservation;
mod resource;
mod split;
mod stream;
mod verify;
mod workqueue;

pub use gcx_sys as sys;

pub use acquire::{Cancel, LeaseBuilder, Sms};
pub use atoms::Atoms;
#[doc(no_inline)]
pub use cache::{set_limit as set_cache_limit, stats as cache_stats};
pub use context::{current_context, Context, NotClosed};
pub use context_builder::ContextBuilder;
pub use counts::{report_partition_counts, reports_partition_counts};
pub use device::{devices, Device, Devices};
pub use driver::{driver_info, library_version, open_driver, simulator_path, CapabilityInfo};
pub use error::{Error, Result};
pub use event::{Event, EventOptions};
pub use fit::KernelShape;
pub use generated::*;
pub use graph::{Graph, GraphOptions};
pub use graph_node::{GraphNode, KernelNode, KernelParams};
pub use lease::{prepare, resize, Lease, NotHandedOver, Resize};
pub use live::{leases, live_contexts, reservations};
pub use order::WaitFor;
pub use partition::{Partition, PartitionOptions, Partitions};
pub use queue::{queue_info, request_connections};
pub use request::{LocalityDomain, SmRequest, SplitOptions};
pub use reservation::{Reservation, ReservationBuilder};
pub use resource::SmResource;
pub use split::{Plan, Split};
pub use stream::Stream;
pub use verify::{verify, Verification, VerifiedGroup};
pub use workqueue::WorkqueueResource;

/// Tests that what runs another library's code, or destroys what it may name, is unsafe to call. Each
/// has the same line in `unsafe` beside it, so that nothing else keeps the first from compiling.
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
/// ```compile_fail,E0133
/// let _ = gcx::set_cache_limit(0);
/// ```
/// ```no_run
/// let _ = unsafe { gcx::set_cache_limit(0) };
/// ```
#[cfg(doctest)]
mod unsafe_calls {}
