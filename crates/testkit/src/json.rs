//! Random JSON from the keys and words that a reader looks for, in places where they belong or not.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

/// Returns JSON of at most six levels whose objects have these keys and whose texts are these words,
/// or short arbitrary ones.
///
/// Keys and words are separated by spaces.
pub fn json_of(keys: &'static str, words: &'static str) -> impl Strategy<Value = Value> {
    let list = |text: &'static str| text.split_whitespace().collect::<Vec<_>>();
    let (keys, words) = (list(keys), list(words));
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        2 => select(words).prop_map(Value::from),
        1 => ".{0,5}".prop_map(Value::from),
        1 => select(vec!["", "🦀", "{}"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 80, 6, move |inner| {
        let field = (select(keys.clone()).prop_map(str::to_owned), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(Value::from),
            prop::collection::vec(field, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}
