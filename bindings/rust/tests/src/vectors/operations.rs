//! The operations of vectors.

use gcx::{
    Capability, Context, Device, Error, Event, Lease, Resize, Result, SmResource, Sms, Stream,
    WorkqueueResource,
};

use crate::objects::{Object, Objects};
use crate::words::{
    event_options, family, info, joined, list, number, request, scope, scope_name, split_options,
};

/// The outputs of a step.
type Answer = Result<Vec<String>>;

/// Values as texts.
macro_rules! outputs {
    ($($value:expr),*) => { vec![$($value.to_string()),*] };
}

/// Runs one step and returns its outputs.
pub fn run(objects: &mut Objects, operation: &str, inputs: &[&str]) -> Answer {
    if operation != "open" {
        objects.note_cache();
    }
    match (operation, inputs) {
        ("open", [driver]) => {
            // SAFETY: the vectors name simulated drivers, and none that there is.
            unsafe { gcx::open_driver(driver) }?;
            Ok(Vec::new())
        }
        ("driver", []) => {
            let info = gcx::driver_info()?;
            let number = info.version.0 * 1000 + info.version.1 * 10;
            Ok(outputs![number, u32::from(info.simulated)])
        }
        ("capability", [index]) => {
            let capability = Capability::ALL[number::<usize>(index)];
            Ok(outputs![u32::from(gcx::driver_info()?.capabilities.contains(&capability))])
        }
        ("limit", [contexts]) => {
            // SAFETY: no other code names a released stream.
            unsafe { gcx::cache::set_limit(number(contexts)) }?;
            Ok(Vec::new())
        }
        ("trim", [contexts]) => {
            // SAFETY: no other code names a released stream.
            Ok(outputs![unsafe { gcx::cache::trim(number(contexts)) }?.contexts])
        }
        ("ahead", [names]) => {
            let sms: Vec<_> = list(names).into_iter().map(|name| *objects.sms(name)).collect();
            gcx::cache::prepare(&sms)?;
            Ok(Vec::new())
        }
        ("cache", []) => {
            let (before, now) = (objects.note_cache(), gcx::cache::stats()?);
            let (hits, misses) = (now.hits - before.hits, now.misses - before.misses);
            Ok(outputs![now.in_use, now.cached, hits, misses, now.evicted - before.evicted])
        }
        _ => of_devices(objects, operation, inputs),
    }
}

