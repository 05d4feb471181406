//! What can be waited for.

use crate::context::Context;
use crate::error::Result;
use crate::event::Event;
use crate::partition::Partition;
use crate::stream::Stream;

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Event {}
    impl Sealed for super::Stream {}
    impl Sealed for super::Context {}
    impl Sealed for super::Partition {}
}

/// What [`Stream::wait`], [`Context::wait`] and [`Partition::wait`] can wait for: an [`Event`], or
/// what was submitted so far to a [`Stream`], [`Context`] or [`Partition`].
pub trait WaitFor: sealed::Sealed {
    /// Calls the function with an event that stands for the work.
    #[doc(hidden)]
    fn with_event<R>(&self, function: impl FnOnce(&Event) -> Result<R>) -> Result<R>;
}

impl WaitFor for Event {
    fn with_event<R>(&self, function: impl FnOnce(&Event) -> Result<R>) -> Result<R> {
        function(self)
    }
}

impl WaitFor for Stream {
    fn with_event<R>(&self, function: impl FnOnce(&Event) -> Result<R>) -> Result<R> {
        function(&self.record()?)
    }
}

impl WaitFor for Context {
    fn with_event<R>(&self, function: impl FnOnce(&Event) -> Result<R>) -> Result<R> {
        function(&self.record()?)
    }
}

impl WaitFor for Partition {
    fn with_event<R>(&self, function: impl FnOnce(&Event) -> Result<R>) -> Result<R> {
        self.stream().with_event(function)
    }
}
