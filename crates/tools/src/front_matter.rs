//! [`front_matter`]: parses the YAML between two lines `---` at the top of a Markdown file. [`yaml`]: a
//! whole text in YAML.

use serde_json::{Map, Value};
use yaml_rust2::parser::{Event, Parser};
use yaml_rust2::{Yaml, YamlLoader};

/// Maximum nesting of values. Deeper ones are a mistake or an attempt to exhaust the stack.
const MAX_DEPTH: usize = 16;

/// Returns the fields at the top of a Markdown file, in order, and the text after them.
///
/// # Errors
/// If the text does not begin with a line `---`, if there is no second one, or if the text between them
/// is not a YAML mapping. The error is a sentence.
pub fn front_matter(text: &str) -> Result<(Map<String, Value>, &str), String> {
    let (front, body) = parts(text)?;
    // The line --- counts, so that an error names the line of the file.
    let yaml = yaml(&format!("\n{front}"))
        .map_err(|error| format!("the text between the lines --- is not valid YAML: {error}"))?;
    match yaml {
        Value::Object(fields) => Ok((fields, body)),
        Value::Null => Ok((Map::new(), body)),
        _ => Err("the text between the lines --- has no fields `name: value`".to_owned()),
    }
}

/// Parses the first document of a text in YAML.
///
/// # Errors
/// If the text is not YAML, if it is nested more than 16 levels deep, or if it has an alias (`*name`): a
/// few lines of them can expand to a value of any size.
pub fn yaml(text: &str) -> Result<Value, String> {
    let mut parser = Parser::new_from_str(text);
    let mut depth = 0;
    // The loader recurses, so that it must not see what is nested too deeply.
    while let Ok((event, place)) = parser.next_token() {
        let line = place.line();
        match event {
            Event::Alias(_) => {
                return Err(format!("line {line} has an alias; write its value instead"));
            }
            Event::SequenceStart(..) | Event::MappingStart(..) if depth == MAX_DEPTH => {
                return Err(format!(
                    "line {line} is nested more than {MAX_DEPTH} levels deep"
                ));
            }
            Event::SequenceStart(..) | Event::MappingStart(..) => depth += 1,
            Event::SequenceEnd | Event::MappingEnd => depth -= 1,
            Event::StreamEnd => break,
            _ => {}
        }
    }
    let documents = YamlLoader::load_from_str(text).map_err(|error| error.to_string())?;
    let first = documents.into_iter().next();
    Ok(first.map_or(Value::Null, json))
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

fn json(yaml: Yaml) -> Value {
    match yaml {
        Yaml::Real(text) => text
            .parse()
            .map_or(Value::Null, |number: f64| number.into()),
        Yaml::Integer(whole) => whole.into(),
        Yaml::String(text) => text.into(),
        Yaml::Boolean(flag) => flag.into(),
        Yaml::Array(items) => Value::Array(items.into_iter().map(json).collect()),
        Yaml::Hash(fields) => {
            let fields = fields.into_iter().filter_map(|(key, value)| match key {
                Yaml::String(key) => Some((key, json(value))),
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
        let bomb = (1..40).map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}]\n", n - 1));
        let bomb = format!("---\na0: &a0 x\n{}---\n", bomb.collect::<String>());
        let error = front_matter(&bomb).err().unwrap_or_default();
        assert!(error.contains("line 3 has an alias"), "{error}");
        for deep in ["[".repeat(100), "\n - ".to_owned() + &"- ".repeat(120_000)] {
            let error = front_matter(&format!("---\na: {deep}x\n---\n")).err();
            let error = error.unwrap_or_default();
            assert!(error.contains("nested more than 16 levels deep"), "{error}");
        }
    }
}
