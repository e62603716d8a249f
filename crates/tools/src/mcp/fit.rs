//! Converts the top level of a schema to a form that every provider accepts.
//!
//! The result is an object with named properties. It has no choices at the top level, since Anthropic,
//! OpenAI and Bedrock reject the whole request otherwise. Property names only contain characters that
//! Anthropic accepts. `refs` handles the schemas of the properties.

use std::collections::BTreeSet;

use plimsoll_context::{Bytes, clip};
use serde_json::{Map, Value, json};

/// Maximum length of a property name that every provider accepts.
const MAX_KEY: usize = 64;
/// Maximum size of the description of a tool's forms.
const MAX_FORMS: Bytes = Bytes(500);
/// Keywords that are not allowed at the top level.
const GONE: [&str; 11] = [
    "allOf", "anyOf", "oneOf", "not", "enum", "const", "if", "then", "else", "items", "$ref",
];
/// Maximum nesting of choices.
const MAX_DEPTH: usize = 8;

/// Removes choices at the top level. The result has the properties of all forms, and requires only
/// those that all forms require. Also returns the required properties of each form.
pub(super) fn flat(mut schema: Map<String, Value>) -> (Map<String, Value>, Vec<BTreeSet<String>>) {
    let mut forms = Vec::new();
    flatten(&mut schema, &mut forms, MAX_DEPTH);
    schema.insert("type".to_owned(), "object".into());
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".to_owned(), json!({}));
    }
    (schema, forms)
}

/// Describes the forms in words, with the new property names.
pub(super) fn describe_forms(
    forms: &[BTreeSet<String>],
    renamed: &[(String, String)],
) -> Option<String> {
    let form = |form: &BTreeSet<String>| {
        let shown = |name: &String| {
            let names = renamed.iter().find(|(_, real)| real == name);
            format!("`{}`", names.map_or(name, |(shown, _)| shown))
        };
        let names: Vec<String> = form.iter().map(shown).collect();
        names.join(" and ")
    };
    let mut forms: Vec<String> = forms.iter().map(form).collect();
    forms.retain(|form| !form.is_empty());
    forms.dedup();
    if forms.len() < 2 {
        return None;
    }
    let forms = forms.join("; or ");
    let told = format!("Its arguments take one of these forms: {forms}.");
    Some(clip(&told, MAX_FORMS).to_owned())
}

/// Renames properties so that every provider accepts them. Returns pairs of the new and the server's
/// name.
pub(super) fn renamed(schema: &mut Map<String, Value>) -> Vec<(String, String)> {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return Vec::new();
    };
    if properties.keys().all(|name| is_good(name)) {
        return Vec::new();
    }
    let mut taken: BTreeSet<String> = properties.keys().cloned().collect();
    let mut names = Vec::new();
    let all = std::mem::take(properties);
    for (name, value) in all {
        let shown = if is_good(&name) {
            name
        } else {
            let shown = good(&name, &taken);
            taken.insert(shown.clone());
            names.push((shown.clone(), name));
            shown
        };
        properties.insert(shown, value);
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        for one in required {
            let shown = names.iter().find(|(_, name)| one == name);
            if let Some((shown, _)) = shown {
                *one = shown.clone().into();
            }
        }
    }
    names
}

/// Merges the choices of a schema into it, and collects the required properties of each form.
fn flatten(schema: &mut Map<String, Value>, forms: &mut Vec<BTreeSet<String>>, depth: usize) {
    let mut parts = Vec::new();
    for word in GONE {
        let branches = match (word, schema.remove(word)) {
            ("allOf" | "anyOf" | "oneOf", Some(Value::Array(branches))) => branches,
            ("then" | "else", Some(branch)) => vec![branch],
            _ => continue,
        };
        parts.push((word, branches));
    }
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    for (word, branches) in parts {
        let mut shared: Option<BTreeSet<String>> = None;
        for branch in branches {
            let Value::Object(mut branch) = branch else {
                continue;
            };
            let mut within = Vec::new();
            flatten(&mut branch, &mut within, depth);
            let needs = required(&branch);
            if matches!(word, "anyOf" | "oneOf") {
                forms.push(needs.clone());
            } else {
                forms.append(&mut within);
            }
            shared = Some(match (shared, word) {
                (None, _) => needs,
                (Some(all), "allOf") => all.union(&needs).cloned().collect(),
                (Some(all), _) => all.intersection(&needs).cloned().collect(),
            });
            join(schema, branch);
        }
        // Conditional requirements are not required in general.
        if !matches!(word, "then" | "else") {
            require(schema, shared.unwrap_or_default());
        }
    }
}

/// Adds the missing properties of a form.
fn join(schema: &mut Map<String, Value>, branch: Map<String, Value>) {
    let Some(Value::Object(more)) = branch.into_iter().find_map(|(key, value)| {
        let is_it = key == "properties";
        is_it.then_some(value)
    }) else {
        return;
    };
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        for (name, value) in more {
            properties.entry(name).or_insert(value);
        }
    }
}

