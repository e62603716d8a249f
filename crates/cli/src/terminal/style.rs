//! [`Colours`] and the styles of text. Only the terminal's own colours are used, so the look
//! depends on its theme.

use console::Style;

/// Whether text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    None,
    Ansi,
}

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const BOLD: Style = PLAIN.bold();
pub(crate) const DIM: Style = PLAIN.dim();
pub(crate) const RED: Style = PLAIN.red();
pub(crate) const GREEN: Style = PLAIN.green();
pub(crate) const MAGENTA: Style = PLAIN.magenta();
pub(crate) const CYAN: Style = PLAIN.cyan();

impl Colours {
    /// Returns the text in this style, or unchanged if there are no colours.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        let style = style.force_styling(self == Self::Ansi);
        style.apply_to(text).to_string()
    }

    /// Returns a line of a unified diff in the colour of its mark.
    pub(crate) fn diff_line(self, line: &str) -> String {
        let style = match line.chars().next() {
            Some('+') => GREEN,
            Some('-') => RED,
            Some('@') => CYAN,
            _ => PLAIN,
        };
        self.paint(style, line)
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
