//! The copy of the crate in which all plants stand, and of which the environment picks one.

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
};

use crate::plant::{PLANTED, Plant};

/// What the simulation is built of, and what cargo asks for.
const COPIED: [&str; 8] =
    ["Cargo.toml", "Cargo.lock", "README.md", "src", "lua", "docs", "benches", "tests/sim"];

/// Which plant is alive.
pub(crate) const ALIVE: &str = "QUORATE_PLANT";

/// Where all scripts are compiled.
const COMPILES: (&str, &str, &str) = (
    "src/node/embedded/lua.rs",
    "self.lua.load(source)",
    "self.lua.load(crate::planted_script(source))",
);

/// Added to the root of the planted library.
const ROOT: &str = r#"
fn plant() -> Option<&'static str> {
    static PLANT: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    PLANT.get_or_init(|| std::env::var("QUORATE_PLANT").ok()).as_deref()
}

fn planted(name: &str) -> bool {
    plant() == Some(name)
}
"#;

/// The copy is a workspace of its own, whatever folder it is in.
const MANIFEST: &str = "\n[workspace]\n";

type Files = BTreeMap<PathBuf, String>;

/// Brings the copy up to date. Touches nothing that is as it should be: that is not built again.
pub(crate) fn make(plants: &[&Plant], copy: &Path) {
    let mut files = originals(Path::new(env!("CARGO_MANIFEST_DIR")));
    let mut scripts = String::new();
    for plant in plants {
        grow(plant, &mut files, &mut scripts)
            .unwrap_or_else(|why| panic!("`{}` does not fit the code: {why}", plant.name));
    }
    let (file, find, replace) = COMPILES;
    edit(&mut files, file, find, replace)
        .unwrap_or_else(|why| panic!("the planted scripts: {why}"));
    write!(
        file_of(&mut files, "src/lib.rs"),
        "{ROOT}\nfn planted_script(source: &str) -> String {{\n    match plant() {{\n{scripts}\
         \x20       _ => source.to_owned(),\n    }}\n}}\n"
    )
    .expect("a string takes all");
    rename(&mut files);
    file_of(&mut files, "Cargo.toml").push_str(MANIFEST);
    write(&files, copy).expect("the folder for tests can be written to");
}

fn originals(root: &Path) -> Files {
    let mut files = Files::new();
    for name in COPIED {
        read(root, Path::new(name), &mut files).expect("the crate can be read");
    }
    files
}

fn read(root: &Path, path: &Path, files: &mut Files) -> io::Result<()> {
    let place = root.join(path);
    if !place.is_dir() {
        files.insert(path.to_owned(), fs::read_to_string(place)?);
        return Ok(());
    }
    for entry in fs::read_dir(place)? {
        read(root, &path.join(entry?.file_name()), files)?;
    }
    Ok(())
}

/// Makes the edits of one plant: in Rust at once, in scripts when they are compiled.
fn grow(plant: &Plant, files: &mut Files, scripts: &mut String) -> Result<(), String> {
    for change in plant.edits {
        if Path::new(change.file).extension().is_some_and(|extension| extension == "lua") {
            let text = find_once(files, change.file, change.find)?;
            // The first line says which script it is.
            let mark = text.lines().next().unwrap_or_default();
            writeln!(
                scripts,
                "        Some({:?}) if source.contains({mark:?}) =>\n            \
                 source.replace({:?}, {:?}),",
                plant.name, change.find, change.replace
            )
            .expect("a string takes all");
        } else {
            let replace = change.replace.replace(PLANTED, &plant.question());
            edit(files, change.file, change.find, &replace)?;
        }
    }
    Ok(())
}

fn edit(files: &mut Files, file: &str, find: &str, replace: &str) -> Result<(), String> {
    let text = find_once(files, file, find)?.replace(find, replace);
    *file_of(files, file) = text;
    Ok(())
}

fn find_once<'a>(files: &'a Files, file: &str, find: &str) -> Result<&'a str, String> {
    let text = files.get(Path::new(file)).ok_or_else(|| format!("there is no {file}"))?;
    match text.matches(find).count() {
        1 => Ok(text),
        count => Err(format!("{file} has {count} times, not once:\n{find}")),
    }
}

/// Gives the copy a version of its own. With the crate's, cargo would put what it makes of the copy
/// in the place of what it made of the crate.
fn rename(files: &mut Files) {
    let named = concat!("name = \"quorate\"\nversion = \"", env!("CARGO_PKG_VERSION"));
    for file in ["Cargo.toml", "Cargo.lock"] {
        edit(files, file, named, &format!("{named}+planted"))
            .unwrap_or_else(|why| panic!("the copy's version: {why}"));
    }
}

fn file_of<'a>(files: &'a mut Files, file: &str) -> &'a mut String {
    files.get_mut(Path::new(file)).unwrap_or_else(|| panic!("there is no {file}"))
}

fn write(files: &Files, copy: &Path) -> io::Result<()> {
    for (path, text) in files {
        let place = copy.join(path);
        if fs::read_to_string(&place).is_ok_and(|there| there == *text) {
            continue;
        }
        fs::create_dir_all(place.parent().expect("a file is in a folder"))?;
        fs::write(place, text)?;
    }
    let mut there = Files::new();
    read(copy, Path::new(""), &mut there)?;
    for gone in there.keys().filter(|path| !files.contains_key(*path)) {
        fs::remove_file(copy.join(gone))?;
    }
    Ok(())
}
