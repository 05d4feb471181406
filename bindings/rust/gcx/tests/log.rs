//! Diagnostics by a function. One test, since there is one callback in a process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use gcx::log::{reset, set, Level};
use gcx::{Device, ErrorKind, Result};

fn fails() {
    assert!(Device::new(77).is_err());
}

/// Notes that it was dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn callbacks() -> Result<()> {
    gcx::devices()?;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let gone = Arc::new(AtomicBool::new(false));
    let (noted, guard) = (Arc::clone(&seen), Dropped(Arc::clone(&gone)));
    set(Level::Debug, move |level, message| {
        let _kept = &guard;
        noted.lock().unwrap().push((level, message.to_owned()));
    })?;
    fails();
    let lines = seen.lock().unwrap().clone();
    assert!(lines.iter().any(|(level, text)| *level == Level::Debug && text.contains("77")));
    assert!(Level::Error < Level::Debug);

    // Another takes its place, and the one before is given up.
    assert!(!gone.load(Ordering::SeqCst));
    set(Level::Error, |level, message| panic!("{level:?} {message}: nothing was lost"))?;
    assert!(gone.load(Ordering::SeqCst));
    fails();
    assert_eq!(seen.lock().unwrap().len(), lines.len());

    // One that panics ends its own message alone.
    set(Level::Debug, |_, _| panic!("as meant"))?;
    fails();
    fails();

    // One that calls gcx isn't told of that.
    let calls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&calls);
    set(Level::Debug, move |_, _| {
        fails();
        *counted.lock().unwrap() += 1;
    })?;
    fails();
    assert_eq!(*calls.lock().unwrap(), 1);

    // One that asks for another is refused, also while other threads do.
    let answers = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&answers);
    set(Level::Debug, move |_, _| {
        let kinds = [reset(), set(Level::Info, |_, _| ())].map(|result| result.unwrap_err().kind());
        noted.lock().unwrap().extend(kinds);
    })?;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50).for_each(|_| fails()));
        }
    });
    let answers = answers.lock().unwrap().clone();
    assert_eq!(answers, vec![ErrorKind::NotPermitted; 400]);

    // Changed while others log.
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..200).for_each(|_| fails()));
        }
        scope.spawn(|| {
            for _ in 0..100 {
                let text = String::from("owned by the callback");
                set(Level::Debug, move |_, _| assert!(!text.is_empty())).unwrap();
                reset().unwrap();
            }
        });
    });
    Ok(())
}
