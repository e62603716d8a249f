//! [`Table`]: a server's rules for single values and its refusals, from the files in `crates/mock/rules/`.
//! [`Check::judge`] walks an object by one. Rules that compare several places are code.
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
//! ```
//!
//! - `@name = words` gives words a name.
//! - `[group kind]` begins the rules for objects of a kind, which is their `type` as a rule.
//!   `[group *]` is for all other kinds, `[group]` for a group of one kind.
//! - `include group` repeats the rules of `[group]`. `= A B` names kinds without further rules.
//! - A rule begins with a key: `a.b` is a key within a key, `x/a` the key `a` in the place `x.a`, `aB|a_b` a
//!   key in two spellings, `.` the object itself. The conditions behind it must all hold; `!` negates one.
//!   They are those of [`Test`] and the protocol's own, which are code.
//! - `=> words` refuses the value. The refusal is of the rule that stands among the conditions, or of
//!   [`Rule::Shape`]; `at-object` reports it for the object, and `end` judges nothing more of that.
//! - `-> each group` judges the entries of a list, `-> as group` the value.
//! - `[refusals]` has the refusals of rules that are code ([`Check::report`]): `name RULE => words`, in which
//!   `{a}` to `{f}` are the values that the code gives.
//! - `[failures]` has the failures without a fault of the request: `status type code => message`, in which
//!   `4*` is every status that begins with 4. `[codes]` has the codes of refusals: `code => part of the words`,
//!   or `^beginning of the words`. Of both, the first line that applies counts.
//! - Of consecutive rules for one key only the first that applies counts, and those that begin with `+`.
//!
//! In words, `{place}` is the place of the value and `{object}` that of the object, `{value}` a text,
//! `{number}` a number, `{bound}` the number in the condition, `{length}` the number of characters or
//! entries, `{kind}` the JSON type, `{got}` the type with its article and `{newline}` a line end. Any
//! other name is the text under that key of the object.

mod check;

use std::collections::BTreeMap;
use std::fmt::Display;

use plimsoll_wire::__internals::json_kind;
use serde_json::Value;

use crate::rules::fault::{Fault, Rule};

pub(crate) use check::Check;

/// A condition that is code. It receives the check, the object and the value.
pub(crate) type Flag<P> = fn(&Check<'_, P>, &Value, Option<&Value>) -> bool;

/// The rules of a protocol for single values.
pub(crate) struct Table<P: 'static> {
    groups: BTreeMap<&'static str, BTreeMap<&'static str, Vec<RuleRow<P>>>>,
    /// The rules and the words of refusals by code.
    refusals: BTreeMap<&'static str, (Rule, &'static str)>,
    failures: Vec<(&'static str, &'static str)>,
    codes: Vec<(&'static str, &'static str)>,
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
    /// The other spelling of the key, which places have; the same if there is only one.
    spoken: &'static str,
    /// Whether it applies even if the row before it, for the same key, did.
    besides: bool,
    tests: Vec<(bool, Test<P>)>,
    then: Then,
}

