//! Converts a server's result to parts of a message.
//!
//! Content that providers do not accept is replaced by a line of text. Otherwise one invalid image
//! would make every further request of the session invalid.

use plimsoll_context::{Bytes, File, Image, Part, Source};
use plimsoll_core::{ToolError, ToolOutput};
use serde_json::Value;

/// Maximum number of parts in one result.
pub const MCP_PARTS: usize = 100;
/// Maximum size of one image or file in base64, as accepted by providers.
pub const MCP_DATA_MAX: Bytes = Bytes(5 * 1024 * 1024);

/// The base64 prefixes of the image formats that providers accept.
const IMAGES: [(&str, &str); 4] = [
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("UklGR", "image/webp"),
];
/// The text of a failure without a message.
const SILENT_FAILURE: &str = "the tool has failed and does not say why";
const PDF: (&str, &str) = ("JVBERi", "application/pdf");

/// Returns the parts of a result, or the text of a failure.
pub(crate) fn convert(result: &Value) -> Result<ToolOutput, ToolError> {
    let content = result.get("content").and_then(Value::as_array);
    let content = content.map_or(&[][..], Vec::as_slice);
    let mut parts: Vec<Part> = content.iter().take(MCP_PARTS).map(part).collect();
    if let Some(more @ 1..) = content.len().checked_sub(MCP_PARTS) {
        parts.push(Part::text(format!("[{more} more parts are left out]")));
    }
    let data = result.get("structuredContent");
    if let Some(data) = data.filter(|data| !data.is_null() && !is_repeated(data, content)) {
        parts.push(Part::text(data.to_string()));
    }
    if result.get("isError").and_then(Value::as_bool) != Some(true) {
        return Ok(ToolOutput { parts });
    }
    let text = |part: Part| match part {
        Part::Text { text } => text,
        _ => "[an image or a file]".to_owned(),
    };
    let texts: Vec<String> = parts.into_iter().map(text).collect();
    let text = texts.join("\n");
    Err(ToolError(match text.trim() {
        "" => SILENT_FAILURE.to_owned(),
        _ => text,
    }))
}

/// Checks whether the content of a result repeats its structured content, as the protocol asks: as JSON,
/// or as the only member of an object such as `{"result": …}`.
fn is_repeated(data: &Value, content: &[Value]) -> bool {
    let texts = content.iter().filter(|block| text(block, "type") == "text");
    let texts: Vec<&str> = texts.map(|block| text(block, "text")).collect();
    let says = |text: &str, value: &Value| {
        value.as_str() == Some(text)
            || serde_json::from_str(text).is_ok_and(|json: Value| json == *value)
    };
    let is_content = |value: &Value| match (value, texts.as_slice()) {
        (value, [text]) if says(text, value) => true,
        (Value::String(value), [_, ..]) => *value == texts.join("\n"),
        (Value::Array(items), _) => {
            items == content
                || items.len() == texts.len()
                    && texts.iter().zip(items).all(|(text, item)| says(text, item))
        }
        _ => false,
    };
    let only = data.as_object().filter(|members| members.len() == 1);
    !content.is_empty()
        && (is_content(data) || only.is_some_and(|only| only.values().all(is_content)))
}

fn part(block: &Value) -> Part {
    match text(block, "type") {
        "text" => Part::text(text(block, "text")),
        "image" => data(text(block, "data"), text(block, "mimeType"), None),
        "audio" => left_out("audio", text(block, "mimeType"), text(block, "data")),
        "resource" => resource(block.get("resource").unwrap_or(&Value::Null)),
        "resource_link" => {
            let words = ["name", "uri", "mimeType", "description"];
            let words = words.map(|key| text(block, key));
            let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
            Part::text(format!("[resource: {}]", words.join(", ")))
        }
        _ => Part::text(block.to_string()),
    }
}

