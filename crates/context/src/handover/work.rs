//! Collects the possible content of a handover. `select.rs` chooses from it.

use foldhash::HashMap;

use super::calls::{EDITED, NAMED, PERHAPS_REMOVED, READ, REMOVED, TranscriptCall, WRITTEN};
use super::entries::{NamedCall, Text};
use super::files::FileList;
use super::format::Kind;
use super::outcome::{bare, outcome, still_runs};
use super::replies;
use super::select::{NAMES, Order, Row};
use super::sentences::{one_line, prose};
use super::state::WorkState;
use super::statements::{instructions, open_question, rules_of_agent, rules_of_file, statements};
use super::words::{behind, is_in};

/// The maximum length of a line from the agent's text, the host's or a former summary, in bytes.
const LINE_MAX: usize = 320;
/// The minimum number of letters in a line of a former summary.
const LETTERS_MIN: usize = 12;
/// The beginning of a line from a text of the host.
const HOST: &str = "host: ";
/// The separator between a call and its outcome.
const ARROW: &str = " → ";

/// Returns the possible entries of a handover, the oldest first. Of the agent's text, the newest `most`
/// bytes of statements are found.
pub(crate) fn read<'t>(texts: &'t [Text<'_>], most: usize) -> Vec<Row<'t>> {
    let mut reader = WorkReader::default();
    for (n, text) in texts.iter().enumerate() {
        reader.read(n, text);
    }
    reader.statements(texts, most);
    reader.finish()
}

#[derive(Default)]
struct WorkReader<'t> {
    rows: Vec<Row<'t>>,
    files: FileList<'t>,
    state: WorkState,
    /// The commands that go on, by the ids of their sessions.
    running: HashMap<String, NamedCall<'t>>,
    /// The position of the last build or test.
    tested: Order,
    /// The row of each entry by the words that a repetition has, too.
    listed: HashMap<String, usize>,
}

impl<'t> WorkReader<'t> {
    fn read(&mut self, n: usize, text: &'t Text<'_>) {
        match text {
            Text::Person(kind, words) => self.person((n, 0), *kind, words),
            Text::Host(text) => {
                let first = text.trim_start().lines().next().unwrap_or_default();
                if let Some(source) = first.split_whitespace().find_map(instructions) {
                    self.rules(rules_of_file(source, text));
                }
                self.host((n, 0), text);
            }
            Text::Agent(text) => {
                self.state.question = open_question(text);
                self.rules(rules_of_agent(text));
            }
            Text::Call((name, arguments)) => {
                self.state.question = replies::asked(name, arguments);
            }
            Text::Result(("", ""), ..) => {}
            Text::Result((name, arguments), text, is_error) => {
                self.result((n, 0), (*name, *arguments), text, *is_error);
            }
            Text::Handover(items) => self.handover(n, items),
            Text::Foreign(text) => self.foreign(n, text),
        }
    }

