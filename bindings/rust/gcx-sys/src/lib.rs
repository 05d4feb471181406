//! Raw bindings of [gcx](https://docs.rs/gcx): SM partitioning for NVIDIA GPUs by CUDA's green
//! contexts.
//!
//! Every function, constant and struct of `gcx.h` under its name in C, with the header's comments.
//! The crate `gcx` is the safe layer above. How the C library is found, linked, built or loaded is
//! in the crate's README.
//!
//! A struct with `struct_size` starts from its `_INIT` constant:
//!
//! ```ignore
//! let mut info = gcx_sys::GCX_DEVICE_INFO_INIT;
//! let result = unsafe { gcx_sys::gcx_device_get_info(0, &mut info) };
//! ```

/// The output of bindgen, with C's names and the header's comments, which aren't Markdown. With
/// `dlopen` the functions call the opened library.
#[allow(
    non_camel_case_types,
    clippy::all,
    clippy::pedantic,
    clippy::undocumented_unsafe_blocks,
    rustdoc::broken_intra_doc_links,
    rustdoc::invalid_html_tags
)]
mod bindings {
    #[cfg(not(feature = "dlopen"))]
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
    #[cfg(feature = "dlopen")]
    include!(concat!(env!("OUT_DIR"), "/dlopen.rs"));
}

#[cfg(feature = "dlopen")]
mod dynamic;

pub use bindings::*;
#[cfg(feature = "dlopen")]
pub use dynamic::{open, NotOpened};
