//! Tests for arguments: conversions, values that stay unchanged, and error messages.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn fitted(schema: &Value, written: &str) -> Map<String, Value> {
    let mut arguments = read_arguments(written).unwrap();
    fit(schema, &mut arguments);
    arguments
}

fn field(schema: Value) -> Value {
    json!({ "type": "object", "properties": { "x": schema } })
}

/// Returns the field `x` after conversion.
fn becomes(schema: &Value, x: &str) -> String {
    let fitted = fitted(&field(schema.clone()), &format!("{{\"x\":{x}}}"));
    let x = fitted.get("x").map(Value::to_string);
    x.unwrap_or_else(|| "gone".to_owned())
}

#[test]
fn values_of_the_wrong_type_are_converted() {
    let kind = |name: &str| json!({ "type": name });
    let list_of = |items: Value| json!({ "type": "array", "items": items });
    let point = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let table = [
        (kind("integer"), "\"60\"", "60"),
        (kind("integer"), "\" -7 \"", "-7"),
        (kind("integer"), "\"60.0\"", "60"),
        (kind("integer"), "60.0", "60"),
        (
            kind("integer"),
            "\"18446744073709551615\"",
            "18446744073709551615",
        ),
        (kind("number"), "\"0.25\"", "0.25"),
        (kind("number"), "\"1e3\"", "1000.0"),
        (kind("number"), "\"60\"", "60"),
        (kind("boolean"), "\"true\"", "true"),
        (kind("boolean"), "\" False\"", "false"),
        (kind("string"), "60", "\"60\""),
        (kind("object"), "\"{\\\"a\\\": 1}\"", "{\"a\":1}"),
        (kind("array"), "\"[1, 2]\"", "[1,2]"),
        (list_of(kind("string")), "\"a\"", "[\"a\"]"),
        (list_of(kind("string")), "15", "[\"15\"]"),
        (list_of(kind("integer")), "\"60\"", "[60]"),
        (list_of(kind("integer")), "\"[\\\"60\\\", 7]\"", "[60,7]"),
        (list_of(point.clone()), "{\"n\": \"6\"}", "[{\"n\":6}]"),
        (kind("array"), "7", "[7]"),
        (kind("string"), "null", "gone"),
        (
            json!({ "enum": ["1", "2"], "type": "string" }),
            "1",
            "\"1\"",
        ),
        // At any depth.
        (point.clone(), "{\"n\": \"6\"}", "{\"n\":6}"),
        (point.clone(), "\"{\\\"n\\\": \\\"6\\\"}\"", "{\"n\":6}"),
        (
            json!({ "type": "object", "additionalProperties": { "type": "integer" } }),
            "{\"a\": \"1\", \"b\": 2}",
            "{\"a\":1,\"b\":2}",
        ),
        // `null` is allowed as well.
        (json!({ "type": ["integer", "null"] }), "\"60\"", "60"),
        (json!({ "type": ["integer", "null"] }), "null", "null"),
        (
            json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }),
            "\"60\"",
            "60",
        ),
        (
            json!({ "oneOf": [point.clone(), { "type": "null" }] }),
            "{\"n\": \"6\"}",
            "{\"n\":6}",
        ),
        (json!({ "allOf": [{ "type": "integer" }] }), "\"60\"", "60"),
        (
            json!({ "type": "integer", "nullable": true }),
            "null",
            "null",
        ),
    ];
    for (schema, x, expected) in table {
        assert_eq!(becomes(&schema, x), expected, "{x} for {schema}");
    }
}

