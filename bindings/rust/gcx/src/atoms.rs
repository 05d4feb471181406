//! The atoms of resources.

use crate::error::{check, Result};
use crate::resource::SmResource;
use crate::sys;

/// The atoms of a resource, from [`SmResource::atoms`].
#[derive(Clone, Debug)]
pub struct Atoms<'a> {
    resource: &'a SmResource,
    next: u32,
}

impl<'a> Atoms<'a> {
    pub(crate) fn new(resource: &'a SmResource) -> Self {
        Atoms { resource, next: 0 }
    }
}

impl Iterator for Atoms<'_> {
    type Item = Result<SmResource>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.resource.atom_count() {
            return None;
        }
        let mut atom = sys::gcx_resource::default();
        // SAFETY: a value is read, and one is written.
        let result =
            unsafe { sys::gcx_resource_get_atom(self.resource.as_raw(), self.next, &mut atom) };
        self.next += 1;
        Some(check(result).and_then(|()| SmResource::from_raw(atom)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.resource.atom_count() - self.next) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Atoms<'_> {}
