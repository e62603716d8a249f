//! Extracts the prose, links and headings of a Markdown file, without code.

use std::collections::BTreeMap;
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Returns the text outside code, each piece with its line.
pub(crate) fn prose(text: &str) -> Vec<(usize, String)> {
    let mut in_block = false;
    let mut prose = Vec::new();
    for (event, range) in events(text) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_block = true,
            Event::End(TagEnd::CodeBlock) => in_block = false,
            Event::Text(words) if !in_block => {
                prose.push((line_of(text, &range), words.to_string()))
            }
            _ => {}
        }
    }
    prose
}

/// Returns the targets of links and images, each with its line.
pub(crate) fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (event, range) in events(text) {
        let line = line_of(text, &range);
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.push((line, dest_url.to_string()));
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                for name in ["src=\"", "href=\""] {
                    let values = html.split(name).skip(1);
                    let values = values.filter_map(|rest| rest.split('"').next());
                    links.extend(values.map(|value| (line, value.to_owned())));
                }
            }
            _ => {}
        }
    }
    links
}

/// Returns the anchors of the headings, as code hosts form them.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let mut heading: Option<String> = None;
    let mut seen = BTreeMap::<String, usize>::new();
    let mut anchors = Vec::new();
    for (event, _) in events(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(words) | Event::Code(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let anchor = anchor(&heading.take().unwrap_or_default());
                let before = seen.entry(anchor.clone()).or_default();
                anchors.push(match *before {
                    0 => anchor,
                    number => format!("{anchor}-{number}"),
                });
                *before += 1;
            }
            _ => {}
        }
    }
    anchors
}

fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || [' ', '-', '_'].contains(c);
    let lower = heading.trim().to_lowercase();
    let chars = lower.chars().filter(kept);
    chars.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn events(text: &str) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES;
    Parser::new_ext(text, options).into_offset_iter()
}

fn line_of(text: &str, range: &Range<usize>) -> usize {
    let before = text.get(..range.start).unwrap_or_default();
    1 + before.matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# The *one* idea: `fold`

See [here](a.md#x) and ![pic](b.png), `not [this](c.md)`.

```text
[nor](d.md)
```

## Same
## Same

<img src=\"e.svg\"> [ref]

[ref]: f.md
";

    #[test]
    fn links_are_found_outside_code() {
        let places: Vec<_> = links(TEXT).into_iter().map(|(_, to)| to).collect();
        assert_eq!(places, ["a.md#x", "b.png", "e.svg", "f.md"]);
        assert_eq!(links(TEXT).first(), Some(&(3, "a.md#x".to_owned())));
    }

    #[test]
    fn headings_make_anchors() {
        assert_eq!(anchors(TEXT), ["the-one-idea-fold", "same", "same-1"]);
    }

    #[test]
    fn prose_leaves_out_code() {
        let text: String = prose(TEXT).into_iter().map(|(_, words)| words).collect();
        assert!(text.contains("See here") && !text.contains("nor") && !text.contains("not"));
    }
}
