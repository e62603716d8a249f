//! [`image_part`]: converts an image file to a part of a message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use imagesize::ImageType;
use plimsoll_context::{Bytes, Image, Part, Source};

/// Maximum size of an image that `read` shows. Some providers reject larger ones.
pub const IMAGE_MAX: Bytes = Bytes(5 * 1024 * 1024);

/// The reason why a file is not a usable image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// It has another format.
    #[error("is no PNG, JPEG, GIF or WebP: convert it to one of them")]
    OtherKind,
    /// The dimensions cannot be read. They are needed to count tokens.
    #[error("is damaged: its size is not in it ({0})")]
    Damaged(String),
}

/// Returns an image file as a part of a message, with its size in pixels.
///
/// # Errors
/// If providers do not accept the format, or if the file is damaged.
pub fn image_part(file: &[u8]) -> Result<Part, ImageError> {
    let media_type = match imagesize::image_type(file) {
        Ok(ImageType::Png) => "image/png",
        Ok(ImageType::Jpeg) => "image/jpeg",
        Ok(ImageType::Gif) => "image/gif",
        Ok(ImageType::Webp) => "image/webp",
        _ => return Err(ImageError::OtherKind),
    };
    let size =
        imagesize::blob_size(file).map_err(|error| ImageError::Damaged(error.to_string()))?;
    let pixels = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
    Ok(Part::Image(Image {
        source: Source::Data {
            media_type: media_type.to_owned(),
            base64: STANDARD.encode(file),
        },
        size: Some((pixels(size.width), pixels(size.height))),
        detail: None,
    }))
}
