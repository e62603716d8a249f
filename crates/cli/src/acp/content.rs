//! Converts the prompt of a client to messages for the model. Nothing is read from disk.

use agent_client_protocol::v1::schema::{
    BlobResourceContents, ContentBlock, EmbeddedResourceResource, ResourceLink,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use plimsoll::Part;

use crate::attach;
use crate::error::CliError;

/// The scheme of local files.
const FILE: &str = "file://";

/// Converts the parts of a prompt. The caller checks whether the model accepts images.
pub(super) fn parts(prompt: Vec<ContentBlock>) -> Result<Vec<Part>, CliError> {
    let mut parts: Vec<Part> = Vec::new();
    for block in prompt {
        let part = match block {
            ContentBlock::Text(text) => Part::text(text.text),
            ContentBlock::ResourceLink(link) => Part::text(mention(&link)),
            ContentBlock::Resource(resource) => match resource.resource {
                EmbeddedResourceResource::TextResourceContents(text) => {
                    Part::text(embedded(&text.uri, &text.text))
                }
                EmbeddedResourceResource::BlobResourceContents(blob) => blob_part(&blob)?,
                _ => return Err(unknown()),
            },
            ContentBlock::Image(image) => image_part("the image", &image.data)?,
            _ => return Err(unknown()),
        };
        // Texts of one sentence become one part.
        match (parts.last_mut(), part) {
            (Some(Part::Text { text: before }), Part::Text { text }) => before.push_str(&text),
            (_, part) => parts.push(part),
        }
    }
    Ok(parts)
}

/// Formats a link for the model: the path of a local file, which its tools accept, or the address.
fn mention(link: &ResourceLink) -> String {
    format!("`{}`", place(&link.uri))
}

fn embedded(uri: &str, text: &str) -> String {
    let place = place(uri).replace('"', "'");
    let text = text.trim_end_matches('\n');
    format!("\n<file path=\"{place}\">\n{text}\n</file>\n")
}

fn blob_part(blob: &BlobResourceContents) -> Result<Part, CliError> {
    let is_image = blob.mime_type.as_deref();
    if is_image.is_some_and(|kind| kind.starts_with("image/")) {
        return image_part(&place(&blob.uri), &blob.blob);
    }
    // The model has tools that read files.
    if blob.uri.starts_with(FILE) {
        return Ok(Part::text(format!("`{}`", place(&blob.uri))));
    }
    Err(CliError::usage(format!(
        "{} is neither text nor an image; send it as text",
        blob.uri
    )))
}

fn image_part(name: &str, base64: &str) -> Result<Part, CliError> {
    let bytes = STANDARD.decode(base64.trim());
    let bytes =
        bytes.map_err(|error| CliError::usage(format!("{name} is not valid base64: {error}")))?;
    attach::image_of(name, &bytes)
}

fn unknown() -> CliError {
    CliError::usage(
        "audio and parts of an unknown kind are not supported; send text, links, files or images",
    )
}

/// Returns the decoded path of a local file, with its lines if there are any. Other addresses are
/// unchanged.
fn place(uri: &str) -> String {
    let Some(path) = uri.strip_prefix(FILE) else {
        return uri.to_owned();
    };
    let (path, lines) = path.split_once('#').unwrap_or((path, ""));
    let path = percent_decode_str(path)
        .decode_utf8()
        .map_or_else(|_| path.to_owned(), Into::into);
    match lines.strip_prefix('L') {
        Some(lines) => format!("{path}:{}", lines.replace(":L", "-").replace('L', "")),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_by_their_paths() {
        for (uri, expected) in [
            ("file:///src/main.rs", "/src/main.rs"),
            ("file:///a%20b/%C3%A4.rs", "/a b/ä.rs"),
            ("file:///100%", "/100%"),
            ("file:///src/main.rs#L10:L20", "/src/main.rs:10-20"),
            ("file:///src/main.rs#L7", "/src/main.rs:7"),
            ("https://example.com/a%20b", "https://example.com/a%20b"),
        ] {
            assert_eq!(place(uri), expected);
        }
    }

    #[test]
    fn a_mention_stands_in_its_sentence() {
        let prompt = vec![
            ContentBlock::from("Read "),
            ContentBlock::ResourceLink(ResourceLink::new("main.rs", "file:///w/main.rs")),
            ContentBlock::from(" and sum it up."),
        ];
        let parts = parts(prompt).unwrap();
        assert_eq!(parts, vec![Part::text("Read `/w/main.rs` and sum it up.")]);
    }
}
