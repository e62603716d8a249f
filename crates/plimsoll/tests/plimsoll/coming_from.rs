//! The pages of docs/coming-from: every row has a section with a runnable example, and every
//! configuration is valid, with the warnings that the page shows. Their Rust code runs as examples
//! of the documentation, their commands in the tests of the command line.

use std::path::Path;

use plimsoll::ExecutionLimits;
use plimsoll::config::{self, Config, Import};

const ENTRANCE: &str = include_str!("../../../../docs/coming-from.md");
const HOOKS: &str = include_str!("../../../../docs/hooks.md");
const LIMITS: &str = include_str!("../../../../docs/limits.md");
const LOOPS: &str = include_str!("../../../../docs/loops.md");

struct DocPage {
    name: &'static str,
    text: &'static str,
    /// The rows of the contract that it is of.
    rows: &'static [&'static str],
}

const PAGES: [DocPage; 5] = [
    DocPage {
        name: "heartbit",
        text: include_str!("../../../../docs/coming-from/heartbit.md"),
        rows: &["H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8", "H9", "H10"],
    },
    DocPage {
        name: "phi-core",
        text: include_str!("../../../../docs/coming-from/phi-core.md"),
        rows: &[
            "P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9", "P10", "P11", "P12", "P13", "P14",
        ],
    },
    DocPage {
        name: "cognipeer",
        text: include_str!("../../../../docs/coming-from/cognipeer.md"),
        rows: &["C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9"],
    },
    DocPage {
        name: "ambi",
        text: include_str!("../../../../docs/coming-from/ambi.md"),
        rows: &["A1", "A2", "A3", "A4", "A5", "A6"],
    },
    DocPage {
        name: "gaia",
        text: include_str!("../../../../docs/coming-from/gaia.md"),
        rows: &["G1", "G2", "G3", "G4", "G5"],
    },
];

/// A block of a page: what stands behind its fence, and its lines.
struct CodeBlock<'a> {
    kind: &'a str,
    text: String,
}

fn blocks(text: &str) -> Vec<CodeBlock<'_>> {
    let mut blocks: Vec<CodeBlock> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        match (line.strip_prefix("```"), open) {
            (Some(kind), false) => {
                open = true;
                let text = String::new();
                blocks.push(CodeBlock { kind, text });
            }
            (Some(_), true) => open = false,
            (None, true) => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, false) => {}
        }
    }
    blocks
}

/// The sections of a page: title and text.
fn sections(text: &'static str) -> Vec<(&'static str, &'static str)> {
    let parts = text.split("\n## ").skip(1);
    parts.map(|part| part.split_once('\n').unwrap()).collect()
}

