//! Renders one line of Markdown, or a table.
//!
//! Without colours, the marks of the source are kept: `**bold**`, `` `code` ``.

use console::{Style, colors_enabled, measure_text_width};
use pulldown_cmark::{Alignment, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::terminal::style::{DIM, PLAIN, paint};
use crate::terminal::table;
use crate::terminal::text::wrap;

/// Maximum length of a thematic break, in columns.
const RULE: usize = 40;

/// Renders a line of text: a heading, a thematic break, or words behind the marks of quotes and lists.
pub(super) fn line(line: &str, width: usize) -> Vec<String> {
    let text = line.trim_start();
    let indent = " ".repeat(line.len() - text.len());
    // The beginning of the first row, and of the others.
    let (mut first, mut rest) = (indent.clone(), indent.clone());
    let mut writer = InlineWriter::new();
    for event in Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Rule => return vec![paint(DIM, &"─".repeat(RULE.min(width)))],
            Event::Start(Tag::BlockQuote(_)) => {
                let mark = paint(DIM, "│ ");
                first.push_str(&mark);
                rest.push_str(&mark);
                writer.open("", Style::dim);
            }
            Event::Start(Tag::List(number)) => {
                let mark = match number {
                    Some(number) => format!("{number}. "),
                    None if colors_enabled() => "• ".to_owned(),
                    None => "- ".to_owned(),
                };
                rest.push_str(&" ".repeat(measure_text_width(&mark)));
                first.push_str(&mark);
            }
            Event::Start(Tag::Heading { level, .. }) => {
                writer.open("", Style::bold);
                if level == HeadingLevel::H1 {
                    writer.open("", Style::underlined);
                }
                if !colors_enabled() {
                    first.push_str(&"#".repeat(level as usize));
                    first.push(' ');
                }
            }
            event => writer.see(event),
        }
    }
    // The definition of a link is no text for the parser.
    if writer.line.is_empty() && first == indent {
        writer.text(text);
    }
    // A mark without a text behind it, such as the `>` between two paragraphs of a quote.
    if writer.line.is_empty() {
        return vec![first.trim_end().to_owned()];
    }
    wrap(&writer.line, width, &first, &rest)
}

/// Renders the lines of a table. Returns `None` if they are not one, or if it is too wide.
pub(super) fn table(lines: &str, width: usize) -> Option<Vec<String>> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut writer = InlineWriter::new();
    let mut columns = None;
    let (mut rows, mut row) = (Vec::new(), Vec::new());
    for event in Parser::new_ext(lines, options) {
        match event {
            Event::Start(Tag::Table(alignments)) => columns = Some(alignments),
            Event::Start(Tag::TableHead) => writer.open("", Style::bold),
            Event::End(TagEnd::TableCell) => row.push(std::mem::take(&mut writer.line)),
            Event::End(TagEnd::TableHead) => {
                writer.close("");
                rows.push(std::mem::take(&mut row));
            }
            Event::End(TagEnd::TableRow) => rows.push(std::mem::take(&mut row)),
            event => writer.see(event),
        }
    }
    let columns = columns?.into_iter().map(|alignment| match alignment {
        Alignment::None | Alignment::Left => console::Alignment::Left,
        Alignment::Center => console::Alignment::Center,
        Alignment::Right => console::Alignment::Right,
    });
    table::rows(&rows, &columns.collect::<Vec<_>>(), width)
}

struct InlineWriter {
    line: String,
    /// The styles of all open elements, each with those around it.
    styles: Vec<Style>,
    /// The address of the open link or image, and the offset of its text in the line.
    link: Option<(String, usize)>,
}

impl InlineWriter {
    fn new() -> Self {
        Self {
            line: String::new(),
            styles: vec![PLAIN],
            link: None,
        }
    }

    fn see(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.text(text.trim_end_matches('\n'));
            }
            Event::Code(text) => {
                self.open("`", Style::cyan);
                self.text(&text);
                self.close("`");
            }
            Event::Start(Tag::Emphasis) => self.open("*", Style::italic),
            Event::Start(Tag::Strong) => self.open("**", Style::bold),
            Event::Start(Tag::Strikethrough) => self.open("~~", Style::strikethrough),
            Event::Start(Tag::Link { dest_url, .. }) => self.open_link(&dest_url),
            Event::Start(Tag::Image { dest_url, .. }) => {
                self.text("image: ");
                self.open_link(&dest_url);
            }
            Event::End(TagEnd::Emphasis) => self.close("*"),
            Event::End(TagEnd::Strong) => self.close("**"),
            Event::End(TagEnd::Strikethrough) => self.close("~~"),
            Event::End(TagEnd::Link | TagEnd::Image) => self.end_link(),
            _ => {}
        }
    }

    fn open_link(&mut self, address: &str) {
        self.open("", Style::underlined);
        self.link = Some((address.to_owned(), self.line.len()));
    }

    fn end_link(&mut self) {
        self.close("");
        let Some((address, from)) = self.link.take() else {
            return;
        };
        let text = self.line.get(from..).unwrap_or_default();
        let text = console::strip_ansi_codes(text);
        let is_shown = address.is_empty() || text == address || address == format!("mailto:{text}");
        if !is_shown {
            let address = paint(DIM, &format!(" ({address})"));
            self.line.push_str(&address);
        }
    }

    /// Begins an element with a style of its own. Without colours, its mark is written.
    fn open(&mut self, mark: &str, style: fn(Style) -> Style) {
        if !colors_enabled() {
            self.line.push_str(mark);
        }
        self.styles.push(style(self.style()));
    }

    fn close(&mut self, mark: &str) {
        if !colors_enabled() {
            self.line.push_str(mark);
        }
        self.styles.pop();
    }

    fn style(&self) -> Style {
        self.styles.last().cloned().unwrap_or(PLAIN)
    }

    fn text(&mut self, text: &str) {
        let text = paint(self.style(), text);
        self.line.push_str(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, is_coloured: bool) -> String {
        console::set_colors_enabled(is_coloured);
        line(text, 80).join("\n")
    }

    #[test]
    fn colours_stand_for_marks() {
        for (text, plain, coloured) in [
            (
                "**a** *b* `c`",
                "**a** *b* `c`",
                "\u{1b}[1ma\u{1b}[0m \u{1b}[3mb\u{1b}[0m \u{1b}[36mc\u{1b}[0m",
            ),
            (
                "[x](http://a)",
                "x (http://a)",
                "\u{1b}[4mx\u{1b}[0m\u{1b}[2m (http://a)\u{1b}[0m",
            ),
            ("a <b> & &amp; \\*", "a <b> & & *", "a <b> & & *"),
            ("[1]: http://a", "[1]: http://a", "[1]: http://a"),
        ] {
            assert_eq!(shown(text, false), plain);
            assert_eq!(shown(text, true), coloured);
        }
    }

    #[test]
    fn links_are_followed_by_their_addresses() {
        let links = "[docs](http://x.y) <http://x.y> ![cat](c.png)";
        let expected = "docs (http://x.y) http://x.y image: cat (c.png)";
        assert_eq!(shown(links, false), expected);
    }
}
