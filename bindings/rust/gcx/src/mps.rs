//! Whether processes share a device by way of MPS.

use crate::error::{check, Result};
use crate::sys;

/// Whether contexts of a process on a device are shared by way of MPS, the Multi-Process Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MpsState {
    /// The driver doesn't tell.
    Unknown,
    /// Processes take turns on the whole device, and holds isolate nothing.
    Off,
    /// Partitions of two processes run side by side.
    On,
}

impl MpsState {
    pub(crate) fn of(state: sys::gcx_mps_state) -> Self {
        match state {
            sys::GCX_MPS_OFF => Self::Off,
            sys::GCX_MPS_ON => Self::On,
            _ => Self::Unknown,
        }
    }
}

/// What is known of MPS, from [`Device::mps`](crate::Device::mps).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct MpsInfo {
    /// What the driver says of contexts of this process on the device.
    pub state: MpsState,
    /// `CUDA_MPS_ACTIVE_THREAD_PERCENTAGE` of the environment, which limits this process under MPS:
    /// more than 0, at most 100; `None`: it isn't set, or holds something else. The daemon's own
    /// default is not seen.
    pub thread_percentage: Option<f32>,
}

pub(crate) fn mps_of(device: i32) -> Result<MpsInfo> {
    let mut info = sys::GCX_MPS_INFO_INIT;
    // SAFETY: the struct is filled in as far as its struct_size says.
    check(unsafe { sys::gcx_mps_get_info(device, &mut info) })?;
    Ok(MpsInfo {
        state: MpsState::of(info.state),
        thread_percentage: percentage(info.thread_percentage),
    })
}

/// A percentage of which C says by 0 that there is none.
pub(crate) fn percentage(told: f32) -> Option<f32> {
    Some(told).filter(|&told| told > 0.0)
}
