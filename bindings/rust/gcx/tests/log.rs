//! The log callback. One test, since a process has one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use gcx::log::{reset, set, Level};
use gcx::{Device, ErrorKind, Result};

fn fails() {
    assert!(Device::new(77).is_err());
}

/// Reports that it was dropped.
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

    // Another replaces it, and the previous one is dropped.
    assert!(!gone.load(Ordering::SeqCst));
    set(Level::Error, |level, message| panic!("{level:?} {message}: nothing is an error"))?;
    assert!(gone.load(Ordering::SeqCst));
    fails();
    assert_eq!(seen.lock().unwrap().len(), lines.len());

    // A panic ends its message only.
    set(Level::Debug, |_, _| panic!("intended"))?;
    fails();
    fails();

    // A callback that calls gcx gets no messages of that call.
    let calls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&calls);
    set(Level::Debug, move |_, _| {
        fails();
        *counted.lock().unwrap() += 1;
    })?;
    fails();
    assert_eq!(*calls.lock().unwrap(), 1);

    // A callback can't set another, also while other threads try.
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
    assert_eq!(answers, vec![ErrorKind::InCallback; 400]);

    // It can be replaced while other threads log.
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
