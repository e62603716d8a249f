//! `plimsoll run` in a terminal: every row as a person sees it, from the first to the last, and every
//! picture in between.

use super::command::Home;
use super::fake::{Answer, Fake};
use super::terminal::Terminal;

const ANSWER: &str = "The number that notes.txt names is forty-two, and it is even. It stands in the \
    first line of the file, which has only that one line, so there is no doubt about it.\n\n\
    - 四十二 is how the number is written in Chinese, and quarante-deux is how it is written in French\n\n\
    That is all.";

fn home() -> Home {
    let home = Home::new();
    home.file("notes.txt", "the number is forty-two\n");
    home
}

#[test]
fn a_streamed_answer_can_be_read_from_the_first_row_to_the_last() {
    for (columns, answer) in [
        (
            80,
            "The number that notes.txt names is forty-two, and it is even. It stands in the\n\
             first line of the file, which has only that one line, so there is no doubt\n\
             about it.\n\n\
             - 四十二 is how the number is written in Chinese, and quarante-deux is how it\n\
             is written in French\n\n\
             That is all.",
        ),
        (
            120,
            "The number that notes.txt names is forty-two, and it is even. It stands in the \
             first line of the file, which has only\n\
             that one line, so there is no doubt about it.\n\n\
             - 四十二 is how the number is written in Chinese, and quarante-deux is how it \
             is written in French\n\n\
             That is all.",
        ),
    ] {
        let home = home();
        let fake = Fake::new([
            Answer::call(&[("read", "{\"path\":\"notes.txt\"}")]),
            Answer::pieces(ANSWER),
        ]);
        let args = ["--max-context", "20000", "Which number?"];
        let mut run = Terminal::run(&home, &fake, &args, columns);
        assert_eq!(run.end(), Some(0), "{}", run.screen());
        let screen = run.screen();
        let (head, rest) = screen.split_once("\n· read").unwrap();
        assert!(head.starts_with("openai-compatible/m in . │ "), "{screen}");
        assert!(head.contains("session "), "{screen}");
        let (tail, session) = rest.rsplit_once(" │ session ").unwrap();
        assert!(!session.contains('\n'), "nothing comes after it: {screen}");
        let expected = format!(
            " {{\"path\":\"notes.txt\"}} → 24 bytes\n{answer}\n\
             answered │ 2 turns, 1 tool call │ read 200 (40 % cached), wrote 20\nprice unknown"
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
            let Some((_, written)) = frame.split_once("24 bytes\n") else {
                continue;
            };
            let written: Vec<&str> = written
                .lines()
                .take_while(|row| !row.contains('│'))
                .flat_map(str::split_whitespace)
                .collect();
            let words: Vec<&str> = ANSWER.split_whitespace().collect();
            assert!(words.starts_with(&written), "{frame}");
            // A frame may be caught while the region is drawn again.
            words_seen = words_seen.max(written.len());
        }
        assert_eq!(words_seen, ANSWER.split_whitespace().count());
    }
}

#[test]
fn a_question_stands_alone_until_it_is_answered() {
    let home = home();
    let ls = r#"{"command":"cat notes.txt"}"#;
    let fake = Fake::new([
        Answer::call(&[("bash", ls), ("read", "{\"path\":\"notes.txt\"}")]),
        Answer::call(&[("bash", ls)]),
        Answer::say("Forty-two."),
    ]);
    let mut run = Terminal::run(&home, &fake, &["Which number?"], 80);
    let question = "bash {\"command\":\"cat notes.txt\"}\n\
        Allow? [y]es, [a]lways this tool, [N]o:";
    run.until(question);
    assert!(run.screen().ends_with(question), "{}", run.screen());
    run.keys("a\r");
    assert_eq!(run.end(), Some(0), "{}", run.screen());
    let screen = run.screen();
    assert_eq!(screen.matches("Allow?").count(), 1, "{screen}");
    assert_eq!(screen.matches("· bash").count(), 2, "{screen}");
    assert!(
        screen.contains("\nForty-two.\nanswered │ 3 turns"),
        "{screen}"
    );
}

#[test]
fn an_interrupt_gets_through_a_question() {
    let home = home();
    let fake = Fake::new([Answer::call(&[("bash", r#"{"command":"ls"}"#)])]);
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
    let home = home();
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
    let expected = "the model could not be reached: nothing listens\n\
        at http://127.0.0.1:9/v1 (connection refused); is the\n\
        server running? start it or give another address with\n--base-url";
    assert_eq!(error, expected, "{screen}");
}
