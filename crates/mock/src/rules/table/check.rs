//! [`Check`]: judges one request by a [`Table`].

use std::fmt::Display;

use plimsoll_wire::__internals::json_kind;
use serde_json::Value;

use super::{Refusal, Table, Then, filled, kind_of, length, lookup, shown, text};
use crate::rules::fault::{Fault, Rule, note};
use crate::rules::json_path::JsonPath;

/// The state of judging a request, with the faults found so far.
pub(crate) struct Check<'p, P: 'static> {
    /// The properties of the server or the model.
    pub(crate) profile: &'p P,
    /// The values of the header `anthropic-beta`, separated by commas.
    pub(crate) betas: &'p str,
    /// Whether the server stores the requests that it receives.
    pub(crate) stored: bool,
    /// The index of the entry that is judged, and the number of entries of its list.
    pub(crate) entry: (usize, usize),
    pub(crate) faults: Vec<Fault>,
    table: &'static Table<P>,
}

impl<'p, P> Check<'p, P> {
    pub(crate) const fn new(profile: &'p P, table: &'static Table<P>) -> Self {
        Self {
            profile,
            betas: "",
            stored: false,
            entry: (0, 0),
            faults: Vec::new(),
            table,
        }
    }

    pub(crate) fn fault(&mut self, rule: Rule, place: impl Into<String>, words: impl Into<String>) {
        note(&mut self.faults, rule, place, words);
    }

    /// Reports a refusal of the table with the values of its words.
    pub(crate) fn report(
        &mut self,
        name: &'static str,
        place: impl Into<String>,
        values: &[&dyn Display],
    ) {
        let Fault { rule, place, words } = self.table.fault(name, place, values);
        self.fault(rule, place, words);
    }

    /// Judges an object, or any value, by the rows of a kind. Returns `false` if a rule with `end`
    /// stopped it.
    pub(crate) fn judge(
        &mut self,
        group: &str,
        kind: &str,
        place: &JsonPath<'_>,
        object: &Value,
    ) -> bool {
        let (mut is_judged, mut key, mut value) = (false, "", None);
        for row in self.table.of(group, kind) {
            if row.key != key {
                is_judged = false;
                key = row.key;
                value = row.lookup(object);
            }
            if is_judged && !row.besides {
                continue;
            }
            let labelled = place.key(row.label);
            let at = match (row.label, key) {
                (_, ".") => *place,
                ("", _) => place.key(row.spoken),
                _ => labelled.key(row.spoken),
            };
            if !row.applies(self, object, value) {
                continue;
            }
            is_judged = true;
            match row.then {
                Then::Refuse(refusal) => {
                    self.refuse(refusal, row.bound(), (at, value), (*place, object));
                    if refusal.ends {
                        return false;
                    }
                }
                Then::Each(group) => {
                    let entries = value.and_then(Value::as_array);
                    let entries = entries.map(Vec::as_slice).unwrap_or_default();
                    self.each(group, &at, entries);
                }
                Then::As(group) => {
                    self.judge(group, "", &at, value.unwrap_or(&Value::Null));
                }
            }
        }
        true
    }

    /// Judges the entries of a list by their types.
    pub(crate) fn each(&mut self, group: &str, place: &JsonPath<'_>, entries: &[Value]) {
        let outer = self.entry;
        for (index, entry) in entries.iter().enumerate() {
            self.entry = (index, entries.len());
            self.judge(group, text(entry, "type"), &place.entry(index), entry);
        }
        self.entry = outer;
    }

    fn refuse(
        &mut self,
        refusal: Refusal,
        bound: f64,
        (at, value): (JsonPath<'_>, Option<&Value>),
        (place, object): (JsonPath<'_>, &Value),
    ) {
        let words = filled(refusal.words, |name| match name {
            "place" => at.to_string(),
            "object" => place.to_string(),
            "value" => shown(value),
            "number" => {
                let number = value.and_then(Value::as_f64);
                number.unwrap_or_default().to_string()
            }
            "got" => kind_of(value),
            "kind" => value.map_or("nothing", json_kind).to_owned(),
            "length" => length(value).to_string(),
            "bound" => bound.to_string(),
            key => shown(lookup(object, key)),
        });
        let place = if refusal.at_object { place } else { at };
        self.fault(refusal.rule, place, words);
    }
}