#[derive(Clone, Copy)]
enum Then {
    Refuse(Refusal),
    /// Judges the entries of a list by a group.
    Each(&'static str),
    /// Judges the value by a group.
    As(&'static str),
}

#[derive(Clone, Copy)]
struct Refusal {
    rule: Rule,
    words: &'static str,
    ends: bool,
    at_object: bool,
}

/// A condition on a value.
#[derive(Clone)]
enum Test<P: 'static> {
    /// `there`, even if it is `null`.
    There,
    /// `given`, and not `null`.
    Given,
    Text,
    List,
    Object,
    Number,
    /// `said`: a text that is not empty.
    Said,
    /// `empty`: an empty text or list.
    Empty,
    /// `filled`: a list that is not empty.
    Filled,
    /// `blank`: a text of white space only.
    Blank,
    /// `longer:64`: more characters or entries.
    Longer(usize),
    Below(f64),
    Above(f64),
    /// `in:a,b`: one of these texts. Other types count as an empty text.
    OneOf(Vec<&'static str>),
    /// `has:key`: the object has this key, and not `null`.
    Has(&'static str),
    /// `key=a,b`: under this key, the object has one of these texts, or `true`.
    Key(&'static str, Vec<&'static str>),
    Flag(Flag<P>),
}

impl<P: Clone> Table<P> {
    /// Parses a file of rules. `flags` are the conditions that are code.
    pub(crate) fn parse(text: &'static str, flags: &[(&str, Flag<P>)]) -> Self {
        let mut table = Self {
            groups: BTreeMap::new(),
            refusals: BTreeMap::new(),
            failures: Vec::new(),
            codes: Vec::new(),
            errors: Vec::new(),
        };
        let mut words: BTreeMap<&str, &'static str> = BTreeMap::new();
        let mut section = ("", "");
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some((name, value)) = line.strip_prefix('@').and_then(|at| at.split_once(" = "))
            {
                words.insert(name, value);
            } else if let Some(name) = line
                .strip_prefix('[')
                .and_then(|name| name.strip_suffix(']'))
            {
                section = name.split_once(' ').unwrap_or((name, ""));
                if !section.1.is_empty() {
                    table.rows(section);
                }
            } else if let Some(name) = line.strip_prefix("include ") {
                let rows = table.of(name, "").to_vec();
                if rows.is_empty() {
                    table.errors.push(line);
                }
                table.rows(section).extend(rows);
            } else if let Some(kinds) = line.strip_prefix("= ") {
                for kind in kinds.split_whitespace() {
                    table.rows((section.0, kind));
                }
            } else if ["refusals", "failures", "codes"].contains(&section.0)
                && let Some((name, words)) = line.split_once(" => ")
            {
                let (first, rule) = name.split_once(' ').unwrap_or((name, "shape"));
                match (section.0, Rule::named(rule)) {
                    ("failures", _) => table.failures.push((name, words)),
                    ("codes", _) => table.codes.push((words, name)),
                    (_, Some(rule)) => drop(table.refusals.insert(first, (rule, words))),
                    (_, None) => table.errors.push(line),
                }
            } else if let Some(row) = RuleRow::parse(line, &words, flags) {
                table.rows(section).push(row);
            } else {
                table.errors.push(line);
            }
        }
        let rows = table.groups.values().flat_map(BTreeMap::values).flatten();
        let targets = rows.filter_map(|row| match row.then {
            Then::Refuse(_) => None,
            Then::Each(group) | Then::As(group) => Some(group),
        });
        let unknown: Vec<&str> = targets
            .filter(|group| !table.groups.contains_key(group))
            .collect();
        table.errors.extend(unknown);
        table
    }

    fn rows(&mut self, (group, kind): (&'static str, &'static str)) -> &mut Vec<RuleRow<P>> {
        self.groups
            .entry(group)
            .or_default()
            .entry(kind)
            .or_default()
    }
}

impl<P> Table<P> {
    /// Returns the rows for a kind, or those of the group for any other kind.
    fn of(&self, group: &str, kind: &str) -> &[RuleRow<P>] {
        let group = self.groups.get(group);
        let rows = group.and_then(|group| group.get(kind).or_else(|| group.get("*")));
        rows.map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns a refusal of `[refusals]` with the values of its words.
    pub(crate) fn fault(
        &self,
        name: &'static str,
        place: impl Into<String>,
        values: &[&dyn Display],
    ) -> Fault {
        let place = place.into();
        let refusal = self.refusals.get(name).copied();
        let (rule, words) = refusal.unwrap_or((Rule::Shape, name));
        let letters = ["a", "b", "c", "d", "e", "f"].into_iter();
        let value = |letter: &str| {
            let mut named = letters.clone().zip(values);
            named.find_map(|(known, value)| (known == letter).then(|| value.to_string()))
        };
        let words = filled(words, |name| match name {
            "place" => place.clone(),
            letter => value(letter).unwrap_or_default(),
        });
        Fault { rule, place, words }
    }

    /// Returns the type, the code and the message of a failure with this status.
    pub(crate) fn failure(
        &self,
        status: u16,
    ) -> (&'static str, Option<&'static str>, &'static str) {
        let status = status.to_string();
        let applies = |pattern: &str| match pattern.strip_suffix('*') {
            Some(beginning) => status.starts_with(beginning),
            None => pattern == status,
        };
        let mut lines = self.failures.iter().map(|(head, words)| {
            let mut head = head.split(' ');
            (
                head.next().unwrap_or_default(),
                head.next().unwrap_or_default(),
                head.next(),
                *words,
            )
        });
        let line = lines.find(|(pattern, ..)| applies(pattern));
        line.map_or(("", None, ""), |(_, kind, code, words)| (kind, code, words))
    }

    /// Returns the code of a refusal with these words.
    pub(crate) fn code(&self, words: &str) -> Option<&'static str> {
        let applies = |part: &str| match part.strip_prefix('^') {
            Some(beginning) => words.starts_with(beginning),
            None => words.contains(part),
        };
        let line = self.codes.iter().find(|(part, _)| applies(part));
        line.map(|(_, code)| *code)
    }

    /// Returns `true` if a group has rows for exactly this kind.
    pub(crate) fn has(&self, group: &str, kind: &str) -> bool {
        self.groups
            .get(group)
            .is_some_and(|group| group.contains_key(kind))
    }
}

impl<P> RuleRow<P> {
    fn parse(
        line: &'static str,
        words: &BTreeMap<&str, &'static str>,
        flags: &[(&str, Flag<P>)],
    ) -> Option<Self> {
        let refused = line.split_once(" => ");
        let (left, right) = refused.or_else(|| line.split_once(" -> "))?;
        let mut left = left.split_whitespace();
        let key = left.next()?;
        let besides = key.starts_with('+');
        let key = key.strip_prefix('+').unwrap_or(key);
        let (label, key) = key.split_once('/').unwrap_or(("", key));
        let (key, spoken) = key.split_once('|').unwrap_or((key, key));
        let (mut rule, mut ends, mut at_object) = (Rule::Shape, false, false);
        let mut tests = Vec::new();
        for word in left {
            match word {
                "end" => ends = true,
                "at-object" => at_object = true,
                _ => match Rule::named(word) {
                    Some(named) => rule = named,
                    None => {
                        let plain = word.strip_prefix('!');
                        tests.push((plain.is_none(), Test::parse(plain.unwrap_or(word), flags)?));
                    }
                },
            }
        }
        let then = if refused.is_some() {
            let words = match right.strip_prefix('@') {
                Some(name) => words.get(name).copied()?,
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
                ("as", group) => Then::As(group),
                _ => return None,
            }
        };
        Some(Self {
            label,
            key,
            spoken,
            besides,
            tests,
            then,
        })
    }

    /// Returns the value under the key, in the first spelling that the object has.
    fn lookup<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        match lookup(object, self.key) {
            None if self.key != self.spoken => lookup(object, self.spoken),
            found => found,
        }
    }

    /// Returns the number that the value is compared with.
    fn bound(&self) -> f64 {
        let bound = self.tests.iter().find_map(|(_, test)| match test {
            Test::Below(bound) | Test::Above(bound) => Some(*bound),
            Test::Longer(most) => Some(*most as f64),
            _ => None,
        });
        bound.unwrap_or(f64::NAN)
    }

    fn applies(&self, check: &Check<'_, P>, object: &Value, value: Option<&Value>) -> bool {
        let mut tests = self.tests.iter();
        tests.all(|(holds, test)| test.holds(check, object, value) == *holds)
    }
}

impl<P> Test<P> {
    fn parse(word: &'static str, flags: &[(&str, Flag<P>)]) -> Option<Self> {
        let (name, argument) = word.split_once(':').unwrap_or((word, ""));
        Some(match name {
            "there" => Self::There,
            "given" => Self::Given,
            "text" => Self::Text,
            "list" => Self::List,
            "object" => Self::Object,
            "number" => Self::Number,
            "said" => Self::Said,
            "empty" => Self::Empty,
            "filled" => Self::Filled,
            "blank" => Self::Blank,
            "longer" => Self::Longer(argument.parse().ok()?),
            "below" => Self::Below(argument.parse().ok()?),
            "above" => Self::Above(argument.parse().ok()?),
            "in" => Self::OneOf(argument.split(',').collect()),
            "has" => Self::Has(argument),
            _ => match word.split_once('=') {
                Some((key, values)) => Self::Key(key, values.split(',').collect()),
                None => Self::Flag(flags.iter().find(|(flag, _)| *flag == word)?.1),
            },
        })
    }
}

impl<P> Test<P> {
    fn holds(&self, check: &Check<'_, P>, object: &Value, value: Option<&Value>) -> bool {
        let text = value.and_then(Value::as_str);
        let number = || value.and_then(Value::as_f64);
        match self {
            Self::There => value.is_some(),
            Self::Given => value.is_some_and(|value| !value.is_null()),
            Self::Text => text.is_some(),
            Self::List => value.is_some_and(Value::is_array),
            Self::Object => value.is_some_and(Value::is_object),
            Self::Number => number().is_some(),
            Self::Said => text.is_some_and(|text| !text.is_empty()),
            Self::Empty => {
                let is_list = value.is_some_and(Value::is_array);
                (text.is_some() || is_list) && length(value) == 0
            }
            Self::Filled => value.is_some_and(Value::is_array) && length(value) > 0,
            Self::Blank => text.is_some_and(|text| text.trim().is_empty()),
            // A text never has more characters than bytes.
            Self::Longer(most) => {
                text.is_none_or(|text| text.len() > *most) && length(value) > *most
            }
            Self::Below(least) => number().is_some_and(|number| number < *least),
            Self::Above(most) => number().is_some_and(|number| number > *most),
            Self::OneOf(known) => known.contains(&text.unwrap_or_default()),
            Self::Has(key) => lookup(object, key).is_some_and(|value| !value.is_null()),
            Self::Key(key, known) => match lookup(object, key) {
                Some(Value::Bool(set)) => *set && known.contains(&"true"),
                value => known.contains(&value.and_then(Value::as_str).unwrap_or_default()),
            },
            Self::Flag(holds) => holds(check, object, value),
        }
    }
}

/// Fills in the names in braces. Braces of patterns, which begin with a digit, stay.
fn filled(words: &str, value: impl Fn(&str) -> String) -> String {
    let mut text = String::with_capacity(words.len() * 2);
    let mut rest = words;
    while let Some((before, inner)) = rest.split_once('{') {
        let (name, after) = inner.split_once('}').unwrap_or((inner, ""));
        rest = after;
        text.push_str(before);
        match name {
            "newline" => text.push('\n'),
            _ if name.starts_with(|first: char| first.is_ascii_digit()) => {
                text.push_str(&format!("{{{name}}}"));
            }
            _ => text.push_str(&value(name)),
        }
    }
    text + rest
}

/// Returns the value under a key or a path of keys; `.` is the object itself.
fn lookup<'v>(object: &'v Value, key: &str) -> Option<&'v Value> {
    match key.split_once('.') {
        None => get(object, key),
        Some(("", _)) => Some(object),
        Some((key, rest)) => lookup(get(object, key)?, rest),
    }
}

/// Returns a text, or an empty one for any other value.
fn shown(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
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
        let text = "[a]\nx there => words\nx nonsense => words\nx there => @no\nx\ninclude no\nx list -> each no";
        let table: Table<()> = Table::parse(text, &[]);
        let errors = [
            "x nonsense => words",
            "x there => @no",
            "x",
            "include no",
            "no",
        ];
        assert_eq!(table.errors, errors);
    }
}
