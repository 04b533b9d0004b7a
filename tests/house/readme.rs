//! What the README says of Rust and of a release is so.

#[test]
fn the_readme_says_truly_which_rust_it_needs_and_whether_it_is_published() {
    let (readme, manifest) = (include_str!("../../README.md"), include_str!("../../Cargo.toml"));
    let package = manifest.split_once("[package]").expect("it is a package").1;
    let of = |name: &str| {
        let value = package.split_once(&format!("\n{name} = \"")).expect("it is set").1;
        value.split('"').next().expect("it ends")
    };
    assert!(readme.contains(&format!("needs Rust {} ", of("rust-version"))));
    let is_unreleased = include_str!("../../CHANGELOG.md").contains("## [Unreleased]");
    let not_yet = format!("Version {} is not on crates.io yet", of("version"));
    // The one who publishes it renames that heading, and is then told of this.
    assert_eq!(readme.contains(&not_yet), is_unreleased);
}
