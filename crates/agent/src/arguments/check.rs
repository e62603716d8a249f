//! Checks arguments against their schema: missing fields and values of another type.
//!
//! Bounds, patterns and fixed lists of words are left to the tool.

use std::fmt;

use serde_json::{Map, Value};

use super::schema::{Type, Visits, field_schema, is_required, item_schema, list, types};
use super::{PathStep, shown, written};

/// Maximum number of reported errors. The model sees only the first few.
const MAX_FAULTS: usize = 16;
/// Maximum number of words of a fixed list in an error.
const MAX_WORDS: usize = 12;

/// One argument that does not match the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentFault {
    /// The path, as `a.b[0]`.
    pub path: String,
    /// The value as JSON, shortened; `None` if it is missing.
    pub came: Option<String>,
    /// A description of the expected value.
    pub wanted: String,
}

impl fmt::Display for ArgumentFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, came, wanted } = self;
        match (came, wanted.as_str()) {
            (None, "") => write!(f, "`{path}` is missing"),
            (None, wanted) => write!(f, "`{path}` is missing: {wanted} is wanted"),
            (Some(came), wanted) => write!(f, "`{path}` is {came}, and {wanted} is wanted"),
        }
    }
}

/// Returns all errors.
pub(super) fn faults<'a>(visits: &mut Visits<'a>, value: &Value) -> Vec<ArgumentFault> {
    let mut check = SchemaCheck {
        path: Vec::new(),
        faults: Vec::new(),
    };
    let root = visits.root;
    check.check(visits, root, value);
    check.faults
}

/// Checks whether a value matches a schema, including fixed words and unknown fields. Used to choose
/// between the branches of `anyOf` and `oneOf`.
pub(super) fn fits<'a>(visits: &mut Visits<'a>, schema: &'a Value, value: &Value) -> bool {
    if let Value::Bool(any) = schema {
        return *any;
    }
    visits.nested(|visits| fits_here(visits, schema, value))
}

fn fits_here<'a>(visits: &mut Visits<'a>, schema: &'a Value, value: &Value) -> bool {
    visits.look(schema).into_iter().all(|schema| {
        let typed = types(schema).is_none_or(|types| types.iter().any(|one| one.takes(value)));
        let listed = list(schema, "enum").is_none_or(|words| words.contains(value));
        let fixed = schema.get("const").is_none_or(|only| only == value);
        typed
            && listed
            && fixed
            && fits_inside(visits, schema, value)
            && {
                let all = list(schema, "allOf");
                all.is_none_or(|all| all.iter().all(|one| fits(visits, one, value)))
            }
            && ["anyOf", "oneOf"].into_iter().all(|key| {
                let any = list(schema, key);
                any.is_none_or(|any| any.iter().any(|one| fits(visits, one, value)))
            })
    }) && visits.are_left()
}

fn fits_inside<'a>(visits: &mut Visits<'a>, schema: &'a Map<String, Value>, value: &Value) -> bool {
    match value {
        Value::Object(object) => {
            let there = list(schema, "required").is_none_or(|names| {
                let mut names = names.iter().filter_map(Value::as_str);
                names.all(|name| object.contains_key(name))
            });
            there
                && object.iter().all(|(name, value)| {
                    let field = field_schema(schema, name);
                    field.is_none_or(|field| fits(visits, field, value))
                })
        }
        Value::Array(items) => items.iter().enumerate().all(|(at, value)| {
            let item = item_schema(schema, at);
            item.is_none_or(|item| fits(visits, item, value))
        }),
        _ => true,
    }
}

struct SchemaCheck {
    path: Vec<PathStep>,
    faults: Vec<ArgumentFault>,
}

