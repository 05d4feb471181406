//! The operations of vectors.

use gcx::{
    Capability, Context, Device, Error, Event, Result, SmResource, Stream, WorkqueueResource,
};

use crate::leases::of_leases;
use crate::objects::{Object, Objects};
use crate::words::{
    event_options, family, flags, ids, info, joined, list, number, request, scope, scope_name,
    split_options,
};

/// What came of a step.
pub enum Answer {
    Outputs(Vec<String>),
    Failed(Error),
}

/// How many inputs an operation has.
pub fn inputs(operation: &str) -> Option<usize> {
    Some(match operation {
        "driver" | "devices" | "pop" | "current" | "cache" => 0,
        "open" | "capability" | "device" | "priorities" | "info" | "queue" | "sms" | "cluster"
        | "probe" | "push" | "synchronize" | "query" | "close" | "live" | "limit" | "prepare"
        | "alone" | "leases" | "ahead" | "trim" => 1,
        "overlap" | "same" | "map" | "adopt" | "record" | "wait" | "elapsed" | "resize"
        | "held" => 2,
        "resource" | "union" | "subtract" | "atom" | "context" | "get" | "stream" | "event"
        | "hand-over" => 3,
        "split" | "configure" => 4,
        "lease" => 7,
        _ => return None,
    })
}

/// Runs one step.
pub fn run(objects: &mut Objects, operation: &str, inputs: &[&str]) -> Answer {
    if operation != "open" {
        objects.note_cache();
    }
    match outputs(objects, operation, inputs) {
        Ok(outputs) => Answer::Outputs(outputs),
        Err(error) => Answer::Failed(error),
    }
}

fn outputs(objects: &mut Objects, operation: &str, inputs: &[&str]) -> Result<Vec<String>> {
    match operation {
        // SAFETY: the vectors name simulated drivers, and none that there is.
        "open" => unsafe { gcx::open_driver(inputs[0]) }.map(|()| Vec::new()),
        "driver" | "devices" | "capability" | "device" | "priorities" | "resource" | "map"
        | "limit" | "cache" | "live" | "event" | "trim" => of_devices(objects, operation, inputs),
        "info" | "queue" | "split" | "union" | "subtract" | "overlap" | "atom" | "sms"
        | "configure" => of_values(objects, operation, inputs),
        "lease" | "resize" | "prepare" | "hand-over" | "held" | "alone" | "leases" => {
            of_leases(objects, operation, inputs)
        }
        _ => of_objects(objects, operation, inputs),
    }
}

pub fn texts<T: ToString>(values: impl IntoIterator<Item = T>) -> Vec<String> {
    values.into_iter().map(|value| value.to_string()).collect()
}

