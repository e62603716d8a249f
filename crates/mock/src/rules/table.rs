//! [`Table`]: the rules of a server and its refusals, from the files in `crates/mock/rules/`.
//! [`Check::judge`] walks a request by one. Rules that compare several places are code, which the file calls.
//!
//! A file has one line per rule, in the order of the verdicts:
//!
//! ```text
//! @missing = Missing required parameter: '{place}'.
//!
//! [item custom_tool_call]
//! include call_id
//! name !text => @missing
//! name longer:64 OR5 => Invalid '{place}': string too long.
//! content list -> each part
//! content list -> code pairing
//! ```
//!
//! - `@name = words` gives words a name.
//! - `[group kind]` begins the rules for objects of a kind, or of several kinds. A kind is the `type` as a
//!   rule. `[group *]` is for all other kinds, `[group]` for a group of one kind. The group `request` judges
//!   the whole request.
//! - `include group` repeats the rules of `[group]`.
//! - A rule begins with a key: `a.b` is a key within a key, `x/a` the key `a` in the place `x.a`, `.` the
//!   object itself. The conditions behind it must all hold; `!` negates one.
//!   They are those of [`Test`] and the protocol's own, which are code. `a.b=c,d` is short for `a.b~in:c,d`,
//!   and `@field` for `@field=true`.
//! - `=> words` refuses the value. The refusal is of the rule that stands among the conditions, or of
//!   [`SHAPE`]; `at-object` reports it for the object, and `end` judges nothing more of that.
//! - `-> each group` judges the entries of a list, `-> members group` too, but counts them from one as
//!   Bedrock's errors do, `-> as group` judges the value, `-> code name` calls code with
//!   the object.
//! - A condition of another value is written behind its place: `a.b~text`. A place may begin with `/` (the
//!   request), `@` (the profile) or `<` (the entry before), and contain `*` (any entry of a list) or `$` (the
//!   last one).
//! - `[refusals]` has the refusals of rules that are code ([`Check::report`]): `name RULE => words`, in which
//!   `{a}` to `{f}` are the values that the code gives.
//! - `[failures]` has the failures without a fault of the request: `status type code => message`, in which
//!   `4*` is every status that begins with 4, or `name status type code => message` with values of the code.
//!   `[codes]` has the codes of refusals: `code => part of the words`, or `^beginning of the words`. Of both,
//!   the first line that applies counts.
//! - Of consecutive rules for one key only the first that applies counts, those that begin with `+`, and calls
//!   of code.
//!
//! In words, `{place}` is the place of the value and `{object}` that of the object, `{value}` a text,
//! `{number}` a number, `{bound}` the number in the condition, `{length}` the number of characters or
//! entries, `{kind}` the JSON type, `{got}` the type with its article, `{index}` the index of the entry and
//! `{newline}` a line end. `{@field}` is a field of the profile, and `{<key}` the text under a key of the entry
//! before. Any other name is the text under that key of the object.

mod check;
mod condition;
mod words;

use std::collections::BTreeMap;
use std::ops::Deref;

use plimsoll_wire::__internals::json_kind;
use serde::Serialize;
use serde_json::Value;

use crate::rules::fault::SHAPE;
use crate::rules::json_path::JsonPath;

pub(crate) use check::Check;
use condition::Test;
pub(crate) use words::Words;
pub(crate) use words::filled;

/// A condition that is code. It receives the check, the object and the value.
pub(crate) type Flag<P> = fn(&Check<'_, P>, &Value, Option<&Value>) -> bool;
/// A rule that is code. It receives the check, the place of the object and the object.
pub(crate) type Code<P> = for<'c> fn(&mut Check<'c, P>, &JsonPath<'_>, &'c Value);

/// The rules of a protocol. `P` is the profile of a server or a model.
pub(crate) struct Table<P: 'static> {
    groups: BTreeMap<&'static str, BTreeMap<&'static str, Vec<RuleRow<P>>>>,
    words: Words,
    /// Lines that cannot be read, and names of groups that do not exist. A test checks that there are
    /// none.
    pub(crate) errors: Vec<&'static str>,
}

#[derive(Clone)]
struct RuleRow<P: 'static> {
    /// A prefix for the key in the place, may be empty.
    label: &'static str,
    /// The key, or a path of keys with dots between.
    key: &'static str,
    /// Whether it applies even if the row before it, for the same key, did.
    besides: bool,
    tests: Vec<(bool, Test<P>)>,
    then: Then<P>,
}

#[derive(Clone)]
enum Then<P: 'static> {
    Refuse(Refusal),
    /// Judges the entries of a list by a group.
    Each(&'static str),
    /// The same, with places that count from one and call an entry a member, as Bedrock does.
    Members(&'static str),
    /// Judges the value by a group.
    As(&'static str),
    Code(Code<P>),
}

#[derive(Clone, Copy)]
struct Refusal {
    rule: &'static str,
    words: &'static str,
    ends: bool,
    at_object: bool,
}

/// The state of reading a file.
struct TableReader<'f, P: 'static> {
    words: BTreeMap<&'static str, &'static str>,
    flags: &'f [(&'static str, Flag<P>)],
    code: &'f [(&'static str, Code<P>)],
    /// Any profile, for the names of its fields.
    profile: Value,
    group: &'static str,
    kinds: Vec<&'static str>,
}

