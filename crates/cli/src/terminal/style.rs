//! [`Colours`] and [`Style`] of text. Only the terminal's own colours are used, so the look depends
//! on its theme.

use crate::terminal::text::RESET;

/// Whether text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    None,
    Ansi,
}

/// The look of a piece of text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) bold: bool,
    pub(crate) dim: bool,
    pub(crate) italic: bool,
    pub(crate) underlined: bool,
    pub(crate) struck: bool,
    /// The number of a colour, from 31 (red) to 36 (cyan).
    pub(crate) colour: Option<u8>,
}

pub(crate) const RED: u8 = 31;
pub(crate) const GREEN: u8 = 32;
pub(crate) const YELLOW: u8 = 33;
pub(crate) const BLUE: u8 = 34;
pub(crate) const MAGENTA: u8 = 35;
pub(crate) const CYAN: u8 = 36;

impl Style {
    pub(crate) const PLAIN: Self = Self {
        bold: false,
        dim: false,
        italic: false,
        underlined: false,
        struck: false,
        colour: None,
    };
    pub(crate) const BOLD: Self = Self {
        bold: true,
        ..Self::PLAIN
    };
    pub(crate) const DIM: Self = Self {
        dim: true,
        ..Self::PLAIN
    };

    pub(crate) const fn of(colour: u8) -> Self {
        Self {
            colour: Some(colour),
            ..Self::PLAIN
        }
    }

    /// Returns the escape sequence that sets exactly this style.
    fn escape(self) -> String {
        if self == Self::PLAIN {
            return RESET.to_owned();
        }
        let set = [
            (self.bold, 1),
            (self.dim, 2),
            (self.italic, 3),
            (self.underlined, 4),
            (self.struck, 9),
        ];
        let mut codes = String::from("0");
        let codes_set = set.into_iter().filter(|(is_set, _)| *is_set);
        for code in codes_set.map(|(_, code)| code).chain(self.colour) {
            codes.push_str(&format!(";{code}"));
        }
        format!("\u{1b}[{codes}m")
    }
}

impl Colours {
    /// Returns the text in this style, or unchanged if there are no colours.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        if self == Self::None || style == Style::PLAIN || text.is_empty() {
            return text.to_owned();
        }
        format!("{}{text}{RESET}", style.escape())
    }
}

/// Returns the colours of the terminal: none if NO_COLOR is set.
pub(crate) fn colours() -> Colours {
    if std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) {
        Colours::Ansi
    } else {
        Colours::None
    }
}