/// What names a device, or nothing.
fn of_devices(objects: &mut Objects, operation: &str, inputs: &[&str]) -> Result<Vec<String>> {
    let device = || Device::new(number(inputs[0]));
    Ok(match operation {
        "driver" => {
            let info = gcx::driver_info()?;
            texts([info.version.0 * 1000 + info.version.1 * 10, u32::from(info.simulated)])
        }
        "devices" => texts([gcx::devices()?.len()]),
        "capability" => {
            let capability = Capability::ALL[number::<usize>(inputs[0])];
            texts([u32::from(gcx::driver_info()?.capabilities.contains(&capability))])
        }
        "device" => {
            let device = device()?;
            let (major, minor) = device.compute_capability();
            let mut outputs = texts([major, minor, device.sm_count()]);
            outputs.push(device.name().to_owned());
            outputs
        }
        "priorities" => {
            let range = device()?.stream_priority_range()?;
            texts([range.end(), range.start()])
        }
        "resource" => {
            let made = match inputs[1] {
                "sm" => Object::Sms(device()?.sms()?),
                "workqueue-config" => Object::Workqueue(device()?.workqueue()?),
                // A device has none, and this crate no function that asks it for one.
                "workqueue" => return Err(no_such_type(inputs[0])),
                kind => panic!("{kind:?} is no type"),
            };
            objects.add(inputs[2], made);
            Vec::new()
        }
        "map" => {
            device()?.map_sms(family(inputs[1]))?;
            Vec::new()
        }
        "limit" => {
            // SAFETY: no other code names a released stream.
            unsafe { gcx::cache::set_limit(number(inputs[0])) }?;
            Vec::new()
        }
        // SAFETY: no other code names a released stream.
        "trim" => texts([unsafe { gcx::cache::trim(number(inputs[0])) }?.contexts]),
        "cache" => {
            let (before, now) = (objects.note_cache(), gcx::cache::stats()?);
            let mut outputs = texts([now.in_use, now.kept]);
            let grown =
                [now.hits - before.hits, now.misses - before.misses, now.evicted - before.evicted];
            outputs.extend(texts(grown));
            outputs
        }
        "live" => {
            let live = if inputs[0] == "-1" {
                gcx::live_contexts()?
            } else {
                device()?.live_contexts()?
            };
            vec![joined(live.iter().map(|live| {
                let (handles, streams) = (live.handle_count, live.stream_count);
                format!("{}/{handles}/{streams}/{}", live.sm_count, u32::from(live.private))
            }))]
        }
        _ => {
            let event = event_options(inputs[1]).create(number(inputs[0]))?;
            objects.add(inputs[2], Object::Event(event));
            Vec::new()
        }
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

/// What takes resources.
fn of_values(objects: &mut Objects, operation: &str, inputs: &[&str]) -> Result<Vec<String>> {
    if operation == "queue" || operation == "configure" {
        return of_workqueues(objects, operation, inputs);
    }
    if operation == "split" {
        return split(objects, inputs);
    }
    let a = *objects.sms(inputs[0]);
    Ok(match operation {
        "info" => info(&a),
        "union" | "subtract" => {
            let b = objects.sms(inputs[1]);
            let made = if operation == "union" { a.union(b)? } else { a.difference(b)? };
            objects.add(inputs[2], Object::Sms(made));
            texts([made.sm_count()])
        }
        "overlap" => texts([a.overlap(objects.sms(inputs[1]))?]),
        "atom" => {
            let atom = a.atoms()?[number::<usize>(inputs[1])];
            objects.add(inputs[2], Object::Sms(atom));
            texts([atom.sm_count()])
        }
        _ => vec![ids(&a.sm_ids()?)],
    })
}

fn of_workqueues(objects: &mut Objects, operation: &str, inputs: &[&str]) -> Result<Vec<String>> {
    let queue = match objects.get(inputs[0]) {
        Object::Workqueue(queue) => *queue,
        // Rust's types refuse what C answers with an error.
        Object::Sms(sms) => WorkqueueResource::from_raw(*sms.as_raw())?,
        _ => panic!("{} is no resource", inputs[0]),
    };
    if operation == "queue" {
        let mut outputs = texts([queue.device()?]);
        outputs.push(scope_name(queue.scope()?).to_owned());
        outputs.extend(texts([queue.concurrency_limit()?]));
        return Ok(outputs);
    }
    let limit = match number(inputs[2]) {
        0 => None,
        limit => Some(limit),
    };
    let configured = queue.configured(scope(inputs[1]), limit)?;
    objects.add(inputs[3], Object::Workqueue(configured));
    Ok(Vec::new())
}

fn split(objects: &mut Objects, inputs: &[&str]) -> Result<Vec<String>> {
    let whole = match objects.get(inputs[0]) {
        Object::Sms(sms) => *sms,
        Object::Workqueue(queue) => SmResource::from_raw(*queue.as_raw())?,
        _ => panic!("{} is no resource", inputs[0]),
    };
    let options = split_options(inputs[1]).expect("vectors with two families are left out");
    let requests: Vec<_> = list(inputs[2]).into_iter().map(request).collect();
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
        objects.add(&format!("{}.{index}", inputs[3]), Object::Sms(*group));
    }
    objects.add(&format!("{}.rest", inputs[3]), Object::Sms(*split.remainder()));
    Ok(vec![
        joined(split.iter().map(SmResource::sm_count)),
        split.remainder().sm_count().to_string(),
    ])
}

/// What takes contexts, streams and events.
fn of_objects(objects: &mut Objects, operation: &str, inputs: &[&str]) -> Result<Vec<String>> {
    match operation {
        "same" => {
            let same = match (objects.get(inputs[0]), objects.get(inputs[1])) {
                (Object::Context(a), Object::Context(b)) => a.info()?.id == b.info()?.id,
                (Object::Sms(a), Object::Sms(b)) => a == b,
                (Object::Workqueue(a), Object::Workqueue(b)) => a == b,
                _ => false,
            };
            return Ok(vec![if same { "yes" } else { "no" }.to_owned()]);
        }
        "current" => {
            assert!(gcx::current_context()?.is_none(), "what pushes is left out");
            return Ok(vec!["-".to_owned()]);
        }
        "ahead" => {
            let sms: Vec<_> = list(inputs[0]).into_iter().map(|name| *objects.sms(name)).collect();
            gcx::cache::prepare(&sms)?;
            return Ok(Vec::new());
        }
        "context" => {
            let context = context(objects, inputs)?;
            objects.add(inputs[2], Object::Context(context));
            return Ok(Vec::new());
        }
        "close" => {
            match objects.take(inputs[0]) {
                Object::Context(context) => context.close()?,
                other => drop(other),
            }
            return Ok(Vec::new());
        }
        "elapsed" => {
            let milliseconds =
                objects.event(inputs[1]).milliseconds_since(objects.event(inputs[0]))?;
            assert!(milliseconds >= 0.0);
            return Ok(Vec::new());
        }
        "record" | "wait" => {
            let event = objects.event(inputs[1]);
            match (operation, objects.get(inputs[0])) {
                ("record", Object::Stream(stream)) => stream.record_into(event)?,
                ("record", Object::Context(context)) => context.record_into(event)?,
                (_, Object::Stream(stream)) => stream.wait(event)?,
                (_, Object::Context(context)) => context.wait(event)?,
                _ => panic!("{} has no order", inputs[0]),
            }
            return Ok(Vec::new());
        }
        _ => {}
    }
    let (outputs, made) = asked(objects.get(inputs[0]), operation, inputs)?;
    if let Some(made) = made {
        objects.add(inputs[inputs.len() - 1], made);
    }
    Ok(outputs)
}

fn context(objects: &Objects, inputs: &[&str]) -> Result<Context> {
    let mut builder = Context::builder();
    for name in list(inputs[0]) {
        builder = match objects.get(name) {
            Object::Sms(sms) => builder.sms(sms),
            Object::Workqueue(queue) => builder.workqueue(queue),
            _ => panic!("{name} is no resource"),
        };
    }
    if flags(inputs[1]).contains(&"private") {
        builder = builder.private();
    }
    builder.build()
}

/// What one object answers, and what it makes.
fn asked(
    object: &Object,
    operation: &str,
    inputs: &[&str],
) -> Result<(Vec<String>, Option<Object>)> {
    let mut made = None;
    let outputs = match (operation, object) {
        ("cluster", Object::Sms(sms)) => texts([sms.max_cluster_size()?]),
        ("cluster", Object::Stream(stream)) => texts([stream.max_cluster_size()?]),
        ("probe", Object::Stream(stream)) => vec![ids(&stream.sm_ids()?)],
        ("stream", Object::Context(context)) => {
            let stream = context.stream_with_priority(number(inputs[1]))?;
            let info = stream.info()?;
            made = Some(Object::Stream(stream));
            texts([i64::from(info.device), i64::from(info.priority), i64::from(info.sm_count)])
        }
        ("stream", Object::Lease(lease)) => {
            let stream = lease.stream_with_priority(number(inputs[1]))?;
            let info = stream.info()?;
            made = Some(Object::Stream(stream));
            texts([i64::from(info.device), i64::from(info.priority), i64::from(info.sm_count)])
        }
        ("get", Object::Context(context)) => {
            made = Some(match inputs[1] {
                "sm" => Object::Sms(context.sms()?),
                "workqueue-config" => Object::Workqueue(context.workqueue_config()?),
                _ => Object::Workqueue(context.workqueue()?),
            });
            Vec::new()
        }
        ("get", Object::Stream(stream)) => {
            made = Some(match inputs[1] {
                "sm" => Object::Sms(stream.sms()?),
                "workqueue-config" => Object::Workqueue(stream.workqueue_config()?),
                _ => Object::Workqueue(stream.workqueue()?),
            });
            Vec::new()
        }
        // SAFETY: the native handles are those of live objects, which the vector keeps.
        ("adopt", object) => unsafe {
            made = Some(match object {
                Object::Stream(stream) => Object::Stream(Stream::from_native(stream.native()?)?),
                Object::Event(event) => Object::Event(Event::from_native(event.native()?)?),
                _ => panic!("{} has no native handle", inputs[0]),
            });
            Vec::new()
        },
        ("synchronize", Object::Context(context)) => {
            texts(context.synchronize().map(|()| [""; 0])?)
        }
        ("synchronize", Object::Stream(stream)) => texts(stream.synchronize().map(|()| [""; 0])?),
        ("synchronize", Object::Event(event)) => texts(event.synchronize().map(|()| [""; 0])?),
        ("synchronize", Object::Lease(lease)) => texts(lease.synchronize().map(|()| [""; 0])?),
        ("query", Object::Lease(lease)) => ready(lease.query()?),
        ("query", Object::Stream(stream)) => ready(stream.query()?),
        ("query", Object::Event(event)) => ready(event.query()?),
        _ => panic!("{} can't be asked for {operation}", inputs[0]),
    };
    Ok((outputs, made))
}

/// Nothing on the simulated driver takes long.
fn ready(finished: bool) -> Vec<String> {
    assert!(finished, "simulated work has finished");
    Vec::new()
}
