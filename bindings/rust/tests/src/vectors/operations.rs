//! The operations of vectors.

use gcx::{
    Capability, Context, Device, Error, Event, Lease, Resize, Result, SmResource, Sms, Stream,
    WorkqueueResource,
};

use crate::objects::{Object, Objects};
use crate::words::{
    event_options, family, info, joined, list, number, request, scope, scope_name, split_options,
};

/// The inputs of a step.
pub struct Fields<'a>(&'a [&'a str]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> [&'a str; N] {
        let (inputs, rest) = self.0.split_at(N);
        self.0 = rest;
        inputs.try_into().expect("there are as many")
    }

    fn device(&mut self) -> Result<Device> {
        let [ordinal] = self.take();
        Device::new(number(ordinal))
    }
}

/// Values as texts.
macro_rules! outputs {
    ($($value:expr),*) => { vec![$($value.to_string()),*] };
}

/// Runs one step and returns its outputs.
pub fn run(objects: &mut Objects, operation: &str, inputs: &[&str]) -> Result<Vec<String>> {
    let fields = &mut Fields(inputs);
    if operation != "open" {
        objects.note_cache();
    }
    match operation {
        "open" => {
            let [driver] = fields.take();
            // SAFETY: the vectors name simulated drivers, and none that there is.
            unsafe { gcx::open_driver(driver) }?;
            Ok(Vec::new())
        }
        "driver" => {
            let info = gcx::driver_info()?;
            let number = info.version.0 * 1000 + info.version.1 * 10;
            Ok(outputs![number, u32::from(info.simulated)])
        }
        "capability" => {
            let [index] = fields.take();
            let capability = Capability::ALL[number::<usize>(index)];
            Ok(outputs![u32::from(gcx::driver_info()?.capabilities.contains(&capability))])
        }
        "limit" => {
            let [contexts] = fields.take();
            // SAFETY: no other code names a released stream.
            unsafe { gcx::cache::set_limit(number(contexts)) }?;
            Ok(Vec::new())
        }
        "trim" => {
            let [contexts] = fields.take();
            // SAFETY: no other code names a released stream.
            Ok(outputs![unsafe { gcx::cache::trim(number(contexts)) }?.contexts])
        }
        "ahead" => {
            let [names] = fields.take();
            let sms: Vec<_> = list(names).into_iter().map(|name| *objects.sms(name)).collect();
            gcx::cache::prepare(&sms)?;
            Ok(Vec::new())
        }
        "cache" => {
            let (before, now) = (objects.note_cache(), gcx::cache::stats()?);
            let (hits, misses) = (now.hits - before.hits, now.misses - before.misses);
            Ok(outputs![now.in_use, now.cached, hits, misses, now.evicted - before.evicted])
        }
        _ => of_devices(objects, operation, fields),
    }
}

fn of_devices(objects: &mut Objects, operation: &str, fields: &mut Fields) -> Result<Vec<String>> {
    Ok(match operation {
        "devices" => outputs![gcx::devices()?.len()],
        "device" => {
            let device = fields.device()?;
            let (major, minor) = device.compute_capability();
            outputs![major, minor, device.sm_count(), device.name()]
        }
        "priorities" => {
            let range = fields.device()?.stream_priority_range()?;
            outputs![range.end(), range.start()]
        }
        "resource" => {
            let [device, kind, out] = fields.take();
            let made = match kind {
                "sm" => Object::Sms(Device::new(number(device))?.sms()?),
                "workqueue-config" => Object::Workqueue(Device::new(number(device))?.workqueue()?),
                // A device has none, and this crate no function that asks it for one.
                "workqueue" => return Err(no_such_type(device)),
                kind => panic!("{kind:?} is no type"),
            };
            objects.add(out, made);
            Vec::new()
        }
        "map" => {
            let [device, of] = fields.take();
            Device::new(number(device))?.map_sms(family(of))?;
            Vec::new()
        }
        "event" => {
            let [device, options, out] = fields.take();
            objects.add(out, Object::Event(event_options(options).create(number(device))?));
            Vec::new()
        }
        "live" => {
            let live = match fields.take() {
                ["-1"] => gcx::live_contexts()?,
                [device] => Device::new(number(device))?.live_contexts()?,
            };
            vec![joined(live.iter().map(|live| {
                let (handles, streams) = (live.handle_count, live.stream_count);
                format!("{}/{handles}/{streams}/{}", live.sm_count, u32::from(live.private))
            }))]
        }
        "leases" => {
            let live = match fields.take() {
                ["-1"] => gcx::leases()?,
                [device] => Device::new(number(device))?.leases()?,
            };
            vec![joined(live.iter().map(|live| {
                let (sms, flags) = (live.sm_count.unwrap_or(0), u32::from(live.shared));
                format!("{sms}/{}/{flags}", live.stream_count)
            }))]
        }
        _ => return of_resources(objects, operation, fields),
    })
}

