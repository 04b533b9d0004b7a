//! Where the settings come from, and that no secret is seen.

use std::fs;

use quorate_support::{Certificates, ClientCertificates, ROOT, RedisServer, Settings};

use crate::{
    processes::children,
    program::{Running, output, quorate},
    status::json,
    voters::Voters,
};

#[test]
fn the_file_the_environment_and_the_command_line_go_one_before_the_other() {
    let voters = Voters::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("quorate/config.toml");
    fs::create_dir(folder.path().join("quorate")).unwrap();
    let quoted: Vec<_> = voters.urls().split(' ').map(|url| format!("'{url}'")).collect();
    fs::write(&file, format!("voters = [{}]\n", quoted.join(", "))).unwrap();
    let status = || quorate(["status"]);
    let unset = || output(status().env("XDG_CONFIG_HOME", folder.path()).env("QUORATE_CONFIG", ""));
    assert_eq!(unset().0, 0, "the usual place");
    let (code, ..) = output(status().env("QUORATE_CONFIG", &file));
    assert_eq!(code, 0, "the environment names the file");
    let file = file.to_str().unwrap();
    assert_eq!(output(&mut quorate(["status", "--config", file])).0, 0);
    let nobody = "redis://127.0.0.1:1";
    let mut wrong = quorate(["status", "--config", file]);
    assert_eq!(output(wrong.env("QUORATE_VOTERS", nobody)).0, 69, "before the file");
    let [one, two, three] = [0, 1, 2].map(|at| voters.0[at].url());
    let given = ["status", "--voter", &one, "--voter", &two, "--voter", &three];
    assert_eq!(output(quorate(given).env("QUORATE_VOTERS", nobody)).0, 0, "before all");
    assert_eq!(output(&mut quorate(["status", "--config", "/nowhere/a.toml"])).0, 78);
}

/// As `su` leaves the variable.
#[test]
fn the_session_of_another_user_is_no_obstacle() {
    let voters = Voters::start();
    let mut run = voters.quorate(&["run", "a", "--", "true"]);
    assert_eq!(output(run.env("XDG_RUNTIME_DIR", "/proc")).0, 0);
}

#[test]
fn without_a_folder_that_can_be_written_there_is_no_deadline_file_and_a_warning_says_why() {
    let voters = Voters::start();
    let mut run =
        voters.quorate(&["run", "a", "--", "sh", "-c", "echo ${QUORATE_DEADLINE_FILE-none}"]);
    run.env("XDG_RUNTIME_DIR", "/proc/1")
        .env("TMPDIR", "/proc")
        .env("QUORATE_DEADLINE_FILE", "an outer one");
    let (code, said, errors) = output(&mut run);
    assert_eq!((code, &*said), (0, "none\n"), "{errors}");
    let begin = "quorate: no QUORATE_DEADLINE_FILE for the command: /proc: ";
    let end = "; set XDG_RUNTIME_DIR or TMPDIR to a folder that can be written\n";
    assert!(errors.starts_with(begin) && errors.ends_with(end), "{errors}");
}

#[test]
fn times_are_written_alike_in_options_variables_and_the_file() {
    let voters = Voters::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.toml");
    let client = |arguments: &[&str]| {
        let mut client = voters.quorate(arguments);
        client.env("QUORATE_LONGEST_LEASE", "2m").env_remove("QUORATE_LEASE");
        client.env("QUORATE_VOTER_DEADLINE", "150ms");
        client
    };
    for (text, in_file, ms) in [
        ("3", "3", 3_000),
        ("3", "'3'", 3_000),
        ("3s", "'3s'", 3_000),
        ("1500ms", "'1500ms'", 1_500),
        ("1m", "'1m'", 60_000),
    ] {
        let (code, _, errors) = output(&mut client(&["run", "a", "--wait", text, "--", "true"]));
        assert_eq!(code, 0, "{text}: {errors}");
        fs::write(&file, format!("lease = {in_file}\n")).unwrap();
        let mut by_file = client(&["status", "--json", "--config", file.to_str().unwrap()]);
        let mut by_variable = client(&["status", "--json"]);
        for command in [&mut by_file, by_variable.env("QUORATE_LEASE", text)] {
            assert_eq!(json(command).1["survey"]["lease_ms"], ms, "{text}");
        }
    }
}

