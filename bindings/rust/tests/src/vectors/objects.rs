//! The named objects of a vector.

use gcx::{CacheStats, Context, Event, Lease, SmResource, Stream, WorkqueueResource};

/// What a name can stand for.
pub enum Object {
    Sms(SmResource),
    Workqueue(WorkqueueResource),
    Context(Context),
    Stream(Stream),
    Event(Event),
    Lease(Lease),
}

/// Those of one vector, in the order in which they were made, and what the cache said when it began.
#[derive(Default)]
pub struct Objects {
    named: Vec<(String, Object)>,
    before: Option<CacheStats>,
}

impl Objects {
    /// Once a driver is open: the counters as the vector found them.
    pub fn note_cache(&mut self) -> CacheStats {
        *self.before.get_or_insert_with(|| gcx::cache::stats().expect("counters can be read"))
    }

    pub fn add(&mut self, name: &str, object: Object) {
        assert!(self.named.iter().all(|(other, _)| other != name), "{name} is used twice");
        self.named.push((name.to_owned(), object));
    }

    fn index(&self, name: &str) -> usize {
        let found = self.named.iter().position(|(other, _)| other == name);
        found.unwrap_or_else(|| panic!("there is no {name}"))
    }

    pub fn get(&self, name: &str) -> &Object {
        &self.named[self.index(name)].1
    }

    pub fn take(&mut self, name: &str) -> Object {
        self.named.remove(self.index(name)).1
    }

    pub fn sms(&self, name: &str) -> &SmResource {
        match self.get(name) {
            Object::Sms(sms) => sms,
            _ => panic!("{name} is no resource of SMs"),
        }
    }

    pub fn lease(&self, name: &str) -> &Lease {
        match self.get(name) {
            Object::Lease(lease) => lease,
            _ => panic!("{name} is no lease"),
        }
    }

    pub fn event(&self, name: &str) -> &Event {
        match self.get(name) {
            Object::Event(event) => event,
            _ => panic!("{name} is no event"),
        }
    }

    /// Drops all, the last made first, and says if a context lives on.
    pub fn end(mut self) -> Result<(), String> {
        while self.named.pop().is_some() {}
        match gcx::live_contexts() {
            Ok(live) if live.is_empty() => Ok(()),
            Ok(live) => Err(format!("contexts live on: {live:?}")),
            Err(error) => Err(error.to_string()),
        }
    }
}
