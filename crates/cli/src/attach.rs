//! Images that go to the model with a task.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use imagesize::ImageType;
use plimsoll::{Image, Part, Source};

use crate::exit::Stop;

/// The largest image that is sent, in bytes. More than most providers take of one.
const MAX_IMAGE: u64 = 20 << 20;

/// Reads an image.
///
/// # Errors
/// If it cannot be read, is too large, or is of a kind that no provider takes.
pub(crate) fn image(path: &Path) -> Result<Part, Stop> {
    let name = path.display();
    let bytes = read(path).map_err(|error| Stop::usage(format!("--image {name}: {error}")))?;
    image_of(&format!("--image {name}"), &bytes)
}

/// The image that these bytes are.
///
/// # Errors
/// If it is too large, or of a kind that no provider takes. `name` says which it is.
pub(crate) fn image_of(name: &str, bytes: &[u8]) -> Result<Part, Stop> {
    if bytes.len() as u64 > MAX_IMAGE {
        return Err(Stop::usage(format!(
            "{name} is larger than 20 MiB, more than a provider takes: make it smaller"
        )));
    }
    let media_type = match imagesize::image_type(bytes) {
        Ok(ImageType::Png) => "image/png",
        Ok(ImageType::Jpeg) => "image/jpeg",
        Ok(ImageType::Gif) => "image/gif",
        Ok(ImageType::Webp) => "image/webp",
        _ => {
            return Err(Stop::usage(format!(
                "{name} is no PNG, JPEG, GIF or WebP: convert it to one of them"
            )));
        }
    };
    // The size decides what the image weighs.
    let size = imagesize::blob_size(bytes).map_err(|error| {
        Stop::usage(format!(
            "{name} is damaged: its size is not in it ({error})"
        ))
    })?;
    let pixels = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
    Ok(Part::Image(Image {
        source: Source::Data {
            media_type: media_type.to_owned(),
            base64: STANDARD.encode(bytes),
        },
        size: Some((pixels(size.width), pixels(size.height))),
        detail: None,
    }))
}

/// Reads a file, and one byte too many of a file that is too large.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_IMAGE + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}
