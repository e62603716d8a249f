//! Renders one complete Markdown text as rows of a terminal. `stream.rs` cuts a stream into such
//! texts.
//!
//! Without colours, the marks of the source are kept: `**bold**`, `` `code` ``, `# heading`.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::terminal::highlight::Highlighter;
use crate::terminal::style::{CYAN, Colours, Style};
use crate::terminal::table::Table;
use crate::terminal::text::{Break, wrap};

/// Indentation of code blocks.
const CODE: &str = "  ";
/// Maximum length of a thematic break, in columns.
const RULE: usize = 40;

/// The width in columns and the colours to render with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageStyle {
    pub(crate) width: usize,
    pub(crate) colours: Colours,
}

/// Renders a text as rows.
pub(crate) fn rows(text: &str, page: PageStyle) -> Vec<String> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES;
    let mut writer = MarkdownWriter::new(page);
    for event in Parser::new_ext(text, options) {
        writer.see(event);
    }
    writer.end_line();
    writer.rows
}

/// A block that contains other blocks, such as a list item or a quote.
struct Container {
    /// Prefix of its first row, until that row is written.
    first: Option<String>,
    /// Prefix of all further rows.
    rest: String,
}

struct MarkdownWriter {
    page: PageStyle,
    rows: Vec<String>,
    /// The line that is being filled.
    line: String,
    containers: Vec<Container>,
    /// For each open list, the number of its next item; `None` if the list is not numbered.
    lists: Vec<Option<u64>>,
    /// The styles of all open elements.
    styles: Vec<Style>,
    /// The address of the open link or image, and the offset of its text in the line.
    link: Option<(String, usize)>,
    code: Option<(Highlighter, String)>,
    table: Option<Table>,
    /// Whether a block has ended, so that an empty row precedes the next one.
    gap: bool,
}

impl MarkdownWriter {
    fn new(page: PageStyle) -> Self {
        Self {
            page,
            rows: Vec::new(),
            line: String::new(),
            containers: Vec::new(),
            lists: Vec::new(),
            styles: Vec::new(),
            link: None,
            code: None,
            table: None,
            gap: false,
        }
    }

