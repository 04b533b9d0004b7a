//! What the README says of Rust and of a release is so, and the pages agree about servers.

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

#[test]
fn all_pages_name_the_same_servers() {
    const NEEDED: &str = "Redis 6.2 or later or Valkey 7.2 or later";
    for (page, text) in [
        ("README.md", include_str!("../../README.md")),
        ("docs/start.md", include_str!("../../docs/start.md")),
        ("docs/deployment.md", include_str!("../../docs/deployment.md")),
        ("docs/servers.md", include_str!("../../docs/servers.md")),
        ("docs/versions.md", include_str!("../../docs/versions.md")),
    ] {
        let words: Vec<_> = text.split_whitespace().collect();
        assert!(words.join(" ").contains(NEEDED), "{page} names other servers");
    }
    // `quorate doctor` complains about older ones, and the table has been tested with these.
    let tested = include_str!("../../docs/servers.md");
    for oldest in ["| Redis 6.2 |", "| Valkey 7.2 |"] {
        assert!(tested.contains(oldest), "{oldest} has not been tested");
    }
}
