//! Renders the inline elements of Markdown: emphasis, code and links of one line, and the cells of a
//! table.
//!
//! Without colours, the marks of the source are kept: `**bold**`, `` `code` ``.

use console::Style;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::terminal::style::{Colours, DIM, PLAIN};
use crate::terminal::table::Table;

/// Renders one line in a style.
pub(super) fn inline(line: &str, style: Style, colours: Colours) -> String {
    let mut writer = InlineWriter::new(style, colours);
    for event in Parser::new_ext(line, Options::ENABLE_STRIKETHROUGH) {
        writer.see(event);
    }
    // The definition of a link is no text for the parser.
    if writer.line.is_empty() {
        writer.text(line);
    }
    writer.line
}

/// Renders the lines of a table. Returns `None` if they are not one.
pub(super) fn table(lines: &str, width: usize, colours: Colours) -> Option<Vec<String>> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut writer = InlineWriter::new(PLAIN, colours);
    let mut table: Option<Table> = None;
    for event in Parser::new_ext(lines, options) {
        match (event, &mut table) {
            (Event::Start(Tag::Table(columns)), None) => table = Some(Table::new(columns)),
            (Event::Start(Tag::TableHead), _) => writer.open("", Style::bold),
            (Event::End(TagEnd::TableCell), Some(table)) => {
                table.cell(std::mem::take(&mut writer.line));
            }
            (Event::End(end @ (TagEnd::TableHead | TagEnd::TableRow)), Some(table)) => {
                if end == TagEnd::TableHead {
                    writer.close("");
                }
                table.end_row();
            }
            (event, _) => writer.see(event),
        }
    }
    table.map(|table| table.rows(width, colours))
}

struct InlineWriter {
    colours: Colours,
    line: String,
    /// The styles of all open elements, each with those around it.
    styles: Vec<Style>,
    /// The address of the open link or image, and the offset of its text in the line.
    link: Option<(String, usize)>,
}

impl InlineWriter {
    fn new(style: Style, colours: Colours) -> Self {
        Self {
            colours,
            line: String::new(),
            styles: vec![style],
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
            let address = self.colours.paint(DIM, &format!(" ({address})"));
            self.line.push_str(&address);
        }
    }

    /// Begins an element with a style of its own. Without colours, its mark is written.
    fn open(&mut self, mark: &str, style: fn(Style) -> Style) {
        if self.colours == Colours::None {
            self.line.push_str(mark);
        }
        self.styles.push(style(self.style()));
    }

    fn close(&mut self, mark: &str) {
        if self.colours == Colours::None {
            self.line.push_str(mark);
        }
        self.styles.pop();
    }

    fn style(&self) -> Style {
        self.styles.last().cloned().unwrap_or(PLAIN)
    }

    fn text(&mut self, text: &str) {
        let text = self.colours.paint(self.style(), text);
        self.line.push_str(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_stand_for_marks() {
        for (line, plain, coloured) in [
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
            assert_eq!(inline(line, PLAIN, Colours::None), plain);
            assert_eq!(inline(line, PLAIN, Colours::Ansi), coloured);
        }
    }

    #[test]
    fn links_are_followed_by_their_addresses() {
        let links = "[docs](http://x.y) <http://x.y> ![cat](c.png)";
        let shown = "docs (http://x.y) http://x.y image: cat (c.png)";
        assert_eq!(inline(links, PLAIN, Colours::None), shown);
    }
}
