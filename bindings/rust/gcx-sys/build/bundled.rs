//! Builds the static library from the C++ sources in the package, and the simulated driver for the
//! feature `simulator`.

use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::compiler::{archive, Compiler};
use crate::{fail, link, required};

/// The folders of src/ that make the library; the others are the simulated driver and the command.
const FOLDERS: [&str; 6] = ["base", "driver", "core", "ipc", "probe", "api"];

/// The files of interpose/ that are part of the library; the others belong to `gcx exec`.
const OF_INTERPOSE: &[&str] = &["count_reporting.cpp", "exec_plan.cpp", "stub_library.cpp"];

const SOURCES_OF_UNIT: usize = 12;

/// Builds libgcx.a and has it linked. It needs a compiler for C++20 and cuda.h; nothing of CUDA is
/// linked, since gcx opens the driver itself.
pub fn library(include: &Path) {
    let source = crate::folder().join("vendor").join("src");
    println!("cargo:rerun-if-changed=vendor/src");
    let cuda = cuda_include();
    let mut compiler = Compiler::new(&[include, &source, &cuda]);
    let out = PathBuf::from(required("OUT_DIR"));
    if cfg!(feature = "simulator") {
        let simulator = simulator(&compiler, &source, &out);
        println!("cargo:simulator={}", simulator.display());
        compiler.option(format!("-DGCX_BUILT_SIMULATOR={:?}", simulator.to_string_lossy()));
    }
    compiler.option("-DGCX_BUILT_BY_CARGO");
    let mut of_library: Vec<PathBuf> =
        FOLDERS.iter().flat_map(|folder| sources(&source.join(folder))).collect();
    of_library.extend(OF_INTERPOSE.iter().map(|file| source.join("interpose").join(file)));
    let objects = compiler.objects(&units("unit", &of_library, &out), &out);
    archive(&objects, &out.join("libgcx.a"));
    link::statically(&out);
}

/// Builds libgcx-sim.so as src/sim/meson.build does, and returns its path.
fn simulator(compiler: &Compiler, source: &Path, out: &Path) -> PathBuf {
    let folder = source.join("sim");
    let mut found = vec![folder.join("machine.cpp")];
    for part in ["entry", "profiles", "device", "partition", "work", "graph"] {
        found.extend(sources(&folder.join(part)));
    }
    // It declares cuda.h's functions otherwise than cuda.h does: no other file is in its unit.
    let (apart, found): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|path| path.ends_with("entry/functions.cpp"));
    let mut units = units("simulator", &found, out);
    units.extend(apart);
    units.push(profiles(&folder.join("profiles"), out));
    let objects = compiler.objects(&units, out);
    let library = out.join("libgcx-sim.so");
    let mut script = std::ffi::OsString::from("-Wl,--version-script=");
    script.push(folder.join("libgcx-sim.map"));
    let options = ["-Wl,-Bsymbolic-functions", "-static-libstdc++", "-static-libgcc"];
    let options: Vec<_> = options.iter().map(Into::into).chain([script]).collect();
    compiler.shared_library(&objects, &options, &library);
    library
}

/// Writes the profiles as C++ strings, as `embed_profiles.py` does.
fn profiles(folder: &Path, out: &Path) -> PathBuf {
    let files = files(folder, "profile");
    let row = |path: &PathBuf| {
        let name = path.file_stem().expect("a profile has a name").to_string_lossy();
        let text = fs::read_to_string(path)
            .unwrap_or_else(|error| fail(&format!("{}: {error}", path.display())));
        format!("    {{\"{name}\", R\"profile({text})profile\"}},\n")
    };
    let rows: String = files.iter().map(row).collect();
    let path = out.join("embedded_profiles.cpp");
    write(
        &path,
        &format!(
            "#include \"sim/profiles/profile.hpp\"\n\nnamespace gcx::sim {{\n\n\
             const EmbeddedProfile kEmbeddedProfiles[] = {{\n{rows}}};\n\
             const std::size_t kEmbeddedProfileCount = {};\n\n}} // namespace gcx::sim\n",
            files.len()
        ),
    );
    path
}

/// Writes files that include several sources each, which saves compiling their headers again.
fn units(name: &str, sources: &[PathBuf], out: &Path) -> Vec<PathBuf> {
    let unit = |(number, sources): (usize, &[PathBuf])| {
        let path = out.join(format!("{name}{number}.cpp"));
        let lines = sources.iter().map(|source| format!("#include \"{}\"\n", source.display()));
        write(&path, &lines.collect::<String>());
        path
    };
    sources.chunks(SOURCES_OF_UNIT).enumerate().map(unit).collect()
}

fn write(path: &Path, text: &str) {
    if let Err(error) = fs::write(path, text) {
        fail(&format!("{}: {error}", path.display()));
    }
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    files(folder, "cpp")
}

/// Lists the files of a folder with an extension, sorted.
fn files(folder: &Path, with: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap_or_else(|error| {
            let folder = folder.display();
            fail(&format!("{folder}: {error}; the C++ sources are part of the package"))
        })
        .map(|entry| entry.expect("a folder can be read").path())
        .filter(|path| path.extension().map_or(false, |extension| extension == with))
        .collect();
    found.sort();
    found
}

/// Finds the folder of cuda.h, in the same places as the library's build.
fn cuda_include() -> PathBuf {
    let mut looked = Vec::new();
    for name in ["CUDA_HOME", "CUDA_PATH"] {
        println!("cargo:rerun-if-env-changed={name}");
        if let Some(toolkit) = env::var_os(name) {
            looked.push(Path::new(&toolkit).join("include"));
        }
    }
    looked.push(PathBuf::from("/usr/local/cuda/include"));
    looked.push(PathBuf::from("/usr/include"));
    println!("cargo:rerun-if-env-changed=VIRTUAL_ENV");
    if let Some(environment) = env::var_os("VIRTUAL_ENV") {
        looked.extend(python_package(Path::new(&environment)));
    }
    match looked.iter().find(|folder| folder.join("cuda.h").is_file()) {
        Some(folder) => folder.clone(),
        None => fail(&format!(
            "no cuda.h found, which building gcx needs; looked in {looked:?}. Set CUDA_HOME to a CUDA \
             Toolkit of 12.4 or newer, or install the Python package nvidia-cuda-runtime into an \
             active virtual environment"
        )),
    }
}

/// Where the Python package nvidia-cuda-runtime keeps the headers in a virtual environment: in
/// nvidia/cu13/include, before CUDA 13 in `nvidia/cuda_runtime/include`.
fn python_package(environment: &Path) -> Vec<PathBuf> {
    let folders = |parent: PathBuf| {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let mut found: Vec<PathBuf> = folders(environment.join("lib"))
        .into_iter()
        .flat_map(|python| folders(python.join("site-packages").join("nvidia")))
        .map(|package| package.join("include"))
        .collect();
    found.sort();
    found.reverse();
    found
}