#[test]
fn the_addresses_of_another_variable_are_used_where_it_is_named_and_nowhere_else() {
    const SECRET: &str = "never-seen";
    let server = RedisServer::start_as(&Settings::new().flags(&["--requirepass", SECRET]));
    let url = server.url().replace("://", &format!("://:{SECRET}@"));
    let status = |arguments: &[&str], name: &str, value: &str| {
        let mut command = quorate([&["status"], arguments].concat());
        let said = output(command.env("REDIS_URL", &url).env(name, value));
        assert!(!format!("{said:?}").contains(SECRET), "{said:?}");
        (said.0, said.2)
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.toml");
    fs::write(&file, "voters = ['env:LOCKS']\n").unwrap();
    let file = file.to_str().unwrap();
    for (arguments, name, value) in [
        (&["--voter", "env:REDIS_URL"][..], "LOCKS", ""),
        (&[], "QUORATE_VOTERS", "env:REDIS_URL"),
        (&["--config", file], "LOCKS", &url),
    ] {
        assert_eq!(status(arguments, name, value), (0, String::new()), "{arguments:?}");
    }
    for (arguments, name, value, code, told) in [
        (&[][..], "LOCKS", "", 64, "no voters: they are named by --voter"),
        (&["--voter", "env:A"], "LOCKS", "", 78, "--voter names the variable A, which is not set"),
        (&[], "QUORATE_VOTERS", "env:A", 78, "QUORATE_VOTERS names the variable A, which is not"),
        (
            &["--config", file],
            "LOCKS",
            "",
            78,
            "`voters` names the variable LOCKS, which is not set",
        ),
    ] {
        let (ended, errors) = status(arguments, name, value);
        assert!(ended == code && errors.contains(told), "{ended}: {errors}");
    }
}

// The program under test may have been built beside tests that want TLS anyway.
#[test]
fn tls_is_part_of_the_program() {
    let manifest = fs::read_to_string(format!("{ROOT}/Cargo.toml")).unwrap();
    let (_, cli) = manifest.split_once("\ncli = [").expect("there is such a feature");
    assert!(cli.split(']').next().unwrap().contains("\n    \"tls\",\n"), "{cli}");
    let certificates = Certificates::new();
    let settings = Settings::new().tls(&certificates, ClientCertificates::NotAsked);
    let server = RedisServer::start_as(&settings);
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("ca.pem");
    fs::write(&authority, &certificates.authority).unwrap();
    let url = server.url();
    let mut command = quorate(["status", "--voter", &url]);
    let (code, said, errors) = output(command.env("QUORATE_TLS_CA_FILE", &authority));
    assert_eq!((code, url.starts_with("rediss://")), (0, true), "{url}: {said}{errors}");
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.toml");
    let place = file.to_str().unwrap();
    let refused = |text: &str| {
        fs::write(&file, text).unwrap();
        let (code, _, errors) = output(&mut quorate(["status", "--config", place]));
        assert_eq!(code, 78, "{errors}");
        errors.strip_prefix(&format!("quorate: {place}: ")).expect("the place").to_owned()
    };
    assert!(refused("leese = '3s'").starts_with("unknown key `leese`; known are "));
    let wrong = refused("password = never-seen");
    assert!(wrong.starts_with("line 1: ") && !wrong.contains("never-seen"), "{wrong}");
    let mut command = quorate(["status", "--voter", "redis://127.0.0.1:1"]);
    let (code, _, errors) = output(command.env("QUORATE_LEESE", "3s"));
    let expected = "quorate: QUORATE_LEESE is unknown; is QUORATE_LEASE meant?\n";
    assert_eq!((code, &*errors), (78, expected));
}

#[test]
fn a_password_is_not_seen_anywhere() {
    const SECRET: &str = "never-seen";
    let secured = Settings::new().flags(&["--requirepass", SECRET]);
    let servers: Vec<RedisServer> = (0..3).map(|_| RedisServer::start_as(&secured)).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, format!("{SECRET}\n")).unwrap();
    let urls: Vec<_> = servers.iter().map(RedisServer::url).collect();
    let script = ["run", "a", "-vv", "--password-file", file.to_str().unwrap()];
    let script = [&script[..], &["--", "sh", "-c", "echo $$; exec sleep 1000"]].concat();
    let running = Running::start(quorate(script).env("QUORATE_VOTERS", urls.join(" ")));
    for id in children(running.id()).into_iter().chain([running.id()]) {
        for what in ["cmdline", "environ"] {
            let text = fs::read(format!("/proc/{id}/{what}")).unwrap();
            assert!(!String::from_utf8_lossy(&text).contains(SECRET), "{what}");
        }
    }
    running.signal(rustix::process::Signal::TERM);
    let mut running = running;
    let (_, log) = running.end();
    assert!(log.contains("client connected") && !log.contains(SECRET), "{log}");
    let wrong = servers[0].url_as("user", SECRET);
    let (code, _, errors) = output(&mut quorate(["status", "--voter", &wrong]));
    assert_eq!(code, 64);
    assert!(errors.contains("has a password") && !errors.contains(SECRET), "{errors}");
    let mut command = quorate(["status"]);
    let (code, _, errors) = output(command.env("QUORATE_VOTERS", wrong));
    assert_eq!(code, 69);
    assert!(!errors.contains(SECRET), "{errors}");
}

