//! Renders Markdown as rows of a terminal, and finds the last block, which may still grow.
//!
//! Without colours, the marks of the source are kept: `**bold**`, `` `code` ``, `# heading`.

use std::ops::Range;

use console::Style;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::terminal::highlight::Highlighter;
use crate::terminal::style::{Colours, DIM, PLAIN};
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

/// A rendered text.
pub(crate) struct Rendered {
    pub(crate) rows: Vec<String>,
    pub(crate) last: LastBlock,
}

/// The beginning of the last block that is in no other block, or of the last item of such a list.
#[derive(Debug, Default)]
pub(crate) struct LastBlock {
    /// The offset in the source.
    pub(crate) source: usize,
    /// The number of rows before it.
    pub(crate) row: usize,
    /// Whether an empty row precedes it.
    pub(crate) gap: bool,
    /// The opening fence, if the block is a code block that is not closed.
    pub(crate) fence: Option<String>,
}

/// Renders a text, after an empty row if there is a `gap`.
pub(crate) fn render(text: &str, gap: bool, page: PageStyle) -> Rendered {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES;
    let mut writer = MarkdownWriter::new(text, page);
    writer.rows.extend(gap.then(String::new));
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match &event {
            Event::Start(Tag::Item) if depth == 1 => {
                let gap = writer.gap || writer.is_after_blank(&range);
                writer.begin_last(&range, gap);
            }
            Event::Start(tag) if depth == 0 => {
                writer.begin_last(&range, writer.gap);
                if matches!(tag, Tag::CodeBlock(CodeBlockKind::Fenced(_))) {
                    writer.last.fence = open_fence(text, &range);
                }
            }
            Event::Rule if depth == 0 => writer.begin_last(&range, writer.gap),
            _ => {}
        }
        match &event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        writer.see(event, &range);
    }
    writer.end_line();
    Rendered {
        rows: writer.rows,
        last: writer.last,
    }
}

/// Returns the opening fence of a code block at the end of the text, unless the block is closed.
fn open_fence(text: &str, block: &Range<usize>) -> Option<String> {
    let mut lines = text.get(block.clone())?.trim_end_matches('\n').lines();
    let opening = lines.next()?;
    let is_fence = |line: &str| {
        let line = line.trim();
        line.len() >= 3 && (line.bytes().all(|b| b == b'`') || line.bytes().all(|b| b == b'~'))
    };
    let is_closed = lines.next_back().is_some_and(is_fence);
    (!is_closed).then(|| format!("{opening}\n"))
}

/// A block that contains other blocks, such as a list item or a quote.
struct Container {
    /// Prefix of its first row, until that row is written.
    first: Option<String>,
    /// Prefix of all further rows.
    rest: String,
    /// Whether it contains an empty row.
    has_gap: bool,
}

/// An open list.
struct List {
    /// The number of its next item; `None` if the list is not numbered.
    next: Option<u64>,
    has_items: bool,
}

struct MarkdownWriter<'a> {
    text: &'a str,
    page: PageStyle,
    rows: Vec<String>,
    last: LastBlock,
    /// The line that is being filled.
    line: String,
    containers: Vec<Container>,
    lists: Vec<List>,
    /// The styles of all open elements, each with those around it.
    styles: Vec<Style>,
    /// The address of the open link or image, and the offset of its text in the line.
    link: Option<(String, usize)>,
    code: Option<(Highlighter, String)>,
    table: Option<Table>,
    /// Whether a block has ended, so that an empty row precedes the next one.
    gap: bool,
}