impl SchemaCheck {
    fn check<'a>(&mut self, visits: &mut Visits<'a>, schema: &'a Value, value: &Value) {
        visits.nested(|visits| self.check_here(visits, schema, value));
    }

    fn check_here<'a>(&mut self, visits: &mut Visits<'a>, schema: &'a Value, value: &Value) {
        for schema in visits.look(schema) {
            if self.faults.len() >= MAX_FAULTS {
                return;
            }
            let wanted = types(schema);
            if !accepts(schema, value) {
                let wanted = wanted.unwrap_or_default();
                return self.fault(Some(value), either(&wanted));
            }
            self.inside(visits, schema, value);
            for one in list(schema, "allOf").into_iter().flatten() {
                self.check(visits, one, value);
            }
            for key in ["anyOf", "oneOf"] {
                if let Some(branches) = list(schema, key) {
                    self.any(visits, branches, value);
                }
            }
        }
    }

    fn inside<'a>(
        &mut self,
        visits: &mut Visits<'a>,
        schema: &'a Map<String, Value>,
        value: &Value,
    ) {
        match value {
            Value::Object(object) => {
                for name in list(schema, "required").into_iter().flatten() {
                    let Some(name) = name.as_str().filter(|name| !object.contains_key(*name))
                    else {
                        continue;
                    };
                    let wanted = field_schema(schema, name);
                    let wanted = wanted.map(|schema| wish(visits, schema));
                    self.path.push(PathStep::Field(name.to_owned()));
                    self.fault(None, wanted.unwrap_or_default());
                    self.path.pop();
                }
                for (name, value) in object {
                    // An optional field may be `null`, because the schemas of some tools omit this.
                    let lenient = value.is_null() && !is_required(schema, name);
                    if let Some(field) = field_schema(schema, name).filter(|_| !lenient) {
                        self.path.push(PathStep::Field(name.clone()));
                        self.check(visits, field, value);
                        self.path.pop();
                    }
                }
            }
            Value::Array(items) => {
                for (at, value) in items.iter().enumerate() {
                    let Some(item) = item_schema(schema, at) else {
                        break;
                    };
                    if self.faults.len() >= MAX_FAULTS || !visits.are_left() {
                        return;
                    }
                    self.path.push(PathStep::Item(at));
                    self.check(visits, item, value);
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    /// Checks a value that must match one of several schemas. Only certain errors are
    /// reported: no branch accepts the type of the value, or the only one that does has an error
    /// inside.
    fn any<'a>(&mut self, visits: &mut Visits<'a>, branches: &'a [Value], value: &Value) {
        let mut taking = Vec::new();
        for branch in branches {
            let looked = visits.look(branch);
            let open = branch == &Value::Bool(true) || looked.is_empty();
            if open || looked.into_iter().all(|schema| accepts(schema, value)) {
                taking.push(branch);
            }
        }
        match taking.as_slice() {
            [] => {
                let mut wanted = Vec::new();
                for branch in branches {
                    for schema in visits.look(branch) {
                        wanted.extend(types(schema).unwrap_or_default());
                    }
                }
                wanted.dedup();
                self.fault(Some(value), either(&wanted));
            }
            [only] => self.check(visits, only, value),
            _ => {}
        }
    }

    fn fault(&mut self, came: Option<&Value>, wanted: String) {
        self.faults.push(ArgumentFault {
            path: written(&self.path),
            came: came.map(came_as),
            wanted,
        });
    }
}

/// Checks whether the schema allows the type of a value.
fn accepts(schema: &Map<String, Value>, value: &Value) -> bool {
    let nullable = value.is_null() && schema.get("nullable") == Some(&Value::Bool(true));
    nullable || types(schema).is_none_or(|types| types.iter().any(|one| one.takes(value)))
}

/// Describes the value that a schema expects. Empty if the schema does not say.
fn wish<'a>(visits: &mut Visits<'a>, schema: &'a Value) -> String {
    let mut wanted = Vec::new();
    for schema in visits.look(schema) {
        if let Some(words) = list(schema, "enum") {
            let named: Vec<String> = words.iter().take(MAX_WORDS).map(shown).collect();
            let more = if words.len() > MAX_WORDS { ", …" } else { "" };
            return format!("one of {}{more}", named.join(", "));
        }
        wanted.extend(types(schema).unwrap_or_default());
    }
    if wanted.is_empty() {
        String::new()
    } else {
        either(&wanted)
    }
}

fn either(types: &[Type]) -> String {
    if types.is_empty() {
        return "something else".to_owned();
    }
    let mut words: Vec<&str> = types.iter().map(|one| one.wanted()).collect();
    words.dedup();
    words.join(" or ")
}

fn came_as(value: &Value) -> String {
    let kind = match value {
        Value::String(_) => "the string ",
        Value::Array(_) => "the list ",
        Value::Object(_) => "the object ",
        Value::Null | Value::Bool(_) | Value::Number(_) => "",
    };
    format!("{kind}{}", shown(value))
}
