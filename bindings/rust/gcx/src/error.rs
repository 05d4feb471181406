//! Errors.

use std::ffi::CStr;
use std::fmt;
use std::os::raw::c_char;

use crate::sys;

/// What this crate's functions return.
pub type Result<T> = std::result::Result<T, Error>;

/// What a function of gcx answered: a `CUresult`'s number and name, and a message with what was
/// wrong, the values, and what would work.
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
    /// The number, a `CUresult`'s.
    #[must_use]
    pub fn result(&self) -> u32 {
        self.result.0
    }

    /// The number's name in `gcx.h`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        // SAFETY: the string lives as long as the library, for any number.
        unsafe { static_text(sys::gcx_result_name(self.result)) }
    }

    /// What the number means in general, in one sentence.
    #[must_use]
    pub fn meaning(&self) -> &'static str {
        // SAFETY: as above.
        unsafe { static_text(sys::gcx_result_string(self.result)) }
    }

    /// What was wrong, the values, and what would work.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What a program may want to tell apart.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::of(self.result)
    }

    /// The error that the calling thread's last call ended with.
    #[cold]
    pub(crate) fn last(result: sys::gcx_result) -> Self {
        // SAFETY: the string is the thread's until its next failing call, and is copied at once.
        let message = unsafe { text(sys::gcx_last_error_message()) };
        Error { result, message: message.into() }
    }

    /// What this crate refuses by itself.
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

/// What a program may want to tell apart of an [`Error`]'s number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A value that makes no sense: a count of 0, no requests, unknown flags.
    InvalidValue,
    /// Memory of the host or of the device is exhausted.
    OutOfMemory,
    /// CUDA can't be used in this process: it is the child of a fork.
    NotInitialized,
    /// The driver has no device, or not that of a hold.
    NoDevice,
    /// There is no device of this number.
    InvalidDevice,
    /// The context on top isn't the one that is to be taken off.
    InvalidContext,
    /// Others hold the SMs of a lease or hold, or wait for them; or another driver is open already.
    AlreadyAcquired,
    /// The context is current.
    ContextInUse,
    /// The simulated driver was asked for, or what reports partitions' counts, and isn't there.
    FileNotFound,
    /// There is no driver library, or gcx's own can't be loaded.
    DriverNotFound,
    /// It isn't one of gcx's, or is of another device.
    InvalidHandle,
    /// There is no such thing, or a hold has ended.
    NotFound,
    /// It isn't known or not finished yet.
    NotReady,
    /// A kernel failed, or could not be launched.
    Launch,
    /// The device was reset, and what was on it is gone; or a stream's lease is gone.
    ContextDestroyed,
    /// It can't be called here, or now; or a wait was given up, or what was made ahead of time; or the
    /// folder of published leases or of holds is another's.
    NotPermitted,
    /// The driver is too old for it; the message names the version that has it.
    NotSupported,
    /// Something takes part in a graph capture.
    Capture,
    /// It isn't a resource of the kind that is needed.
    InvalidResourceType,
    /// Groups don't fit, or resources overlap, or are of two devices or families.
    InvalidResourceConfiguration,
    /// A cooperative launch has more blocks than the SMs hold at once.
    CooperativeTooLarge,
    /// The nodes of a graph, or their order, differ from those that it has.
    GraphUpdate,
    /// A file can't be made or read; the message has the system's word.
    OperatingSystem,
    /// Any other number.
    Other,
}

