//! What C tells of things that other processes may have made.

use std::ffi::OsString;
use std::os::raw::c_char;
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, SystemTime};

/// A time that is told in milliseconds since 1970. Another process may have written the number: one
/// that no clock holds is taken for the beginning.
pub(crate) fn time(milliseconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH
        .checked_add(Duration::from_millis(milliseconds))
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

/// The numbers whose bits are set.
pub(crate) fn numbers(words: &[u64]) -> Vec<u32> {
    (0..)
        .zip(words)
        .flat_map(|(word, bits)| {
            (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| word * 64 + bit)
        })
        .collect()
}

/// The bytes before the first that is zero.
pub(crate) fn bytes(text: &[c_char]) -> OsString {
    let text = text.iter().take_while(|&&byte| byte != 0);
    OsString::from_vec(text.map(|byte| byte.to_ne_bytes()[0]).collect())
}