    /// Adds an entry. Of those with the same words behind `mark`, the last stays.
    fn add(&mut self, order: Order, kind: Kind, mark: &str, words: &str) -> Option<&mut Row<'t>> {
        let key = format!("{mark}{words}");
        let former = self.listed.insert(key, self.rows.len());
        if let Some(former) = former.and_then(|former| self.rows.get_mut(former)) {
            former.text.clear();
        }
        self.rows.push(Row::new(order, kind, words.to_owned()));
        self.rows.last_mut()
    }

    fn person(&mut self, order: Order, kind: Kind, words: &str) {
        self.state.question = None;
        let words = words.trim();
        let former = self.listed.insert(format!("» {words}"), self.rows.len());
        if let Some(former) = former.and_then(|former| self.rows.get_mut(former)) {
            former.kind = Kind::Repeated;
        }
        self.rows.push(Row::new(order, kind, words.to_owned()));
    }

    /// Adds a text of the host, unless it is empty. Those that differ in numbers are the same.
    fn host(&mut self, order: Order, text: &str) {
        let behind_tag = |part| str::rsplit(part, '>').next().unwrap_or(part);
        if text
            .split('<')
            .map(behind_tag)
            .all(|text| text.trim().is_empty())
        {
            return;
        }
        let line = one_line(text, LINE_MAX);
        let key: String = line.chars().filter(|c| !c.is_ascii_digit()).collect();
        if let Some(row) = self.add(order, Kind::Done, HOST, &key) {
            row.text = format!("{HOST}{line}");
        }
    }

    fn rules(&mut self, rules: Vec<String>) {
        for rule in rules {
            if !self.listed.contains_key(&rule) {
                self.add((usize::MAX - self.rows.len(), 0), Kind::Rule, "", &rule);
            }
        }
    }

    /// Adds the statements of the agent, the newest first. A repeated one stands at its last place.
    fn statements(&mut self, texts: &'t [Text<'_>], most: usize) {
        let agents = texts.iter().enumerate().rev();
        let agents = agents.filter_map(|(n, text)| match text {
            Text::Agent(text) => Some((n, *text)),
            _ => None,
        });
        let mut bytes = 0;
        for (i, (n, text)) in agents.enumerate() {
            for (at, statement) in statements(text, i == 0).into_iter().enumerate() {
                let line = one_line(&statement.replace("**", ""), LINE_MAX);
                bytes += line.len();
                if !self.listed.contains_key(&line) {
                    self.add((n, at), Kind::Done, "", &line);
                }
            }
            if bytes >= most {
                return;
            }
        }
    }

    /// Records a call with its result and its arguments.
    fn result(&mut self, at: Order, named: NamedCall<'t>, result: &'t str, is_error: bool) {
        let mut call = TranscriptCall::new(named.0, named.1);
        let continued = call.continued().unwrap_or_default();
        let begun = self.running.remove(&continued);
        if let Some((name, arguments)) = begun {
            call = TranscriptCall::new(name, arguments);
            call.files.clear();
        }
        let (name, arguments) = begun.unwrap_or(named);
        let goes_on = still_runs(result);
        if let Some(id) = goes_on {
            let id = if id.is_empty() { &continued } else { id };
            self.running.insert(id.to_owned(), (name, arguments));
        }
        let texts = [result, arguments];
        let outcome = outcome(&call, result, is_error);
        let is_failed = outcome.is_failed;
        if behind("refusal_openings", result.trim()).is_none() {
            self.act(at, &call, texts, is_failed);
        }
        if is_in("bookkeeping", &call.name.to_lowercase()) {
            if !is_failed {
                self.state.plan(&call, result);
            }
            return;
        }
        // The section of files covers reads and changes.
        if is_failed || !call.is_of_files() {
            let failed = if is_failed { "failed: " } else { "" };
            let told = format!("{failed}{}", outcome.line);
            self.call(
                at,
                &call.signature,
                &told,
                vec![arguments, bare(result.trim())],
            );
        }
        if !call.tests.is_empty() && !outcome.has_not_run && goes_on.is_none() {
            self.tested = at;
            if is_failed {
                self.state.fail(call, outcome.line);
            } else if call.tells || outcome.passes {
                self.state.succeed(&call);
            }
        }
    }

    /// Records the actions of a call on files.
    fn act(&mut self, at: Order, call: &TranscriptCall, texts: [&'t str; 2], is_failed: bool) {
        let [result, arguments] = texts;
        // A command may have removed some files before it failed.
        let complains = |line| behind("complaints", line).is_some();
        let is_torn = || call.is_command && (is_failed || result.lines().any(complains));
        for file in &call.files {
            match file.act {
                NAMED if is_failed => {}
                NAMED => self.files.name(&file.paths),
                REMOVED if is_torn() => self.files.end(PERHAPS_REMOVED, file, at),
                READ | WRITTEN | EDITED if is_failed => {}
                READ | WRITTEN | EDITED => {
                    let sources: &[&str] = match file.act {
                        _ if call.is_command => &[],
                        READ => &[result, arguments],
                        _ => &[arguments],
                    };
                    for path in &file.paths {
                        self.files.note(file.act, path, at, sources);
                        let source = instructions(path).filter(|_| file.act == READ);
                        let rules = source.map(|source| rules_of_file(source, result));
                        self.rules(rules.unwrap_or_default());
                    }
                }
                act if call.is_command || !is_failed => self.files.end(act, file, at),
                _ => {}
            }
        }
    }

    /// Adds the line of a call.
    fn call(&mut self, at: Order, signature: &str, outcome: &str, sources: Vec<&'t str>) {
        let arrow = if outcome.is_empty() { "" } else { ARROW };
        if let Some(row) = self.add(at, Kind::Done, "", signature) {
            row.text.extend([arrow, outcome]);
            row.sources = sources;
        }
    }

    /// Restores the items of an earlier handover.
    fn handover(&mut self, n: usize, items: &'t [(Kind, String)]) {
        // It stands for all before it.
        self.state = WorkState::default();
        for (at, (kind, text)) in items.iter().enumerate() {
            let order = (n, at + 1);
            match kind {
                Kind::Done => self.carry(order, text),
                Kind::State => self.state.carry(text),
                Kind::Rule => self.rules(vec![text.clone()]),
                Kind::ReadFile => drop(self.files.carry(text, (n, items.len() - at))),
                Kind::Former => drop(self.add(order, *kind, "", text)),
                _ => self.person(order, *kind, text),
            }
        }
    }

    /// Restores a line about a call, the host or the agent's text.
    fn carry(&mut self, order: Order, text: &'t str) {
        if let Some(text) = text.strip_prefix(HOST) {
            return self.host(order, text);
        }
        let is_name = |name: &str| !name.contains(char::is_whitespace);
        let split = text.rsplit_once(NAMES);
        let split = split.filter(|(_, names)| names.split(", ").all(is_name));
        let (text, names) = split.unwrap_or((text, ""));
        let (signature, outcome) = text.rsplit_once(ARROW).unwrap_or((text, ""));
        self.call(order, signature, outcome, vec![names]);
    }

    /// Reads a summary by another program, of which the newest replaces the former ones.
    fn foreign(&mut self, n: usize, text: &str) {
        let rows = self.rows.iter_mut();
        let former = rows.filter(|row| row.kind == Kind::Former);
        former.for_each(|row| row.text.clear());
        for (at, sentence) in prose(text).enumerate() {
            let letters = sentence.chars().filter(|c| c.is_alphanumeric()).count();
            if letters >= LETTERS_MIN && !sentence.ends_with(':') {
                let line = one_line(&sentence.replace("**", ""), LINE_MAX);
                self.add((n, at), Kind::Former, "", &line);
            }
        }
    }

    fn finish(mut self) -> Vec<Row<'t>> {
        let state: Vec<String> = self.state.items().collect();
        for (n, item) in state.iter().enumerate() {
            self.add((usize::MAX - n, 0), Kind::State, "", item);
        }
        self.rows.retain(|row| !row.text.is_empty());
        self.rows.extend(self.files.into_rows(self.tested));
        self.rows.sort_by_key(|row| row.order);
        self.rows
    }
}
