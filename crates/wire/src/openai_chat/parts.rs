//! Single parts of a message as this wire has them: images, files, arguments, names of tools. Not
//! what stands where; `shape.rs` decides that.

use std::borrow::Cow;

use plimsoll_context::{File, Image, Opaque, Source};
use serde_json::{Map, Value};

use super::dialect::{CallNames, Dialect};
use super::types::{ContentPart, FilePart, ImageUrl, Text};
use crate::openai_responses::legal_name;

/// Whose blocks this wire gives back.
pub const ORIGIN: &str = "openai-chat";
/// What the server that is judged most strictly is called.
pub(super) const STRICT: &str = "openai";
/// The kinds of parts that it has.
const KINDS: [&str; 6] = [
    "text",
    "image_url",
    "input_audio",
    "refusal",
    "audio",
    "file",
];
/// The type of a call of a tool that takes a text of any form.
pub(super) const CUSTOM: &str = "custom";

/// The arguments if they are a JSON object, else an object that holds them.
pub(super) fn json_object(arguments: &str) -> Text<'_> {
    if is_json_object(arguments) {
        return Cow::Borrowed(arguments);
    }
    if arguments.trim().is_empty() {
        return Cow::Borrowed("{}");
    }
    object_of("malformed_arguments", arguments)
}

/// An object that holds a text.
pub(super) fn object_of(key: &str, text: &str) -> Text<'static> {
    let mut object = Map::new();
    object.insert(key.into(), text.into());
    Cow::Owned(Value::Object(object).to_string())
}

pub(super) fn is_json_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// What an opaque block of this wire holds; `None` for a block of another.
pub(super) fn own<T: serde::de::DeserializeOwned>(opaque: &Opaque) -> Option<T> {
    (opaque.origin == ORIGIN)
        .then(|| serde_json::from_str(&opaque.data).ok())
        .flatten()
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

/// What OpenAI says of a part of a kind that it does not have; others may have more.
pub(crate) fn unknown_kind(kind: &str, dialect: &Dialect) -> Option<String> {
    let strict = dialect.name == STRICT && !kind.is_empty() && !KINDS.contains(&kind);
    strict.then(|| {
        format!(
            "Invalid value: '{kind}'. Supported values are: 'text', 'image_url', 'input_audio', \
             'refusal', 'audio', and 'file'."
        )
    })
}

/// Whether a file is at an address of the web.
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

fn address(source: &Source) -> Text<'_> {
    match source {
        Source::Url { url } => Cow::Borrowed(url),
        Source::Data { media_type, base64 } => {
            Cow::Owned(format!("data:{media_type};base64,{base64}"))
        }
    }
}

/// A tool's name, in a call and where it is declared, as the server accepts it.
pub(super) fn call_name<'a>(name: &'a str, dialect: &Dialect) -> Cow<'a, str> {
    match dialect.call_names {
        CallNames::Any => Cow::Borrowed(name),
        CallNames::Plain => legal_name(name),
    }
}
