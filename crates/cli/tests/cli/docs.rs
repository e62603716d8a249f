//! The commands of the documentation, run as they stand there. In what they print, `…` stands for
//! anything, and spaces for any number of them; what they say besides, on stderr, is not shown.

use super::command::{Home, with};
use super::fake::{Answer, Fake};

const SESSIONS: &str = include_str!("../../../../docs/sessions.md");

/// One command with the lines that it prints.
struct Shown<'a> {
    command: &'a str,
    lines: Vec<&'a str>,
}

fn shown(text: &str) -> Vec<Shown<'_>> {
    let mut all: Vec<Shown> = Vec::new();
    let blocks = text.split("```console\n").skip(1);
    for line in blocks.flat_map(|block| block.split("```").next().unwrap().lines()) {
        match line.strip_prefix("$ ") {
            Some(command) => all.push(Shown {
                command,
                lines: Vec::new(),
            }),
            None => all.last_mut().unwrap().lines.push(line),
        }
    }
    all
}

/// Words, or a text in quotes.
fn words(command: &str) -> Vec<&str> {
    let quoted = command.split('"').enumerate();
    let words = quoted.flat_map(|(at, piece)| match at % 2 {
        0 => piece.split_whitespace().collect(),
        _ => vec![piece],
    });
    words.collect()
}

/// Whether a line is what the documentation shows.
fn fits(line: &str, shown: &str) -> bool {
    let even = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (line, shown) = (even(line), even(shown));
    let mut pieces = shown.split('…').map(str::trim);
    let first = pieces.next().unwrap();
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    let open = shown.ends_with('…');
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    open || rest.is_empty()
}

#[test]
fn the_sessions_of_the_documentation_are_had_as_it_shows() {
    let home = Home::new();
    let says = ["The port is 8431.", "Done.", "It listens on localhost."];
    let fake = Fake::new(says.map(Answer::say));
    let commands = shown(SESSIONS);
    assert!(commands.len() >= 10);
    for Shown { command, lines } in commands {
        let words = words(command);
        let said = match words[..] {
            ["plimsoll", "run", ref rest @ ..] => home.run(with(&fake, rest)),
            ["plimsoll", ref rest @ ..] => home.run(rest),
            _ => panic!("{command}"),
        };
        let said = said.done();
        let mut printed = said.out.lines().peekable();
        for (at, shown) in lines.iter().enumerate() {
            if *shown == "…" {
                assert!(printed.next().is_some(), "{command}: {}", said.out);
                let next = lines.get(at + 1);
                while printed
                    .next_if(|line| next.is_none_or(|next| !fits(line, next)))
                    .is_some()
                {}
                continue;
            }
            let line = printed.next().unwrap_or_default();
            assert!(fits(line, shown), "{command}\n{line}\nis not\n{shown}");
        }
        assert_eq!(printed.next(), None, "{command}: {}", said.out);
    }
}

#[test]
fn what_is_shown_is_compared() {
    for (line, shown, is) in [
        ("a  b", "a b", true),
        ("a b c", "a … c", true),
        ("a b c", "a …", true),
        ("a b c", "… c", true),
        ("a b c", "a b", false),
        ("a b c", "a … b", false),
        ("a b c", "b …", false),
    ] {
        assert_eq!(fits(line, shown), is, "{line} / {shown}");
    }
}