impl<P: Clone + Default + Serialize> Table<P> {
    /// Parses a file of rules. `flags` are the conditions that are code, and `code` the rules that are.
    pub(crate) fn parse(
        text: &'static str,
        flags: &[(&'static str, Flag<P>)],
        code: &[(&'static str, Code<P>)],
    ) -> Self {
        let mut table = Self {
            groups: BTreeMap::new(),
            words: Words::default(),
            errors: Vec::new(),
        };
        let mut reader = TableReader {
            words: BTreeMap::new(),
            flags,
            code,
            profile: serde_json::to_value(P::default()).unwrap_or_default(),
            group: "",
            kinds: Vec::new(),
        };
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if table.line(line, &mut reader).is_none() {
                table.errors.push(line);
            }
        }
        let rows = table.groups.values().flat_map(BTreeMap::values).flatten();
        let targets = rows.filter_map(|row| match row.then {
            Then::Each(group) | Then::Members(group) | Then::As(group) => Some(group),
            Then::Refuse(_) | Then::Code(_) => None,
        });
        let unknown = targets.filter(|group| !table.groups.contains_key(group));
        let unknown: Vec<&str> = unknown.collect();
        table.errors.extend(unknown);
        let names = flags.iter().map(|(name, _)| *name);
        let names = names.chain(code.iter().map(|(name, _)| *name));
        let unused = names.filter(|name| !text.contains(name));
        table.errors.extend(unused);
        table
    }

    /// Reads a line. Returns `None` if it cannot be read.
    fn line(&mut self, line: &'static str, reader: &mut TableReader<'_, P>) -> Option<()> {
        if let Some((name, words)) = line.strip_prefix('@').and_then(|at| at.split_once(" = ")) {
            reader.words.insert(name, words);
        } else if let Some(names) = line.strip_prefix('[') {
            let mut names = names.strip_suffix(']')?.split(' ');
            reader.group = names.next()?;
            reader.kinds = names.collect();
            for kind in &reader.kinds {
                self.rows(reader.group, kind);
            }
            if reader.kinds.is_empty() {
                reader.kinds.push("");
            }
        } else if let Some(name) = line.strip_prefix("include ") {
            let rows = self.of(name, "").to_vec();
            rows.first()?;
            self.push(&rows, reader);
        } else if matches!(reader.group, "refusals" | "failures" | "codes") {
            self.words.line(reader.group, line)?;
        } else {
            let row = RuleRow::parse(line, reader)?;
            self.push(&[row], reader);
        }
        Some(())
    }

    fn push(&mut self, rows: &[RuleRow<P>], reader: &TableReader<'_, P>) {
        for kind in &reader.kinds {
            self.rows(reader.group, kind).extend_from_slice(rows);
        }
    }

    fn rows(&mut self, group: &'static str, kind: &'static str) -> &mut Vec<RuleRow<P>> {
        let group = self.groups.entry(group).or_default();
        group.entry(kind).or_default()
    }
}

impl<P> Table<P> {
    /// Returns the rows for a kind, or those of the group for any other kind.
    fn of(&self, group: &str, kind: &str) -> &[RuleRow<P>] {
        let group = self.groups.get(group);
        let rows = group.and_then(|group| group.get(kind).or_else(|| group.get("*")));
        rows.map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns `true` if a group has rows for exactly this kind.
    pub(crate) fn has(&self, group: &str, kind: &str) -> bool {
        let group = self.groups.get(group);
        group.is_some_and(|group| group.contains_key(kind))
    }
}

impl<P> Deref for Table<P> {
    type Target = Words;

    fn deref(&self) -> &Words {
        &self.words
    }
}

impl<P> RuleRow<P> {
    fn parse(line: &'static str, reader: &TableReader<'_, P>) -> Option<Self> {
        let refused = line.split_once(" => ");
        let (left, right) = refused.or_else(|| line.split_once(" -> "))?;
        let mut left = left.split_whitespace();
        let key = left.next()?;
        let plain = key.strip_prefix('+').unwrap_or(key);
        let besides = plain != key;
        let (label, key) = plain.split_once('/').unwrap_or(("", plain));
        let (mut rule, mut ends, mut at_object) = (SHAPE, false, false);
        let mut tests = Vec::new();
        for word in left {
            match word {
                "end" => ends = true,
                "at-object" => at_object = true,
                _ if word.starts_with(|first: char| first.is_ascii_uppercase()) => rule = word,
                _ => {
                    let plain = word.strip_prefix('!');
                    let test = Test::parse(plain.unwrap_or(word), reader)?;
                    tests.push((plain.is_none(), test));
                }
            }
        }
        let then = if refused.is_some() {
            let words = match right.strip_prefix('@') {
                Some(name) => reader.words.get(name).copied()?,
                None => right,
            };
            Then::Refuse(Refusal {
                rule,
                words,
                ends,
                at_object,
            })
        } else {
            match right.split_once(' ')? {
                ("each", group) => Then::Each(group),
                ("members", group) => Then::Members(group),
                ("as", group) => Then::As(group),
                ("code", name) => Then::Code(named(reader.code, name)?),
                _ => return None,
            }
        };
        Some(Self {
            label,
            key,
            besides: besides || matches!(then, Then::Code(_)),
            tests,
            then,
        })
    }

    /// Returns the number that the value is compared with.
    fn bound(&self) -> f64 {
        let bound = self.tests.iter().find_map(|(_, test)| test.bound());
        bound.unwrap_or(f64::NAN)
    }

    fn applies(&self, check: &Check<'_, P>, object: &Value, value: Option<&Value>) -> bool {
        let mut tests = self.tests.iter();
        tests.all(|(holds, test)| test.holds(check, object, value) == *holds)
    }
}

/// Returns the entry of a list with this name.
fn named<T: Copy>(list: &[(&'static str, T)], name: &str) -> Option<T> {
    let entry = list.iter().find(|(known, _)| *known == name);
    entry.map(|(_, entry)| *entry)
}

/// Returns the value under a key or a path of keys; `.` is the object itself.
pub(crate) fn lookup<'v>(object: &'v Value, key: &str) -> Option<&'v Value> {
    match key.split_once('.') {
        None => get(object, key),
        Some(("", _)) => Some(object),
        Some((key, rest)) => lookup(get(object, key)?, rest),
    }
}

/// Returns a text, a number, or texts as OpenAI lists them. Empty for any other value.
fn shown(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Array(list)) => {
            let texts = list.iter().map(|one| format!("'{}'", shown(Some(one))));
            match texts.collect::<Vec<_>>().as_slice() {
                [one, other] => format!("{one} and {other}"),
                [many @ .., last] if !many.is_empty() => {
                    format!("{}, and {last}", many.join(", "))
                }
                few => few.concat(),
            }
        }
        _ => String::new(),
    }
}

/// Returns the number of characters of a text or of the entries of a list.
fn length(value: Option<&Value>) -> usize {
    match value {
        Some(Value::String(text)) => text.chars().count(),
        Some(Value::Array(entries)) => entries.len(),
        _ => 0,
    }
}

/// Returns the JSON type of a value with its article.
pub(crate) fn kind_of(value: Option<&Value>) -> String {
    match value.map_or("nothing", json_kind) {
        kind @ ("array" | "object") => format!("an {kind}"),
        kind @ ("null" | "nothing") => kind.to_owned(),
        kind => format!("a {kind}"),
    }
}

/// The number of keys up to which comparing is faster than hashing.
const FEW: usize = 8;

/// Returns the value under a key of an object.
fn get<'v>(object: &'v Value, key: &str) -> Option<&'v Value> {
    let object = object.as_object()?;
    match object.len() {
        0..=FEW => object
            .iter()
            .find_map(|(known, value)| (known == key).then_some(value)),
        _ => object.get(key),
    }
}

