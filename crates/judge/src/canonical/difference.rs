//! [`places`]: a short description of the differences between two JSON values, for people to read.

use serde_json::Value;

use crate::fault::key_place;

/// The maximum number of places that are named. A message with more differences was written anew.
const MAX_PLACES: usize = 4;
/// Longer values are not shown.
const SHOWN: usize = 40;

/// Returns the places at which a value differs from its previous value.
pub(super) fn places(before: &Value, after: &Value) -> Vec<String> {
    let mut places = Vec::new();
    compare("", before, after, &mut places);
    places
}

/// Describes the change in these places. Returns `None` if there are none.
pub(super) fn changed(places: Vec<String>) -> Option<String> {
    match places.len() {
        0 => None,
        1..=MAX_PLACES => Some(format!("changed {}", places.join(", "))),
        many => {
            let first: Vec<String> = places.into_iter().take(MAX_PLACES).collect();
            let more = many - first.len();
            Some(format!("changed {}, and {more} more", first.join(", ")))
        }
    }
}

fn compare(place: &str, before: &Value, after: &Value, places: &mut Vec<String>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                let place = join(place, key);
                match new.get(key) {
                    Some(other) => compare(&place, value, other, places),
                    None => places.push(format!("{place} (taken out)")),
                }
            }
            for key in new.keys().filter(|key| !old.contains_key(*key)) {
                places.push(format!("{} (put in)", join(place, key)));
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (value, other)) in old.iter().zip(new).enumerate() {
                compare(&format!("{place}[{index}]"), value, other, places);
            }
        }
        (old, new) => {
            let (old, new) = (old.to_string(), new.to_string());
            places.push(if old.len() <= SHOWN && new.len() <= SHOWN {
                format!("{place} from {old} to {new}")
            } else {
                place.to_owned()
            });
        }
    }
}

fn join(place: &str, key: &str) -> String {
    let key = key_place(key);
    if place.is_empty() || key.starts_with('[') {
        format!("{place}{key}")
    } else {
        format!("{place}.{key}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_differs_is_named() {
        let before = json!({"role": "tool", "tool_call_id": "call_1", "content": "x", "n": [1, 2]});
        for (after, expected) in [
            (before.clone(), None),
            (
                json!({"role": "tool", "tool_call_id": "a", "content": "x", "n": [1, 3]}),
                Some("changed tool_call_id from \"call_1\" to \"a\", n[1] from 2 to 3"),
            ),
            (
                json!({"role": "tool", "tool_call_id": "call_1", "name": "f", "n": [1]}),
                Some("changed content (taken out), n from [1,2] to [1], name (put in)"),
            ),
        ] {
            let description = changed(places(&before, &after));
            assert_eq!(description.as_deref(), expected);
        }
    }
}
