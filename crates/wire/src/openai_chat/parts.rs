//! Single parts of a message in this protocol: images and files with their sources, which Responses writes
//! like this, too, and names of tools. Their order is decided in `normalize.rs`.

use std::borrow::Cow;

use plimsoll_context::{File, Image, Source};

use crate::object::Object;
use crate::value::is_web_address;

/// The origin of blocks that are sent back on this protocol.
pub const ORIGIN: &str = "openai-chat";
/// The type of calls of tools that take free text.
pub const CUSTOM: &str = "custom";

/// Returns the part of an image.
pub(super) fn image_part(image: &Image) -> String {
    let url = Object::new()
        .text("url", &address(&image.source))
        .optional("detail", image.detail.as_deref());
    let kind = "image_url";
    Object::of(kind).raw(kind, &url.end()).end()
}

/// Returns `true` if a file has a web address.
pub(super) fn is_elsewhere(file: &File) -> bool {
    matches!(&file.source, Source::Url { url } if is_web_address(url))
}

/// Returns the part of a file.
pub(super) fn file_part(file: &File) -> String {
    let part = Object::new().optional("filename", file.name.as_deref());
    let key = match &file.source {
        Source::Data { .. } => "file_data",
        Source::Url { .. } => "file_id",
    };
    let part = part.text(key, &address(&file.source)).end();
    Object::of("file").raw("file", &part).end()
}

/// Returns the address of a source. Bytes become a `data:` URL.
pub(crate) fn address(source: &Source) -> Cow<'_, str> {
    match source {
        Source::Url { url } => Cow::Borrowed(url),
        Source::Data { media_type, base64 } => {
            Cow::Owned(format!("data:{media_type};base64,{base64}"))
        }
    }
}

/// Returns the source for an address or a `data:` URL.
pub(crate) fn from_url(url: String) -> Source {
    from_data_url(&url).unwrap_or(Source::Url { url })
}

/// Returns the bytes in a `data:` URL. `None` for any other address.
pub(crate) fn from_data_url(url: &str) -> Option<Source> {
    let (media_type, base64) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some(Source::Data {
        media_type: media_type.to_owned(),
        base64: base64.to_owned(),
    })
}
