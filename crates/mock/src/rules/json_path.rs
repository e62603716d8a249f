//! [`JsonPath`]: a place in a request, which becomes a text only if a fault names it.

use std::fmt;

/// A place in a request: the way to it from the outside.
#[derive(Debug, Clone, Copy)]
pub(crate) enum JsonPath<'p> {
    /// The request if the name is empty, otherwise the value of one of its keys.
    Named(&'p str),
    /// The same in an API that writes `messages.3` for `messages[3]`.
    Dotted(&'p str),
    /// The value of a key.
    Key(&'p JsonPath<'p>, &'p str),
    /// An entry of a list.
    Entry(&'p JsonPath<'p>, usize),
}

impl<'p> JsonPath<'p> {
    pub(crate) const fn key(&'p self, key: &'p str) -> Self {
        Self::Key(self, key)
    }

    pub(crate) const fn entry(&'p self, index: usize) -> Self {
        Self::Entry(self, index)
    }

    fn is_dotted(&self) -> bool {
        match self {
            Self::Named(_) => false,
            Self::Dotted(_) => true,
            Self::Key(of, _) | Self::Entry(of, _) => of.is_dotted(),
        }
    }
}

impl fmt::Display for JsonPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) | Self::Dotted(name) => f.write_str(name),
            Self::Key(Self::Named("") | Self::Dotted(""), key) => f.write_str(key),
            Self::Key(of, key) => write!(f, "{of}.{key}"),
            Self::Entry(of, index) if of.is_dotted() => write!(f, "{of}.{index}"),
            Self::Entry(of, index) => write!(f, "{of}[{index}]"),
        }
    }
}

impl From<JsonPath<'_>> for String {
    fn from(place: JsonPath<'_>) -> Self {
        place.to_string()
    }
}
