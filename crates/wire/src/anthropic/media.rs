//! Converts images and documents to blocks and back. The caller reports content that the API has no
//! form for.

use plimsoll_context::{File, Image, Part, Source};
use serde_json::Value;

use crate::object::Object;
use crate::value::is_web_address;

/// The media types of images that the API reads.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
/// The only media type for documents that are sent by value.
pub(super) const PDF: &str = "application/pdf";

/// Returns the block of an image or a document, or `None` if the API does not read it.
pub(super) fn block(part: &Part) -> Option<String> {
    let (kind, source, title) = match part {
        Part::Image(image) => ("image", &image.source, None),
        Part::File(file) => ("document", &file.source, file.name.as_deref()),
        _ => return None,
    };
    let is_read = match source {
        Source::Data { media_type, .. } => reads(kind, media_type),
        Source::Url { url } => !url.is_empty(),
    };
    let block = || {
        let block = Object::of(kind).raw("source", &source_of(source));
        block.optional("title", title).end()
    };
    is_read.then(block)
}

/// Returns `true` if the API reads this media type by value in a block of this type.
fn reads(kind: &str, media_type: &str) -> bool {
    match kind {
        "image" => IMAGES.contains(&media_type),
        _ => media_type == PDF,
    }
}

/// Returns the part for a block of type `image` or `document`. Returns `None` for a form that is passed
/// through.
pub(super) fn part(kind: &str, block: &Value) -> Option<Part> {
    let keys = block.as_object()?;
    let known = |key: &str| matches!(key, "type" | "source" | "title");
    if !keys.keys().all(|key| known(key)) {
        return None;
    }
    let title = match keys.get("title") {
        None => None,
        Some(Value::String(title)) => Some(title.clone()),
        Some(_) => return None,
    };
    let source = read_source(keys.get("source")?)?;
    match (kind, &source) {
        (_, Source::Data { media_type, .. }) if !reads(kind, media_type) => None,
        ("image", _) if title.is_some() => None,
        ("image", _) => Some(Part::Image(Image {
            source,
            size: None,
            detail: None,
        })),
        _ => Some(Part::File(File {
            name: title,
            source,
        })),
    }
}

/// Returns `true` for an image or a file that is stored at the provider, named by its id.
pub(super) fn is_file(part: &Part) -> bool {
    let source = match part {
        Part::Image(image) => &image.source,
        Part::File(file) => &file.source,
        _ => return false,
    };
    matches!(source, Source::Url { url } if !is_web_address(url))
}

fn source_of(source: &Source) -> String {
    match source {
        Source::Data { media_type, base64 } => Object::of("base64")
            .text("media_type", media_type)
            .text("data", base64)
            .end(),
        Source::Url { url } if is_web_address(url) => Object::of("url").text("url", url).end(),
        Source::Url { url } => Object::of("file").text("file_id", url).end(),
    }
}

fn read_source(source: &Value) -> Option<Source> {
    let keys = source.as_object()?;
    let text = |key| keys.get(key).and_then(Value::as_str).map(str::to_owned);
    let source = match text("type")?.as_str() {
        "base64" if keys.len() == 3 => Source::Data {
            media_type: text("media_type")?,
            base64: text("data")?,
        },
        "url" if keys.len() == 2 => Source::Url {
            url: text("url").filter(|url| is_web_address(url))?,
        },
        "file" if keys.len() == 2 => Source::Url {
            url: text("file_id").filter(|id| !is_web_address(id))?,
        },
        _ => return None,
    };
    Some(source)
}
