//! [`Input`]: two letters that choose, then a text. Letters, so that a seed can be written by hand.

use crate::view::Opaques;

/// One input of a target.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// Chooses one thing: a dialect, say.
    pub first: usize,
    /// Chooses another.
    pub second: usize,
    /// The rest.
    pub text: &'a str,
}

impl<'a> Input<'a> {
    /// `None` where there is no text.
    pub fn of(data: &'a [u8]) -> Option<Self> {
        let (head, rest) = data.split_first_chunk::<2>()?;
        Some(Self {
            first: usize::from(head[0]),
            second: usize::from(head[1]),
            text: std::str::from_utf8(rest).ok()?,
        })
    }

    /// What happens to blocks that are passed through.
    pub fn opaques(&self) -> Opaques {
        match self.second & 2 {
            0 => Opaques::Dropped,
            _ => Opaques::Kept,
        }
    }

    /// One of several by the first letter.
    pub fn choose<'t, T>(&self, of: &'t [T]) -> &'t T {
        &of[self.first % of.len()]
    }
}
