//! `plimsoll run` in a terminal: every row and every intermediate picture that a user sees.

use super::command::Home;
use super::fake::{Fake, FakeAnswer};
use super::terminal::{Terminal, assert_screen};

const ANSWER: &str = "The number that notes.txt names is forty-two, and it is even. It stands in the \
    first line of the file, which has only that one line, so there is no doubt about it.\n\n\
    - 四十二 is how the number is written in Chinese, and quarante-deux is how it is written in French\n\n\
    That is all.";

#[test]
fn a_streamed_answer_can_be_read_from_the_first_row_to_the_last() {
    for (columns, answer) in [
        (
            80,
            "The number that notes.txt names is forty-two, and it is even. It stands in the\n\
             first line of the file, which has only that one line, so there is no doubt\n\
             about it.\n\n\
             • 四十二 is how the number is written in Chinese, and quarante-deux is how it\n  \
             is written in French\n\n\
             That is all.",
        ),
        (
            120,
            "The number that notes.txt names is forty-two, and it is even. It stands in the \
             first line of the file, which has only\n\
             that one line, so there is no doubt about it.\n\n\
             • 四十二 is how the number is written in Chinese, and quarante-deux is how it \
             is written in French\n\n\
             That is all.",
        ),
    ] {
        let home = Home::with_notes();
        let fake = Fake::new([
            FakeAnswer::call(&[("read", "{\"path\":\"notes.txt\"}")]),
            FakeAnswer::pieces(ANSWER),
        ]);
        let args = ["--max-context", "20000", "Which number?"];
        let mut run = Terminal::run(&home, &fake, &args, columns);
        assert_eq!(run.end(), Some(0), "{}", run.screen());
        let screen = run.screen();
        let (head, rest) = screen.split_once("\n· read").unwrap();
        assert!(head.starts_with("openai-compatible/m in . │ "), "{screen}");
        assert!(head.contains("session "), "{screen}");
        let (tail, session) = rest.rsplit_once("\nsession ").unwrap();
        assert!(!session.contains('\n'), "nothing comes after it: {screen}");
        let expected = format!(
            " notes.txt · 1 line\n\n{answer}\n\n\
             answered │ 2 turns, 1 tool call │ read 200 (40 % cached), wrote 20"
        );
        assert_eq!(tail, expected, "{screen}");
        for row in screen.lines().filter(|row| row.contains('│')) {
            assert!(row.chars().count() < 80, "{row}");
        }

        let mut words_seen = 0;
        for frame in run.frames() {
            // The status line is the last row or there is none, and no text stands in it.
            let status: Vec<usize> = (frame.lines().enumerate())
                .filter(|(_, row)| row.contains(" tokens │ "))
                .map(|(at, _)| at)
                .collect();
            let rows = frame.lines().count();
            assert!(status.iter().all(|at| at + 1 == rows), "{frame}");
            // What was written of the answer is its beginning, in whole words.
            let Some((_, written)) = frame.split_once("1 line\n") else {
                continue;
            };
            let written: Vec<&str> = written
                .lines()
                .take_while(|row| !row.contains('│'))
                .flat_map(str::split_whitespace)
                .collect();
            let answer = ANSWER.replace("- ", "• ");
            let words: Vec<&str> = answer.split_whitespace().collect();
            assert!(words.starts_with(&written), "{frame}");
            // A frame may be caught while the region is drawn again.
            words_seen = words_seen.max(written.len());
        }
        assert_eq!(words_seen, ANSWER.split_whitespace().count());
    }
}

#[test]
fn a_question_stands_alone_until_it_is_answered() {
    let home = Home::with_notes();
    let ls = r#"{"command":"cat notes.txt"}"#;
    let fake = Fake::new([
        FakeAnswer::call(&[("bash", ls), ("read", "{\"path\":\"notes.txt\"}")]),
        FakeAnswer::call(&[("bash", ls)]),
        FakeAnswer::say("Forty-two."),
    ]);
    let mut run = Terminal::run(&home, &fake, &["Which number?"], 80);
    let question = "bash cat notes.txt\n\
        Allow? [y]es, [a]lways `cat notes.txt` in this project, [N]o:";
    run.until(question);
    assert!(run.screen().ends_with(question), "{}", run.screen());
    run.keys("a\r");
    assert_eq!(run.end(), Some(0), "{}", run.screen());
    let screen = run.screen();
    assert_eq!(screen.matches("Allow?").count(), 1, "{screen}");
    assert_eq!(screen.matches("· bash").count(), 2, "{screen}");
    assert!(
        screen.contains("\n\nForty-two.\n\nanswered │ 3 turns"),
        "{screen}"
    );
}

