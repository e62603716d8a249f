//! Cases in files, with all that a person sees of them: wrong command lines in `refusals.txt`, and
//! chats with their commands in `chats.txt`.

use std::path::Path;

use plimsoll_testkit::cases::{self, Case};
use regex::Regex;

use super::chatting::Chat;
use super::command::{Home, feed};
use super::fake::{Fake, FakeAnswer};
use super::runs::messages;

/// Replaces what differs between two runs: names of sessions, addresses, folders and times.
fn steady(text: &str, home: &Home, fake: &Fake) -> Vec<String> {
    let text = text
        .replace(&fake.url(), "URL")
        .replace(home.work().to_str().unwrap(), "WORK")
        .replace(home.data().to_str().unwrap(), "DATA");
    let text = Regex::new(r"\d{4}-\d\d-\d\d \d\d:\d\d")
        .unwrap()
        .replace_all(&text, "TIME");
    // The prompt names the folder, whose name is never the same.
    let text = Regex::new(r"(request has|target of) \d+")
        .unwrap()
        .replace_all(&text, "$1 N");
    let id = Regex::new(r"\b[0-9a-f]{8,}-[0-9a-f]+\b").unwrap();
    let mut names: Vec<&str> = Vec::new();
    for name in id.find_iter(&text) {
        if !names.contains(&name.as_str()) {
            names.push(name.as_str());
        }
    }
    let mut steady = text.to_string();
    for (number, name) in (1..).zip(&names) {
        steady = steady.replace(name, &format!("ID{number}"));
    }
    steady.lines().map(str::to_owned).collect()
}

#[test]
fn a_wrong_command_line_is_refused_with_the_remedy() {
    let (home, idle) = (Home::new(), Fake::new([]));
    home.file("binary", b"\xff\xfe");
    home.file("plain", "x");
    let outcome = |case: &Case| {
        let mut command = home.shell(case.get("$").unwrap());
        command.env("URL", idle.url());
        let said = feed(command, b"");
        let shown = steady(&(said.out + &said.err), &home, &idle);
        let code = format!("exit code {}", said.code.unwrap_or_default());
        [code].into_iter().chain(shown).collect()
    };
    cases::check(Path::new("tests/cases/refusals.txt"), outcome);
    assert!(idle.asked().is_empty());
    assert_eq!(home.run(["sessions", "list"]).done().out, "");
}

#[test]
fn chats_are_had_line_by_line() {
    cases::check(Path::new("tests/cases/chats.txt"), |case| {
        let home = Home::with_notes();
        let answers = case.input().filter_map(|(key, text)| match key {
            "answers" => Some(FakeAnswer::say(text)),
            "calls" => {
                let (tool, arguments) = text.split_once(' ').unwrap();
                Some(FakeAnswer::call(&[(tool, arguments)]))
            }
            "fails" => {
                let (status, text) = text.split_once(' ').unwrap();
                Some(FakeAnswer::error(status.parse().unwrap(), text))
            }
            _ => None,
        });
        let fake = Fake::new(answers);
        let args: Vec<&str> = case.all("flag").collect();
        let lines: String = case.all(">").map(|line| format!("{line}\n")).collect();
        let said = Chat::start(&home, &fake, &args).lines(lines);
        let sent = fake.asked().into_iter().map(|request| {
            let texts = messages(&request).into_iter().skip(1);
            let texts: Vec<String> = texts.map(|(_, text)| text).collect();
            let texts = texts.join(" | ").replace('\n', " / ");
            format!("sent to {}: {texts}", request["model"].as_str().unwrap())
        });
        let code = format!("exit code {}", said.code.unwrap_or_default());
        let all = [said.out, said.err].concat();
        let shown = steady(&all, &home, &fake);
        [code].into_iter().chain(shown).chain(sent).collect()
    });
}
