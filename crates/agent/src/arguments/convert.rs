//! [`Conversion`]: converts values of the wrong type.
//!
//! A value is only converted if nothing is lost and the meaning is unambiguous.

use serde_json::{Map, Number, Value};

use super::expected::{Expected, Kind};
use super::{Coercion, MAX_COERCIONS, shown};

/// Integers up to here are represented exactly as floating point numbers.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// Maximum nesting of converted values. Deeper ones are left to the tool.
const MAX_DEPTH: usize = 64;
/// The conversion of the arguments of one call.
pub(super) struct Conversion<'a> {
    root: &'a Value,
    /// The path of the current value, as `a.b[0]`.
    path: String,
    depth: usize,
    pub(super) changes: Vec<Coercion>,
}

impl<'a> Conversion<'a> {
    /// Creates a conversion to the types of a schema, after these changes.
    pub(super) fn new(root: &'a Value, changes: Vec<Coercion>) -> Self {
        Self {
            root,
            path: String::new(),
            depth: 0,
            changes,
        }
    }

    /// Converts all arguments.
    pub(super) fn arguments(&mut self, object: &mut Map<String, Value>) {
        let expected = Expected::of(self.root, self.root);
        if let Some(expected) = expected.filter(|expected| expected.kind == Kind::Object) {
            self.fields(&expected, object);
        }
    }

    /// Converts a value to the type that its schema expects. Returns `false` if it has another type.
    fn value(&mut self, schema: &'a Value, value: &mut Value) -> bool {
        let expected = Expected::of(self.root, schema);
        let Some(expected) = expected.filter(|_| self.depth < MAX_DEPTH) else {
            return true;
        };
        if value.is_null() && expected.nullable {
            return true;
        }
        if !expected.kind.matches(value) {
            let Some(new) = self.converted(&expected, value) else {
                return false;
            };
            self.replace(value, new);
        }
        if let Some(word) = expected.words().and_then(|words| folded(words, value)) {
            self.replace(value, word.clone());
        }
        match value {
            Value::Object(object) => self.fields(&expected, object),
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    if let Some(schema) = expected.item() {
                        self.at(&format!("[{at}]"), |this| this.value(schema, item));
                    }
                }
            }
            _ => {}
        }
        true
    }

    fn fields(&mut self, expected: &Expected<'a>, object: &mut Map<String, Value>) {
        let is_absent = |name: &String, value: &Value| {
            let field = expected.field(name);
            let field = field.and_then(|schema| Expected::of(self.root, schema));
            let takes_null = field.is_none_or(|field| field.nullable);
            value.is_null() && !takes_null && !expected.required().any(|required| required == name)
        };
        let absent = object.iter().filter(|(name, value)| is_absent(name, value));
        let absent: Vec<String> = absent.map(|(name, _)| name.clone()).collect();
        for name in absent {
            object.shift_remove(&name);
            self.field(&name, |this| {
                this.change("null".to_owned(), String::new());
                true
            });
        }
        for (name, value) in object.iter_mut() {
            if let Some(schema) = expected.field(name) {
                self.field(name, |this| this.value(schema, value));
            }
        }
    }

    /// Returns the value as the expected type, if it means one value of that type.
    fn converted(&self, expected: &Expected<'a>, value: &Value) -> Option<Value> {
        match (expected.kind, value) {
            (Kind::Array | Kind::Object, Value::String(text)) if is_json(text) => {
                let inner: Value = serde_json::from_str(text).ok()?;
                expected.kind.matches(&inner).then_some(inner)
            }
            (Kind::Array, Value::Null) => None,
            (Kind::Array, single) => self.list_of(expected.item(), single.clone()),
            (Kind::Integer, Value::Number(number)) => whole(number).map(Value::Number),
            (Kind::Integer, Value::String(text)) => whole(&number(text)?).map(Value::Number),
            (Kind::Number, Value::String(text)) => number(text).map(Value::Number),
            (Kind::Boolean, Value::String(text)) => {
                text.trim().to_lowercase().parse().ok().map(Value::Bool)
            }
            // A fraction may have been written with more digits than its number has.
            (Kind::String, Value::Number(number)) if !number.is_f64() => {
                Some(Value::String(number.to_string()))
            }
            _ => None,
        }
    }

    /// Returns a list of one value, if the value is a valid item.
    fn list_of(&self, schema: Option<&'a Value>, mut item: Value) -> Option<Value> {
        let mut conversion = Self {
            depth: self.depth + 1,
            ..Self::new(self.root, Vec::new())
        };
        let is_item = schema.is_none_or(|schema| conversion.value(schema, &mut item));
        is_item.then(|| Value::Array(vec![item]))
    }

    fn field(&mut self, name: &str, inside: impl FnOnce(&mut Self) -> bool) {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.at(&format!("{dot}{name}"), inside);
    }

    /// Runs `inside` one level deeper.
    fn at(&mut self, step: &str, inside: impl FnOnce(&mut Self) -> bool) {
        let length = self.path.len();
        self.path.push_str(step);
        self.depth += 1;
        inside(self);
        self.depth -= 1;
        self.path.truncate(length);
    }

    fn replace(&mut self, value: &mut Value, new: Value) {
        self.change(shown(value), shown(&new));
        *value = new;
    }

    fn change(&mut self, from: String, to: String) {
        if self.changes.len() < MAX_COERCIONS {
            self.changes.push(Coercion {
                path: self.path.clone(),
                from,
                to,
            });
        }
    }
}

/// Checks whether a text can be an object or a list.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

/// Returns the only word of a fixed list that differs from the value by case and spaces.
fn folded<'a>(words: &'a [Value], value: &Value) -> Option<&'a Value> {
    let Value::String(text) = value else {
        return None;
    };
    let written = text.trim().to_lowercase();
    let folds = |word: &&Value| word.as_str().is_some_and(|it| it.to_lowercase() == written);
    let mut meant = words.iter().filter(folds);
    let first = meant.next().filter(|word| *word != value)?;
    meant.next().is_none().then_some(first)
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