/// What C says of a device's workqueue.
fn no_such_type(device: &str) -> Error {
    let mut resource = gcx::sys::gcx_resource::default();
    let kind = gcx::sys::GCX_RESOURCE_WORKQUEUE;
    // SAFETY: a value is written.
    let result = unsafe { gcx::sys::gcx_device_get_resource(number(device), kind, &mut resource) };
    assert_eq!(result, gcx::sys::GCX_ERROR_INVALID_RESOURCE_TYPE);
    SmResource::from_raw(resource).unwrap_err()
}

fn of_resources(
    objects: &mut Objects,
    operation: &str,
    fields: &mut Fields,
) -> Result<Vec<String>> {
    Ok(match operation {
        "info" => {
            let [of] = fields.take();
            info(objects.sms(of))
        }
        "queue" => {
            let [of] = fields.take();
            let queue = workqueue(objects, of)?;
            outputs![queue.device()?, scope_name(queue.scope()?), queue.concurrency_limit()?]
        }
        "configure" => {
            let [of, among, limit, out] = fields.take();
            let limit = Some(number(limit)).filter(|limit| *limit != 0);
            let configured = workqueue(objects, of)?.configured(scope(among), limit)?;
            objects.add(out, Object::Workqueue(configured));
            Vec::new()
        }
        "split" => return split(objects, fields),
        "union" | "subtract" => {
            let [a, b, out] = fields.take();
            let (a, b) = (objects.sms(a), objects.sms(b));
            let made = if operation == "union" { a.union(b)? } else { a.difference(b)? };
            objects.add(out, Object::Sms(made));
            outputs![made.sm_count()]
        }
        "overlap" => {
            let [a, b] = fields.take();
            outputs![objects.sms(a).overlap(objects.sms(b))?]
        }
        "atom" => {
            let [of, index, out] = fields.take();
            let atom = objects.sms(of).atoms()?[number::<usize>(index)];
            objects.add(out, Object::Sms(atom));
            outputs![atom.sm_count()]
        }
        "sms" => {
            let [of] = fields.take();
            vec![joined(objects.sms(of).sm_ids()?)]
        }
        "same" => {
            let [a, b] = fields.take();
            let same = match (objects.get(a), objects.get(b)) {
                (Object::Context(a), Object::Context(b)) => a.info()?.id == b.info()?.id,
                (Object::Sms(a), Object::Sms(b)) => a == b,
                (Object::Workqueue(a), Object::Workqueue(b)) => a == b,
                _ => false,
            };
            outputs![if same { "yes" } else { "no" }]
        }
        _ => return of_leases(objects, operation, fields),
    })
}

fn workqueue(objects: &Objects, name: &str) -> Result<WorkqueueResource> {
    match objects.get(name) {
        Object::Workqueue(queue) => Ok(*queue),
        // Rust's types refuse what C answers with an error.
        Object::Sms(sms) => WorkqueueResource::from_raw(*sms.as_raw()),
        _ => panic!("{name} is no resource"),
    }
}

