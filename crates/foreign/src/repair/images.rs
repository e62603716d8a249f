//! The fix-up `images`: images that are too large for the provider become a note.

use plimsoll_wire::__internals::text;
use plimsoll_wire::{Protocol, Target};
use serde_json::{Value, json};

use super::Patient;
use super::piece::kind;

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
    let images = patient.parts();
    let images = images.filter_map(|(at, place, part)| Some((at, place, size(part)?)));
    let mut images: Vec<(usize, String, usize)> = images.collect();
    // The newest ones stay.
    images.reverse();
    let mut left = MAX_IMAGES;
    images.retain(|(.., bytes)| {
        let fits = *bytes <= largest.min(left);
        left -= if fits { *bytes } else { 0 };
        !fits
    });
    for (at, place, _) in images.into_iter().rev() {
        let done = "too many bytes of images: put a note in their place";
        patient.edit_part(at, &place, done, |image| image.clone_from(&note));
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
