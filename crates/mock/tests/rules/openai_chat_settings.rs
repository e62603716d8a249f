//! Fields that OpenAI's own Chat Completions accepts besides messages, and that others ignore.

use plimsoll_mock::rules::openai_chat::{refusal, validate};
use plimsoll_wire::openai_chat::Dialect;
use plimsoll_wire::overflow::{Verdict, classify};
use serde_json::{Value, json};

/// A request with these keys besides its messages.
fn request(keys: &Value) -> Value {
    let mut request = json!({"model": "gpt-4.1", "messages": [{"role": "user", "content": "hi"}]});
    for (key, value) in keys.as_object().unwrap() {
        request[key] = value.clone();
    }
    request
}

fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}})
}

fn schema(rest: Value) -> Value {
    json!({"response_format": {"type": "json_schema", "json_schema": rest}})
}

/// What OpenAI refuses: the request, where, the code, and a part of its words.
fn refused() -> Vec<(Value, &'static str, Option<&'static str>, &'static str)> {
    vec![
        (
            json!({"tool_choice": "auto"}),
            "tool_choice",
            None,
            "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are \
             specified.",
        ),
        (
            json!({"parallel_tool_calls": false}),
            "parallel_tool_calls",
            None,
            "'parallel_tool_calls' is only allowed when 'tools' are specified.",
        ),
        (
            json!({"stream_options": {"include_usage": true}}),
            "stream_options",
            None,
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        ),
        (
            json!({"tools": [tool("a b")]}),
            "tools[0].function.name",
            Some("invalid_value"),
            "Invalid 'tools[0].function.name': string does not match pattern. Expected a string \
             that matches the pattern '^[a-zA-Z0-9_-]+$'.",
        ),
        (
            json!({"tools": [tool("a"), tool(&"b".repeat(65))]}),
            "tools[1].function.name",
            Some("string_above_max_length"),
            "Expected a string with maximum length 64, but got a string with length 65 instead.",
        ),
        (
            json!({"tools": [{"type": "function"}]}),
            "tools[0].function",
            Some("missing_required_parameter"),
            "Missing required parameter: 'tools[0].function'.",
        ),
        (
            json!({"tools": []}),
            "tools",
            Some("empty_array"),
            "Invalid 'tools': empty array. Expected an array with minimum length 1",
        ),
        (
            json!({"tools": vec![tool("a"); 129]}),
            "tools",
            Some("array_above_max_length"),
            "Expected an array with maximum length 128, but got an array with length 129 instead.",
        ),
        (
            json!({"top_logprobs": 2}),
            "top_logprobs",
            None,
            "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.",
        ),
        (
            json!({"response_format": {"type": "json_object"}}),
            "messages",
            None,
            "'messages' must contain the word 'json' in some form, to use 'response_format' of \
             type 'json_object'.",
        ),
        (
            json!({"max_tokens": 5, "max_completion_tokens": 5}),
            "max_completion_tokens",
            None,
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
        ),
        (
            json!({"metadata": {"a": "b", "n": 1}}),
            "metadata",
            None,
            "Invalid type for 'metadata.n': expected a string, but got a number instead.",
        ),
        (
            json!({"model": "gpt-5.1", "max_tokens": 5}),
            "max_tokens",
            Some("unsupported_parameter"),
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
             'max_completion_tokens' instead.",
        ),
        (
            json!({"model": "o3-mini", "max_tokens": 5}),
            "max_tokens",
            Some("unsupported_parameter"),
            "Use 'max_completion_tokens' instead.",
        ),
        (
            json!({"max_tokens": 0}),
            "max_tokens",
            Some("integer_below_min_value"),
            "Invalid 'max_tokens': integer below minimum value. Expected a value >= 1, but got 0 \
             instead.",
        ),
        (
            json!({"n": 130}),
            "n",
            Some("integer_above_max_value"),
            "Invalid 'n': integer above maximum value. Expected a value <= 128, but got 130 \
             instead.",
        ),
        (
            json!({"n": 0}),
            "n",
            Some("integer_below_min_value"),
            "Expected a value >= 1, but got 0 instead.",
        ),
        (
            json!({"temperature": 2.5}),
            "temperature",
            Some("decimal_above_max_value"),
            "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got \
             2.5 instead.",
        ),
        (
            json!({"temperature": -1}),
            "temperature",
            Some("decimal_below_min_value"),
            "Expected a value >= 0, but got -1 instead.",
        ),
        (
            json!({"model": "gpt-5", "temperature": 0.7}),
            "temperature",
            Some("unsupported_value"),
            "Unsupported value: 'temperature' does not support 0.7 with this model. Only the \
             default (1) value is supported.",
        ),
        (
            json!({"model": "gpt-5.6-terra", "tools": [tool("a")]}),
            "reasoning_effort",
            None,
            "Function tools with reasoning_effort are not supported for gpt-5.6-terra in \
             /v1/chat/completions. To use function tools, use /v1/responses or set \
             reasoning_effort to 'none'.",
        ),
        (
            json!({"model": "gpt-5.5", "tools": [tool("a")], "reasoning_effort": "low"}),
            "reasoning_effort",
            None,
            "use /v1/responses or set reasoning_effort to 'none'.",
        ),
        (
            json!({"model": "gpt-5.4", "tools": [tool("a")], "reasoning_effort": "low"}),
            "reasoning_effort",
            None,
            "Function tools with reasoning_effort are not supported for gpt-5.4 in \
             /v1/chat/completions. Please use /v1/responses instead.",
        ),
        (
            json!({"model": "gpt-6-astra", "tools": [tool("a")]}),
            "reasoning_effort",
            None,
            "Please use /v1/responses instead.",
        ),
        (
            json!({"foo": 1}),
            "foo",
            Some("unknown_parameter"),
            "Unknown parameter: 'foo'.",
        ),
        (
            json!({"response_format": {"type": "json_schema"}}),
            "response_format.json_schema",
            Some("missing_required_parameter"),
            "Missing required parameter: 'response_format.json_schema'.",
        ),
        (
            schema(json!({"schema": {"type": "object"}})),
            "response_format.json_schema.name",
            Some("missing_required_parameter"),
            "Missing required parameter: 'response_format.json_schema.name'.",
        ),
        (
            schema(json!({"name": "answer"})),
            "response_format.json_schema.schema",
            Some("missing_required_parameter"),
            "Missing required parameter: 'response_format.json_schema.schema'.",
        ),
        (
            json!({"response_format": {"type": "yaml"}}),
            "response_format.type",
            Some("invalid_value"),
            "Invalid value: 'yaml'.",
        ),
    ]
}