fn split(objects: &mut Objects, fields: &mut Fields) -> Result<Vec<String>> {
    let [of, options, requests, out] = fields.take();
    let whole = match objects.get(of) {
        Object::Sms(sms) => *sms,
        Object::Workqueue(queue) => SmResource::from_raw(*queue.as_raw())?,
        _ => panic!("{of} is no resource"),
    };
    let options = split_options(options);
    let requests: Vec<_> = list(requests).into_iter().map(request).collect();
    let plan = whole.plan_with(&requests, &options);
    let split = whole.split_with(&requests, &options);
    match (&plan, &split) {
        (Ok(plan), Ok(split)) => {
            let counts: Vec<u32> = split.iter().map(SmResource::sm_count).collect();
            assert_eq!(plan.sm_counts(), counts);
            assert_eq!(plan.remainder(), split.remainder().sm_count());
        }
        (Err(plan), Err(split)) => assert_eq!(plan.result(), split.result()),
        _ => panic!("a plan and a split differ: {plan:?}, {split:?}"),
    }
    let split = split?;
    for (index, group) in split.iter().enumerate() {
        objects.add(&format!("{out}.{index}"), Object::Sms(*group));
    }
    objects.add(&format!("{out}.rest"), Object::Sms(*split.remainder()));
    let counts = joined(split.iter().map(SmResource::sm_count));
    Ok(outputs![counts, split.remainder().sm_count()])
}

fn of_leases(objects: &mut Objects, operation: &str, fields: &mut Fields) -> Result<Vec<String>> {
    Ok(match operation {
        "lease" => {
            let [device, count, shared, of, minimum, exclusive, out] = fields.take();
            let mut builder = Device::new(number(device))?.lease().sm_count(sms(count));
            if shared == "shared" {
                builder = builder.shared();
            }
            if of != "none" {
                builder = builder.family(family(of));
            }
            if minimum != "0" {
                builder = builder.min_sm_count(number(minimum)); // 0 is the builder's default
            }
            let lease = builder.exclusive_sm_count(number(exclusive)).name(out).acquire()?;
            let sm_count = lease.sm_count()?;
            objects.add(out, Object::Lease(lease));
            outputs![sm_count]
        }
        "resize" => {
            let [layout, how] = fields.take();
            let sizes = sizes(objects, layout);
            let how = match how {
                "-" => Resize::new(),
                "at-once" => Resize::new().deferred(),
                _ => panic!("{how:?} is no flag of a change"),
            };
            gcx::resize(&sizes, how)?;
            let now = sizes.iter().map(|(lease, _)| lease.sm_count());
            vec![joined(now.collect::<Result<Vec<_>>>()?)]
        }
        "prepare" => {
            let [layout] = fields.take();
            gcx::prepare(&sizes(objects, layout))?;
            Vec::new()
        }
        "held" => {
            let [of, out] = fields.take();
            let held = objects.lease(of).sms()?;
            objects.add(out, Object::Sms(held));
            outputs![held.sm_count()]
        }
        "alone" => {
            let [of] = fields.take();
            outputs![objects.lease(of).info()?.exclusive_sm_count]
        }
        _ => return of_objects(objects, operation, fields),
    })
}

/// A count of SMs, `rest`, or `parked`.
fn sms(text: &str) -> Sms {
    match text {
        "rest" => Sms::Rest,
        "parked" => Sms::Parked,
        count => Sms::Count(number(count)),
    }
}

/// A list of LEASE/COUNT.
fn sizes<'a>(objects: &'a Objects, text: &str) -> Vec<(&'a Lease, Sms)> {
    let split = |item: &str| {
        let (name, count) = item.split_once('/').expect("a size is LEASE/COUNT");
        (objects.lease(name), sms(count))
    };
    list(text).into_iter().map(split).collect()
}

