//! [`front_matter`]: parses the YAML between two lines `---` at the top of a Markdown file.

use serde_json::{Map, Value};
use yaml_rust2::{Yaml, YamlLoader};

/// Maximum nesting of values. Deeper values are a mistake or an attempt to exhaust the stack.
const MAX_DEPTH: usize = 16;

/// Returns the fields at the top of a Markdown file, in order, and the text after them.
///
/// # Errors
/// If the text does not begin with a line `---`, if there is no second one, or if the text between them
/// is not a YAML mapping. The error is a sentence.
pub fn front_matter(text: &str) -> Result<(Map<String, Value>, &str), String> {
    let (front, body) = parts(text)?;
    // The line --- counts, so that an error names the line of the file.
    let yaml = YamlLoader::load_from_str(&format!("\n{front}"))
        .map_err(|error| format!("the text between the lines --- is not valid YAML: {error}"))?;
    match yaml.into_iter().next().map(|yaml| json(yaml, MAX_DEPTH)) {
        Some(Value::Object(fields)) => Ok((fields, body)),
        None | Some(Value::Null) => Ok((Map::new(), body)),
        Some(_) => Err("the text between the lines --- has no fields `name: value`".to_owned()),
    }
}

fn parts(text: &str) -> Result<(&str, &str), String> {
    let rest = text.trim_start_matches('\u{feff}').strip_prefix("---");
    let rest = rest.map(|rest| rest.trim_start_matches([' ', '\t', '\r']));
    let rest = rest.and_then(|rest| rest.strip_prefix('\n'));
    let rest = rest.ok_or("it does not start with a line ---")?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let (front, body) = rest.split_at(at);
            return Ok((front, body.strip_prefix(line).unwrap_or(body)));
        }
        at += line.len();
    }
    Err("a second line --- after its fields is missing".to_owned())
}

fn json(yaml: Yaml, depth: usize) -> Value {
    if depth == 0 {
        return Value::Null;
    }
    match yaml {
        Yaml::Real(text) => text
            .parse()
            .map_or(Value::Null, |number: f64| number.into()),
        Yaml::Integer(whole) => whole.into(),
        Yaml::String(text) => text.into(),
        Yaml::Boolean(flag) => flag.into(),
        Yaml::Array(items) => {
            let items = items.into_iter().map(|item| json(item, depth - 1));
            Value::Array(items.collect())
        }
        Yaml::Hash(fields) => {
            let fields = fields.into_iter().filter_map(|(key, value)| match key {
                Yaml::String(key) => Some((key, json(value, depth - 1))),
                _ => None,
            });
            Value::Object(fields.collect())
        }
        Yaml::Alias(_) | Yaml::Null | Yaml::BadValue => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_every_kind_are_read() {
        let text = "\u{feff}---\r\na: b: c\r\n---\r\n";
        assert!(front_matter(text).is_err());
        let text = "--- \nname: x\nlong: >-\n  two\n  lines\nlist: [a, 1]\nflag: true\nsome: 0.5\n---\nBody\n---\n";
        let (fields, body) = front_matter(text).unwrap_or_else(|why| panic!("{why}"));
        let expected =
            json!({"name": "x", "long": "two lines", "list": ["a", 1], "flag": true, "some": 0.5});
        assert_eq!(Value::Object(fields), expected);
        assert_eq!(body, "Body\n---\n");
    }

    #[test]
    fn what_has_no_front_matter_is_refused() {
        for (text, why) in [
            ("# Title", "does not start with a line ---"),
            (
                "---\nname: x\n",
                "a second line --- after its fields is missing",
            ),
            ("---\n- a\n---\n", "has no fields"),
            ("---\n\"a\n---\n", "not valid YAML"),
            ("---\nname: a\nb: [\n---\n", "line 4 column 1"),
            ("---\nname: a\n  b: c\n---\n", "line 3 column"),
        ] {
            let error = front_matter(text).err().unwrap_or_default();
            assert!(error.contains(why), "{text}: {error}");
        }
        let deep = format!(
            "---\na: {}{}\n---\n",
            "[".repeat(120_000),
            "]".repeat(120_000)
        );
        let _ = front_matter(&deep);
    }
}