impl<'a> MarkdownWriter<'a> {
    fn new(text: &'a str, page: PageStyle) -> Self {
        Self {
            text,
            page,
            rows: Vec::new(),
            last: LastBlock::default(),
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

    /// Notes that a block begins which is in no other block.
    fn begin_last(&mut self, block: &Range<usize>, gap: bool) {
        self.end_line();
        let before = self.text.get(..block.start).unwrap_or_default();
        let source = before.rfind('\n').map_or(0, |at| at + 1);
        // A list and its first item begin at the same place.
        if source > self.last.source {
            self.last = LastBlock {
                source,
                row: self.rows.len(),
                gap: gap && !self.rows.is_empty(),
                fence: None,
            };
        }
    }

    /// Checks whether an empty line precedes a block.
    fn is_after_blank(&self, block: &Range<usize>) -> bool {
        let before = self.text.get(..block.start).unwrap_or_default();
        before.trim_end_matches([' ', '>']).ends_with("\n\n")
    }

    fn see(&mut self, event: Event<'_>, range: &Range<usize>) {
        match event {
            Event::Start(Tag::Item) => self.item(self.is_after_blank(range)),
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.text(&text),
            },
            Event::Code(text) => {
                self.open("`", Style::cyan);
                self.text(&text);
                self.close("`");
            }
            Event::SoftBreak | Event::HardBreak => {
                self.line
                    .push(if self.table.is_some() { ' ' } else { '\n' });
            }
            Event::Rule => {
                self.block();
                let rule = "─".repeat(RULE.min(self.page.width));
                let rule = self.page.colours.paint(DIM, &rule);
                self.push_rows([rule]);
            }
            Event::TaskListMarker(done) => self.line.push_str(if done { "[x] " } else { "[ ] " }),
            Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => self.text(&text),
            Event::FootnoteReference(label) => self.text(&format!("[^{label}]")),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.block(),
            Tag::Heading { level, .. } => {
                self.block();
                let is_first = level == HeadingLevel::H1;
                self.open(
                    &format!("{} ", "#".repeat(level as usize)),
                    if is_first {
                        |style| style.bold().underlined()
                    } else {
                        Style::bold
                    },
                );
            }
            Tag::BlockQuote(_) => {
                self.block();
                self.contain(None, self.page.colours.paint(DIM, "│ "));
                self.open("", Style::dim);
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
                self.lists.push(List {
                    next: first,
                    has_items: false,
                });
            }
            Tag::FootnoteDefinition(label) => {
                self.block();
                self.contain(Some(format!("[^{label}]: ")), CODE.to_owned());
            }
            Tag::Emphasis => self.open("*", Style::italic),
            Tag::Strong => self.open("**", Style::bold),
            Tag::Strikethrough => self.open("~~", Style::strikethrough),
            Tag::Link { dest_url, .. } => {
                self.open("", Style::underlined);
                self.link = Some((dest_url.to_string(), self.line.len()));
            }
            Tag::Image { dest_url, .. } => {
                self.line.push_str("image: ");
                self.open("", |style| style);
                self.link = Some((dest_url.to_string(), self.line.len()));
            }
            Tag::Table(columns) => {
                self.block();
                self.table = Some(Table::new(columns));
            }
            Tag::TableHead => self.open("", Style::bold),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(_) => {
                self.close("");
                self.end_block();
            }
            TagEnd::BlockQuote(_) => {
                self.close("");
                self.end_block();
                self.containers.pop();
            }
            TagEnd::FootnoteDefinition => {
                self.end_block();
                self.containers.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.end_line();
                // An item without any text is a row as well.
                let item = self.containers.last();
                if item.is_some_and(|item| item.first.is_some()) {
                    self.push_rows([String::new()]);
                }
                let item = self.containers.pop();
                self.gap = item.is_some_and(|item| item.has_gap);
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
                    self.close("");
                }
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::Table => {
                let table = self.table.take();
                let width = console::measure_text_width(&self.prefixes().1);
                let width = self.page.width.saturating_sub(width);
                self.push_rows(
                    table.map_or_else(Vec::new, |table| table.rows(width, self.page.colours)),
                );
            }
            _ => {}
        }
    }

    /// Begins a block: ends the line before it, and separates it by an empty row if needed.
    fn block(&mut self) {
        self.end_line();
        if std::mem::take(&mut self.gap) && !self.rows.is_empty() {
            let (_, rest) = self.prefixes();
            self.rows.push(rest.trim_end().to_owned());
            if let Some(container) = self.containers.last_mut() {
                container.has_gap = true;
            }
        }
    }

    fn end_block(&mut self) {
        self.end_line();
        self.gap = true;
    }

    fn contain(&mut self, first: Option<String>, rest: String) {
        self.containers.push(Container {
            first,
            rest,
            has_gap: false,
        });
    }

    fn item(&mut self, is_after_blank: bool) {
        let list = self.lists.last_mut();
        let is_first = list.as_ref().is_none_or(|list| !list.has_items);
        self.gap = !is_first && (self.gap || is_after_blank);
        let bullet = match list {
            Some(List {
                next: Some(number), ..
            }) => format!("{number}. "),
            _ if self.page.colours == Colours::None => "- ".to_owned(),
            _ => "• ".to_owned(),
        };
        if let Some(list) = self.lists.last_mut() {
            list.has_items = true;
            list.next = list.next.map(|number| number.saturating_add(1));
        }
        self.block();
        let rest = " ".repeat(console::measure_text_width(&bullet));
        self.contain(Some(bullet), rest);
    }

    fn end_code(&mut self) {
        let Some((mut highlighter, code)) = self.code.take() else {
            return;
        };
        for line in code.lines() {
            let (first, rest) = self.take_prefixes();
            let (first, rest) = (format!("{first}{CODE}"), format!("{rest}{CODE}"));
            if line.is_empty() {
                self.rows.push(first.trim_end().to_owned());
                continue;
            }
            let line = highlighter.line(line);
            let rows = wrap(&line, self.page.width, &first, &rest, Break::Anywhere);
            self.rows.extend(rows);
        }
        self.gap = true;
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
            let address = self.page.colours.paint(DIM, &format!(" ({address})"));
            self.line.push_str(&address);
        }
    }

