//! Answers the steps of vectors, for tests/vectors/ask.py; the README there says how.

mod objects;
mod operations;
mod words;

use std::io;

use objects::Objects;
use operations::run;

fn main() -> io::Result<()> {
    let mut objects = Objects::default();
    for line in io::stdin().lines() {
        let line = line?;
        let fields: Vec<&str> = line.split('\t').collect();
        let answer = if fields == ["end"] {
            let ended = std::mem::take(&mut objects).end();
            ended.map_or_else(|what| format!("differs\t{what}"), |()| "GCX_SUCCESS".to_owned())
        } else {
            match run(&mut objects, fields[0], &fields[1..]) {
                Ok(outputs) => {
                    outputs.iter().fold("GCX_SUCCESS".to_owned(), |all, one| all + "\t" + one)
                }
                Err(error) => format!("{}\t{}", error.name(), error.message().replace('\n', " ")),
            }
        };
        println!("{answer}");
    }
    Ok(())
}