fn required(schema: &Map<String, Value>) -> BTreeSet<String> {
    let names = schema.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

fn require(schema: &mut Map<String, Value>, more: BTreeSet<String>) {
    let more: Vec<String> = more.difference(&required(schema)).cloned().collect();
    if more.is_empty() {
        return;
    }
    let required = schema.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(names) = required {
        names.extend(more.into_iter().map(Value::from));
    }
}

fn is_good(name: &str) -> bool {
    (1..=MAX_KEY).contains(&name.len()) && name.chars().all(is_good_char)
}

fn is_good_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}

/// Returns a similar name that every provider accepts and that is not used yet.
fn good(name: &str, taken: &BTreeSet<String>) -> String {
    let clean = name.chars().map(|c| if is_good_char(c) { c } else { '_' });
    let clean: String = clean.take(MAX_KEY).collect();
    let numbered = (2..).map(|number: usize| {
        let end = format!("_{number}");
        let kept: String = clean.chars().take(MAX_KEY - end.len()).collect();
        format!("{kept}{end}")
    });
    let mut names = std::iter::once(clean.clone()).chain(numbered);
    let free = names.find(|name| !name.is_empty() && !taken.contains(name));
    free.unwrap_or(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(schema: Value) -> Map<String, Value> {
        match schema {
            Value::Object(schema) => schema,
            _ => unreachable!(),
        }
    }

    #[test]
    fn no_choice_is_left_at_the_outermost_level() {
        let (a, b) = (json!({ "type": "string" }), json!({ "type": "integer" }));
        for (schema, told, forms) in [
            // As in servers of a code index and of an image model.
            (
                json!({ "type": "object", "properties": { "p": a, "x": a, "y": a }, "required": ["p"], "anyOf": [{ "required": ["x"] }, { "required": ["y"] }] }),
                json!({ "type": "object", "properties": { "p": a, "x": a, "y": a }, "required": ["p"] }),
                Some("Its arguments take one of these forms: `x`; or `y`."),
            ),
            // As in Notion's server: only forms.
            (
                json!({ "type": "object", "anyOf": [
                    { "type": "object", "properties": { "id": a, "text": a }, "required": ["id", "text"], "additionalProperties": false },
                    { "type": "object", "properties": { "id": a, "url": a }, "required": ["id", "url"] },
                ] }),
                json!({ "type": "object", "properties": { "id": a, "text": a, "url": a }, "required": ["id"] }),
                Some("Its arguments take one of these forms: `id` and `text`; or `id` and `url`."),
            ),
            (
                json!({ "allOf": [{ "properties": { "a": a }, "required": ["a"] }, { "properties": { "b": b }, "required": ["b"] }] }),
                json!({ "type": "object", "properties": { "a": a, "b": b }, "required": ["a", "b"] }),
                None,
            ),
            (
                json!({ "properties": { "a": a }, "if": { "properties": { "a": { "const": "x" } } }, "then": { "properties": { "b": b }, "required": ["b"] }, "else": { "required": ["a"] }, "not": {}, "enum": [1] }),
                json!({ "type": "object", "properties": { "a": a, "b": b } }),
                None,
            ),
            (
                json!({ "type": "string" }),
                json!({ "type": "object", "properties": {} }),
                None,
            ),
            (
                json!({ "properties": [], "oneOf": "x" }),
                json!({ "type": "object", "properties": {} }),
                None,
            ),
            // Choices within a property are allowed.
            (
                json!({ "properties": { "a": { "anyOf": [a, b] } } }),
                json!({ "type": "object", "properties": { "a": { "anyOf": [a, b] } } }),
                None,
            ),
        ] {
            let (schema, said) = flat(object(schema));
            let said = super::describe_forms(&said, &[]);
            assert_eq!((Value::Object(schema), said.as_deref()), (told, forms));
        }
    }

    #[test]
    fn names_of_properties_are_such_that_every_provider_takes_them() {
        let long = "x".repeat(70);
        let mut schema = object(json!({
            "properties": { "a.b": 1, "StartTime<": 2, "StartTime>": 3, "StartTime_": 4, "日本": 5, "": 6, &long: 7 },
            "required": ["StartTime<", "a.b"],
        }));
        let names = renamed(&mut schema);
        let shown = schema["properties"].as_object().unwrap();
        assert_eq!(shown.len(), 7);
        assert!(shown.keys().all(|name| is_good(name)), "{shown:?}");
        // Valid names are unchanged, and each value is still in its place.
        assert_eq!(
            (&shown["a.b"], &shown["StartTime_"]),
            (&json!(1), &json!(4))
        );
        let of = |name: &str| &names.iter().find(|(_, real)| real == name).unwrap().0;
        for (name, value) in [
            ("StartTime<", 2),
            ("StartTime>", 3),
            ("日本", 5),
            ("", 6),
            (&long, 7),
        ] {
            assert_eq!(shown[of(name)], json!(value), "{name}");
        }
        assert_eq!(schema["required"], json!([of("StartTime<"), "a.b"]));
        let mut good = object(json!({ "properties": { "a": 1 } }));
        assert!(renamed(&mut good).is_empty());
    }
}
