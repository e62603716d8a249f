//! Damage to JSON: nodes dropped, duplicated, swapped and replaced, so that a valid request becomes
//! an almost valid one. Deterministic: the random numbers come from outside. The fuzz targets use
//! it too.

use serde_json::{Map, Value, json};

/// Nodes of a value that are looked at, at most; damage behind them is left to smaller values.
const MAX_NODES: usize = 4_096;
/// What a value may grow to by doubling.
const MAX_TEXT: usize = 64 * 1024;

/// What stands in place of something else: the edges of what a wire knows.
const WORDS: [&str; 40] = [
    "",
    " ",
    "\n\t",
    "\u{feff}",
    "🦀é",
    "a\u{0}b",
    "{}",
    "{\"a\":1}",
    "[]",
    "null",
    "{\"x\":1e999}",
    "{\"a\":1,\"a\":2}",
    "user",
    "assistant",
    "system",
    "developer",
    "tool",
    "function",
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "tool_use",
    "tool_result",
    "server_tool_use",
    "thinking",
    "redacted_thinking",
    "text",
    "input_text",
    "output_text",
    "image_url",
    "input_image",
    "image",
    "document",
    "compaction",
    "call_1",
    "fc_1",
    "rs_1",
    "no such/name with.dots",
];

/// The way from the root to a node.
type Path = Vec<JsonStep>;

#[derive(Debug, Clone, PartialEq)]
enum JsonStep {
    Key(String),
    Index(usize),
}

/// Damages one place. `pick(n)` gives a number below `n`.
pub(crate) fn damage(value: &mut Value, pick: &mut dyn FnMut(usize) -> usize) {
    let mut paths = Vec::new();
    collect(value, &mut Vec::new(), &mut paths);
    let path = paths[pick(paths.len())].clone();
    let other = paths[pick(paths.len())].clone();
    let other = find(value, &other).cloned().unwrap_or_default();
    match pick(8) {
        0 => drop(remove(value, &path)),
        1 => double(value, &path, pick),
        2 => {
            let at = paths[pick(paths.len())].clone();
            swap(value, &path, &at);
        }
        3 | 4 => set(value, &path, kind(pick)),
        5 => set(value, &path, other),
        6 => words(value, &path, pick),
        _ => rename(value, &path, &paths, pick),
    }
    if value.to_string().len() > MAX_TEXT {
        remove(value, &path);
    }
}

fn collect(value: &Value, here: &mut Path, paths: &mut Vec<Path>) {
    if paths.len() >= MAX_NODES {
        return;
    }
    paths.push(here.clone());
    match value {
        Value::Array(list) => {
            for (index, inner) in list.iter().enumerate() {
                here.push(JsonStep::Index(index));
                collect(inner, here, paths);
                here.pop();
            }
        }
        Value::Object(object) => {
            for (key, inner) in object {
                here.push(JsonStep::Key(key.clone()));
                collect(inner, here, paths);
                here.pop();
            }
        }
        _ => {}
    }
}

fn find<'v>(value: &'v Value, path: &[JsonStep]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, step| match step {
        JsonStep::Key(key) => value.get(key),
        JsonStep::Index(index) => value.get(index),
    })
}

fn find_mut<'v>(value: &'v mut Value, path: &[JsonStep]) -> Option<&'v mut Value> {
    path.iter().try_fold(value, |value, step| match step {
        JsonStep::Key(key) => value.get_mut(key),
        JsonStep::Index(index) => value.get_mut(index),
    })
}

fn remove(value: &mut Value, path: &[JsonStep]) -> Option<Value> {
    let (last, parent) = path.split_last()?;
    match (find_mut(value, parent)?, last) {
        (Value::Array(list), JsonStep::Index(index)) if *index < list.len() => {
            Some(list.remove(*index))
        }
        (Value::Object(object), JsonStep::Key(key)) => object.shift_remove(key),
        _ => None,
    }
}

fn double(value: &mut Value, path: &[JsonStep], pick: &mut dyn FnMut(usize) -> usize) {
    let Some((last, parent)) = path.split_last() else {
        return;
    };
    match (find_mut(value, parent), last) {
        (Some(Value::Array(list)), JsonStep::Index(index)) if *index < list.len() => {
            let copy = list[*index].clone();
            let at = pick(list.len() + 1);
            list.insert(at, copy);
        }
        (Some(Value::Object(object)), JsonStep::Key(key)) => {
            if let Some(copy) = object.get(key).cloned() {
                object.insert(WORDS[pick(WORDS.len())].into(), copy);
            }
        }
        _ => {}
    }
}

fn swap(value: &mut Value, one: &[JsonStep], other: &[JsonStep]) {
    // One within the other cannot be swapped.
    if one.starts_with(other) || other.starts_with(one) {
        return;
    }
    let first = find_mut(value, one).map(Value::take);
    let second = find_mut(value, other).map(Value::take);
    if let (Some(first), Some(second)) = (first, second) {
        set(value, one, second);
        set(value, other, first);
    }
}

fn set(value: &mut Value, path: &[JsonStep], new: Value) {
    if let Some(place) = find_mut(value, path) {
        *place = new;
    }
}

fn kind(pick: &mut dyn FnMut(usize) -> usize) -> Value {
    match pick(14) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(false),
        3 => json!(0),
        4 => json!(-1),
        5 => json!(1.5),
        6 => json!(u64::MAX),
        7 => json!(1e300),
        8 => json!([]),
        9 => json!({}),
        10 => json!([null]),
        11 => json!({"type": WORDS[pick(WORDS.len())]}),
        12 => json!([{"type": WORDS[pick(WORDS.len())], "text": "t"}]),
        _ => json!(WORDS[pick(WORDS.len())]),
    }
}

/// Another text for a text; a wrapping for anything else.
fn words(value: &mut Value, path: &[JsonStep], pick: &mut dyn FnMut(usize) -> usize) {
    let Some(place) = find_mut(value, path) else {
        return;
    };
    *place = match place.take() {
        Value::String(text) => match pick(5) {
            0 => json!(text.repeat(1 + pick(9))),
            1 => json!(format!(" {text} ")),
            2 => json!(text.chars().skip(1).collect::<String>()),
            3 => json!([{"type": "text", "text": text}]),
            _ => json!(WORDS[pick(WORDS.len())]),
        },
        Value::Number(number) => json!(number.to_string()),
        other => match pick(2) {
            0 => json!([other]),
            _ => json!({ "content": other }),
        },
    };
}

fn rename(
    value: &mut Value,
    path: &[JsonStep],
    paths: &[Path],
    pick: &mut dyn FnMut(usize) -> usize,
) {
    let Some((JsonStep::Key(key), parent)) = path.split_last() else {
        return;
    };
    let named = match paths[pick(paths.len())].last() {
        Some(JsonStep::Key(named)) => named.clone(),
        _ => WORDS[pick(WORDS.len())].to_owned(),
    };
    if let Some(Value::Object(object)) = find_mut(value, parent) {
        let old: Map<String, Value> = std::mem::take(object);
        for (name, inner) in old {
            let name = if name == *key { named.clone() } else { name };
            object.insert(name, inner);
        }
    }
}
