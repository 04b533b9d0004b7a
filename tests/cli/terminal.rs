//! A terminal is the command's: `script` is one, and a shell with jobs runs on it.

use quorate_support::eventually;

use crate::{
    processes::{is_alive, is_stopped},
    program::{Running, client_name},
    screen::Screen,
    voters::Voters,
};

/// A terminal on which a shell runs this line.
fn start(voters: &Voters, line: &str) -> Screen {
    let mut quorate = voters.quorate(&[]);
    let program = quorate.get_program().to_owned();
    Screen::run(line, quorate.env("QUORATE", program).env("PS1", "> ").env("TERM", "dumb"))
}

/// The number behind this text.
fn number(console: &Screen, before: &str) -> u32 {
    let mut number = None;
    eventually(&format!("there is a number behind {before}"), || {
        let shown = console.shown();
        // The line that was typed has no number there.
        number = shown
            .lines()
            .find_map(|line| line.split_once(before)?.1.split(';').next()?.parse().ok());
        number.is_some()
    });
    number.expect("it is there")
}

#[test]
fn the_command_reads_the_terminal_and_gets_its_keys() {
    let voters = Voters::start();
    let script = "trap \"echo interrupted; exit 9\" INT; echo ready; read line; echo \"<$line>\"; \
                  while true; do sleep 0.05; done";
    let line = format!("$QUORATE run a -- sh -c '{script}'");
    let mut console = start(&voters, &line);
    console.shows("ready");
    console.press("hello\n");
    console.shows("<hello>");
    console.press("\x03");
    console.shows("interrupted");
    assert_eq!(console.end(), Some(9));
}

#[test]
fn a_shell_stops_it_and_continues_it_and_in_the_background_it_may_not_read() {
    let voters = Voters::start();
    let mut console = start(&voters, "sh -i");
    let script = "echo \"group=$$;\"; while read line; do echo \"<$line>\"; done";
    console.press(&format!("$QUORATE run a -- sh -c '{script}'\n"));
    let command = number(&console, "group=");
    for round in 0..3 {
        console.press(&format!("one {round}\n"));
        console.shows(&format!("<one {round}>"));
        console.press("\x1a");
        eventually("the command is stopped", || is_stopped(command));
        // The shell has the terminal.
        console.press(&format!("echo shell-$((40 + {round}))\n"));
        console.shows(&format!("shell-4{round}"));
        console.press("fg\n");
        eventually("the command goes on", || !is_stopped(command));
    }
    console.press("last\n");
    console.shows("<last>");
    console.press("\x04");
    eventually("the command has ended", || !is_alive(command));
    console.press("echo code-$?\n");
    console.shows("code-0");
    let script = "echo \"behind=$$;\"; read line; echo \"<$line>\"";
    console.press(&format!("$QUORATE run a -- sh -c '{script}' &\n"));
    let command = number(&console, "behind=");
    eventually("it waits for the terminal", || is_stopped(command));
    console.press("fg\n");
    eventually("it goes on", || !is_stopped(command));
    console.press("hello\n");
    console.shows("<hello>");
    eventually("the command has ended", || !is_alive(command));
    console.press("exit\n");
    assert_eq!(console.end(), Some(0));
}

#[test]
fn whoever_waits_long_sees_who_has_the_lock() {
    let voters = Voters::start();
    let holder = Running::start(&mut voters.run(&["a"], "exec sleep 1000"));
    for (kind, other) in [("--fair", "held"), ("--read", "written")] {
        let _writer = (kind == "--read")
            .then(|| Running::start(&mut voters.run(&["a", "--write"], "exec sleep 1000")));
        let mut screen = Screen::start(&voters.run(&["a", kind], "true"));
        screen.shows(&format!("waiting: `a` is {other} by "));
        screen.shows("s left unless renewed; 3 of 3 votes, hold ");
        assert_eq!(screen.shown().matches("quorate").count(), 1, "{}", screen.shown());
        screen.press("\x03");
        assert_eq!(screen.end(), Some(130));
    }
    let name = format!(" by {} for ", client_name(holder.id()));
    let screen = Screen::start(&voters.run(&["a"], "true"));
    screen.shows(&name);
}

#[test]
fn after_ctrl_c_it_says_what_of_the_command_is_left() {
    let voters = Voters::start();
    let script = "sh -c 'trap \"\" INT TERM; echo started; exec sleep 1000' & exec sleep 1000";
    let mut screen = Screen::start(&voters.run(&["a", "--grace", "1500ms"], script));
    screen.shows("started");
    screen.press("\x03");
    screen.shows("waiting for ");
    assert_eq!(screen.end(), Some(130), "as the command");
    let shown = screen.shown();
    let line = shown.lines().find(|line| line.contains("waiting for ")).unwrap();
    assert_eq!(line.matches("sleep (").count(), 1, "{shown}");
    assert!(line.contains(": SIGKILL in ") && line.contains(", or at Ctrl-C"), "{shown}");
    assert!(shown.matches("waiting").count() == 1, "{shown}");
}