#[test]
fn ambiguous_and_lossy_values_stay_unchanged() {
    let kind = |name: &str| json!({ "type": name });
    let list_of = |items: Value| json!({ "type": "array", "items": items });
    let table = [
        // A conversion would lose information.
        (kind("integer"), "\"60.5\""),
        (kind("integer"), "60.5"),
        (kind("integer"), "\"123456789012345678901234567890\""),
        (kind("integer"), "\"1e30\""),
        (kind("number"), "\"123456789012345678901234567890\""),
        // An id, a size or a word, but not a JSON number.
        (kind("integer"), "\"007\""),
        (kind("integer"), "\"60s\""),
        (kind("integer"), "\"0x10\""),
        (kind("integer"), "\"\""),
        (kind("integer"), "true"),
        (kind("number"), "\"NaN\""),
        (kind("number"), "\"Infinity\""),
        (kind("number"), "\"1,5\""),
        (kind("boolean"), "\"yes\""),
        (kind("boolean"), "1"),
        (kind("string"), "1.10"),
        (kind("string"), "true"),
        (kind("string"), "{\"a\":1}"),
        (kind("string"), "[\"a\"]"),
        (kind("object"), "\"a=1\""),
        (kind("object"), "\"[1]\""),
        (kind("object"), "[]"),
        (kind("array"), "\"[a, b\""),
        (list_of(kind("integer")), "\"a\""),
        (list_of(kind("integer")), "{}"),
        // The value is already valid.
        (kind("string"), "\"60\""),
        (json!({ "type": ["string", "integer"] }), "\"60\""),
        (
            json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }),
            "\"60\"",
        ),
        (json!({ "type": "string", "enum": ["a", "A"] }), "\"a\""),
        (json!({}), "\"60\""),
        (json!(true), "null"),
        (json!({ "const": null }), "null"),
        // The value is ambiguous.
        (json!({ "type": ["integer", "array"] }), "\"60\""),
        (json!({ "type": ["integer", "number"] }), "\"60\""),
        (json!({ "type": "string", "enum": ["ab", "AB"] }), "\"Ab\""),
        (
            json!({ "anyOf": [{ "type": "integer" }, { "type": "array" }] }),
            "\"60\"",
        ),
        // Unsupported references are left to the tool.
        (json!({ "$ref": "#/nowhere" }), "\"60\""),
        (json!({ "$ref": "https://example.com/schema" }), "\"60\""),
        (json!({ "$ref": "#" }), "\"60\""),
    ];
    for (schema, x) in table {
        let kept: Value = serde_json::from_str(x).unwrap();
        assert_eq!(becomes(&schema, x), kept.to_string(), "{x} for {schema}");
    }
}

#[test]
fn null_is_removed_from_optional_fields_only() {
    let schema = json!({
        "type": "object",
        "required": ["a"],
        "properties": {
            "a": { "type": "string" },
            "b": { "type": "string" },
            "c": { "type": ["string", "null"] },
            "d": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            "e": {},
        },
    });
    let nulls = "{\"a\":null,\"b\":null,\"c\":null,\"d\":null,\"e\":null,\"f\":null}";
    let fitted = fitted(&schema, nulls);
    let left: Vec<&String> = fitted.keys().collect();
    assert_eq!(left, ["a", "c", "d", "e", "f"]);
}

#[test]
fn a_choice_of_several_types_is_left_to_the_tool() {
    let schema = field(json!({ "anyOf": [
        { "type": "object", "required": ["a", "b"], "properties": { "a": { "type": "integer" } } },
        { "type": "object", "required": ["c"], "properties": { "c": { "type": "integer" } } },
    ] }));
    let written = "{\"x\":{\"a\":\"1\",\"c\":\"2\"}}";
    let fitted = fitted(&schema, written);
    assert_eq!(Value::Object(fitted).to_string(), written);
}

#[test]
fn references_are_followed() {
    let schema = json!({
        "type": "object",
        "$defs": {
            "n": { "type": "integer" },
            "tree": { "type": "object", "properties": {
                "n": { "$ref": "#/$defs/n" },
                "of": { "type": "array", "items": { "$ref": "#/$defs/tree" } },
            } },
        },
        "properties": { "x": { "$ref": "#/$defs/tree" } },
    });
    let fitted = fitted(
        &schema,
        "{\"x\":{\"n\":\"1\",\"of\":[{\"n\":\"2\",\"of\":[]}]}}",
    );
    assert_eq!(
        Value::Object(fitted),
        json!({ "x": { "n": 1, "of": [{ "n": 2, "of": [] }] } })
    );
}

#[test]
fn an_invalid_schema_changes_nothing_and_reports_nothing() {
    for schema in [
        json!(null),
        json!(7),
        json!("object"),
        json!([]),
        json!({ "type": 5 }),
        json!({ "type": "whole" }),
        json!({ "type": [] }),
        json!({ "type": ["integer", 1] }),
        json!({ "properties": [] }),
        json!({ "properties": { "x": { "type": "whole" }, "y": 7 } }),
        json!({ "properties": { "x": {} }, "required": "x" }),
        json!({ "properties": { "x": {} }, "required": [1] }),
        json!({ "properties": { "x": { "enum": "x" } } }),
        json!({ "properties": { "x": { "anyOf": [] } } }),
        json!({ "properties": { "x": { "anyOf": {} } } }),
        json!({ "properties": { "x": { "$ref": 1 } } }),
        json!({ "type": "array", "items": { "type": "integer" } }),
    ] {
        let written = "{\"x\":\"60\"}";
        let fitted = fitted(&schema, written);
        assert_eq!(Value::Object(fitted).to_string(), written, "{schema}");
    }
}