#[test]
fn a_line_that_was_typed_before_a_question_does_not_answer_it() {
    let home = Home::with_notes();
    let wait = r#"{"command":"sleep 1; touch made"}"#;
    let fake = Fake::new([
        FakeAnswer::call(&[("bash", wait)]),
        FakeAnswer::call(&[("bash", r#"{"command":"rm notes.txt"}"#)]),
        FakeAnswer::say("Done."),
    ]);
    let mut run = Terminal::run(&home, &fake, &["Tidy up."], 80);
    run.until("[N]o:");
    run.keys("y\r");
    // The first command is running.
    run.keys("y\r");
    run.until("rm notes.txt\nAllow? [y]es, [a]lways `rm notes.txt` in this project, [N]o:");
    run.keys("n\r");
    assert_eq!(run.end(), Some(0), "{}", run.screen());
    assert!(home.work().join("made").is_file());
    assert!(home.work().join("notes.txt").is_file());
}

#[test]
fn an_interrupt_gets_through_a_question() {
    let home = Home::with_notes();
    let fake = Fake::new([FakeAnswer::call(&[("bash", r#"{"command":"ls"}"#)])]);
    let mut run = Terminal::run(&home, &fake, &["Look."], 80);
    run.until("[N]o:");
    run.interrupt();
    assert_eq!(run.end(), Some(130), "{}", run.screen());
    let screen = run.screen();
    assert!(screen.contains("[N]o:\n"), "{screen}");
    assert!(
        screen.contains("interrupted │ 1 turn, 0 tool calls"),
        "{screen}"
    );
}

#[test]
fn an_error_is_broken_between_words() {
    let home = Home::with_notes();
    let args = [
        "run",
        "--model",
        "compatible/m",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "--max-context",
        "20k",
        "Which number?",
    ];
    let mut run = Terminal::start(home.command(args), &[], 60);
    assert_eq!(run.end(), Some(5), "{}", run.screen());
    let screen = run.screen();
    assert!(screen.contains("window 20000 tokens"), "{screen}");
    let (_, error) = screen.split_once("\nplimsoll: ").unwrap();
    let (error, _) = error.split_once("\nfailed").unwrap();
    let expected = "the model could not be reached: no server listens\n\
        at http://127.0.0.1:9/v1 (connection refused); start it or\n\
        give another address with --base-url";
    assert_eq!(error, expected, "{screen}");
}

const MARKDOWN: &str = "# Ports\n\nThe server listens on **8431**, and `config.rs` says *why*.\n\n\
    1. one\n2. two\n   - within\n\n```rust\n// A port.\nfn port() -> u16 {\n\n    8431\n}\n```\n\n\
    | Name | Port |\n|:--|--:|\n| 服务器 | 8431 |\n| admin | 8432 |\n\n\
    > [docs](https://example.org) say more than one would think, so read on.";

/// What a run shows between its head and its end.
fn shown(run: &mut Terminal) -> String {
    assert_eq!(run.end(), Some(0), "{}", run.screen());
    let screen = run.screen();
    let (_, rest) = screen.split_once("\nsession ").unwrap();
    let (_, rest) = rest.split_once('\n').unwrap();
    let (body, _) = rest.rsplit_once("\n\nanswered │ ").unwrap();
    body.trim_start_matches('\n').to_owned()
}

const NARROW: [&str; 2] = ["--max-context", "20000"];

#[test]
fn markdown_is_laid_out_for_the_width_and_colours_of_the_terminal() {
    for (columns, no_colour, file) in [
        (40, "", "markdown-40"),
        (80, "", "markdown"),
        (120, "", "markdown"),
        (80, "1", "markdown-no-colour"),
        (120, "1", "markdown-no-colour"),
    ] {
        let (home, fake) = (
            Home::with_notes(),
            Fake::new([FakeAnswer::pieces(MARKDOWN)]),
        );
        let args = [NARROW[0], NARROW[1], "Which port?"];
        let variables = [("NO_COLOR", no_colour)];
        let mut run = Terminal::run_with(&home, &fake, &args, &variables, columns);
        assert_screen(file, &shown(&mut run));
        let raw = run.raw();
        let is_coloured = raw.contains("\u{1b}[1m8431") && raw.contains("\u{1b}[36mfn");
        assert_eq!(is_coloured, no_colour.is_empty(), "{raw:?}");
        assert_eq!(raw.contains("\u{1b}[2m"), is_coloured, "{raw:?}");
    }
}

#[test]
fn a_dumb_terminal_and_a_pipe_get_plain_text() {
    let (home, fake) = (
        Home::with_notes(),
        Fake::new([FakeAnswer::pieces(MARKDOWN)]),
    );
    let args = [NARROW[0], NARROW[1], "Which port?"];
    let mut run = Terminal::run_with(&home, &fake, &args, &[("TERM", "dumb")], 120);
    assert_eq!(run.end(), Some(0));
    assert!(run.screen().contains(MARKDOWN), "{}", run.screen());
    assert!(!run.raw().contains('\u{1b}'), "{:?}", run.raw());
    let said = home.agent(&fake, &args).done();
    assert_eq!(said.out, format!("{MARKDOWN}\n"));
}

#[test]
fn calls_are_lines_and_changes_are_diffs() {
    let home = Home::with_notes();
    home.file("main.rs", "fn main() {\n    serve(8430);\n}\n");
    let edit = r#"{"path":"main.rs","old":"8430","new":"8431"}"#;
    let fake = Fake::new([
        FakeAnswer::call(&[
            ("bash", r#"{"command":"seq 1 9"}"#),
            ("bash", r#"{"command":"echo no; exit 3"}"#),
            ("edit", edit),
            ("edit", edit),
            ("write", r#"{"path":"new.txt","content":"a\nb\n"}"#),
            ("grep", r#"{"pattern":"forty","path":"notes.txt"}"#),
        ]),
        FakeAnswer::say("Done."),
    ]);
    let args = [NARROW[0], NARROW[1], "--yes", "Work."];
    let mut run = Terminal::run(&home, &fake, &args, 80);
    let expected = "· bash seq 1 9 · exit 0\n    1\n    2\n    3\n    … 6 more lines\n\
        · bash echo no; exit 3 · exit 3\n    no\n\
        · edit main.rs +1 −1\n  @@ -1,3 +1,3 @@\n   fn main() {\n  -    serve(8430);\n  +    serve(8431);\n   }\n\
        · write new.txt new file +2\n  @@ -0,0 +1,2 @@\n  +a\n  +b\n\
        · grep forty in notes.txt · 1 line";
    let shown = shown(&mut run);
    let (calls, answer) = shown.rsplit_once("\n\n").unwrap();
    assert_eq!(answer, "Done.");
    // Calls that end at the same time are in no order.
    let calls = format!("\n{calls}");
    let (refused, mut got): (Vec<&str>, Vec<&str>) = calls
        .split("\n· ")
        .skip(1)
        .partition(|call| call.starts_with("edit main.rs · error: "));
    let expected = format!("\n{expected}");
    let mut expected: Vec<&str> = expected.split("\n· ").skip(1).collect();
    got.sort_unstable();
    expected.sort_unstable();
    assert_eq!(got, expected, "{shown}");
    assert_eq!(refused.len(), 1, "the same edit twice: {shown}");
}

#[test]
fn a_terminal_that_is_resized_while_text_streams_loses_nothing() {
    for (before, after) in [(120, 60), (60, 120)] {
        let text = "word ".repeat(60);
        let (answer, opener) = FakeAnswer::pieces(&text).gated(40);
        let answer = std::sync::Mutex::new(Some(answer));
        let fake = Fake::scripted("compatible", Vec::new(), move |_, _| {
            answer.lock().unwrap().take().unwrap()
        });
        let args = [NARROW[0], NARROW[1], "Say it."];
        let home = Home::with_notes();
        let mut run = Terminal::run(&home, &fake, &args, before);
        run.until_times("word", 40);
        run.resize(after);
        opener.open();
        let shown = shown(&mut run);
        assert_eq!(shown.matches("word").count(), 60, "{shown}");
        let widest = shown.lines().map(str::len).max().unwrap();
        assert!((100..120).contains(&widest), "{shown}");
        let last = shown.lines().last().unwrap();
        assert!(last.len() < usize::from(after), "{shown}");
        assert!(!shown.contains("turn 1"), "{shown}");
    }
}

#[test]
fn ten_thousand_tokens_are_not_written_again_and_again() {
    let text: String = (0..10_000)
        .map(|n| format!("w{n}{}", if n % 50 == 49 { "\n\n" } else { " " }))
        .collect();
    let (home, fake) = (Home::with_notes(), Fake::new([FakeAnswer::pieces(&text)]));
    let args = [NARROW[0], NARROW[1], "--max-tokens", "15000", "Say it."];
    let mut run = Terminal::run(&home, &fake, &args, 80);
    assert_eq!(run.end(), Some(0), "{}", run.screen());
    let written = run.raw().len();
    assert!(run.raw().contains("w9999"));
    // A frame writes what is new, the row that grows and the status line.
    assert!(written < 25 * text.len(), "{written} of {}", text.len());
}
