//! The styles of text. Only the terminal's own colours are used, so the look depends on its theme.
//! Text is plain until a command shows its output on a terminal.

use console::Style;

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const BOLD: Style = PLAIN.bold();
pub(crate) const DIM: Style = PLAIN.dim();
pub(crate) const RED: Style = PLAIN.red();
pub(crate) const GREEN: Style = PLAIN.green();
pub(crate) const YELLOW: Style = PLAIN.yellow();
pub(crate) const CYAN: Style = PLAIN.cyan();

/// Uses colours from now on, unless NO_COLOR is set.
pub(crate) fn use_colours() {
    let no_color = std::env::var_os("NO_COLOR").unwrap_or_default();
    console::set_colors_enabled(no_color.is_empty());
}

/// Returns the text in this style, or unchanged if there are no colours.
pub(crate) fn paint(style: Style, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    style.apply_to(text).to_string()
}

/// Returns a line of a unified diff in the colour of its mark.
pub(crate) fn diff_line(line: &str) -> String {
    let style = match line.chars().next() {
        Some('+') => GREEN,
        Some('-') => RED,
        Some('@') => CYAN,
        _ => PLAIN,
    };
    paint(style, line)
}