#[test]
fn a_login_that_is_refused_says_what_to_set() {
    let settings = Settings::new().flags(&["--requirepass", "secret"]);
    let server = RedisServer::start_as(&settings);
    for (password, set) in [("", "set QUORATE_PASSWORD_FILE"), ("wrong", "correct the user")] {
        let seen = |subcommand: &str| {
            let mut command = quorate([subcommand, "--voter", &server.url()]);
            output(command.env("QUORATE_PASSWORD", password))
        };
        let (code, said, errors) = seen("status");
        assert_eq!(code, 69, "{errors}");
        assert!(said.contains("\naway   127.0.0.1:") && !said.contains(set), "{said}");
        assert!(errors.lines().last().unwrap().starts_with(&format!("  {set}")), "{errors}");
        let (code, said, _) = seen("doctor");
        assert_eq!(code, 2);
        assert!(said.contains(&format!("; {set}")), "{said}");
    }
}

#[test]
fn nothing_is_coloured_that_is_no_terminal_and_quiet_says_errors_only() {
    let voters = Voters::start();
    for flags in [&["status", "-q"][..], &["status"]] {
        let (code, said, errors) = output(&mut voters.quorate(flags));
        assert_eq!((code, &*errors), (0, ""));
        assert!(said.starts_with("3 of 3 votes count") && !said.contains('\x1b'), "{said}");
    }
    let (code, _, errors) =
        output(&mut quorate(["status", "-q", "--voter", "redis://127.0.0.1:1"]));
    assert_eq!(code, 69);
    assert!(errors.starts_with("quorate: fewer than 1 of 1 voter could"), "{errors}");
}

#[test]
fn completions_man_pages_and_help_are_made_of_one_definition() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, said, _) = output(&mut quorate(["completions", shell]));
        assert_eq!(code, 0);
        assert!(said.contains("grace") && said.contains("password-file"), "{shell}: {said}");
    }
    let (code, help, errors) = output(&mut quorate(["--help"]));
    assert_eq!((code, &*errors), (0, ""));
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("of/all");
    let (code, _, errors) = output(quorate(["man"]).arg(&pages));
    assert_eq!(code, 0, "it makes the folder: {errors}");
    let page = |name: &str| fs::read_to_string(pages.join(name)).expect("it is there");
    let (_, commands) = help.split_once("Commands:\n").expect("help lists them");
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let commands: Vec<_> = commands.map(|line| line.split_whitespace().next().unwrap()).collect();
    assert!(commands.contains(&"run") && commands.contains(&"man"), "{help}");
    assert!(page("quorate.1").contains(".TH"));
    for command in commands {
        let (_, help, _) = output(&mut quorate([command, "--help"]));
        // As roff writes them.
        let page = page(&format!("quorate-{command}.1"));
        let page =
            ["\\fB", "\\fI", "\\fR", "\\"].iter().fold(page, |page, sign| page.replace(sign, ""));
        let synopsis = page.split_once(".SH SYNOPSIS\n").expect("it has one").1;
        let synopsis = synopsis.lines().next().expect("it has a line");
        let values = help.lines().filter_map(|line| line.trim_start().strip_prefix('-'));
        for (option, value) in values.filter_map(|line| line.split_once("--")?.1.split_once(" <")) {
            let value = value.split('>').next().expect("it ends");
            let shown = format!("--{option} {value}");
            assert!(synopsis.contains(&shown), "{command} has no {shown}: {synopsis}");
        }
        let has_command = help.contains("-- <CMD>...");
        assert_eq!(synopsis.ends_with(" -- CMD..."), has_command, "{command}: {synopsis}");
        let options = help.lines().filter_map(|line| line.trim_start().strip_prefix('-'));
        let longs = options.filter_map(|line| line.split_once("--")?.1.split([' ', ',']).next());
        let longs = longs.map(|long| long.trim_end_matches('.'));
        for option in longs.chain(["verbose"]) {
            assert!(page.contains(&format!("--{option}")), "{command} has no --{option}: {page}");
        }
    }
    let page = fs::read_to_string(format!("{ROOT}/docs/cli.md")).unwrap();
    let table = help.split_once("Exit codes:\n").expect("help has the exit codes").1;
    for line in table.lines().filter(|line| line.starts_with("  ")) {
        let (code, meaning) = line.trim().split_once("  ").expect("a code and its meaning");
        let row = format!("| {} | {} |", code.trim(), meaning.trim());
        assert!(page.contains(&row), "docs/cli.md has no `{row}`");
    }
    assert!(help.contains("Usage: quorate"), "{help}");
    let (_, help, _) = output(&mut quorate(["run", "--help"]));
    let rows: Vec<_> = help.lines().filter(|line| line.contains("  --max-hold 1m  ")).collect();
    assert_eq!(rows.len(), 1, "{help}");
    for row in
        help.lines().filter(|line| line.trim().starts_with("--max-hold ") && line.ends_with('s'))
    {
        let (option, times) = row.trim().split_once("  ").expect("columns");
        let [term, kill] = times.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let row = format!("| `{option}` | {term} | {kill} |");
        assert!(page.contains(&row), "docs/cli.md has no `{row}`");
    }
}
