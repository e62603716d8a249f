//! Converts values of the wrong type.
//!
//! A value is only converted if nothing is lost and the meaning is unambiguous.

use std::collections::HashMap;

use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use super::check::fits;
use super::schema::{Type, Visits, field_schema, is_required, item_schema, list, types};
use super::{Coercion, PathStep, shown, written};

/// Integers up to here are represented exactly as floating point numbers.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// Maximum nesting of JSON strings within JSON strings.
const MAX_SOURCES: usize = 8;

/// Converts a value, and returns the changes. `text` is the JSON that the value was parsed from.
pub(super) fn coerce<'a>(visits: &mut Visits<'a>, text: &str, value: &mut Value) -> Vec<Coercion> {
    let mut coerce = Coerce {
        path: Vec::new(),
        sources: vec![(0, text.to_owned())],
        changes: Vec::new(),
    };
    let root = visits.root;
    coerce.value(visits, root, value);
    coerce.changes
}

struct Coerce {
    path: Vec<PathStep>,
    /// The texts that values were parsed from, each with the length of the path at which it begins.
    sources: Vec<(usize, String)>,
    changes: Vec<Coercion>,
}

impl Coerce {
    fn value<'a>(&mut self, visits: &mut Visits<'a>, schema: &'a Value, value: &mut Value) {
        let sources = self.sources.len();
        visits.nested(|visits| self.value_here(visits, schema, value));
        self.sources.truncate(sources);
    }

    fn value_here<'a>(&mut self, visits: &mut Visits<'a>, schema: &'a Value, value: &mut Value) {
        for schema in visits.look(schema) {
            if let Some(types) = types(schema) {
                self.typed(visits, schema, &types, value);
            }
            if let Some(words) = list(schema, "enum") {
                self.word(words, value);
            }
            if let Some(only) = schema.get("const") {
                self.word(std::slice::from_ref(only), value);
            }
            match value {
                Value::Object(object) => self.fields(visits, schema, object),
                Value::Array(items) => {
                    for (at, value) in items.iter_mut().enumerate() {
                        if let Some(item) = item_schema(schema, at) {
                            self.path.push(PathStep::Item(at));
                            self.value(visits, item, value);
                            self.path.pop();
                        }
                    }
                }
                _ => {}
            }
            for one in list(schema, "allOf").into_iter().flatten() {
                self.value(visits, one, value);
            }
            for key in ["anyOf", "oneOf"] {
                if let Some(branches) = list(schema, key) {
                    self.any(visits, branches, value);
                }
            }
        }
    }

    fn fields<'a>(
        &mut self,
        visits: &mut Visits<'a>,
        schema: &'a Map<String, Value>,
        object: &mut Map<String, Value>,
    ) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let may_go = |name: &String, value: &Value| {
            let property = properties?.get(name)?;
            (value.is_null() && !is_required(schema, name)).then_some(property)
        };
        let names: Vec<String> = object
            .iter()
            .filter_map(|(name, value)| Some((name, may_go(name, value)?)))
            .filter(|(_, property)| !visits.takes_null(property))
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            object.shift_remove(&name);
            self.path.push(PathStep::Field(name));
            self.changed("null".to_owned(), String::new());
            self.path.pop();
        }
        for (name, value) in object.iter_mut() {
            if let Some(field) = field_schema(schema, name) {
                self.path.push(PathStep::Field(name.clone()));
                self.value(visits, field, value);
                self.path.pop();
            }
        }
    }

    /// Converts the value to one of the types, if exactly one other value can be meant.
    fn typed<'a>(
        &mut self,
        visits: &mut Visits<'a>,
        schema: &'a Map<String, Value>,
        types: &[Type],
        value: &mut Value,
    ) {
        let takes = |one: &Type| one.takes(value);
        let floats = types.contains(&Type::Number);
        let is_whole_float = value.is_f64() && types.contains(&Type::Integer) && !floats;
        let nullable = value.is_null() && schema.get("nullable") == Some(&Value::Bool(true));
        if nullable || types.iter().any(takes) && !is_whole_float {
            return;
        }
        let mut found: Option<(Value, Option<String>)> = None;
        for one in types {
            let Some(new) = self.as_type(visits, schema, *one, value) else {
                continue;
            };
            match &found {
                Some((before, _)) if *before != new.0 => return,
                _ => found = Some(new),
            }
        }
        if let Some((new, source)) = found {
            self.changed(shown(value), shown(&new));
            *value = new;
            if let Some(source) = source {
                self.sources.push((self.path.len(), source));
            }
        }
    }

    /// Returns the value as another type. If the value was parsed from a new text, that text is
    /// returned as well.
    fn as_type<'a>(
        &mut self,
        visits: &mut Visits<'a>,
        schema: &'a Map<String, Value>,
        to: Type,
        value: &Value,
    ) -> Option<(Value, Option<String>)> {
        let plain = |value| Some((value, None));
        match (to, value) {
            (Type::Integer, Value::Number(number)) => plain(Value::Number(whole(number)?)),
            (Type::Integer, Value::String(text)) => plain(Value::Number(whole(&number(text)?)?)),
            (Type::Number, Value::String(text)) => plain(Value::Number(number(text)?)),
            (Type::Boolean, Value::String(text)) => {
                let says = |word: &str| text.trim().eq_ignore_ascii_case(word);
                match (says("true"), says("false")) {
                    (true, _) => plain(Value::Bool(true)),
                    (_, true) => plain(Value::Bool(false)),
                    _ => None,
                }
            }
            (Type::String, Value::Number(_)) => plain(Value::String(self.literal()?)),
            (Type::Object | Type::Array, Value::String(text))
                if text.trim_start().starts_with(['{', '[']) =>
            {
                if self.sources.len() >= MAX_SOURCES {
                    return None;
                }
                let inner: Value = serde_json::from_str(text).ok()?;
                to.takes(&inner).then(|| (inner, Some(text.clone())))
            }
            (Type::Array, Value::Null) => None,
            (Type::Array, single) => {
                let Some(item) = item_schema(schema, 0) else {
                    return plain(Value::Array(vec![single.clone()]));
                };
                // It must match the list's item schema; otherwise anything would be accepted.
                let mut single = single.clone();
                let told = self.changes.len();
                self.value(visits, item, &mut single);
                self.changes.truncate(told);
                let is_item = fits(visits, item, &single);
                is_item.then(|| (Value::Array(vec![single]), None))
            }
            _ => None,
        }
    }

    /// Corrects the case of a word of a fixed list.
    fn word(&mut self, words: &[Value], value: &mut Value) {
        if words.contains(value) {
            return;
        }
        let Value::String(text) = &*value else {
            return;
        };
        let written = text.trim().to_lowercase();
        let mut meant = words.iter().filter(|word| {
            let word = word.as_str();
            word.is_some_and(|word| word.to_lowercase() == written)
        });
        if let (Some(word), None) = (meant.next(), meant.next()) {
            self.changed(shown(value), shown(word));
            *value = word.clone();
        }
    }

    /// Converts a value that must match one of several schemas. If none does, the value is
    /// converted for the only one that it can be converted for.
    fn any<'a>(&mut self, visits: &mut Visits<'a>, branches: &'a [Value], value: &mut Value) {
        if branches.iter().any(|branch| fits(visits, branch, value)) {
            return;
        }
        let told = self.changes.len();
        let mut found: Option<(Value, Vec<Coercion>)> = None;
        let mut several = false;
        for branch in branches {
            let mut new = value.clone();
            self.value(visits, branch, &mut new);
            let changes = self.changes.split_off(told.min(self.changes.len()));
            if !fits(visits, branch, &new) {
                continue;
            }
            match &found {
                Some((before, _)) => several |= *before != new,
                None => found = Some((new, changes)),
            }
        }
        if let (Some((new, changes)), false) = (found, several) {
            *value = new;
            self.changes.extend(changes);
        }
    }

    fn changed(&mut self, from: String, to: String) {
        self.changes.push(Coercion {
            path: written(&self.path),
            from,
            to,
        });
    }

    /// Returns the number at the path as it was written: `1.10`, not 1.1.
    fn literal(&self) -> Option<String> {
        let (from, source) = self.sources.last()?;
        let mut text: &str = source;
        for step in self.path.get(*from..)? {
            text = match step {
                PathStep::Field(name) => {
                    let fields: HashMap<String, &RawValue> = serde_json::from_str(text).ok()?;
                    fields.get(name)?.get()
                }
                PathStep::Item(at) => {
                    let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
                    items.get(*at)?.get()
                }
            };
        }
        let text = text.trim();
        serde_json::from_str::<Number>(text).ok()?;
        Some(text.to_owned())
    }
}

/// Parses a string that contains only a number. Returns `None` if it is not a JSON number, or if digits
/// would be lost.
fn number(text: &str) -> Option<Number> {
    let text = text.trim();
    let number: Number = serde_json::from_str(text).ok()?;
    let is_whole = text.chars().all(|c| c.is_ascii_digit() || c == '-');
    (!(number.is_f64() && is_whole)).then_some(number)
}

/// Converts a number to an integer. Returns `None` if that would lose precision.
#[allow(clippy::cast_possible_truncation)]
fn whole(number: &Number) -> Option<Number> {
    if !number.is_f64() {
        return Some(number.clone());
    }
    let float = number.as_f64()?;
    (float.fract() == 0.0 && float.abs() < EXACT).then(|| Number::from(float as i64))
}
