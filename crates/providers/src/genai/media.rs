//! Images and files as the library sends them, where the API reads them; a note stands for those
//! that it does not. Fetches nothing.

use genai::chat::ContentPart;
use plimsoll_context::Source;
use plimsoll_wire::frames;

use super::api::Api;

/// What Converse takes; more is left out by the library without a word.
const CONVERSE: [&str; 13] = [
    "image/jpeg",
    "image/png",
    "image/gif",
    "image/webp",
    "application/pdf",
    "text/csv",
    "application/msword",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.ms-excel",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "text/html",
    "text/plain",
    "text/markdown",
];
/// Media types by the end of an address; Google wants one beside it.
const ENDS: [(&str, &str); 7] = [
    (".png", "image/png"),
    (".jpg", "image/jpeg"),
    (".jpeg", "image/jpeg"),
    (".webp", "image/webp"),
    (".pdf", "application/pdf"),
    (".mp4", "video/mp4"),
    (".mp3", "audio/mpeg"),
];

/// An image or a file, or the note that stands for it.
pub(super) fn media(source: &Source, name: Option<&str>, api: &Api) -> ContentPart {
    let part = match (source, api) {
        (Source::Data { media_type, base64 }, api) if reads(media_type, api) => {
            let name = name.map(str::to_owned);
            Some(ContentPart::from_binary_base64(
                media_type.as_str(),
                base64.as_str(),
                name,
            ))
        }
        (Source::Url { url }, Api::Gemini(_) | Api::Vertex(_)) => {
            let path = url.split(['?', '#']).next().unwrap_or_default();
            let path = path.to_ascii_lowercase();
            let found = ENDS.iter().find(|(end, _)| path.ends_with(end));
            found.map(|(_, kind)| ContentPart::from_binary_url(*kind, url.as_str(), None))
        }
        _ => None,
    };
    part.unwrap_or_else(|| ContentPart::Text(frames::LEFT_OUT.to_owned()))
}

fn reads(media_type: &str, api: &Api) -> bool {
    match api {
        Api::Gemini(_) | Api::Vertex(_) => true,
        Api::Converse(_) => CONVERSE.contains(&media_type),
        Api::Ollama(_) => media_type.starts_with("image/"),
    }
}
