//! Runs the vectors of tests/vectors, whose format the README there describes.
//!
//!     cargo run -p gcx-tests --bin vectors FILE

mod objects;
mod operations;
mod words;

use std::fs;
use std::process::ExitCode;

use objects::Objects;
use operations::{run, Fields};

/// What Rust's types or this crate make impossible: numbers without a name, stale handles,
/// destroying twice, and separate push and pop.
const LEFT_OUT: [&str; 4] = ["number", "stale", "twice", "stack"];

/// The counts of a file.
#[derive(Default)]
struct Tally {
    agree: u32,
    differ: u32,
    left_out: u32,
}

/// The vector that is run.
struct Vector<'a> {
    name: &'a str,
    objects: Objects,
    agrees: bool,
}

fn main() -> ExitCode {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.len() != 1 {
        eprintln!("usage: vectors FILE, one, since a process opens one driver");
        return ExitCode::from(2);
    }
    let file = &files[0];
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("{file}: {error}");
            return ExitCode::from(2);
        }
    };
    let Tally { agree, differ, left_out } = answered(file, &text);
    println!("{file}: {agree} vectors agree, {differ} differ, {left_out} left out");
    if differ == 0 && agree > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs the vectors of a file, and prints a line for each that differs.
fn answered(file: &str, text: &str) -> Tally {
    let mut tally = Tally::default();
    let mut vector: Option<Vector> = None;
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split('\t').collect();
        if fields[0] == "vector" {
            end(file, vector.take(), &mut tally);
            if fields[2..]
                .iter()
                .flat_map(|needs| needs.split(' '))
                .any(|need| LEFT_OUT.contains(&need))
            {
                tally.left_out += 1;
            } else {
                vector = Some(Vector { name: fields[1], objects: Objects::new(), agrees: true });
            }
            continue;
        }
        if let Some(vector) = vector.as_mut().filter(|vector| vector.agrees) {
            if let Err(difference) = compare(&mut vector.objects, &fields) {
                println!("{file}:{}: {}: {}: {difference}", number + 1, vector.name, fields[0]);
                vector.agrees = false;
            }
        }
    }
    end(file, vector, &mut tally);
    tally
}

/// Drops what a vector created, and counts the vector.
fn end(file: &str, vector: Option<Vector>, tally: &mut Tally) {
    let (name, objects, agrees) = match vector {
        Some(Vector { name, objects, agrees }) => (name, objects, agrees),
        None => return,
    };
    let left = objects.end();
    if let Err(what) = &left {
        println!("{file}: {name}: at its end: {what}");
    }
    if agrees && left.is_ok() {
        tally.agree += 1;
    } else {
        tally.differ += 1;
    }
}

/// Runs a step and compares what came of it with what was expected.
fn compare(objects: &mut Objects, fields: &[&str]) -> Result<(), String> {
    let (operation, expected) = (fields[0], fields[1]);
    let mut rest = Fields(&fields[2..]);
    let given = run(objects, operation, &mut rest);
    let outputs = rest.0;
    match given {
        Ok(given) if expected == "GCX_SUCCESS" && given == outputs => Ok(()),
        Ok(given) => Err(format!("expected {expected} {outputs:?}, came {given:?}")),
        Err(error) if error.name() != expected => Err(format!("expected {expected}, came {error}")),
        Err(error) => {
            let mut pieces = outputs.iter().flat_map(|pieces| pieces.split('|'));
            match pieces.find(|piece| !error.message().contains(piece)) {
                Some(piece) => Err(format!("expected {piece:?} in the message: {error}")),
                None => Ok(()),
            }
        }
    }
}