impl ErrorKind {
    fn of(result: sys::gcx_result) -> Self {
        match result {
            sys::GCX_ERROR_INVALID_VALUE => Self::InvalidValue,
            sys::GCX_ERROR_OUT_OF_MEMORY => Self::OutOfMemory,
            sys::GCX_ERROR_NOT_INITIALIZED => Self::NotInitialized,
            sys::GCX_ERROR_NO_DEVICE => Self::NoDevice,
            sys::GCX_ERROR_INVALID_DEVICE => Self::InvalidDevice,
            sys::GCX_ERROR_INVALID_CONTEXT => Self::InvalidContext,
            sys::GCX_ERROR_ALREADY_ACQUIRED => Self::AlreadyAcquired,
            sys::GCX_ERROR_CONTEXT_ALREADY_IN_USE => Self::ContextInUse,
            sys::GCX_ERROR_FILE_NOT_FOUND => Self::FileNotFound,
            sys::GCX_ERROR_SHARED_OBJECT_INIT_FAILED => Self::DriverNotFound,
            sys::GCX_ERROR_INVALID_HANDLE => Self::InvalidHandle,
            sys::GCX_ERROR_NOT_FOUND => Self::NotFound,
            sys::GCX_ERROR_NOT_READY => Self::NotReady,
            sys::GCX_ERROR_CONTEXT_IS_DESTROYED => Self::ContextDestroyed,
            sys::GCX_ERROR_NOT_PERMITTED => Self::NotPermitted,
            sys::GCX_ERROR_NOT_SUPPORTED => Self::NotSupported,
            sys::GCX_ERROR_INVALID_RESOURCE_TYPE => Self::InvalidResourceType,
            sys::GCX_ERROR_INVALID_RESOURCE_CONFIGURATION => Self::InvalidResourceConfiguration,
            sys::GCX_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE => Self::CooperativeTooLarge,
            sys::GCX_ERROR_GRAPH_EXEC_UPDATE_FAILURE => Self::GraphUpdate,
            sys::GCX_ERROR_OPERATING_SYSTEM => Self::OperatingSystem,
            sys::GCX_ERROR_ILLEGAL_ADDRESS
            | sys::GCX_ERROR_LAUNCH_OUT_OF_RESOURCES
            | sys::GCX_ERROR_LAUNCH_TIMEOUT
            | sys::GCX_ERROR_ASSERT
            | sys::GCX_ERROR_HARDWARE_STACK_ERROR
            | sys::GCX_ERROR_ILLEGAL_INSTRUCTION
            | sys::GCX_ERROR_MISALIGNED_ADDRESS
            | sys::GCX_ERROR_INVALID_ADDRESS_SPACE
            | sys::GCX_ERROR_INVALID_PC
            | sys::GCX_ERROR_LAUNCH_FAILED => Self::Launch,
            sys::GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED
            | sys::GCX_ERROR_STREAM_CAPTURE_INVALIDATED
            | sys::GCX_ERROR_STREAM_CAPTURE_MERGE
            | sys::GCX_ERROR_STREAM_CAPTURE_UNMATCHED
            | sys::GCX_ERROR_STREAM_CAPTURE_UNJOINED
            | sys::GCX_ERROR_STREAM_CAPTURE_ISOLATION
            | sys::GCX_ERROR_STREAM_CAPTURE_IMPLICIT
            | sys::GCX_ERROR_CAPTURED_EVENT
            | sys::GCX_ERROR_STREAM_CAPTURE_WRONG_THREAD => Self::Capture,
            _ => Self::Other,
        }
    }
}

/// The result of a call as Rust's.
#[inline]
pub(crate) fn check(result: sys::gcx_result) -> Result<()> {
    if result == sys::GCX_SUCCESS {
        Ok(())
    } else {
        Err(Error::last(result))
    }
}

/// The answer of a query: not ready is no error, and sets no message.
pub(crate) fn finished(result: sys::gcx_result) -> Result<bool> {
    if result == sys::GCX_ERROR_NOT_READY {
        Ok(false)
    } else {
        check(result).map(|()| true)
    }
}

/// A copy of C's text; what isn't UTF-8 in it is replaced.
///
/// # Safety
///
/// It is NULL, or ends with a zero byte.
pub(crate) unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    CStr::from_ptr(text).to_string_lossy().into_owned()
}

/// # Safety
///
/// It is NULL, or ends with a zero byte, and lives as long as the process.
unsafe fn static_text(text: *const c_char) -> &'static str {
    if text.is_null() {
        return "";
    }
    CStr::from_ptr(text).to_str().unwrap_or("")
}