#[test]
fn openai_refuses_settings_in_its_words() {
    let openai = Dialect::openai();
    for (keys, place, code, words) in refused() {
        let faults = validate(&request(&keys), &openai);
        assert_eq!(faults.len(), 1, "{keys}: {faults:?}");
        let (status, body) = refusal(&faults[0], &openai);
        let error = &body["error"];
        assert_eq!((status, &error["param"]), (400, &json!(place)), "{keys}");
        assert_eq!(error["code"], json!(code), "{keys}");
        let said = error["message"].as_str().unwrap();
        assert!(said.contains(words), "{said}");
        let verdict = classify(Some(status), &body.to_string());
        assert_eq!(verdict, Verdict::Invalid, "{said}");
    }
}

#[test]
fn servers_that_copy_it_ignore_what_they_do_not_know() {
    for name in Dialect::NAMES.iter().filter(|name| **name != "openai") {
        let dialect = Dialect::named(name).unwrap();
        for (keys, ..) in refused() {
            assert_eq!(validate(&request(&keys), &dialect), [], "{name}: {keys}");
        }
    }
}

#[test]
fn what_openai_takes_is_taken() {
    let openai = Dialect::openai();
    for keys in [
        json!({"tools": [tool("a"), tool(&"b".repeat(64))], "tool_choice": "none", "parallel_tool_calls": false}),
        json!({"tools": [{"type": "custom", "custom": {"name": "a"}}]}),
        json!({"stream": true, "stream_options": {"include_usage": true}}),
        json!({"model": "gpt-4o", "max_tokens": 1}),
        json!({"model": "omni", "max_tokens": 1}),
        json!({"model": "o3", "max_completion_tokens": 1, "max_tokens": null}),
        json!({"n": 128, "temperature": 2, "top_p": 1, "presence_penalty": -2}),
        json!({"stop": ["a"], "seed": 1, "user": "u", "store": false, "metadata": {},
            "prompt_cache_key": "k", "prompt_cache_retention": "24h", "verbosity": "low",
            "reasoning_effort": "high", "service_tier": "flex", "safety_identifier": "s"}),
        json!({"tool_choice": null, "stream_options": null, "response_format": null}),
        json!({"model": "gpt-5", "temperature": 1}),
        json!({"model": "gpt-5.6", "tools": [tool("a")], "reasoning_effort": "none", "temperature": 0.7}),
        json!({"model": "gpt-5.6", "reasoning_effort": "high"}),
        json!({"model": "gpt-5.4", "tools": [tool("a")]}),
        json!({"model": "gpt-5.2", "tools": [tool("a")], "reasoning_effort": "high"}),
        json!({"response_format": {"type": "json_object"}, "messages": [{"role": "user", "content": "As JSON."}]}),
        schema(json!({"name": "answer", "schema": {"type": "object"}, "strict": true})),
    ] {
        assert_eq!(validate(&request(&keys), &openai), [], "{keys}");
    }
}

#[test]
fn a_model_that_is_served_elsewhere_is_not_found_here() {
    let openai = Dialect::openai();
    for model in [
        "gpt-5-pro",
        "o3-pro-2025-06-10",
        "gpt-5.1-codex",
        "codex-mini-latest",
    ] {
        let faults = validate(
            &request(&json!({"model": model, "temperature": 1})),
            &openai,
        );
        assert_eq!(faults.len(), 1, "{model}: {faults:?}");
        let (status, body) = refusal(&faults[0], &openai);
        assert_eq!((status, &body["error"]["param"]), (404, &json!("model")));
        let said = body["error"]["message"].as_str().unwrap();
        assert!(said.contains("only supported in v1/responses"), "{said}");
    }
}
