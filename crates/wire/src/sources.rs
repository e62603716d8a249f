//! The source of an image or a file, in the format of OpenAI's protocols.

use std::borrow::Cow;

use plimsoll_context::Source;

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
