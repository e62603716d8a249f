//! The form of the text, and the limits of sentences.

use super::format::{Kind, read, write};
use super::sentences::{one_line, sentences};

#[test]
fn a_written_text_is_read_back() {
    let text = "first\n\n» quoted\n## State\n- a\n  indented\n[handover 00000000]";
    let items = [
        (Kind::Typed, "never X"),
        (Kind::Typed, text),
        (Kind::Done, "ran a"),
        (Kind::ReadFile, "a.rs (read): b, c"),
    ];
    let items = items.map(|(kind, text)| (kind, text.to_owned()));
    let text = write(&items);
    let plain = items.map(|(kind, text)| (kind, text.replace("[handover", "(handover")));
    assert_eq!(read(&text).unwrap(), plain);
    assert_eq!(read(text.trim()).unwrap(), plain);
    assert_eq!(text.matches("\n## State\n").count(), 0, "{text}");
    for changed in [
        text.replace("never", "always"),
        format!("{text}- more\n"),
        text.replace("[handover ", "[Handover "),
        "## State\n- x".to_owned(),
    ] {
        assert_eq!(read(&changed), None, "{changed}");
    }
}

#[test]
fn sentences_cover_the_text() {
    for (text, cuts) in [
        ("", &[][..]),
        (
            "See a.rs. Then b!  Done",
            &["See a.rs. ", "Then b!  ", "Done"],
        ),
        ("a\n\n  b\n", &["a\n\n  ", "b\n"]),
        (
            "Run git checkout . first. ok",
            &["Run git checkout . first. ", "ok"],
        ),
        ("不要。必须！", &["不要。", "必须！"]),
    ] {
        assert_eq!(sentences(text), cuts);
    }
    assert_eq!(sentences(&"x".repeat(10_000)).len(), 9);
    assert_eq!(one_line(" a\n\tb\u{7}c ", 10), "a b c");
    let cut = one_line(&"語 ".repeat(100), 20);
    assert!(cut.len() <= 20 && cut.ends_with('…'), "{cut}");
}
