//! What contexts are made of.

use crate::context::Context;
use crate::error::Result;
use crate::resource::SmResource;
use crate::sys;
use crate::workqueue::WorkqueueResource;

/// Collects what a context is to be made of, from [`Context::builder`].
///
/// ```
/// # let sms = gcx::Device::new(0)?.sms()?;
/// let ([a, b], _) = sms.split_array([16, 24])?;
/// let context = gcx::Context::builder().sms(&a).sms(&b).private().build()?;
/// assert_eq!(context.info()?.sm_count, 40);
/// # Ok::<(), gcx::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ContextBuilder {
    resources: Vec<sys::gcx_resource>,
    flags: u32,
}

impl ContextBuilder {
    pub(crate) fn new() -> Self {
        ContextBuilder { resources: Vec::new(), flags: 0 }
    }

    /// These SMs too, of the same device and family, and disjoint.
    pub fn sms(mut self, sms: &SmResource) -> Self {
        self.resources.push(*sms.as_raw());
        self
    }

    /// This workqueue configuration or workqueue, one at most (CUDA 13.1).
    pub fn workqueue(mut self, workqueue: &WorkqueueResource) -> Self {
        self.resources.push(*workqueue.as_raw());
        self
    }

    /// A green context that is shared with no other context while this or a stream of it is alive.
    pub fn private(mut self) -> Self {
        self.flags |= sys::GCX_CONTEXT_PRIVATE;
        self
    }

    /// Makes the context.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidResourceConfiguration`](crate::ErrorKind) the SMs overlap, are of two
    /// devices or families, or are none; `InvalidResourceType` there are no SMs among them, or two
    /// workqueues; `InvalidValue` nothing was given.
    pub fn build(&self) -> Result<Context> {
        Context::made_of(&self.resources, self.flags)
    }
}
