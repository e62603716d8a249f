//! [`Check`]: judges one request by a [`Table`].

use std::fmt::Display;

use plimsoll_wire::__internals::json_kind;
use plimsoll_wire::__internals::openai_responses::items;
use serde::Serialize;
use serde_json::Value;

use super::{Refusal, Table, Then, filled, get, kind_of, length, lookup, shown};
use crate::rules::fault::{Fault, MAX_FAULTS};
use crate::rules::json_path::JsonPath;

/// The state of judging a request, with the faults found so far.
pub(crate) struct Check<'c, P: 'static> {
    /// The properties of the server or the model.
    pub(crate) profile: &'c P,
    /// The same as JSON.
    fields: Value,
    pub(crate) request: &'c Value,
    /// The values of the header `anthropic-beta`, separated by commas.
    pub(crate) betas: &'c str,
    /// The list whose entries are judged, and the index of this one.
    pub(crate) list: &'c [Value],
    pub(crate) entry: usize,
    faults: Vec<Fault>,
    table: &'static Table<P>,
}

impl<'c, P: Serialize> Check<'c, P> {
    pub(crate) fn new(table: &'static Table<P>, profile: &'c P, request: &'c Value) -> Self {
        Self {
            profile,
            fields: serde_json::to_value(profile).unwrap_or_default(),
            request,
            betas: "",
            list: &[],
            entry: 0,
            faults: Vec::new(),
            table,
        }
    }
}

impl<'c, P> Check<'c, P> {
    /// Returns the faults of the request by a group of rules. `root` is its place.
    pub(crate) fn faults(mut self, group: &str, root: JsonPath<'_>) -> Vec<Fault> {
        self.judge(group, "", &root, self.request);
        self.faults
    }

    pub(super) fn fields(&self) -> &Value {
        &self.fields
    }

    /// Returns the entry before the one that is judged.
    pub(super) fn before(&self) -> Option<&'c Value> {
        self.list.get(self.entry.checked_sub(1)?)
    }

    /// Adds a fault, unless the report is full.
    fn add(&mut self, fault: Fault) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault);
        }
    }

    /// Reports a refusal of the table with the values of its words.
    pub(crate) fn report(
        &mut self,
        name: &'static str,
        place: impl Into<String>,
        values: &[&dyn Display],
    ) {
        let fault = self.table.fault(name, place, values);
        self.add(fault);
    }

    /// Judges an object, or any value, by the rows of a kind. Returns `false` if a rule with `end`
    /// stopped it.
    pub(crate) fn judge(
        &mut self,
        group: &str,
        kind: &str,
        place: &JsonPath<'_>,
        object: &'c Value,
    ) -> bool {
        let (mut is_judged, mut key, mut value) = (false, "", None);
        for row in self.table.of(group, kind) {
            if row.key != key {
                is_judged = false;
                key = row.key;
                value = lookup(object, key);
            }
            let is_passed = is_judged && !row.besides;
            if is_passed || !row.applies(self, object, value) {
                continue;
            }
            let labelled = place.key(row.label);
            let at = match (row.label, key) {
                (_, ".") => *place,
                ("", _) => place.key(row.key),
                _ => labelled.key(row.key),
            };
            match row.then {
                Then::Code(code) => {
                    code(self, place, object);
                    continue;
                }
                Then::Refuse(refusal) => {
                    self.refuse(refusal, row.bound(), (at, value), (*place, object));
                    if refusal.ends {
                        return false;
                    }
                }
                Then::Each(group) | Then::Members(group) => {
                    let entries = value.and_then(Value::as_array);
                    let entries = entries.map(Vec::as_slice).unwrap_or_default();
                    self.each(group, &at, entries, matches!(row.then, Then::Members(_)));
                }
                Then::As(group) => {
                    self.judge(group, "", &at, value.unwrap_or(&Value::Null));
                }
            }
            is_judged = true;
        }
        true
    }

    /// Judges the entries of a list by their types. An entry with only a role is a message.
    fn each(&mut self, group: &str, place: &JsonPath<'_>, entries: &'c [Value], are_members: bool) {
        let outer = (self.list, self.entry);
        for (index, entry) in entries.iter().enumerate() {
            (self.list, self.entry) = (entries, index);
            let kind = items::kind(entry);
            if are_members {
                let place = place.entry(index + 1);
                self.judge(group, kind, &place.key("member"), entry);
            } else {
                self.judge(group, kind, &place.entry(index), entry);
            }
        }
        (self.list, self.entry) = outer;
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
            "value" => value.and_then(Value::as_str).unwrap_or_default().to_owned(),
            "number" => {
                let number = value.and_then(Value::as_f64);
                number.unwrap_or_default().to_string()
            }
            "got" => kind_of(value),
            "kind" => value.map_or("nothing", json_kind).to_owned(),
            "length" => length(value).to_string(),
            "bound" => bound.to_string(),
            "index" => self.entry.to_string(),
            name => {
                if let Some(field) = name.strip_prefix('@') {
                    shown(get(&self.fields, field))
                } else if let Some(key) = name.strip_prefix('<') {
                    shown(self.before().and_then(|before| lookup(before, key)))
                } else {
                    shown(lookup(object, name))
                }
            }
        });
        let place = if refusal.at_object { place } else { at };
        self.add(Fault {
            rule: refusal.rule,
            place: place.into(),
            words,
        });
    }
}