fn resource(resource: &Value) -> Part {
    let uri = text(resource, "uri");
    match resource.get("blob").and_then(Value::as_str) {
        Some(blob) => data(blob, text(resource, "mimeType"), Some(uri)),
        None => Part::text(format!("[{uri}]\n{}", text(resource, "text"))),
    }
}

/// Converts data to a part. The format is detected from the content, not from its declared type.
fn data(base64: &str, media_type: &str, uri: Option<&str>) -> Part {
    // Some servers send a whole data URL.
    let base64 = match base64.strip_prefix("data:") {
        Some(rest) => rest.split_once(',').map_or(rest, |(_, base64)| base64),
        None => base64,
    };
    let begins = |(beginning, _): &&(&str, &str)| base64.starts_with(beginning);
    let fits = base64.len() as u64 <= MCP_DATA_MAX.0 && is_base64(base64);
    let source = |media_type: &str| Source::Data {
        media_type: media_type.to_owned(),
        base64: base64.to_owned(),
    };
    if fits && let Some((_, kind)) = IMAGES.iter().find(begins) {
        return Part::Image(Image {
            source: source(kind),
            size: None,
            detail: None,
        });
    }
    if fits && base64.starts_with(PDF.0) {
        let name = uri.and_then(|uri| uri.rsplit('/').next());
        return Part::File(File {
            name: name.filter(|name| !name.is_empty()).map(str::to_owned),
            source: source(PDF.1),
        });
    }
    left_out(uri.unwrap_or("image"), media_type, base64)
}

fn left_out(what: &str, media_type: &str, base64: &str) -> Part {
    let bytes = base64.len() / 4 * 3;
    Part::text(format!(
        "[{what}: {media_type}, about {bytes} bytes, cannot be shown]"
    ))
}

