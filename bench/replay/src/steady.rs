//! Synthetic sessions that grow steadily: 200 turns, each with a call and a result of 2 KB.
//!
//! Each result contains one name that does not occur earlier, and the user states a rule in each of
//! six prompts. The sessions differ in the form of their results: notes, source code, a log.

use std::fmt::Write as _;
use std::sync::Arc;

use plimsoll_context::{CallId, Message, Part, ToolCall};

use crate::recording::Recording;

/// Number of turns in a steady session.
pub const STEADY_TURNS: usize = 200;
/// Length of each tool result in bytes.
pub const STEADY_RESULT: usize = 2_048;
/// Number of user prompts in a steady session, each with a rule.
pub const STEADY_PROMPTS: usize = 6;

const SYSTEM: &str = "You are a careful assistant who reads what the user names, one page at a time, \
                      and reports what matters. Use the tools. Answer in plain English.";

const RULES: [&str; STEADY_PROMPTS] = [
    "Never write to the folder of the harbour office.",
    "Quote every name exactly as it is spelled in the source.",
    "Ask before you delete anything, however small it is.",
    "Give all weights in tonnes and all depths in metres.",
    "Leave the tables of the winter season out of the report.",
    "Keep the report under two pages, with one heading a day.",
];

const WORDS: [&str; 48] = [
    "harbour", "ledger", "crane", "north", "quay", "morning", "cargo", "weather", "pilot", "tide",
    "vessel", "signal", "engine", "report", "anchor", "storage", "evening", "customs", "channel",
    "window", "captain", "number", "copper", "timber", "grain", "harvest", "lantern", "mooring",
    "notice", "office", "passage", "quiet", "repair", "season", "station", "supply", "survey",
    "traffic", "value", "waiting", "yellow", "barrel", "bridge", "canvas", "delivery", "estimate",
    "ferry", "gravel",
];

/// Returns three sessions of [`STEADY_TURNS`] turns. The result is always the same.
#[must_use]
pub fn steady_sessions() -> Vec<Recording> {
    [line_of_notes, line_of_code, line_of_log]
        .into_iter()
        .zip(["notes", "code", "log"])
        .zip(1_u64..)
        .map(|((line, name), seed)| session(name, seed, line))
        .collect()
}

fn session(name: &str, seed: u64, line: fn(&mut NumberGenerator, usize) -> String) -> Recording {
    let mut numbers = NumberGenerator(seed);
    let mut messages = vec![Message::system(SYSTEM)];
    let prompt_every = STEADY_TURNS.div_ceil(STEADY_PROMPTS);
    for turn in 0..STEADY_TURNS {
        if turn % prompt_every == 0 {
            let number = turn / prompt_every;
            if number > 0 {
                let done = format!("Part {number} is read; the notes of it are complete.");
                messages.push(Message::assistant(done));
            }
            let rule = RULES.get(number).copied().unwrap_or_default();
            let prompt = format!("Now read part {} of the {name}. {rule}", number + 1);
            messages.push(Message::user(prompt));
        }
        let path = format!("{name}/part_{:02}/page_{turn:03}.txt", turn / prompt_every);
        let id = CallId(format!("call_{name}_{turn}"));
        messages.push(Message::Assistant {
            parts: vec![
                Part::text(format!(
                    "Page {turn} is next; I look for the {}.",
                    numbers.word()
                )),
                Part::ToolCall(ToolCall {
                    id: id.clone(),
                    name: "read".to_owned(),
                    arguments: format!(r#"{{"path":"{path}"}}"#),
                    opaque: None,
                }),
            ],
        });
        messages.push(Message::result(id, page(&mut numbers, turn, line)));
    }
    messages.push(Message::assistant("All parts are read."));
    let messages = messages.into_iter().map(Arc::new).collect();
    Recording::new(format!("steady/{name}"), messages)
}

/// Returns a page of lines with one name in its middle that is on no other page.
fn page(
    numbers: &mut NumberGenerator,
    turn: usize,
    line: fn(&mut NumberGenerator, usize) -> String,
) -> String {
    let mut page = String::new();
    let mut is_named = false;
    for number in 1.. {
        if page.len() >= STEADY_RESULT / 2 && !is_named {
            is_named = true;
            let (owner, tag) = (numbers.word(), numbers.next() % 46_656);
            let _ = writeln!(
                page,
                "The {owner} of page {turn} is kept as berth_{turn}_{tag:05x}."
            );
        }
        let line = line(numbers, number);
        if page.len() + line.len() >= STEADY_RESULT {
            break;
        }
        page.push_str(&line);
        page.push('\n');
    }
    page
}

fn line_of_notes(numbers: &mut NumberGenerator, _number: usize) -> String {
    let words: Vec<&str> = (0..12).map(|_| numbers.word()).collect();
    format!("{}.", words.join(" "))
}

fn line_of_code(numbers: &mut NumberGenerator, number: usize) -> String {
    let [first, second, third] = [numbers.word(), numbers.word(), numbers.word()];
    match number % 4 {
        0 => format!(
            "    let {first} = {second}.{third}({});",
            numbers.next() % 100
        ),
        1 => format!("    if {first} > {second} {{ return {third}; }}"),
        2 => format!("    // The {first} comes before the {second} and the {third}."),
        _ => format!("    {first}.push({second} + {third});"),
    }
}

fn line_of_log(numbers: &mut NumberGenerator, number: usize) -> String {
    let minute = number % 60;
    let [first, second, third] = [numbers.word(), numbers.word(), numbers.word()];
    format!(
        "08:{minute:02} {first}: the {second} is {third}, {} ms",
        numbers.next() % 1_000
    )
}

/// A deterministic generator of pseudorandom numbers.
struct NumberGenerator(u64);

impl NumberGenerator {
    fn next(&mut self) -> u64 {
        let step = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = step.wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn word(&mut self) -> &'static str {
        let at = usize::try_from(self.next()).unwrap_or_default() % WORDS.len();
        WORDS.get(at).copied().unwrap_or_default()
    }
}
