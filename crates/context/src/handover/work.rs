//! Collects the possible content of a handover. `select.rs` chooses from it.

use foldhash::HashMap;

use super::calls::{Act, EDITED, PERHAPS_REMOVED, READ, REMOVED, TranscriptCall, WRITTEN};
use super::entries::Text;
use super::files::FileList;
use super::format::{Section, SectionItem};
use super::outcome::{bare, has_not_ended, outcome};
use super::replies;
use super::rows::{Order, Row};
use super::select::NAMES;
use super::sentences::{one_line, prose};
use super::state::WorkState;
use super::statements::{instructions, open_question, rules_of_agent, rules_of_file, statements};
use super::words::{any_in, is_in};

/// The maximum length of a line from the agent's text or a former summary, in bytes.
const LINE_MAX: usize = 320;
/// The maximum length of a line from a text of the host, in bytes.
const HOST_MAX: usize = 160;
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
    /// The position of the last build or test.
    tested: Order,
    /// The row of each entry by the words that a repetition has, too.
    listed: HashMap<String, usize>,
    /// The number of rules.
    rules: usize,
}

impl<'t> WorkReader<'t> {
    fn read(&mut self, n: usize, text: &'t Text<'_>) {
        let order = (n, 0);
        match text {
            Text::Person { words, is_answer } => {
                self.state.question = None;
                self.person(order, words, *is_answer);
            }
            Text::Host(text) => {
                let first = text.trim_start().lines().next().unwrap_or_default();
                if let Some(source) = first.split_whitespace().find_map(instructions) {
                    self.rules(rules_of_file(source, text));
                }
                self.host(order, one_line(text, HOST_MAX));
            }
            Text::Unsure(text) => self.host(order, one_line(text, LINE_MAX)),
            Text::Agent(text) => {
                self.state.question = open_question(text);
                self.rules(rules_of_agent(text));
            }
            Text::Call((name, arguments)) => {
                self.state.question = replies::asked(name, arguments);
            }
            Text::Result {
                call: (name, arguments),
                text,
                is_error,
            } if !(name.is_empty() && arguments.is_empty()) => {
                let call = TranscriptCall::new(name, arguments);
                self.result(order, call, [text, arguments], *is_error);
            }
            Text::Result { .. } => {}
            Text::Handover(items) => self.handover(n, items),
            Text::Foreign(text) => self.foreign(n, text),
        }
    }

    /// Adds an entry. Of repeated ones the last stays, with the number of all if it is a call.
    fn once(&mut self, key: String, mut row: Row<'t>) {
        let former = self.listed.insert(key, self.rows.len());
        if let Some(former) = former.and_then(|former| self.rows.get_mut(former)) {
            former.text.clear();
            row.repeated = former.repeated.saturating_add(1);
        }
        self.rows.push(row);
    }

    fn person(&mut self, order: Order, text: &str, is_answer: bool) {
        let text = text.trim().to_owned();
        let key = format!("» {text}");
        let row = Row {
            is_user: true,
            is_answer,
            ..Row::new(Section::Transcript, order, text)
        };
        self.once(key, row);
    }

    /// Adds a text of the host. Those that differ in numbers are the same.
    fn host(&mut self, order: Order, text: String) {
        let key: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
        if !text.is_empty() {
            let row = Row::new(Section::Transcript, order, format!("{HOST}{text}"));
            self.once(format!("{HOST}{key}"), row);
        }
    }

    fn rules(&mut self, rules: Vec<String>) {
        for rule in rules {
            if !self.listed.contains_key(&rule) {
                self.rules += 1;
                let row = Row::ranked(Section::Rules, self.rules, rule.clone());
                self.once(rule, row);
            }
        }
    }

