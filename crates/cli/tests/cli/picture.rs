//! The pictures of README: a rescue, and a chat against the mock server, as a terminal shows them.
//! If a picture has changed, `PLIMSOLL_BLESS=1 cargo nextest run -p plimsoll-cli picture` draws it
//! again.

use std::fmt::Write as _;
use std::num::NonZeroU16;

use plimsoll_mock::Mock;

use super::command::{Home, feed};
use super::mock::MockServer;
use super::terminal::{END, Terminal};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const COLUMNS: u16 = 84;
const SESSION: &str = "1a3b5c7d-0000-4000-8000-000000000042";
const TASK: &str = "Read the six pages of log/, one by one. Why did the ship sink?";

/// The size of a character, and the space around all of them.
const WIDTH: f32 = 8.4;
const HEIGHT: f32 = 18.0;
const SPACE: f32 = 16.0;

#[test]
fn the_picture_of_the_readme_is_what_the_program_draws() {
    let home = Home::new();
    std::fs::create_dir(home.work().join("log")).unwrap();
    for day in 1..=6 {
        home.file(&format!("log/{day}.md"), page(day));
    }
    home.file(
        "system.md",
        "You work with tools. Answer in a few plain sentences.",
    );
    let mock = Mock::chat("openai").unwrap().window(4_000);
    let mock = MockServer::start(mock, &turns());
    let url = mock.address();
    let args = [
        "chat",
        "--session",
        "voyage",
        "--tools",
        "read",
        // The built-in one names the folder, and so weighs more or less.
        "--system",
        "system.md",
        "--model",
        "openai-compatible/mock",
        "--base-url",
        &url,
        "--max-context",
        "4000",
    ];
    let mut chat = Terminal::start(home.command(args), &[], COLUMNS);
    chat.until_prompt(">");
    chat.keys(&format!("{TASK}\r"));
    chat.until("cached), wrote");
    chat.until_prompt(">");
    chat.keys("/context\r");
    chat.until("last plan:");
    chat.until_prompt(">");
    chat.keys(END);
    chat.end();
    compare("docs/picture.svg", &svg(chat.cells()));
}

#[test]
fn the_picture_of_a_rescue_is_what_the_program_prints() {
    let home = Home::new();
    let folder = home.work().join(".claude/projects/-home-me-lamp");
    std::fs::create_dir_all(&folder).unwrap();
    let log = folder.join(format!("{SESSION}.jsonl"));
    let session = std::fs::read_to_string(format!("{ROOT}/examples/dead-session.jsonl")).unwrap();
    let lamp = home.work().join("lamp");
    std::fs::create_dir(&lamp).unwrap();
    let session = session.replace("\"/home/me/lamp\"", &format!("{lamp:?}"));
    std::fs::write(&log, session).unwrap();
    let mut command = home.command(["rescue"]);
    command.env("HOME", home.work());
    let printed = feed(command, b"").done().out;
    let (_, id) = printed.trim_end().rsplit_once(' ').unwrap();
    let shown = printed
        .replace(id, "7f0c9a52-0000-4000-8000-000000000043")
        .replace(&home.work().display().to_string(), "/home/me");
    let shown = format!("\x1b[32m$\x1b[m \x1b[1mplimsoll rescue\x1b[m\n{shown}");
    let mut terminal = {
        let size = |of| NonZeroU16::new(of).unwrap();
        vt100::Parser::new(size(30), size(100), 0)
    };
    terminal.process(shown.replace('\n', "\r\n").as_bytes());
    compare("docs/rescue.svg", &svg(terminal.screen()));
}

/// Compares a picture with the stored one.
fn compare(name: &str, drawn: &str) {
    let path = format!("{ROOT}/{name}");
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        std::fs::write(&path, drawn).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == drawn,
        "{name} shows something else; draw it anew with PLIMSOLL_BLESS=1. Now:\n{drawn}"
    );
}

/// A page of the ship's log.
fn page(day: usize) -> String {
    let words = [
        "wind", "sea", "calm", "east", "sail", "rope", "hold", "water", "pump", "crew", "watch",
        "course", "star", "cloud", "swell", "reef", "chart", "depth", "anchor", "bread",
    ];
    let mut page = String::new();
    for hour in 0..24 {
        let at = |k: usize| words[(day * 7 + hour * 11 + k * k) % words.len()];
        let said: Vec<&str> = (0..14).map(at).collect();
        let _ = match (day, hour) {
            (2, 7) => writeln!(page, "07:00. Took aboard 40 tons beyond the mark."),
            _ => writeln!(page, "{hour:02}:00. {}.", said.join(" ")),
        };
    }
    page
}

