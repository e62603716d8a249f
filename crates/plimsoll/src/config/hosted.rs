//! Parses `hosted_tools`: tools that run at the provider, in the provider's own format. The
//! provider checks them.

use plimsoll_context::HostedTool;
use serde_json::{Map, Value};

use super::document::{Node, WrittenValue};
use super::kind::quoted;

/// Keys of such tools that hold secrets, which must not be in a file, a process list or a report.
const SECRETS: [&str; 2] = ["authorization", "headers"];

/// Parses a list of tables, or one table. Variables and flags may also contain JSON.
pub(crate) fn read(given: &WrittenValue) -> Option<Vec<HostedTool>> {
    let tools: Vec<Value> = match given {
        WrittenValue::List(nodes) => nodes.iter().map(|node| json(&node.value)).collect(),
        WrittenValue::Table(_) => vec![json(given)],
        WrittenValue::Text(text) => match serde_json::from_str(text).ok()? {
            Value::Array(list) => list,
            one => vec![one],
        },
        _ => return None,
    };
    let tools = tools.into_iter().map(|tool| {
        let tool = HostedTool(tool);
        (!tool.kind().is_empty()).then_some(tool)
    });
    tools.collect()
}

/// Returns the fault of a configured tool, if any.
pub(crate) fn fault(tool: &HostedTool) -> Option<String> {
    let secret = SECRETS.iter().find(|key| tool.0.get(**key).is_some())?;
    let name = tool.name();
    Some(format!(
        "`{secret}` of `{name}` in hosted_tools is a secret, which a configuration would show; give the \
         tool in a program, with `hosted_tool`"
    ))
}

/// Formats a tool as TOML.
pub(crate) fn written(tool: &HostedTool) -> String {
    toml(&tool.0)
}

fn toml(value: &Value) -> String {
    match value {
        Value::Object(keys) => {
            let keys = keys
                .iter()
                .map(|(key, value)| format!("{} = {}", bare(key), toml(value)));
            format!("{{ {} }}", keys.collect::<Vec<_>>().join(", "))
        }
        Value::Array(list) => {
            let list: Vec<String> = list.iter().map(toml).collect();
            format!("[{}]", list.join(", "))
        }
        Value::String(text) => quoted(text),
        // TOML has no such value.
        Value::Null => "\"\"".to_owned(),
        other => other.to_string(),
    }
}

fn bare(key: &str) -> String {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match !key.is_empty() && key.chars().all(good) {
        true => key.to_owned(),
        false => quoted(key),
    }
}

/// Converts a value to JSON.
fn json(written: &WrittenValue) -> Value {
    match written {
        WrittenValue::Flag(flag) => (*flag).into(),
        WrittenValue::Whole(whole) => (*whole).into(),
        WrittenValue::Number(number) => (*number).into(),
        WrittenValue::Text(text) | WrittenValue::Date(text) => text.as_str().into(),
        WrittenValue::Code => Value::Null,
        WrittenValue::List(nodes) => nodes.iter().map(|Node { value, .. }| json(value)).collect(),
        WrittenValue::Table(table) => {
            let entries = table.0.iter();
            let entries = entries.map(|entry| (entry.key.clone(), json(&entry.node.value)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
    }
}
