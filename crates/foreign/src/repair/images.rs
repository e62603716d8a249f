//! The fix-up `images`: images that are too large for the provider become a note.

use plimsoll_wire::Target;
use serde_json::{Value, json};

use super::Patient;
use super::piece::{kind, list, list_mut, text};
use crate::protocol::Protocol;

/// The maximum size of all images of a chat, in bytes of base64. Providers refuse requests with more
/// than 20 MB or 32 MB, and text needs its share.
const MAX_IMAGES: usize = 20_000_000;
/// The maximum size of one image that Anthropic accepts, in bytes of base64.
const MAX_IMAGE: usize = 5 * 1024 * 1024;
/// Replaces a removed image.
const NO_IMAGE: &str =
    "[An image stood here. It was removed because the session had too many bytes of images.]";

/// Replaces images that are too large, and the oldest ones if there are too many bytes of them.
pub(super) fn fix(patient: &mut Patient<'_, '_>) {
    let largest = match patient.target {
        Target::Messages(_) => MAX_IMAGE,
        Target::Chat(_) | Target::Responses(_) => MAX_IMAGES,
    };
    let mut left = MAX_IMAGES;
    let mut is_over = |image: &Value| {
        let bytes = size(image).unwrap_or_default();
        let is_over = bytes > largest || bytes > left;
        left -= if is_over { 0 } else { bytes };
        is_over
    };
    let note = match patient.protocol() {
        Protocol::Chat | Protocol::Messages => json!({"type": "text", "text": NO_IMAGE}),
        Protocol::Responses => json!({"type": "input_text", "text": NO_IMAGE}),
    };
    let mut removed: Vec<(usize, usize)> = Vec::new();
    for at in (0..patient.chat.units.len()).rev() {
        let Some(unit) = patient.chat.units.get_mut(at).filter(|unit| unit.is_left()) else {
            continue;
        };
        if is_over(unit.value()) {
            *unit.edit() = note.clone();
            removed.push((at, 1));
        }
        for key in ["content", "output"] {
            let parts = list(unit.value(), key).iter().enumerate().rev();
            let over = parts.filter(|(_, part)| is_over(part));
            let over: Vec<usize> = over.map(|(place, _)| place).collect();
            if over.is_empty() {
                continue;
            }
            let parts = list_mut(unit.edit(), key).into_iter().flatten();
            for (_, part) in parts.enumerate().filter(|(place, _)| over.contains(place)) {
                part.clone_from(&note);
            }
            removed.push((at, over.len()));
        }
    }
    removed.reverse();
    let place = |(at, _): &(usize, usize)| patient.chat.place(*at);
    let entries = removed.chunk_by(|one, next| place(one) == place(next));
    let entries: Vec<(String, usize)> = entries
        .map(|entry| {
            let count = entry.iter().map(|(_, count)| count).sum();
            (entry.first().map(place).unwrap_or_default(), count)
        })
        .collect();
    for (place, count) in entries {
        let images = if count == 1 { "image" } else { "images" };
        let done = format!("too many bytes: put a note in the place of {count} {images}");
        patient.note_at(place, done);
    }
}

/// Returns the size of an image in the request, in bytes of base64.
fn size(part: &Value) -> Option<usize> {
    let data = match kind(part) {
        "image" => text(part.get("source")?, "data"),
        "image_url" | "input_image" => {
            let image = part.get("image_url")?;
            let url = image.get("url").unwrap_or(image).as_str()?;
            url.strip_prefix("data:")?
        }
        _ => return None,
    };
    Some(data.len())
}
