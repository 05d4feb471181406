//! Raw bindings of [gcx](https://docs.rs/gcx): SM partitioning for NVIDIA GPUs by CUDA's green
//! contexts.
//!
//! This is `gcx.h` as Rust sees it, made by bindgen, with the header's comments: every function,
//! constant and struct under its name in C. The crate `gcx` is the safe layer above. How the C
//! library is found, linked, built or loaded is in the crate's README.
//!
//! A struct that begins with `struct_size` is started from its `_INIT` constant:
//!
//! ```ignore
//! let mut info = gcx_sys::GCX_DEVICE_INFO_INIT;
//! let result = unsafe { gcx_sys::gcx_device_get_info(0, &mut info) };
//! ```

/// What bindgen made. Its names are C's, its comments are the header's, which are no Markdown.
#[allow(
    non_camel_case_types,
    clippy::all,
    clippy::pedantic,
    clippy::undocumented_unsafe_blocks,
    rustdoc::broken_intra_doc_links,
    rustdoc::invalid_html_tags
)]
#[cfg(not(any(feature = "bindgen", feature = "dlopen")))]
#[rustfmt::skip]
#[path = "generated/bindings.rs"]
mod bindings;

/// The same, made anew by the build, or with functions that call what was loaded.
#[allow(
    non_camel_case_types,
    clippy::all,
    clippy::pedantic,
    clippy::undocumented_unsafe_blocks,
    rustdoc::broken_intra_doc_links,
    rustdoc::invalid_html_tags
)]
#[cfg(any(feature = "bindgen", feature = "dlopen"))]
mod bindings {
    #[cfg(not(feature = "dlopen"))]
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
    #[cfg(feature = "dlopen")]
    include!(concat!(env!("OUT_DIR"), "/loaded.rs"));
}

#[cfg(feature = "dlopen")]
mod dynamic;

pub use bindings::*;
#[cfg(feature = "dlopen")]
pub use dynamic::{open, NotOpened};