/// What the model does: reads each page, and answers.
fn turns() -> String {
    let reads = (1..=6).map(|day| {
        let path = format!("log/{day}.md");
        serde_json::json!({ "call": [{ "name": "read", "arguments": { "path": path } }] })
    });
    let answer = serde_json::json!({ "say": "The ship was **overloaded**: on day 2 she took on 40 tons \
        beyond the mark, and from day 4 she rode too low for the swell.\n\n\
        - The load line was under water for three days.\n\
        - Nobody in the log asked for it to be checked." });
    let turns: Vec<String> = reads.chain([answer]).map(|turn| turn.to_string()).collect();
    turns.join("\n") + "\n"
}

/// The screen as an SVG. Every run of characters is set to its width, whatever the reader's font.
fn svg(screen: &vt100::Screen) -> String {
    let columns = screen.size().1.get();
    let rows: Vec<u16> = (0..screen.size().0.get())
        .filter(|row| !text(screen, *row).trim().is_empty())
        .collect();
    let last = rows.last().map_or(0, |row| row + 1);
    let width = f32::from(columns) * WIDTH + 2.0 * SPACE;
    let height = f32::from(last) * HEIGHT + 2.0 * SPACE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" role=\"img\" \
         aria-label=\"A terminal\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>\n\
         <g font-family=\"ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"14\" \
         fill=\"#d4d7dd\" xml:space=\"preserve\">\n"
    );
    for row in 0..last {
        let mut column = 0;
        while column < columns {
            let style = style(screen, row, column);
            let from = column;
            let mut run = String::new();
            while column < columns && self::style(screen, row, column) == style {
                run.push_str(match screen.cell(row, column).map(vt100::Cell::contents) {
                    Some("") | None => " ",
                    Some(contents) => contents,
                });
                column += 1;
            }
            if run.trim().is_empty() {
                continue;
            }
            let y = SPACE + (f32::from(row) + 0.75) * HEIGHT;
            // Columns stand under each other in fonts of any width.
            for (at, word) in words(&run) {
                let x = SPACE + (f32::from(from) + at as f32) * WIDTH;
                let length = word.chars().count() as f32 * WIDTH;
                let word = word.replace('&', "&amp;").replace('<', "&lt;");
                let _ = writeln!(
                    svg,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\"{style}>{word}</text>"
                );
            }
        }
    }
    svg + "</g>\n</svg>\n"
}

/// The pieces of a text that stand two blanks or more apart, and where each begins.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut at = 0;
    for piece in text.split("  ") {
        let word = piece.trim();
        if !word.is_empty() {
            let blanks = piece.chars().count() - piece.trim_start().chars().count();
            words.push((at + blanks, word));
        }
        at += piece.chars().count() + 2;
    }
    words
}

fn text(screen: &vt100::Screen, row: u16) -> String {
    screen.contents_between(row, 0, row, screen.size().1.get())
}

/// The attributes of a character.
fn style(screen: &vt100::Screen, row: u16, column: u16) -> String {
    let Some(cell) = screen.cell(row, column) else {
        return String::new();
    };
    let colour = match cell.fgcolor() {
        vt100::Color::Idx(1 | 9) => " fill=\"#f2777a\"",
        vt100::Color::Idx(2 | 10) => " fill=\"#8fd18f\"",
        vt100::Color::Idx(3 | 11) => " fill=\"#f2c55c\"",
        vt100::Color::Idx(4 | 12) => " fill=\"#7aa2f7\"",
        vt100::Color::Idx(5 | 13) => " fill=\"#c99ae8\"",
        vt100::Color::Idx(6 | 14) => " fill=\"#6fd3d8\"",
        vt100::Color::Idx(8) => " fill=\"#7d828c\"",
        _ if cell.dim() => " fill=\"#8b909a\"",
        _ => "",
    };
    let weight = if cell.bold() {
        " font-weight=\"bold\""
    } else {
        ""
    };
    format!("{colour}{weight}")
}