    /// Begins an element with a style of its own. Without colours, its mark is written.
    fn open(&mut self, mark: &str, style: fn(Style) -> Style) {
        if self.page.colours == Colours::None {
            self.line.push_str(mark);
        }
        self.styles.push(style(self.style()));
    }

    fn close(&mut self, mark: &str) {
        if self.page.colours == Colours::None {
            self.line.push_str(mark);
        }
        self.styles.pop();
    }

    fn style(&self) -> Style {
        self.styles.last().cloned().unwrap_or(PLAIN)
    }

    fn text(&mut self, text: &str) {
        let text = self.page.colours.paint(self.style(), text);
        self.line.push_str(&text);
    }

    /// Writes the line that is being filled.
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = line.trim_end_matches('\n');
        if line.is_empty() {
            return;
        }
        for line in line.split('\n') {
            let (first, rest) = self.take_prefixes();
            let rows = wrap(line, self.page.width, &first, &rest, Break::Words);
            self.rows.extend(rows);
        }
    }

    /// Writes the rows of a block.
    fn push_rows(&mut self, rows: impl IntoIterator<Item = String>) {
        for row in rows {
            let (first, _) = self.take_prefixes();
            self.rows.push(format!("{first}{row}"));
        }
        self.gap = true;
    }

    /// Returns the prefixes of the next row and of the rows after it.
    fn take_prefixes(&mut self) -> (String, String) {
        let prefixes = self.prefixes();
        for container in &mut self.containers {
            container.first = None;
        }
        prefixes
    }

    fn prefixes(&self) -> (String, String) {
        let (mut first, mut rest) = (String::new(), String::new());
        for container in &self.containers {
            first.push_str(container.first.as_deref().unwrap_or(&container.rest));
            rest.push_str(&container.rest);
        }
        (first, rest)
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
        render(text, false, page).rows.join("\n")
    }

    fn coloured(text: &str) -> String {
        let page = PageStyle {
            width: 40,
            colours: Colours::Ansi,
        };
        render(text, false, page).rows.join("\n")
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
            ("- a\n\n- b\n  - c\n\n- d", 40, "- a\n\n- b\n  - c\n\n- d"),
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
            "\u{1b}[1mT\u{1b}[0m\n\n\u{1b}[1ma\u{1b}[0m \u{1b}[3mb\u{1b}[0m \u{1b}[36mc\u{1b}[0m"
        );
        assert_eq!(coloured("- a"), "• a");
        assert_eq!(
            coloured("[x](http://a)"),
            "\u{1b}[4mx\u{1b}[0m\u{1b}[2m (http://a)\u{1b}[0m"
        );
    }
}
