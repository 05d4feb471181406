//! Resources of workqueues, as values.

use std::fmt;

use crate::error::{check, Error, Result};
use crate::generated::WorkqueueScope;
use crate::resource::{info_of, wrong_type};
use crate::sys;

/// A workqueue configuration, or a context's workqueue, for drivers of CUDA 13.1 and newer: a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkqueueResource(sys::gcx_resource);

impl WorkqueueResource {
    /// Of what the C API calls a resource; it refuses what isn't one.
    ///
    /// # Errors
    ///
    /// As [`SmResource::from_raw`](crate::SmResource::from_raw).
    pub fn from_raw(value: sys::gcx_resource) -> Result<Self> {
        match info_of(&value)?.type_ {
            sys::GCX_RESOURCE_WORKQUEUE_CONFIG | sys::GCX_RESOURCE_WORKQUEUE => Ok(Self(value)),
            _ => Err(wrong_type("a workqueue")),
        }
    }

    /// The C API's value.
    #[must_use]
    pub fn as_raw(&self) -> &sys::gcx_resource {
        &self.0
    }

    /// The ordinal of its device.
    ///
    /// # Errors
    ///
    /// None that is known.
    pub fn device(&self) -> Result<u32> {
        Ok(info_of(&self.0)?.device.unsigned_abs())
    }

    /// How its contexts share; `None` of a context's workqueue itself.
    ///
    /// # Errors
    ///
    /// None that is known.
    pub fn scope(&self) -> Result<Option<WorkqueueScope>> {
        let info = info_of(&self.0)?;
        Ok(match (info.type_, info.workqueue_scope) {
            (sys::GCX_RESOURCE_WORKQUEUE, _) => None,
            (_, sys::GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED) => {
                Some(WorkqueueScope::GreenCtxBalanced)
            }
            _ => Some(WorkqueueScope::DeviceCtx),
        })
    }

    /// How many workloads are expected at once.
    ///
    /// # Errors
    ///
    /// None that is known.
    pub fn concurrency_limit(&self) -> Result<u32> {
        Ok(info_of(&self.0)?.workqueue_concurrency_limit)
    }

    /// The same with another scope, and another limit unless that is `None`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidResourceType`](crate::ErrorKind) it is a context's workqueue, not a
    /// configuration. [`ErrorKind::InvalidValue`](crate::ErrorKind) the limit is 0.
    pub fn configured(&self, scope: WorkqueueScope, limit: Option<u32>) -> Result<Self> {
        if limit == Some(0) {
            let message = "a concurrency limit is at least 1; None keeps the one that it has";
            return Err(Error::of(sys::GCX_ERROR_INVALID_VALUE, message));
        }
        let mut configured = sys::gcx_resource::default();
        // SAFETY: a value is read, and one is written.
        check(unsafe {
            sys::gcx_workqueue_configure(&self.0, scope.into(), limit.unwrap_or(0), &mut configured)
        })?;
        Ok(Self(configured))
    }
}

impl fmt::Debug for WorkqueueResource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.scope(), self.concurrency_limit()) {
            (Ok(Some(scope)), Ok(limit)) => write!(out, "WorkqueueResource({scope:?}, {limit})"),
            _ => write!(out, "WorkqueueResource"),
        }
    }
}
