//! Images that are sent with a message of the user: files of `--image`, and those mentioned as
//! `@path`.
//!
//! Other mentioned files are not attached. The model reads them with its tools, so that their
//! content can be evicted and recalled.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use plimsoll::Part;
use plimsoll::tools::image_part;

use crate::error::CliError;
use crate::model_choice::ModelChoice;

/// Maximum size of an image, in bytes. Most providers accept less.
const MAX_IMAGE: u64 = 20 << 20;

/// File name extensions of images.
const ENDINGS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];
/// Maximum number of images that one message mentions.
const MAX_MENTIONED: usize = 20;

/// The model that messages are sent to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recipient {
    /// The model's name.
    pub(crate) model: String,
    /// Whether the model is known not to accept images.
    pub(crate) is_blind: bool,
    /// The folder that paths are relative to.
    pub(crate) root: PathBuf,
}

impl Recipient {
    /// Creates the recipient for the chosen model and the agent's root.
    pub(crate) fn new(choice: &ModelChoice, root: &Path) -> Self {
        Self {
            model: choice.name.clone(),
            is_blind: choice.model.provider.takes_images() == Some(false),
            root: root.to_owned(),
        }
    }

    /// Returns a message: its text, followed by the images that it mentions.
    ///
    /// # Errors
    /// If a mentioned image cannot be sent, or the model does not accept images.
    pub(crate) fn message(&self, text: String) -> Result<Vec<Part>, CliError> {
        let paths: Vec<PathBuf> = mentioned(&text).collect();
        if paths.len() > MAX_MENTIONED {
            return Err(CliError::usage(format!(
                "{} images are mentioned, but one message may contain {MAX_MENTIONED}: send the \
                 others with the next one",
                paths.len()
            )));
        }
        let mut parts = vec![Part::text(text)];
        for path in paths {
            let name = format!("@{}", path.display());
            parts.push(read_image(&self.root.join(path), &name)?);
        }
        self.check(&parts)?;
        Ok(parts)
    }

    /// Returns an error if the parts contain an image and the model does not accept images.
    pub(crate) fn check(&self, parts: &[Part]) -> Result<(), CliError> {
        if !self.is_blind || !parts.iter().any(|part| matches!(part, Part::Image(_))) {
            return Ok(());
        }
        Err(CliError::usage(format!(
            "{} accepts no images; choose another model, or set `images = true` for it in \
             [models] of the configuration",
            self.model
        )))
    }
}

/// Returns `true` if a text mentions an image.
#[cfg(feature = "restate")]
pub(crate) fn mentions_image(text: &str) -> bool {
    mentioned(text).next().is_some()
}

/// Returns the images that a text mentions, such as `@screen.png` or `@"my screen.png"`.
fn mentioned(text: &str) -> impl Iterator<Item = PathBuf> {
    text.match_indices('@').filter_map(|(at, _)| {
        let (before, tail) = (text.get(..at)?, text.get(at + 1..)?);
        let begins = |c: char| c.is_whitespace() || "([{\"'".contains(c);
        let path = match tail.strip_prefix('"').and_then(|tail| tail.split_once('"')) {
            Some((quoted, _)) => quoted,
            None => tail.split(char::is_whitespace).next()?,
        };
        let path = path.trim_end_matches(|c: char| ".,;:!?)]}'".contains(c));
        let is_mentioned = before.chars().next_back().is_none_or(begins) && is_image(path);
        is_mentioned.then(|| PathBuf::from(path))
    })
}

fn is_image(path: &str) -> bool {
    let ending = Path::new(path)
        .extension()
        .and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.iter().any(|of| of.eq_ignore_ascii_case(ending)))
}

/// Reads the image of `--image`.
///
/// # Errors
/// If it cannot be read, is too large, or has a format that no provider accepts.
pub(crate) fn image(path: &Path) -> Result<Part, CliError> {
    read_image(path, &format!("--image {}", path.display()))
}

fn read_image(path: &Path, name: &str) -> Result<Part, CliError> {
    let mut bytes = Vec::new();
    // One byte more than the maximum shows that a file is too large.
    let read = File::open(path).and_then(|file| file.take(MAX_IMAGE + 1).read_to_end(&mut bytes));
    read.map_err(|error| CliError::usage(format!("{name}: {error}")))?;
    image_of(name, &bytes)
}

/// Converts bytes to an image.
///
/// # Errors
/// If it is too large, or has a format that no provider accepts. `name` is used in the message.
pub(crate) fn image_of(name: &str, bytes: &[u8]) -> Result<Part, CliError> {
    if bytes.len() as u64 > MAX_IMAGE {
        return Err(CliError::usage(format!(
            "{name} is larger than the limit of 20 MiB: make it smaller"
        )));
    }
    image_part(bytes).map_err(|error| CliError::usage(format!("{name} {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_mentioned_by_their_paths() {
        for (text, paths) in [
            ("What is on @screen.png?", vec!["screen.png"]),
            (
                "(@a/b.JPG), @\"my screen.webp\".",
                vec!["a/b.JPG", "my screen.webp"],
            ),
            ("@x.gif @y.jpeg", vec!["x.gif", "y.jpeg"]),
            ("icon@2x.png and ada@example.com", vec![]),
            ("read @src/main.rs, @README", vec![]),
            ("@ @@ @\"", vec![]),
            ("@@a.png", vec!["@a.png"]),
        ] {
            let found: Vec<PathBuf> = mentioned(text).collect();
            let paths: Vec<PathBuf> = paths.into_iter().map(PathBuf::from).collect();
            assert_eq!(found, paths, "{text}");
        }
    }
}
