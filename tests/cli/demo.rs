//! `quorate demo`: told to its end, in plain lines and on a terminal.

use crate::{
    program::{output, quorate},
    screen::Screen,
};

#[test]
fn the_story_is_told_to_its_end() {
    let (code, said, errors) = output(&mut quorate(["demo"]));
    assert_eq!(code, 0, "{said}{errors}");
    let parts = [
        "\nVotes\n",
        "three votes came within ",
        "Ada | Ada | Ada | Ada | Ada\n",
        "\nA voter dies\n",
        "Ada | Ada | dead | Ada | Ada\n",
        "Ben asks, and cannot have it",
        "\nThe queue\n",
        "Ada releases; ",
        "Ben | Ben | dead | Ben | Ben\n",
        "\nA voter forgets\n",
        "got the vote back at once",
        "for Ben voter 5 does not count: ",
        "\nA token is refused\n",
        "Cleo is told that her lock is lost",
        "What Cleo still sends is refused: ",
    ];
    let mut rest = &said[..];
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { panic!("no {part:?} in {rest}") };
        rest = after;
    }
}

#[test]
fn a_terminal_shows_the_voters_as_they_vote() {
    let mut screen = Screen::start(&quorate(["demo", "--pace", "300ms"]));
    screen.shows("voter 1  free");
    screen.shows("voter 5  Ada       ████");
    screen.shows("voter 3  dead");
    screen.shows("waiting  Ben, Cleo");
    assert_eq!(screen.end(), Some(0));
    screen.shows("What Cleo still sends is refused");
}

#[test]
fn a_signal_ends_it_and_leaves_the_terminal_as_it_was() {
    let mut screen = Screen::start(&quorate(["demo"]));
    screen.shows("voter 1  free");
    screen.press("\x03");
    assert_eq!(screen.end(), Some(0));
    // The cursor is shown again, and what was there before.
    screen.shows("\x1b[?25h\x1b[?1049l");
}