/// Circular references, nested choices and very long lists.
#[test]
fn circular_references_and_long_lists_end() {
    let circle = json!({
        "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } },
        "properties": { "x": { "$ref": "#/$defs/a" } },
    });
    assert_eq!(fitted(&circle, "{\"x\":\"60\"}")["x"], "60");
    let choice = json!({
        "$defs": { "a": { "anyOf": [
            { "$ref": "#/$defs/a" }, { "$ref": "#/$defs/a" }, { "type": "integer" },
        ] } },
        "properties": { "x": { "$ref": "#/$defs/a" } },
    });
    assert_eq!(fitted(&choice, "{\"x\":\"60\"}")["x"], "60");
    let list = field(json!({ "type": "array", "items": { "type": "integer" } }));
    let long = format!("{{\"x\":[{}]}}", vec!["\"1\""; 100_000].join(","));
    let fitted = fitted(&list, &long);
    assert_eq!(fitted["x"], json!(vec![1; 100_000]));
    let deep = (0..500).fold(
        json!({ "type": "integer" }),
        |inner, _| json!({ "type": "array", "items": inner }),
    );
    assert_eq!(becomes(&field(deep), "\"60\""), "\"60\"");
}

#[test]
fn arguments_that_are_no_object_are_refused() {
    for bad in [
        "{\"a\": ",
        "[1]",
        "null",
        "7",
        "\"x\"",
        "{}{}",
        "\"[1]\"",
        "\"\\\"{}\\\"\"",
    ] {
        assert!(read_arguments(bad).is_err(), "{bad}");
    }
    for good in ["", "  ", "{}", "\"{}\""] {
        assert!(read_arguments(good).unwrap().is_empty(), "{good:?}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        // Sums of powers of two are parsed exactly as they were written.
        (-4000_i32..4000).prop_map(|n| Value::from(f64::from(n) / 8.0)),
        "[0-9a-z{}\\[\\]\":. -]{0,6}".prop_map(Value::String),
        prop_oneof![
            Just("60"),
            Just("true"),
            Just("[1]"),
            Just("{}"),
            Just("integer")
        ]
        .prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("type".to_owned()),
        Just("properties".to_owned()),
        Just("items".to_owned()),
        Just("anyOf".to_owned()),
        Just("required".to_owned()),
        Just("enum".to_owned()),
        Just("$ref".to_owned()),
        "[ab]",
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((key.clone(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A valid schema of the relevant types.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop::sample::select(vec![
        "integer", "number", "boolean", "string", "array", "object", "null",
    ])
    .prop_map(|name| json!({ "type": name }));
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            inner
                .clone()
                .prop_map(|items| json!({ "type": "array", "items": items })),
            (inner.clone(), any::<bool>()).prop_map(|(a, required)| json!({
                "type": "object", "properties": { "a": a },
                "required": if required { vec!["a"] } else { vec![] },
            })),
            prop::collection::vec(inner, 1..3).prop_map(|any| json!({ "anyOf": any })),
        ]
    })
}

proptest! {
    #[test]
    fn no_schema_and_no_arguments_panic(schema in any_json(), x in any_json()) {
        let written = json!({ "a": x }).to_string();
        fitted(&field(schema), &written);
    }

    /// Converted values are valid, and a second conversion changes nothing.
    #[test]
    fn a_second_conversion_changes_nothing(schema in any_schema(), x in any_json()) {
        let schema = field(schema);
        let once = fitted(&schema, &json!({ "x": x }).to_string());
        let written = Value::Object(once.clone()).to_string();
        let twice = fitted(&schema, &written);
        prop_assert_eq!(&twice, &once);
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let text_or_whole = json!({ "type": ["string", "integer"] });
    for (schema, x, fault) in [
        (
            json!({ "type": "integer" }),
            "\"a\"",
            Some("the string \"a\", in place of integer"),
        ),
        (json!({ "type": "string", "nullable": true }), "null", None),
        (
            text_or_whole.clone(),
            "true",
            Some("true, in place of string or integer"),
        ),
        (text_or_whole, "1", None),
        (
            json!({ "$ref": "#/$defs/port" }),
            "[]",
            Some("the list [], in place of integer"),
        ),
        (json!({ "type": ["string", "whole"] }), "true", None),
        (json!({}), "true", None),
    ] {
        let mut schema = field(schema);
        schema["required"] = json!(["x"]);
        schema["$defs"] = json!({ "port": { "type": "integer" } });
        let found = |written: &str| misfits(&schema, &read_arguments(written).unwrap());
        let expected: Vec<String> = fault
            .iter()
            .map(|fault| format!("`x` is {fault}"))
            .collect();
        assert_eq!(found(&format!("{{\"x\":{x}}}")), expected);
        assert_eq!(found("{}"), ["`x` is missing"]);
    }
}