    /// Adds the statements of the agent, the newest first. A repeated one stands at its last place.
    fn statements(&mut self, texts: &'t [Text<'_>], most: usize) {
        let mut left = most;
        let mut is_last = true;
        for (n, text) in texts.iter().enumerate().rev() {
            let Text::Agent(text) = text else {
                continue;
            };
            for (at, statement) in statements(text, is_last).into_iter().enumerate() {
                let line = one_line(&statement.replace("**", ""), LINE_MAX);
                left = left.saturating_sub(line.len());
                if !self.listed.contains_key(&line) {
                    let row = Row::new(Section::Transcript, (n, at), line.clone());
                    self.once(line, row);
                }
            }
            is_last = false;
            if left == 0 {
                return;
            }
        }
    }

    /// Records a call with its result and its arguments.
    fn result(&mut self, at: Order, call: TranscriptCall, texts: [&'t str; 2], is_error: bool) {
        let [result, arguments] = texts;
        let outcome = outcome(&call, result, is_error);
        let is_failed = outcome.is_failed;
        self.act(at, &call, texts, is_failed);
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
        let has_not_run = is_failed && any_in("not_run", &outcome.line) || has_not_ended(result);
        if !call.tests.is_empty() && !has_not_run {
            self.tested = at;
            if is_failed {
                self.state.failed = Some((call, outcome.line));
            } else {
                self.state.succeed(&call);
            }
        }
    }

    /// Records the actions of a call on files.
    fn act(&mut self, at: Order, call: &TranscriptCall, texts: [&'t str; 2], is_failed: bool) {
        let [result, arguments] = texts;
        // A command may have removed some files before it failed.
        let is_torn = call.is_command && (is_failed || complains(result));
        for (act, path) in &call.files {
            let act: Act = match *act {
                REMOVED if is_torn => PERHAPS_REMOVED,
                READ | WRITTEN | EDITED if is_failed => continue,
                _ if is_failed && !call.is_command => continue,
                act => act,
            };
            let sources: &[&str] = match act {
                _ if call.is_command => &[],
                READ => &[result, arguments],
                _ => &[arguments],
            };
            self.files.note(act, path, at, sources);
            let source = instructions(path).filter(|_| act == READ);
            self.rules(source.map_or_else(Vec::new, |source| rules_of_file(source, result)));
        }
    }

    /// Adds the line of a call.
    fn call(&mut self, at: Order, signature: &str, outcome: &str, sources: Vec<&'t str>) {
        let arrow = if outcome.is_empty() { "" } else { ARROW };
        let text = format!("{signature}{arrow}{outcome}");
        let row = Row {
            sources,
            ..Row::new(Section::Transcript, at, text)
        };
        self.once(signature.to_owned(), row);
    }

    /// Restores the items of an earlier handover.
    fn handover(&mut self, n: usize, items: &'t [(Section, SectionItem)]) {
        for (at, (section, item)) in items.iter().enumerate() {
            let order = (n, at + 1);
            match section {
                _ if item.is_user => self.person(order, &item.text, false),
                Section::Former => {
                    let row = Row::new(Section::Former, order, item.text.clone());
                    self.rows.push(row);
                }
                Section::Transcript => self.carry(order, &item.text),
                Section::State => self.state.carry(&item.text),
                Section::Rules => self.rules(vec![item.text.clone()]),
                Section::Files => {
                    self.files.carry(&item.text, (n, items.len() - at));
                }
            }
        }
    }

    /// Restores a line about a call, the host or the agent's text.
    fn carry(&mut self, order: Order, text: &'t str) {
        if let Some(text) = text.strip_prefix(HOST) {
            return self.host(order, text.to_owned());
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
        let former = self.rows.iter_mut();
        let former = former.filter(|row| row.section == Section::Former);
        former.for_each(|row| row.text.clear());
        for (at, sentence) in prose(text).enumerate() {
            let letters = sentence.chars().filter(|c| c.is_alphanumeric()).count();
            if letters >= LETTERS_MIN && !sentence.ends_with(':') {
                let line = one_line(&sentence.replace("**", ""), LINE_MAX);
                self.rows.push(Row::new(Section::Former, (n, at), line));
            }
        }
    }

    fn finish(mut self) -> Vec<Row<'t>> {
        let state = self.state.items().enumerate();
        let state = state.map(|(n, item)| Row::ranked(Section::State, n, item));
        self.rows.extend(state);
        self.rows.retain(|row| !row.text.is_empty());
        for row in self
            .rows
            .iter_mut()
            .filter(|row| row.repeated > 0 && !row.is_user)
        {
            row.text
                .push_str(&format!(" (×{})", row.repeated.saturating_add(1)));
        }
        self.rows.extend(self.files.into_rows(self.tested));
        self.rows.sort_by_key(|row| row.order);
        self.rows
    }
}

/// Returns `true` if a program that removes files says that it did not, or asks first.
fn complains(result: &str) -> bool {
    result.lines().any(|line| {
        let speaker = line.split(':').next().unwrap_or_default();
        let program = speaker.rsplit('/').next().unwrap_or(speaker);
        line.len() > program.len() && is_in("complaining", program)
    })
}
