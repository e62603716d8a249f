//! The fix-up `images`: images that are too large for the provider become a note.

use plimsoll_wire::Target;
use serde_json::{Value, json};

use super::Patient;
use super::piece::{kind, list, text};
use crate::protocol::Protocol;
use crate::unit::Unit;

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
    let note = match patient.protocol() {
        Protocol::Chat | Protocol::Messages => json!({"type": "text", "text": NO_IMAGE}),
        Protocol::Responses => json!({"type": "input_text", "text": NO_IMAGE}),
    };
    let mut left = MAX_IMAGES;
    // The units of the removed images, from the end.
    let mut removed: Vec<usize> = Vec::new();
    for (at, unit) in patient.chat.units.iter_mut().enumerate().rev() {
        for (place, bytes) in images(unit).into_iter().rev() {
            if bytes <= largest.min(left) {
                left -= bytes;
            } else if let Some(image) = unit.edit().pointer_mut(&place) {
                image.clone_from(&note);
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

/// Returns the places of the images in a unit, as JSON pointers, with their sizes.
fn images(unit: &Unit<'_>) -> Vec<(String, usize)> {
    let own = unit.value();
    let parts = ["content", "output"].into_iter().flat_map(|key| {
        let parts = list(own, key).iter().enumerate();
        parts.filter_map(move |(at, part)| Some((format!("/{key}/{at}"), size(part)?)))
    });
    let own = size(own).map(|bytes| (String::new(), bytes));
    let images = own.into_iter().chain(parts).filter(|_| unit.is_left());
    images.collect()
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