fn of_devices(objects: &mut Objects, operation: &str, inputs: &[&str]) -> Answer {
    Ok(match (operation, inputs) {
        ("devices", []) => outputs![gcx::devices()?.len()],
        ("device", [device]) => {
            let device = Device::new(number(device))?;
            let (major, minor) = device.compute_capability();
            outputs![major, minor, device.sm_count(), device.name()]
        }
        ("priorities", [device]) => {
            let range = Device::new(number(device))?.stream_priority_range()?;
            outputs![range.end(), range.start()]
        }
        ("resource", [device, kind, out]) => {
            let made = match *kind {
                "sm" => Object::Sms(Device::new(number(device))?.sms()?),
                "workqueue-config" => Object::Workqueue(Device::new(number(device))?.workqueue()?),
                // A device has none, and this crate no function that asks it for one.
                "workqueue" => return Err(no_such_type(device)),
                kind => panic!("{kind:?} is no type"),
            };
            objects.add(out, made);
            Vec::new()
        }
        ("map", [device, of]) => {
            Device::new(number(device))?.map_sms(family(of))?;
            Vec::new()
        }
        ("event", [device, options, out]) => {
            objects.add(out, Object::Event(event_options(options).create(number(device))?));
            Vec::new()
        }
        ("live", [device]) => {
            let live = match *device {
                "-1" => gcx::live_contexts()?,
                device => Device::new(number(device))?.live_contexts()?,
            };
            vec![joined(live.iter().map(|live| {
                let (handles, streams) = (live.handle_count, live.stream_count);
                format!("{}/{handles}/{streams}/{}", live.sm_count, u32::from(live.private))
            }))]
        }
        ("leases", [device]) => {
            let live = match *device {
                "-1" => gcx::leases()?,
                device => Device::new(number(device))?.leases()?,
            };
            vec![joined(live.iter().map(|live| {
                let (sms, flags) = (live.sm_count.unwrap_or(0), u32::from(live.shared));
                format!("{sms}/{}/{flags}", live.stream_count)
            }))]
        }
        _ => return of_resources(objects, operation, inputs),
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

fn of_resources(objects: &mut Objects, operation: &str, inputs: &[&str]) -> Answer {
    Ok(match (operation, inputs) {
        ("info", [of]) => info(objects.sms(of)),
        ("queue", [of]) => {
            let queue = workqueue(objects, of)?;
            outputs![queue.device()?, scope_name(queue.scope()?), queue.concurrency_limit()?]
        }
        ("configure", [of, among, limit, out]) => {
            let limit = Some(number(limit)).filter(|limit| *limit != 0);
            let configured = workqueue(objects, of)?.configured(scope(among), limit)?;
            objects.add(out, Object::Workqueue(configured));
            Vec::new()
        }
        ("split", [of, options, requests, out]) => {
            return split(objects, of, options, requests, out);
        }
        ("union" | "subtract", [a, b, out]) => {
            let (a, b) = (objects.sms(a), objects.sms(b));
            let made = if operation == "union" { a.union(b)? } else { a.difference(b)? };
            objects.add(out, Object::Sms(made));
            outputs![made.sm_count()]
        }
        ("overlap", [a, b]) => outputs![objects.sms(a).overlap(objects.sms(b))?],
        ("atom", [of, index, out]) => {
            let atom = objects.sms(of).atoms()?[number::<usize>(index)];
            objects.add(out, Object::Sms(atom));
            outputs![atom.sm_count()]
        }
        ("sms", [of]) => vec![joined(objects.sms(of).sm_ids()?)],
        ("same", [a, b]) => {
            let same = match (objects.get(a), objects.get(b)) {
                (Object::Context(a), Object::Context(b)) => a.info()?.id == b.info()?.id,
                (Object::Sms(a), Object::Sms(b)) => a == b,
                (Object::Workqueue(a), Object::Workqueue(b)) => a == b,
                _ => false,
            };
            outputs![if same { "yes" } else { "no" }]
        }
        _ => return of_leases(objects, operation, inputs),
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

fn split(objects: &mut Objects, of: &str, options: &str, requests: &str, out: &str) -> Answer {
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

fn of_leases(objects: &mut Objects, operation: &str, inputs: &[&str]) -> Answer {
    Ok(match (operation, inputs) {
        ("lease", [device, count, shared, of, minimum, exclusive, out]) => {
            let mut builder = Device::new(number(device))?.lease().sm_count(sms(count));
            if *shared == "shared" {
                builder = builder.shared();
            }
            if *of != "none" {
                builder = builder.family(family(of));
            }
            if *minimum != "0" {
                builder = builder.min_sm_count(number(minimum)); // 0 is the builder's default
            }
            let lease = builder.exclusive_sm_count(number(exclusive)).name(*out).acquire()?;
            let sm_count = lease.sm_count()?;
            objects.add(out, Object::Lease(lease));
            outputs![sm_count]
        }
        ("resize", [layout, how]) => {
            let sizes = sizes(objects, layout);
            let how = match *how {
                "-" => Resize::new(),
                "deferred" => Resize::new().deferred(),
                _ => panic!("{how:?} is no flag of a change"),
            };
            gcx::resize(&sizes, how)?;
            let now = sizes.iter().map(|(lease, _)| lease.sm_count());
            vec![joined(now.collect::<Result<Vec<_>>>()?)]
        }
        ("prepare", [layout]) => {
            gcx::prepare(&sizes(objects, layout))?;
            Vec::new()
        }
        ("held", [of, out]) => {
            let held = objects.lease(of).sms()?;
            objects.add(out, Object::Sms(held));
            outputs![held.sm_count()]
        }
        ("alone", [of]) => outputs![objects.lease(of).info()?.exclusive_sm_count],
        _ => return of_objects(objects, operation, inputs),
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
fn of_objects(objects: &mut Objects, operation: &str, inputs: &[&str]) -> Answer {
    match (operation, inputs) {
        ("context", [resources, flags, out]) => {
            let context = context(objects, resources, flags)?;
            objects.add(out, Object::Context(context));
        }
        ("close", [of]) => match objects.take(of) {
            Object::Context(context) => context.close()?,
            other => drop(other),
        },
        ("current", []) => {
            assert!(gcx::current_context()?.is_none(), "what pushes is left out");
            return Ok(outputs!["-"]);
        }
        ("elapsed", [start, end]) => {
            let end = objects.event(end);
            assert!(end.milliseconds_since(objects.event(start))? >= 0.0);
        }
        ("stream", [of, priority, out]) => {
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
        ("get", [of, kind, out]) => {
            let made = match (objects.get(of), *kind) {
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
        ("adopt", [of, out]) => {
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
        _ => return of_work(objects, operation, inputs),
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
fn of_work(objects: &Objects, operation: &str, inputs: &[&str]) -> Answer {
    let (of, more) = inputs.split_first().unwrap_or_else(|| panic!("there is no {operation}"));
    match (operation, objects.get(of), more) {
        ("record", Object::Stream(of), [event]) => of.record_into(objects.event(event))?,
        ("record", Object::Context(of), [event]) => of.record_into(objects.event(event))?,
        ("wait", Object::Stream(of), [event]) => of.wait(objects.event(event))?,
        ("wait", Object::Context(of), [event]) => of.wait(objects.event(event))?,
        ("cluster", Object::Sms(sms), []) => return Ok(outputs![sms.max_cluster_size()?]),
        ("probe", Object::Stream(stream), []) => return Ok(vec![joined(stream.sm_ids()?)]),
        ("synchronize", Object::Context(of), []) => of.synchronize()?,
        ("synchronize", Object::Stream(of), []) => of.synchronize()?,
        ("synchronize", Object::Event(of), []) => of.synchronize()?,
        ("synchronize", Object::Lease(of), []) => of.synchronize()?,
        // Nothing on the simulated driver takes long.
        ("query", Object::Lease(of), []) => assert!(of.query()?),
        ("query", Object::Stream(of), []) => assert!(of.query()?),
        ("query", Object::Event(of), []) => assert!(of.query()?),
        _ => panic!("{of} can't be asked for {operation}"),
    }
    Ok(Vec::new())
}
