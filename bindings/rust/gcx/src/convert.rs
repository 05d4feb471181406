//! How the fields of C structs become Rust's types.

use std::ffi::OsString;
use std::os::raw::c_char;
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, SystemTime};

/// Converts milliseconds since 1970. Another process may have written the number: one beyond the
/// clock's range becomes 1970.
pub(crate) fn time(milliseconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH
        .checked_add(Duration::from_millis(milliseconds))
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Returns the numbers of the bits that are set.
pub(crate) fn numbers(words: &[u64]) -> Vec<u32> {
    (0..)
        .zip(words)
        .flat_map(|(word, bits)| {
            (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| word * 64 + bit)
        })
        .collect()
}

/// Returns the values that have a 1 at their index.
pub(crate) fn members<T>(all: impl IntoIterator<Item = T>, flags: &[u8]) -> Vec<T> {
    all.into_iter().zip(flags).filter(|(_, flag)| **flag == 1).map(|(value, _)| value).collect()
}

/// Returns the bytes before the first zero.
pub(crate) fn bytes(text: &[c_char]) -> OsString {
    let text = text.iter().take_while(|&&byte| byte != 0);
    OsString::from_vec(text.map(|byte| byte.to_ne_bytes()[0]).collect())
}

/// Returns the text before the first zero byte, and replaces what isn't UTF-8.
pub(crate) fn string(text: &[c_char]) -> String {
    bytes(text).to_string_lossy().into_owned()
}

/// Returns a number, unless it is the one that stands for none.
pub(crate) fn some<T: Copy + PartialEq>(number: T, none: T) -> Option<T> {
    Some(number).filter(|number| *number != none)
}

/// Converts 13010, which is CUDA 13.1, to (13, 1).
pub(crate) fn version(number: i32) -> (u32, u32) {
    let number = number.unsigned_abs();
    (number / 1000, number % 1000 / 10)
}
