//! What to type where a program is missing.

use std::path::Path;

/// The line that installs a program with the system's package manager, by its packages for `apt`,
/// `dnf`, `apk`, `pacman` and `brew`.
pub fn install_line(packages: [&str; 5]) -> String {
    let managers = [
        ("/usr/bin/apt-get", "sudo apt-get install"),
        ("/usr/bin/dnf", "sudo dnf install"),
        ("/sbin/apk", "sudo apk add"),
        ("/usr/bin/pacman", "sudo pacman -S"),
    ];
    let fitting = managers.iter().zip(packages);
    let fitting = fitting.filter(|((program, _), _)| Path::new(program).exists());
    let mut lines = fitting.map(|((_, line), package)| format!("{line} {package}"));
    lines.next().unwrap_or_else(|| format!("brew install {}", packages[4]))
}