/// Returns the text under a key, or an empty one.
pub(crate) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    get(value, key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the list of an object with this key. Empty if it has none.
pub(crate) fn entries<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    let list = get(value, key).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

/// Returns the role of a message.
pub(crate) fn role(message: &Value) -> &str {
    text(message, "role")
}

/// Returns the type of a block or an item.
pub(crate) fn kind(block: &Value) -> &str {
    text(block, "type")
}

/// Returns the blocks of a message. Empty if its content is one text.
pub(crate) fn content(message: &Value) -> &[Value] {
    entries(message, "content")
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::gemini::GeminiProfile;

    use super::*;
    use crate::rules::{anthropic, bedrock, gemini, openai_chat, openai_responses};

    #[test]
    fn every_line_of_the_rules_can_be_read() {
        assert_eq!(openai_chat::TABLE.errors, [""; 0]);
        assert_eq!(openai_responses::TABLE.errors, [""; 0]);
        assert_eq!(anthropic::TABLE.errors, [""; 0]);
        assert_eq!(gemini::TABLE.errors, [""; 0]);
        assert_eq!(bedrock::TABLE.errors, [""; 0]);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_an_error() {
        let text = "[a]\nx there @prefill => words\nx nonsense => words\nx @nonsense => words\n\
                    x there => @no\nx\ninclude no\nx there -> code no\nx list -> each no";
        let table: Table<GeminiProfile> = Table::parse(text, &[("unused", |_, _, _| true)], &[]);
        let errors = [
            "x nonsense => words",
            "x @nonsense => words",
            "x there => @no",
            "x",
            "include no",
            "x there -> code no",
            "no",
            "unused",
        ];
        assert_eq!(table.errors, errors);
    }
}