    fn see(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.text(&text),
            },
            Event::Code(text) => {
                let marked = self.marked("`", &text);
                let style = Style {
                    colour: Some(CYAN),
                    ..self.style()
                };
                self.line.push_str(&self.page.colours.paint(style, &marked));
            }
            Event::SoftBreak | Event::HardBreak => match self.table {
                Some(_) => self.line.push(' '),
                None => self.line.push('\n'),
            },
            Event::Rule => {
                self.block();
                let (first, _) = self.beginnings();
                let rule = "─".repeat(RULE.min(self.page.width));
                let rule = self.page.colours.paint(Style::DIM, &rule);
                self.rows.push(format!("{first}{rule}"));
                self.gap = true;
            }
            Event::TaskListMarker(done) => self.line.push_str(if done { "[x] " } else { "[ ] " }),
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
            Event::FootnoteReference(label) => self.text(&format!("[^{label}]")),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.block(),
            Tag::Heading { level, .. } => {
                self.block();
                self.styles.push(Style {
                    underlined: level == HeadingLevel::H1,
                    ..Style::BOLD
                });
                if self.page.colours == Colours::None {
                    self.line = format!("{} ", "#".repeat(level as usize));
                }
            }
            Tag::BlockQuote(_) => {
                self.block();
                let bar = self.page.colours.paint(Style::DIM, "│ ");
                self.containers.push(Container {
                    first: None,
                    rest: bar,
                });
                self.styles.push(Style::DIM);
            }
            Tag::CodeBlock(kind) => {
                self.block();
                let language = match &kind {
                    CodeBlockKind::Fenced(language) => language.as_ref(),
                    CodeBlockKind::Indented => "",
                };
                let highlighter = Highlighter::new(language, self.page.colours);
                self.code = Some((highlighter, String::new()));
            }
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.block();
                }
                self.end_line();
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::FootnoteDefinition(label) => {
                self.block();
                self.containers.push(Container {
                    first: Some(format!("[^{label}]: ")),
                    rest: CODE.to_owned(),
                });
            }
            Tag::Emphasis => self.open(
                "*",
                Style {
                    italic: true,
                    ..Style::PLAIN
                },
            ),
            Tag::Strong => self.open("**", Style::BOLD),
            Tag::Strikethrough => self.open(
                "~~",
                Style {
                    struck: true,
                    ..Style::PLAIN
                },
            ),
            Tag::Link { dest_url, .. } => {
                self.link = Some((dest_url.to_string(), self.line.len()));
                self.styles.push(Style {
                    underlined: true,
                    ..Style::PLAIN
                });
            }
            Tag::Image { dest_url, .. } => {
                self.line.push_str("image: ");
                self.link = Some((dest_url.to_string(), self.line.len()));
                self.styles.push(Style::PLAIN);
            }
            Tag::Table(columns) => {
                self.block();
                self.table = Some(Table::new(columns));
            }
            Tag::TableHead => self.styles.push(Style::BOLD),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_block();
            }
            TagEnd::BlockQuote(_) => {
                self.styles.pop();
                self.end_line();
                self.containers.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.end_line();
                // An item without any text is a row as well.
                if self
                    .containers
                    .last()
                    .is_some_and(|item| item.first.is_some())
                {
                    let (first, _) = self.beginnings();
                    self.rows.push(first);
                }
                self.containers.pop();
                self.gap = false;
            }
            TagEnd::FootnoteDefinition => {
                self.end_line();
                self.containers.pop();
                self.gap = true;
            }
            TagEnd::Emphasis => self.close("*"),
            TagEnd::Strong => self.close("**"),
            TagEnd::Strikethrough => self.close("~~"),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.line);
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if tag == TagEnd::TableHead {
                    self.styles.pop();
                }
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::Table => self.end_table(),
            _ => {}
        }
    }

    /// Begins a block: ends the line before it, and separates it by an empty row if needed.
    fn block(&mut self) {
        self.end_line();
        if std::mem::take(&mut self.gap) && !self.rows.is_empty() {
            let (_, rest) = self.beginnings_kept();
            self.rows.push(rest.trim_end().to_owned());
        }
    }

    fn end_block(&mut self) {
        self.end_line();
        self.gap = true;
    }

    fn item(&mut self) {
        self.end_line();
        let bullet = match self.lists.last_mut() {
            Some(Some(number)) => {
                let bullet = format!("{number}. ");
                *number = number.saturating_add(1);
                bullet
            }
            _ if self.page.colours == Colours::None => "- ".to_owned(),
            _ => "• ".to_owned(),
        };
        let rest = " ".repeat(console::measure_text_width(&bullet));
        self.containers.push(Container {
            first: Some(bullet),
            rest,
        });
        self.gap = false;
    }

    fn end_code(&mut self) {
        let Some((mut highlighter, code)) = self.code.take() else {
            return;
        };
        for line in code.lines() {
            let line = highlighter.line(line);
            let (first, rest) = self.beginnings();
            self.rows.extend(code_rows(&line, self.page, &first, &rest));
        }
        self.gap = true;
    }

    fn end_link(&mut self) {
        self.styles.pop();
        let Some((address, from)) = self.link.take() else {
            return;
        };
        let text = self.line.get(from..).unwrap_or_default();
        let text = console::strip_ansi_codes(text);
        let is_said = address.is_empty() || text == address || address == format!("mailto:{text}");
        if !is_said {
            let address = format!(" ({address})");
            self.line
                .push_str(&self.page.colours.paint(Style::DIM, &address));
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else {
            return;
        };
        let (first, rest) = self.beginnings();
        let width = console::measure_text_width(&rest);
        let width = self.page.width.saturating_sub(width);
        let rows = table.rows(width, self.page.colours);
        for (at, row) in rows.into_iter().enumerate() {
            let beginning = if at == 0 { &first } else { &rest };
            self.rows.push(format!("{beginning}{row}"));
        }
        self.gap = true;
    }

    fn open(&mut self, mark: &str, style: Style) {
        if self.page.colours == Colours::None {
            self.line.push_str(mark);
        }
        self.styles.push(style);
    }

    fn close(&mut self, mark: &str) {
        if self.page.colours == Colours::None {
            self.line.push_str(mark);
        }
        self.styles.pop();
    }

    /// Encloses a text in marks if there are no colours.
    fn marked(&self, mark: &str, text: &str) -> String {
        match self.page.colours {
            Colours::None => format!("{mark}{text}{mark}"),
            Colours::Ansi => text.to_owned(),
        }
    }

    fn text(&mut self, text: &str) {
        let style = self.style();
        self.line.push_str(&self.page.colours.paint(style, text));
    }

    /// Combines the styles of all open elements.
    fn style(&self) -> Style {
        self.styles.iter().fold(Style::PLAIN, |all, one| Style {
            bold: all.bold || one.bold,
            dim: all.dim || one.dim,
            italic: all.italic || one.italic,
            underlined: all.underlined || one.underlined,
            struck: all.struck || one.struck,
            colour: one.colour.or(all.colour),
        })
    }

    /// Writes the line that is being filled.
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = line.trim_end_matches('\n');
        if line.is_empty() {
            return;
        }
        for line in line.split('\n') {
            let (first, rest) = self.beginnings();
            let rows = wrap(line, self.page.width, &first, &rest, Break::Completer);
            self.rows.extend(rows);
        }
    }

    /// Returns the prefixes of the next row and of the rows after it.
    fn beginnings(&mut self) -> (String, String) {
        let (first, rest) = self.beginnings_kept();
        for container in &mut self.containers {
            container.first = None;
        }
        (first, rest)
    }

    fn beginnings_kept(&self) -> (String, String) {
        let (mut first, mut rest) = (String::new(), String::new());
        for container in &self.containers {
            first.push_str(container.first.as_deref().unwrap_or(&container.rest));
            rest.push_str(&container.rest);
        }
        (first, rest)
    }
}

