//! Single parts of a message in this protocol: images and files with their sources, which Responses writes
//! like this, too, and names of tools. Their order is decided in `normalize.rs`.

use std::borrow::Cow;

use plimsoll_context::{File, Image, Source};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The origin of blocks that are sent back on this protocol.
pub const ORIGIN: &str = "openai-chat";
/// The type of calls of tools that take free text.
pub const CUSTOM: &str = "custom";

/// One part of a message's content.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ContentPart<'a> {
    /// `text`, `image_url`, `file`, or one that this crate passes through.
    #[serde(rename = "type")]
    pub(super) kind: Cow<'a, str>,
    /// The text of a `text` part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<Cow<'a, str>>,
    /// The image of an `image_url` part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) image_url: Option<ImageUrl<'a>>,
    /// The file of a `file` part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<FilePart<'a>>,
    /// All other keys.
    #[serde(flatten)]
    pub(super) extra: Map<String, Value>,
}

/// An image by address. A `data:` URL contains the bytes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ImageUrl<'a> {
    /// The address.
    pub(super) url: Cow<'a, str>,
    /// `low`, `high` or `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<Cow<'a, str>>,
}

/// A file by id or by value.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct FilePart<'a> {
    /// The file's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) filename: Option<Cow<'a, str>>,
    /// The file's bytes as a `data:` URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) file_data: Option<Cow<'a, str>>,
    /// The file's id at the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) file_id: Option<Cow<'a, str>>,
}

pub(super) fn image_part(image: &Image) -> ContentPart<'_> {
    ContentPart {
        kind: "image_url".into(),
        image_url: Some(ImageUrl {
            url: address(&image.source),
            detail: image.detail.as_deref().map(Cow::Borrowed),
        }),
        ..ContentPart::default()
    }
}

/// Returns `true` if a file has a web address.
pub(super) fn is_elsewhere(file: &File) -> bool {
    match &file.source {
        Source::Url { url } => ["https://", "http://"]
            .iter()
            .any(|web| url.starts_with(web)),
        Source::Data { .. } => false,
    }
}

pub(super) fn file_part(file: &File) -> ContentPart<'_> {
    let (file_data, file_id) = match &file.source {
        Source::Data { .. } => (Some(address(&file.source)), None),
        Source::Url { url } => (None, Some(Cow::Borrowed(url.as_str()))),
    };
    ContentPart {
        kind: "file".into(),
        file: Some(FilePart {
            filename: file.name.as_deref().map(Cow::Borrowed),
            file_data,
            file_id,
        }),
        ..ContentPart::default()
    }
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
