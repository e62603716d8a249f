//! Runs the commands of the documentation. In the expected output, `…` stands for any text, and
//! spaces for any number of spaces. Output on stderr is not compared.

use std::collections::BTreeMap;
use std::path::Path;

use super::command::{Home, with};
use super::fake::{Fake, FakeAnswer};

const SESSIONS: &str = include_str!("../../../../docs/sessions.md");

/// One command with the lines that it prints.
struct DocCommand<'a> {
    command: &'a str,
    lines: Vec<&'a str>,
}

fn shown(text: &str) -> Vec<DocCommand<'_>> {
    let mut all: Vec<DocCommand> = Vec::new();
    let blocks = text.split("```console\n").skip(1);
    for line in blocks.flat_map(|block| block.split("```").next().unwrap().lines()) {
        match line.strip_prefix("$ ") {
            Some(command) => all.push(DocCommand {
                command,
                lines: Vec::new(),
            }),
            None => all.last_mut().unwrap().lines.push(line),
        }
    }
    all
}

/// Completer, or a text in quotes.
fn words(command: &str) -> Vec<&str> {
    let quoted = command.split('"').enumerate();
    let words = quoted.flat_map(|(at, piece)| match at % 2 {
        0 => piece.split_whitespace().collect(),
        _ => vec![piece],
    });
    words.collect()
}

/// Whether a line is what the documentation shows.
pub(crate) fn fits(line: &str, shown: &str) -> bool {
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
    let fake = Fake::new(says.map(FakeAnswer::say));
    let commands = shown(SESSIONS);
    assert!(commands.len() >= 10);
    for DocCommand { command, lines } in commands {
        let words = words(command);
        let said = match words[..] {
            ["plimsoll", "run", ref rest @ ..] => home.run(with(&fake, rest)),
            ["plimsoll", ref rest @ ..] => home.run(rest),
            _ => panic!("{command}"),
        };
        compare(command, &lines, &said.done().out);
    }
}

/// What was printed is what the documentation shows.
fn compare(command: &str, lines: &[&str], out: &str) {
    let mut printed = out.lines().peekable();
    for (at, shown) in lines.iter().enumerate() {
        if *shown == "…" {
            assert!(printed.next().is_some(), "{command}: {out}");
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
    assert_eq!(printed.next(), None, "{command}: {out}");
}

/// Pages whose commands are looked at, and the configuration above a command is in its directory.
const PAGES: [&str; 8] = [
    include_str!("../../../../docs/coming-from.md"),
    include_str!("../../../../docs/coming-from/heartbit.md"),
    include_str!("../../../../docs/coming-from/phi-core.md"),
    include_str!("../../../../docs/coming-from/cognipeer.md"),
    include_str!("../../../../docs/coming-from/ambi.md"),
    include_str!("../../../../docs/coming-from/gaia.md"),
    include_str!("../../../../docs/hooks.md"),
    include_str!("../../../../docs/limits.md"),
];

#[test]
fn what_a_configuration_comes_to_is_as_the_pages_show() {
    let mut ran = 0;
    for page in PAGES {
        let (home, mut rest) = (Home::new(), page);
        while let Some(at) = rest.find("```console\n") {
            let before = &rest[..at];
            if let Some((_, config)) = before.rsplit_once("```toml\n") {
                home.file("plimsoll.toml", config.split("```").next().unwrap());
            }
            let block = rest[at..]
                .split_inclusive("```")
                .take(2)
                .collect::<String>();
            rest = &rest[at + block.len()..];
            for DocCommand { command, lines } in shown(&block) {
                let words = words(command);
                let said = home.run(&words[1..]).done();
                compare(command, &lines, &said.out);
                ran += 1;
            }
        }
    }
    assert!(ran >= 3, "{ran}");
}

/// The commands that a page has in its code: in blocks, and in passing.
fn commands(page: &str) -> Vec<String> {
    let mut code = Vec::new();
    for (at, block) in page.split("```").enumerate() {
        match (at % 2, block.split_once('\n')) {
            (0, _) => code.extend(block.split('`').skip(1).step_by(2).map(str::to_owned)),
            (_, Some(("sh" | "console" | "text", lines))) => {
                code.extend(lines.lines().map(str::to_owned));
            }
            _ => {}
        }
    }
    let parts = code
        .iter()
        .flat_map(|line| line.split(['|', '#', '>', '<', ';', '(']));
    let parts = parts.map(|part| part.trim().trim_start_matches("$ "));
    let ours = parts.filter(|part| part.starts_with("plimsoll ") && !part.contains('…'));
    ours.map(str::to_owned).collect()
}

/// What is named anywhere in the documentation is there: commands, and their flags.
#[test]
fn commands_and_flags_that_are_named_are_there() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut folders = vec![Path::new(root).join("docs")];
    let mut pages = vec![Path::new(root).join("README.md")];
    while let Some(folder) = folders.pop() {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|end| end == "md") => pages.push(path),
                false => {}
            }
        }
    }
    let home = Home::new();
    let mut helps: BTreeMap<Vec<String>, String> = BTreeMap::new();
    let mut named = 0;
    for page in &pages {
        for command in commands(&std::fs::read_to_string(page).unwrap()) {
            let words = words(&command);
            // These are there with a feature only.
            let is_durable =
                words.contains(&"--on") || matches!(words.get(1), Some(&("worker" | "send")));
            if is_durable && !cfg!(feature = "restate") {
                continue;
            }
            let is_word = |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase());
            let depth = match words.get(1) {
                Some(&("sessions" | "config" | "model")) => 2,
                _ => 1,
            };
            let path: Vec<String> = words[1..]
                .iter()
                .take_while(is_word)
                .take(depth)
                .map(|word| (*word).to_owned())
                .collect();
            let place = page.display();
            let help = helps.entry(path.clone()).or_insert_with(|| {
                let args = path.iter().map(String::as_str).chain(["--help"]);
                let said = home.run(args);
                assert_eq!(said.code, Some(0), "{place}: {command}: {}", said.err);
                said.out
            });
            for flag in words
                .iter()
                .filter(|word| word.starts_with('-') && word.len() > 1)
            {
                let flag = flag.split('=').next().unwrap();
                let flag = flag.trim_end_matches([',', '.', ')']);
                let is_there = help.split([' ', ',', '\n', ']']).any(|word| word == flag);
                assert!(is_there || flag == "--", "{place}: {command}: no {flag}");
            }
            named += 1;
        }
    }
    assert!(named >= 100, "{named}");
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
