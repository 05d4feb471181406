//! The named objects of a vector.

use std::collections::HashMap;

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

/// Those of one vector, and what the cache said when it began.
pub struct Objects {
    named: HashMap<String, Object>,
    order: Vec<String>,
    before: Option<CacheStats>,
}

impl Objects {
    pub fn new() -> Self {
        Objects { named: HashMap::new(), order: Vec::new(), before: None }
    }

    /// Once a driver is open: the counters as the vector found them.
    pub fn note_cache(&mut self) -> CacheStats {
        *self.before.get_or_insert_with(|| gcx::cache::stats().expect("counters can be read"))
    }

    pub fn add(&mut self, name: &str, object: Object) {
        assert!(self.named.insert(name.to_owned(), object).is_none(), "{name} is used twice");
        self.order.push(name.to_owned());
    }

    pub fn get(&self, name: &str) -> &Object {
        self.named.get(name).unwrap_or_else(|| panic!("there is no {name}"))
    }

    pub fn take(&mut self, name: &str) -> Object {
        self.order.retain(|other| other != name);
        self.named.remove(name).unwrap_or_else(|| panic!("there is no {name}"))
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
        while let Some(name) = self.order.pop() {
            self.named.remove(&name);
        }
        match gcx::live_contexts() {
            Ok(live) if live.is_empty() => Ok(()),
            Ok(live) => Err(format!("contexts live on: {live:?}")),
            Err(error) => Err(error.to_string()),
        }
    }
}