fn is_base64(text: &str) -> bool {
    let bare = text.trim_end_matches('=');
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    text.len().is_multiple_of(4) && text.len() - bare.len() <= 2 && bare.bytes().all(good)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PNG: &str = "iVBORw0KGgoAAAANSUhEUg==";

    fn shown(result: &Value) -> String {
        let show = |part: &Part| match part {
            Part::Text { text } => text.clone(),
            Part::Image(Image {
                source: Source::Data { media_type, base64 },
                ..
            }) => format!("<{media_type} {}>", base64.len()),
            Part::File(file) => format!("<file {:?}>", file.name),
            other => panic!("{other:?}"),
        };
        match convert(result) {
            Ok(output) => output.parts.iter().map(show).collect::<Vec<_>>().join("|"),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn every_kind_of_content_becomes_a_part_or_a_line() {
        let image = |data: &str, kind: &str| json!({"content": [{"type": "image", "data": data, "mimeType": kind}]});
        for (result, told) in [
            (
                json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
                "a|b",
            ),
            (image(PNG, "image/png"), "<image/png 24>"),
            // The actual format counts, not the declared one.
            (image(PNG, "image/jpeg"), "<image/png 24>"),
            (
                image(&format!("data:image/png;base64,{PNG}"), "image/png"),
                "<image/png 24>",
            ),
            (
                image("PHN2Zz4=", "image/svg+xml"),
                "[image: image/svg+xml, about 6 bytes, cannot be shown]",
            ),
            (
                image("iVBORw0KGgo not base64", "image/png"),
                "[image: image/png, about 15 bytes, cannot be shown]",
            ),
            (
                json!({"content": [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]}),
                "[audio: audio/wav, about 3 bytes, cannot be shown]",
            ),
            (
                json!({"content": [{"type": "resource", "resource": {"uri": "file:///a.txt", "text": "inside"}}]}),
                "[file:///a.txt]\ninside",
            ),
            (
                json!({"content": [{"type": "resource", "resource": {"uri": "file:///x/a.pdf", "blob": "JVBERi0xLjQ=", "mimeType": "application/pdf"}}]}),
                "<file Some(\"a.pdf\")>",
            ),
            (
                json!({"content": [{"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "AAAA"}}]}),
                "[file:///a.bin: , about 3 bytes, cannot be shown]",
            ),
            (
                json!({"content": [{"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain"}]}),
                "[resource: a, file:///a, text/plain]",
            ),
            (
                json!({"content": [{"type": "odd", "x": 1}]}),
                "{\"type\":\"odd\",\"x\":1}",
            ),
            // Repeated data is sent once.
            (
                json!({"content": [], "structuredContent": {"a": 1}}),
                "{\"a\":1}",
            ),
            (
                json!({"content": [{"type": "text", "text": "{ \"a\": 1 }"}], "structuredContent": {"a": 1}}),
                "{ \"a\": 1 }",
            ),
            (
                json!({"content": [{"type": "text", "text": "one"}], "structuredContent": {"a": 1}}),
                "one|{\"a\":1}",
            ),
            (
                json!({"content": [{"type": "text", "text": "no such file"}], "isError": true}),
                "error: no such file",
            ),
            (
                json!({ "isError": true }),
                "error: the tool has failed and does not say why",
            ),
            (
                json!({"content": [{"type": "text", "text": " "}], "isError": true}),
                "error: the tool has failed and does not say why",
            ),
            (json!({"_meta": {"a": 1}}), ""),
            (json!({}), ""),
        ] {
            assert_eq!(shown(&result), told, "{result}");
        }
    }

    #[test]
    fn structured_content_that_repeats_the_text_is_sent_once() {
        for (content, structured, told) in [
            // FastMCP, if a Python function returns `str`.
            (json!(["# Title"]), json!({"result": "# Title"}), "# Title"),
            // The official filesystem server.
            (json!(["a\nb\n"]), json!({"content": "a\nb\n"}), "a\nb\n"),
            // FastMCP, for `int`, `list[str]` and `list[dict]`.
            (json!(["5"]), json!({"result": 5}), "5"),
            (json!(["a", "b"]), json!({"result": ["a", "b"]}), "a|b"),
            (
                json!(["{\"a\": 1}", "{\"a\": 2}"]),
                json!({"result": [{"a": 1}, {"a": 2}]}),
                "{\"a\": 1}|{\"a\": 2}",
            ),
            // Several blocks as one text.
            (json!(["a", "b"]), json!({"text": "a\nb"}), "a|b"),
            // Not a repetition.
            (
                json!(["one"]),
                json!({"result": "two"}),
                "one|{\"result\":\"two\"}",
            ),
            (
                json!(["a"]),
                json!({"result": ["a", "b"]}),
                "a|{\"result\":[\"a\",\"b\"]}",
            ),
            (
                json!(["1"]),
                json!({"page": 1, "of": 1}),
                "1|{\"page\":1,\"of\":1}",
            ),
            (json!([]), json!({"result": ""}), "{\"result\":\"\"}"),
        ] {
            let content: Vec<Value> = content
                .as_array()
                .unwrap()
                .iter()
                .map(|text| json!({"type": "text", "text": text}))
                .collect();
            let result = json!({"content": content, "structuredContent": structured});
            assert_eq!(shown(&result), told, "{result}");
        }
        // The official filesystem server, for an image.
        let image = json!([{"type": "image", "data": PNG, "mimeType": "image/png"}]);
        let result = json!({"content": image, "structuredContent": {"content": image}});
        assert_eq!(shown(&result), "<image/png 24>");
    }

    #[test]
    fn a_result_is_bounded() {
        let many = vec![json!({"type": "text", "text": "x"}); MCP_PARTS + 7];
        let output = convert(&json!({ "content": many })).unwrap();
        assert_eq!(output.parts.len(), MCP_PARTS + 1);
        assert_eq!(
            output.parts[MCP_PARTS],
            Part::text("[7 more parts are left out]")
        );
        let huge = format!("iVBORw0KGgoA{}", "A".repeat(MCP_DATA_MAX.0 as usize));
        let told =
            shown(&json!({"content": [{"type": "image", "data": huge, "mimeType": "image/png"}]}));
        assert!(told.ends_with("cannot be shown]"), "{told}");
    }
}