#[test]
fn every_row_has_a_section_with_something_that_runs() {
    for page in &PAGES {
        let sections = sections(page.text);
        let titles = sections
            .iter()
            .map(|(title, _)| title.split(':').next().unwrap());
        assert_eq!(titles.collect::<Vec<_>>(), page.rows, "{}", page.name);
        for (title, text) in sections {
            let blocks = blocks(text);
            let runs = blocks.iter().filter(|block| block.kind == "rust");
            assert!(runs.count() >= 1, "{title} has no example that runs");
            for block in &blocks {
                let known = ["rust", "toml", "toml imported", "console"];
                let is_theirs = block.kind.ends_with(" theirs");
                assert!(
                    known.contains(&block.kind) || is_theirs,
                    "{title}: ```{} is not checked by anything",
                    block.kind
                );
                if block.kind == "rust" {
                    assert!(
                        block.text.contains("assert") || title.starts_with("A6"),
                        "{title}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_configuration_is_read() {
    let mut read = 0;
    for page in &PAGES {
        for block in blocks(page.text)
            .iter()
            .filter(|block| block.kind == "toml")
        {
            good(&block.text);
            read += 1;
        }
    }
    println!("{read} configurations");
    assert!(read >= 5, "{read}");
}

/// Our own reader takes it without a word.
fn good(text: &str) {
    let config = Config::parse(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    assert_eq!(config.warnings(), [], "{text}");
    for name in config.agents() {
        config.agent(name).unwrap();
    }
}

/// To bring the pages up to date: `PLIMSOLL_BLESS=1 cargo test -p plimsoll --features config coming_from`.
#[test]
fn the_pages_show_what_the_import_prints() {
    const BEGIN: &str = "```toml imported\n";
    let mut imported = 0;
    for page in &PAGES {
        // The other systems are configured by programs.
        if !["heartbit", "phi-core"].contains(&page.name) {
            assert!(!page.text.contains(BEGIN), "{}", page.name);
            continue;
        }
        let mut parts = page.text.split(BEGIN);
        let mut fresh = parts.next().unwrap().to_owned();
        for part in parts {
            let theirs = blocks(&fresh);
            let theirs = theirs
                .last()
                .filter(|block| block.kind.ends_with(" theirs"));
            let theirs = &theirs
                .unwrap_or_else(|| panic!("{}: {part}", page.name))
                .text;
            let import = Import::of(theirs);
            let import = import.unwrap_or_else(|error| panic!("{theirs}\n{error}"));
            good(&import.toml);
            let (_, shown) = import.toml.split_once('\n').unwrap();
            let (_, rest) = part.split_once("```\n").unwrap();
            fresh.push_str(&format!("{BEGIN}{shown}```\n{rest}"));
            imported += 1;
        }
        // Each file of theirs is imported.
        let files = page.text.matches("```toml theirs\n").count();
        let shown = page.text.matches(BEGIN).count();
        assert!(
            shown >= files,
            "{}: {files} files, {shown} imported",
            page.name
        );
        if std::env::var_os("PLIMSOLL_BLESS").is_some() {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/coming-from");
            std::fs::write(root.join(format!("{}.md", page.name)), fresh).unwrap();
            continue;
        }
        assert_eq!(
            page.text, fresh,
            "bring {} up to date with PLIMSOLL_BLESS=1",
            page.name
        );
    }
    assert!(imported >= 10, "{imported}");
}

#[test]
fn every_hook_is_on_its_page() {
    let source = include_str!("../../../core/src/builder/hooks.rs");
    let methods = source.split("    pub fn ").skip(1);
    let methods = methods.map(|rest| rest.split(['<', '(']).next().unwrap());
    // `Point: name(arguments) -> reply`, in a macro.
    let by_macro = source.lines().filter_map(|line| {
        let (point, rest) = line.trim().split_once(": ")?;
        let (name, _) = rest.split_once('(').filter(|_| rest.contains(") -> "))?;
        let is_word = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        let is_point = point.chars().all(|c| c.is_ascii_alphabetic());
        (is_point && is_word(name)).then_some(name)
    });
    let methods: Vec<&str> = methods
        .filter(|name| *name != "$name")
        .chain(by_macro)
        .collect();
    assert!(methods.len() >= 18, "{methods:?}");
    let schema = config::schema();
    let events = &schema["properties"]["hooks"]["items"]["properties"]["on"]["enum"];
    let events = events.as_array().unwrap().iter();
    let events = events.filter_map(serde_json::Value::as_str);
    for name in methods.into_iter().chain(events) {
        assert!(
            HOOKS.contains(&format!("`{name}")) || HOOKS.contains(&format!(".{name}(")),
            "{name}"
        );
    }
}

#[test]
fn every_limit_is_on_its_page() {
    let limits = serde_json::to_value(ExecutionLimits::default()).unwrap();
    for name in limits.as_object().unwrap().keys() {
        let is_told = LIMITS.contains(&format!("`{name}")) || LOOPS.contains(&format!("`{name}"));
        assert!(is_told, "{name}");
    }
}

/// The pages of everything else.
#[test]
fn configurations_of_other_pages_are_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut read = 0;
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|kind| kind != "md") {
            continue;
        }
        let page = std::fs::read_to_string(&path).unwrap();
        for block in blocks(&page).iter().filter(|block| block.kind == "toml") {
            let config = Config::parse(&block.text)
                .unwrap_or_else(|error| panic!("{}:\n{error}", path.display()));
            assert!(config.warnings().is_empty(), "{}", block.text);
            read += 1;
        }
    }
    assert!(read >= 8, "{read}");
}

#[test]
fn the_entrance_leads_to_every_page() {
    for page in &PAGES {
        let link = format!("(coming-from/{}.md)", page.name);
        assert!(ENTRANCE.contains(&link), "{link}");
    }
    for block in blocks(ENTRANCE) {
        match block.kind {
            "toml" => drop(Config::parse(&block.text).unwrap()),
            "console" | "sh" => {}
            kind => panic!("```{kind} is not checked by anything"),
        }
    }
}

/// Every file that a page links to is there.
#[test]
fn no_link_is_dead() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let pages = PAGES
        .iter()
        .map(|page| (root.join("coming-from"), page.text))
        .chain([(root.clone(), ENTRANCE)]);
    for (folder, text) in pages {
        for link in text.split("](").skip(1) {
            let link = link.split([')', '#']).next().unwrap();
            assert!(
                link.starts_with("https://") || folder.join(link).exists(),
                "{link}"
            );
        }
    }
}
