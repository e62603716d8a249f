//! Parses `hosted_tools`: tools that run at the provider, in the provider's own format. The
//! provider checks them.

use plimsoll_context::HostedTool;
use serde_json::{Map, Value};

use super::document::{Node, WrittenValue};

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
