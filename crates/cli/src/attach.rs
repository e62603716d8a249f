//! Images that go to the model with what a person says: files of `--image`, and those that are mentioned as
//! `@path`. Other files that are mentioned are not attached: the model reads them with its tools, so that
//! what is in them can be evicted and recalled.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use plimsoll::Part;
use plimsoll::tools::image_part;

use crate::choice::Choice;
use crate::exit::Stop;

/// The largest image that is sent, in bytes. More than most providers take of one.
const MAX_IMAGE: u64 = 20 << 20;

/// Endings of the names of images.
const ENDINGS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];
/// Images that one message mentions, at most.
const MAX_MENTIONED: usize = 20;

/// Who takes what is said.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recipient {
    /// The model, by its name.
    pub(crate) model: String,
    /// Whether it is known to take no images.
    pub(crate) is_blind: bool,
    /// Where paths begin.
    pub(crate) root: PathBuf,
}

impl Recipient {
    /// The model that was chosen, in the agent's root.
    pub(crate) fn new(choice: &Choice, root: &Path) -> Self {
        Self {
            model: choice.name.clone(),
            is_blind: choice.provider.takes_images() == Some(false),
            root: root.to_owned(),
        }
    }

    /// Returns a message: its text, then the images that it mentions.
    ///
    /// # Errors
    /// If an image that is mentioned cannot be sent, or the model takes none.
    pub(crate) fn message(&self, text: String) -> Result<Vec<Part>, Stop> {
        let images = self.images(&text)?;
        let mut parts = vec![Part::text(text)];
        parts.extend(images);
        self.check(&parts)?;
        Ok(parts)
    }

    /// Returns an error if there is an image among the parts and the model takes none.
    pub(crate) fn check(&self, parts: &[Part]) -> Result<(), Stop> {
        if !self.is_blind || !parts.iter().any(|part| matches!(part, Part::Image(_))) {
            return Ok(());
        }
        Err(Stop::usage(format!(
            "{} takes no images; choose another model, or say `images = true` of it in models.toml",
            self.model
        )))
    }

    fn images(&self, text: &str) -> Result<Vec<Part>, Stop> {
        let paths: Vec<PathBuf> = mentioned(text).collect();
        if paths.len() > MAX_MENTIONED {
            return Err(Stop::usage(format!(
                "{} images are mentioned, and one message takes {MAX_MENTIONED}: send the others with \
                 the next one",
                paths.len()
            )));
        }
        let images = paths
            .iter()
            .map(|path| read_image(&self.root.join(path), &format!("@{}", path.display())));
        images.collect()
    }
}

/// Returns `true` if a text mentions an image.
#[cfg(feature = "restate")]
pub(crate) fn mentions_image(text: &str) -> bool {
    mentioned(text).next().is_some()
}

/// The images that a text mentions: `@screen.png`, or `@"my screen.png"`.
fn mentioned(text: &str) -> impl Iterator<Item = PathBuf> {
    let mut rest = text;
    let mut before = ' ';
    std::iter::from_fn(move || {
        loop {
            let (head, tail) = rest.split_once('@')?;
            let last = head.chars().next_back().unwrap_or(before);
            before = '@';
            let (path, after) = match tail.strip_prefix('"').and_then(|tail| tail.split_once('"')) {
                Some(quoted) => quoted,
                None => tail.split_at(tail.find(char::is_whitespace).unwrap_or(tail.len())),
            };
            let begins = last.is_whitespace() || "([{\"'".contains(last);
            let path = path.trim_end_matches(|c: char| ".,;:!?)]}'".contains(c));
            if begins && is_image(path) {
                rest = after;
                before = ' ';
                return Some(PathBuf::from(path));
            }
            rest = tail;
        }
    })
}

fn is_image(path: &str) -> bool {
    let ending = Path::new(path)
        .extension()
        .and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.iter().any(|of| of.eq_ignore_ascii_case(ending)))
}

/// Reads the image that an option names.
///
/// # Errors
/// If it cannot be read, is too large, or is of a kind that no provider takes.
pub(crate) fn image(path: &Path) -> Result<Part, Stop> {
    read_image(path, &format!("--image {}", path.display()))
}

fn read_image(path: &Path, name: &str) -> Result<Part, Stop> {
    let bytes = read(path).map_err(|error| Stop::usage(format!("{name}: {error}")))?;
    image_of(name, &bytes)
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
    image_part(bytes).map_err(|error| Stop::usage(format!("{name} {error}")))
}

/// Reads a file, and one byte too many of a file that is too large.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_IMAGE + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
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
