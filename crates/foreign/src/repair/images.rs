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
    // The units of the removed images, from the end.
    let mut removed: Vec<usize> = Vec::new();
    for at in (0..patient.chat.units.len()).rev() {
        let unit = patient.chat.units.get_mut(at);
        let Some(unit) = unit.filter(|unit| unit.is_left()) else {
            continue;
        };
        if is_over(unit.value()) {
            unit.edit().clone_from(&note);
            removed.push(at);
        }
        for key in ["content", "output"] {
            let parts = list(unit.value(), key).iter().enumerate().rev();
            let over = parts.filter(|(_, part)| is_over(part));
            let over: Vec<usize> = over.map(|(nth, _)| nth).collect();
            for nth in over {
                let parts = list_mut(unit.edit(), key);
                if let Some(part) = parts.and_then(|parts| parts.get_mut(nth)) {
                    part.clone_from(&note);
                }
                removed.push(at);
            }
        }
    }
    let places = removed.iter().rev().map(|at| patient.chat.place(*at));
    let places: Vec<String> = places.collect();
    for images in places.chunk_by(|one, next| one == next) {
        let count = match images.len() {
            1 => "1 image".to_owned(),
            count => format!("{count} images"),
        };
        let done = format!("too many bytes: put a note in the place of {count}");
        patient.note_at(images.first().cloned().unwrap_or_default(), done);
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
