//! Errors.

use std::ffi::CStr;
use std::fmt;
use std::os::raw::c_char;

use crate::call::text;
use crate::generated::ErrorKind;
use crate::sys;

/// What this crate's functions return.
pub type Result<T> = std::result::Result<T, Error>;

/// The error of a call: the number and name of a `CUresult`, or of gcx's own from 10000 on, and a
/// message with what is wrong, the values, and what to do.
///
/// ```
/// let sms = gcx::Device::new(0)?.sms()?;
/// let error = sms.split([140]).unwrap_err();
/// assert_eq!(error.kind(), gcx::ErrorKind::InvalidResourceConfiguration);
/// assert_eq!(error.result(), 915);
/// assert_eq!(error.name(), "GCX_ERROR_INVALID_RESOURCE_CONFIGURATION");
/// assert!(error.message().contains("140 SMs"));
/// # Ok::<(), gcx::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Error {
    result: sys::gcx_result,
    message: Box<str>,
}

impl Error {
    /// The number: a `CUresult`'s, or gcx's own from 10000 on.
    pub fn result(&self) -> u32 {
        self.result.0
    }

    /// The number's name in `gcx.h`.
    pub fn name(&self) -> &'static str {
        // SAFETY: the string lives as long as the library, for any number.
        unsafe { static_text(sys::gcx_result_name(self.result)) }
    }

    /// What the number means in general, in one sentence.
    pub fn meaning(&self) -> &'static str {
        // SAFETY: as above.
        unsafe { static_text(sys::gcx_result_string(self.result)) }
    }

    /// What is wrong, the values, and what to do.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What a program may want to distinguish.
    pub fn kind(&self) -> ErrorKind {
        self.result.into()
    }

    /// The error of the calling thread's last call.
    #[cold]
    pub(crate) fn last(result: sys::gcx_result) -> Self {
        // SAFETY: the string is the thread's until its next failing call, and is copied here.
        let message = unsafe { text(sys::gcx_last_error_message()) };
        Error { result, message: message.into() }
    }

    /// An error that this crate reports without calling C.
    #[cold]
    pub(crate) fn of(result: sys::gcx_result, message: &str) -> Self {
        Error { result, message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = if self.message.is_empty() { self.meaning() } else { &self.message };
        write!(out, "{message} [{}, {}]", self.name(), self.result())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "gcx::Error({self})")
    }
}

impl std::error::Error for Error {}

/// # Safety
///
/// `text` is NULL, or ends with a zero byte and lives as long as the process.
unsafe fn static_text(text: *const c_char) -> &'static str {
    if text.is_null() {
        return "";
    }
    CStr::from_ptr(text).to_str().unwrap_or("")
}