/// Renders a line of code as rows.
pub(crate) fn code_rows(line: &str, page: PageStyle, first: &str, rest: &str) -> Vec<String> {
    let (first, rest) = (format!("{first}{CODE}"), format!("{rest}{CODE}"));
    if line.is_empty() {
        vec![first.trim_end().to_owned()]
    } else {
        wrap(line, page.width, &first, &rest, Break::Anywhere)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, width: usize) -> String {
        let page = PageStyle {
            width,
            colours: Colours::None,
        };
        rows(text, page).join("\n")
    }

    fn coloured(text: &str) -> String {
        let page = PageStyle {
            width: 40,
            colours: Colours::Ansi,
        };
        rows(text, page).join("\n")
    }

    #[test]
    fn blocks_are_laid_out_in_rows() {
        for (text, width, expected) in [
            ("# Title\n\nText.", 40, "# Title\n\nText."),
            ("one two three four", 9, "one two\nthree\nfour"),
            ("See[^1].\n\n[^1]: note", 40, "See[^1].\n\n[^1]: note"),
            ("one\ntwo", 40, "one\ntwo"),
            (
                "- one two three\n- four\n  - five six seven\n",
                11,
                "- one two\n  three\n- four\n  - five\n    six\n    seven",
            ),
            ("9. nine\n10. ten", 40, "9. nine\n10. ten"),
            (
                "- [x] done\n- [ ] open\n-",
                40,
                "- [x] done\n- [ ] open\n- ",
            ),
            (
                "> quoted text\n>\n> more",
                10,
                "│ quoted\n│ text\n│\n│ more",
            ),
            (
                "a\n\n```rust\nfn x() {\n    y  z\n}\n```\n\nb",
                40,
                "a\n\n  fn x() {\n      y  z\n  }\n\nb",
            ),
            ("- a\n\n  ```\n  code\n  ```", 40, "- a\n\n    code"),
            (
                "[docs](http://x.y) <http://x.y> ![cat](c.png)",
                80,
                "docs (http://x.y) http://x.y image: cat (c.png)",
            ),
            ("**a** *b* `c` ~~d~~", 40, "**a** *b* `c` ~~d~~"),
            ("a <b> & &amp; \\*", 40, "a <b> & & *"),
            ("---", 5, "─────"),
        ] {
            assert_eq!(plain(text, width), expected, "{text}");
        }
    }

    #[test]
    fn colours_stand_for_marks() {
        assert_eq!(
            coloured("## T\n\n**a** *b* `c`"),
            "\u{1b}[0;1mT\u{1b}[0m\n\n\u{1b}[0;1ma\u{1b}[0m \u{1b}[0;3mb\u{1b}[0m \u{1b}[0;36mc\u{1b}[0m"
        );
        assert_eq!(coloured("- a"), "• a");
        assert_eq!(
            coloured("[x](http://a)"),
            "\u{1b}[0;4mx\u{1b}[0m\u{1b}[0;2m (http://a)\u{1b}[0m"
        );
    }
}
