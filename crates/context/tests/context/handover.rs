//! The case files of `cases/handover`: transcripts with the summary that `extract` writes of them.
//!
//! The keys of a transcript are `task` and `user` (a message), `texts` (a message of several texts, as a
//! JSON list), `agent`, `notice`, `summary`, `call` (a tool and its arguments), `sh` (a shell command),
//! and `result` or `error` of the oldest open call; `\n` stands for the end of a line. `again` puts the
//! summary of all that stands above it in its place. `tokens` is the size of the summary, and `show` the
//! part that is the outcome: `all`, `user` or the name of a section.

use std::collections::VecDeque;
use std::path::Path;

use plimsoll_context::{Bpe, CallId, Message, Part, Tokens, extract};
use plimsoll_testkit::cases::{Case, check, json};
use plimsoll_testkit::messages::tool_call;

fn summary_of(messages: &[Message], max: u64) -> String {
    let views: Vec<&Message> = messages.iter().collect();
    extract(&views, Tokens(max), &Bpe::o200k()).unwrap_or_default()
}

fn call(messages: &mut Vec<Message>, open: &mut VecDeque<CallId>, name: &str, arguments: &str) {
    let id = messages.len().to_string();
    open.push_back(CallId(id.clone()));
    let parts = vec![tool_call(&id, name, arguments)];
    messages.push(Message::Assistant { parts });
}

fn summary(case: &Case) -> String {
    let max = case.get("tokens").map_or(1_000, |max| max.parse().unwrap());
    let mut messages: Vec<Message> = Vec::new();
    let mut open: VecDeque<CallId> = VecDeque::new();
    for (key, value) in case.input() {
        let text = value.replace("\\n", "\n");
        match key {
            "task" | "user" => messages.push(Message::user(text)),
            "texts" => {
                let texts: Vec<String> = serde_json::from_value(json(value)).unwrap();
                let parts = texts.into_iter().map(Part::text).collect();
                messages.push(Message::User { parts });
            }
            "agent" => messages.push(Message::assistant(text)),
            "notice" => messages.push(Message::Notice { text }),
            "summary" => messages.push(Message::Summary { text }),
            "call" => {
                let (name, arguments) = value.split_once(' ').unwrap();
                call(&mut messages, &mut open, name, arguments);
            }
            "sh" => {
                let arguments = serde_json::json!({ "command": text }).to_string();
                call(&mut messages, &mut open, "bash", &arguments);
            }
            "result" => messages.push(Message::result(open.pop_front().unwrap(), text)),
            "error" => messages.push(Message::error_result(open.pop_front().unwrap(), text)),
            "again" => {
                let text = summary_of(&messages, max);
                messages = vec![Message::Summary { text }];
            }
            "tokens" | "show" => {}
            _ => panic!("the key {key} is unknown"),
        }
    }
    summary_of(&messages, max)
}

/// The lines of the summary that a case shows, without the line of the seal.
fn shown(case: &Case) -> Vec<String> {
    let text = summary(case);
    let show = case.get("show").unwrap_or("all");
    let (mut section, mut is_user) = ("Transcript", false);
    let lines = text.lines().skip(1).filter(|line| {
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading;
            return show == "all";
        }
        if !line.is_empty() && !line.starts_with("  ") {
            is_user = line.starts_with('»');
        }
        show == "all" || show == section || show == "user" && is_user
    });
    lines.map(str::to_owned).collect()
}

fn check_cases(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/handover");
    check(&folder.join(name), shown);
}

#[test]
fn only_what_a_person_typed_is_the_users() {
    check_cases("speakers.txt");
}

#[test]
fn the_files_are_those_of_the_end() {
    check_cases("files.txt");
}

#[test]
fn the_outcomes_of_calls_are_told() {
    check_cases("outcomes.txt");
}

#[test]
fn the_state_is_that_of_the_end() {
    check_cases("state.txt");
}

#[test]
fn texts_of_the_agent_and_of_files_are_told() {
    check_cases("texts.txt");
}
