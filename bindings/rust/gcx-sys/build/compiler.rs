//! Runs the C++ compiler and the archiver.
//!
//! It doesn't use the crate `cc`, which needs newer versions of Rust: a package without
//! dependencies builds with its own minimum, whatever versions Cargo resolves.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::{fail, required, variable};

/// A C++ compiler with the options for all sources of the package.
pub struct Compiler {
    words: Vec<OsString>,
    options: Vec<OsString>,
}

impl Compiler {
    pub fn new(includes: &[&Path]) -> Self {
        let mut options: Vec<OsString> = ["-std=c++20", "-fPIC", "-fvisibility=hidden", "-pthread"]
            .iter()
            .map(OsString::from)
            .collect();
        options.push(format!("-O{}", required("OPT_LEVEL")).into());
        if required("DEBUG") != "false" {
            options.push("-g".into());
        }
        for include in includes {
            options.push("-I".into());
            options.push(include.into());
        }
        options.extend(words(&variable("CXXFLAGS").unwrap_or_default()));
        Compiler { words: program("CXX", "c++", "g++"), options }
    }

    /// Adds an option for the sources that are compiled later.
    pub fn option(&mut self, option: impl Into<OsString>) {
        self.options.push(option.into());
    }

    /// Compiles sources, as many at a time as Cargo allows, to objects in the folder.
    pub fn objects(&self, sources: &[PathBuf], folder: &Path) -> Vec<PathBuf> {
        let objects: Vec<PathBuf> = sources
            .iter()
            .map(|source| folder.join(source.file_name().expect("a source is a file")))
            .map(|object| object.with_extension("o"))
            .collect();
        let next = AtomicUsize::new(0);
        let compile = || {
            while let Some(index) =
                Some(next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < sources.len())
            {
                let mut command = self.command();
                command.args(&self.options).arg("-c").arg(&sources[index]);
                command.arg("-o").arg(&objects[index]);
                run(&mut command);
            }
        };
        let jobs = required("NUM_JOBS").parse().unwrap_or(1);
        thread::scope(|scope| {
            for _ in 0..sources.len().min(jobs) {
                scope.spawn(compile);
            }
        });
        objects
    }

    /// Links a shared library of objects.
    pub fn shared_library(&self, objects: &[PathBuf], options: &[OsString], library: &Path) {
        let mut command = self.command();
        command.arg("-shared").arg("-pthread").args(objects).args(options).arg("-o").arg(library);
        run(&mut command);
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        command
    }
}

/// Archives objects into a static library.
pub fn archive(objects: &[PathBuf], library: &Path) {
    let _ = std::fs::remove_file(library); // an earlier build may have left objects in it
    let words = program("AR", "ar", "ar");
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg("crs").arg(library).args(objects);
    run(&mut command);
}

/// Returns the command that an environment variable names, or the default for the target.
fn program(name: &str, native: &str, cross: &str) -> Vec<OsString> {
    let chosen = words(&variable(name).unwrap_or_default());
    if !chosen.is_empty() {
        return chosen;
    }
    let target = required("TARGET");
    if target == required("HOST") {
        return vec![native.into()];
    }
    vec![format!("{}-{cross}", target.replace("-unknown-", "-")).into()]
}

fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}

fn run(command: &mut Command) {
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("{status}: {command:?}")),
        Err(error) => fail(&format!(
            "{:?} can't be run: {error}. Building gcx needs a compiler for C++20 (GCC 12, Clang 17); \
             CXX names another",
            command.get_program()
        )),
    }
}
