//! The chat in the documentation, replayed literally.

use super::chatting::Chat;
use super::command::Home;
use super::docs::fits;
use super::fake::{Fake, FakeAnswer};

const CHAT: &str = include_str!("../../../../docs/chat.md");

#[test]
fn the_chat_of_the_documentation_is_had_as_it_shows() {
    let block = CHAT.split("```chat\n").nth(1).unwrap();
    let block = block.split("```").next().unwrap();
    let typed: Vec<&str> = block
        .lines()
        .filter_map(|line| line.strip_prefix("> "))
        .collect();
    let shown: Vec<&str> = block
        .lines()
        .filter(|line| !line.starts_with("> "))
        .collect();
    let fake = Fake::new(["The port is 8431.", "That one is 8432."].map(FakeAnswer::say));
    let home = Home::new();
    let chat = Chat::start(&home, &fake, &["--max-context", "16000"]);
    let said = chat.lines(typed.join("\n"));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let lines: Vec<&str> = said.out.lines().collect();
    for (line, shown) in lines.iter().zip(&shown) {
        assert!(fits(line, shown), "{shown}\n{line}\n\n{}", said.out);
    }
    assert_eq!(lines.len(), shown.len(), "{}", said.out);
}