/// What takes contexts, streams and events.
fn of_objects(objects: &mut Objects, operation: &str, fields: &mut Fields) -> Result<Vec<String>> {
    match operation {
        "context" => {
            let [resources, flags, out] = fields.take();
            let context = context(objects, resources, flags)?;
            objects.add(out, Object::Context(context));
        }
        "close" => {
            let [of] = fields.take();
            match objects.take(of) {
                Object::Context(context) => context.close()?,
                other => drop(other),
            }
        }
        "current" => {
            assert!(gcx::current_context()?.is_none(), "what pushes is left out");
            return Ok(outputs!["-"]);
        }
        "elapsed" => {
            let [start, end] = fields.take();
            let end = objects.event(end);
            assert!(end.milliseconds_since(objects.event(start))? >= 0.0);
        }
        "stream" => {
            let [of, priority, out] = fields.take();
            let priority = number(priority);
            let stream = match objects.get(of) {
                Object::Context(context) => context.stream_with_priority(priority)?,
                Object::Lease(lease) => lease.stream_with_priority(priority)?,
                _ => panic!("{of} has no streams"),
            };
            let info = stream.info()?;
            objects.add(out, Object::Stream(stream));
            return Ok(outputs![info.device, info.priority, info.sm_count]);
        }
        "get" => {
            let [of, kind, out] = fields.take();
            let made = match (objects.get(of), kind) {
                (Object::Context(of), "sm") => Object::Sms(of.sms()?),
                (Object::Context(of), "workqueue") => Object::Workqueue(of.workqueue()?),
                (Object::Context(of), _) => Object::Workqueue(of.workqueue_config()?),
                (Object::Stream(of), "sm") => Object::Sms(of.sms()?),
                (Object::Stream(of), "workqueue") => Object::Workqueue(of.workqueue()?),
                (Object::Stream(of), _) => Object::Workqueue(of.workqueue_config()?),
                _ => panic!("{of} has no resources"),
            };
            objects.add(out, made);
        }
        "adopt" => {
            let [of, out] = fields.take();
            // SAFETY: the native handles are those of live objects, which the vector keeps.
            let made = unsafe {
                match objects.get(of) {
                    Object::Stream(of) => Object::Stream(Stream::from_native(of.native()?)?),
                    Object::Event(of) => Object::Event(Event::from_native(of.native()?)?),
                    _ => panic!("{of} has no native handle"),
                }
            };
            objects.add(out, made);
        }
        _ => return of_work(objects, operation, fields),
    }
    Ok(Vec::new())
}

fn context(objects: &Objects, resources: &str, flags: &str) -> Result<Context> {
    let mut builder = Context::builder();
    for name in list(resources) {
        builder = match objects.get(name) {
            Object::Sms(sms) => builder.sms(sms),
            Object::Workqueue(queue) => builder.workqueue(queue),
            _ => panic!("{name} is no resource"),
        };
    }
    if flags.contains("private") {
        builder = builder.private();
    }
    builder.build()
}

/// What changes no object.
fn of_work(objects: &Objects, operation: &str, fields: &mut Fields) -> Result<Vec<String>> {
    let [of] = fields.take();
    match (operation, objects.get(of)) {
        ("record" | "wait", of) => {
            let [event] = fields.take();
            let event = objects.event(event);
            match (operation, of) {
                ("record", Object::Stream(of)) => of.record_into(event)?,
                ("record", Object::Context(of)) => of.record_into(event)?,
                (_, Object::Stream(of)) => of.wait(event)?,
                (_, Object::Context(of)) => of.wait(event)?,
                _ => panic!("the object has no order"),
            }
        }
        ("cluster", Object::Sms(sms)) => return Ok(outputs![sms.max_cluster_size()?]),
        ("probe", Object::Stream(stream)) => return Ok(vec![joined(stream.sm_ids()?)]),
        ("synchronize", Object::Context(of)) => of.synchronize()?,
        ("synchronize", Object::Stream(of)) => of.synchronize()?,
        ("synchronize", Object::Event(of)) => of.synchronize()?,
        ("synchronize", Object::Lease(of)) => of.synchronize()?,
        // Nothing on the simulated driver takes long.
        ("query", Object::Lease(of)) => assert!(of.query()?),
        ("query", Object::Stream(of)) => assert!(of.query()?),
        ("query", Object::Event(of)) => assert!(of.query()?),
        _ => panic!("{of} can't be asked for {operation}"),
    }
    Ok(Vec::new())
}
