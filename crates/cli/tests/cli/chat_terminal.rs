//! `plimsoll chat` in a terminal: text that streams above the edited line, Ctrl-C keeping that
//! line, and the state of the terminal at the end.

use std::os::unix::fs::PermissionsExt;

use super::command::Home;
use super::fake::{Fake, FakeAnswer};
use super::runs::messages;
use super::terminal::{END, INTERRUPT, Terminal, UP};

const WINDOW: [&str; 2] = ["--max-context", "20000"];

#[test]
fn an_answer_streams_above_the_prompt_in_rows_of_the_terminal() {
    let home = Home::with_notes();
    let answer = "The number that notes.txt names is forty-two, and it is even.\nThat is all.";
    let fake = Fake::new([
        FakeAnswer::call(&[("read", "{\"path\":\"notes.txt\"}")]),
        FakeAnswer::say(answer),
    ]);
    let mut chat = Terminal::chat(&home, &fake, &WINDOW, &[("NO_COLOR", "1")], 40);
    chat.until_prompt(">");
    chat.keys("Which number?\r");
    chat.until("cached)");
    chat.until_prompt(">");
    let screen = chat.screen();
    let from = screen.find("> Which number?").unwrap();
    let expected = "> Which number?\n\
        · read notes.txt · 1 line";
    assert!(screen[from..].starts_with(expected), "{screen}");
    for row in [
        "The number that notes.txt names is",
        "forty-two, and it is even.",
        "That is all.",
    ] {
        let count = screen.lines().filter(|line| *line == row).count();
        assert_eq!(count, 1, "{row}:\n{screen}");
    }
    assert!(!screen.contains("the model reads"), "{screen}");
    assert!(!chat.raw().contains("\u{1b}[0;"), "NO_COLOR is heeded");
    chat.keys(END);
    assert_eq!(chat.end(), Some(0));
    assert!(
        chat.screen().contains("continue with: plimsoll chat"),
        "{}",
        chat.screen()
    );
    assert!(chat.is_as_it_was());
}

#[test]
fn a_line_that_is_typed_while_it_works_steers_it() {
    let home = Home::with_notes();
    let bash = FakeAnswer::call(&[("bash", "{\"command\":\"echo ran\"}")]);
    let fake = Fake::new([bash, FakeAnswer::say("With tabs.")]);
    let mut chat = Terminal::chat(&home, &fake, &WINDOW, &[], 80);
    chat.until_prompt(">");
    chat.keys("Run it.\r");
    chat.until("Allow? [y]es, [a]lways `echo ran` in this project, [n]o");
    chat.until_prompt("?");
    chat.keys("Use tabs.\r");
    chat.until("delivered: Use tabs.");
    chat.until("With tabs.");
    chat.until("cached)");
    assert!(chat.raw().contains("\u{1b}[2m"), "notes are dim");
    let sent = messages(&fake.asked()[1]);
    assert!(
        sent[3].0 == "tool" && sent[3].1.contains("read it first"),
        "{sent:?}"
    );
    assert_eq!(sent[4], ("user".into(), "Use tabs.".into()));
    chat.until_prompt(">");
    chat.keys("/quit\r");
    assert_eq!(chat.end(), Some(0));
    assert!(chat.is_as_it_was());
}

#[test]
fn a_question_is_answered_by_a_line() {
    let home = Home::with_notes();
    let bash = |n: u32| FakeAnswer::call(&[("bash", &format!("{{\"command\":\"echo ran-{n}\"}}"))]);
    let answers = [bash(1), bash(2), bash(3), bash(3), FakeAnswer::say("done")];
    let fake = Fake::new(answers);
    let mut chat = Terminal::chat(&home, &fake, &WINDOW, &[("NO_COLOR", "1")], 80);
    chat.until_prompt(">");
    chat.keys("Run it.\r");
    chat.until("[a]lways `echo ran-1` in this project, [n]o");
    chat.until_prompt("?");
    // The question stays.
    chat.keys("/cost\r");
    chat.until("this command works only between runs");
    chat.until_prompt("?");
    chat.keys("y\r");
    chat.until("[a]lways `echo ran-2` in this project, [n]o");
    chat.until_prompt("?");
    chat.keys("no, use make\r");
    chat.until("[a]lways `echo ran-3` in this project, [n]o");
    chat.until_prompt("?");
    chat.keys("always\r");
    chat.until("done");
    chat.until("cached)");
    chat.until_prompt(">");
    let sent = messages(&fake.asked()[4]);
    let results: Vec<&str> = sent
        .iter()
        .filter(|(role, _)| role == "tool")
        .map(|(_, text)| text.as_str())
        .collect();
    assert!(results[0].contains("ran-1"), "{results:?}");
    assert!(
        results[1].contains("use make") && !results[1].contains("ran-2"),
        "{results:?}"
    );
    assert!(
        results[2].contains("ran-3") && results[3].contains("ran-3"),
        "{results:?}"
    );
}

#[test]
fn one_answer_is_for_all_calls_that_wait() {
    let home = Home::with_notes();
    let both = [
        ("bash", "{\"command\":\"echo one two\"}"),
        ("bash", "{\"command\":\"echo one three\"}"),
    ];
    let fake = Fake::new([FakeAnswer::call(&both), FakeAnswer::say("done")]);
    let args = [&WINDOW[..], &["--max-parallel-tools", "2"]].concat();
    let mut chat = Terminal::chat(&home, &fake, &args, &[], 200);
    chat.until_prompt(">");
    chat.keys("Run both.\r");
    chat.until("[p]attern `echo one *` in this project, [n]o");
    chat.until_prompt("?");
    chat.keys("p\r");
    chat.until("done");
    chat.until("cached)");
    chat.until_prompt(">");
    let screen = chat.screen();
    assert_eq!(screen.matches("Allow?").count(), 1, "{screen}");
    let sent = messages(&fake.asked()[1]);
    for (result, part) in sent[3..].iter().zip(["one two", "one three"]) {
        assert!(result.1.contains(part), "{result:?}");
    }
}

#[test]
fn lines_that_arrive_in_one_burst_are_all_read() {
    let home = Home::with_notes();
    let (slow, opener) = FakeAnswer::pieces("Slowly, but surely.").gated(1);
    let mut first = Some(slow);
    let fake = Fake::scripted("compatible", Vec::new(), move |_, _| {
        first.take().unwrap_or_else(|| FakeAnswer::say("Done."))
    });
    let mut chat = Terminal::chat(&home, &fake, &WINDOW, &[], 80);
    chat.until_prompt(">");
    // Pasted without brackets, or typed while the program was busy.
    chat.keys("One.\rTwo.\rThree.\r");
    chat.until("queued for the next call: Two.");
    chat.until("queued for the next call: Three.");
    opener.open();
    chat.until("Done.");
    chat.until("cached)");
    let asked = fake.asked();
    let read = asked.last().unwrap()["messages"].to_string();
    assert!(read.contains("Two.") && read.contains("Three."), "{read}");
}

#[test]
fn a_chat_asks_nothing_beside_its_prompt() {
    let (home, fake) = (Home::new(), Fake::new([]));
    let mut chat = Terminal::chat(&home, &fake, &WINDOW, &[], 200);
    chat.until_prompt(">");
    // Its files would have to be downloaded, and the answer would be typed into the prompt.
    chat.keys("/model local\r");
    chat.until("nothing was downloaded; download it with `plimsoll model pull`");
    assert!(!chat.screen().contains("[y]es"), "{}", chat.screen());
    chat.until_prompt(">");
    chat.keys("/model\r");
    chat.until("the model is openai-compatible/m");
    chat.keys(END);
    assert_eq!(chat.end(), Some(0));
}

#[test]
fn a_line_is_read_before_the_next_call_and_a_later_one_after_the_answer() {
    let home = Home::with_notes();
    let (slow, opener) = FakeAnswer::pieces("Slowly, but surely.").gated(1);
    let answers = [
        slow,
        FakeAnswer::say("With tabs."),
        FakeAnswer::say("It is even."),
    ];
    let mut answers = answers.into_iter();
    let fake = Fake::scripted("compatible", Vec::new(), move |_, _| {
        answers.next().unwrap()
    });
    let mut chat = Terminal::chat(&home, &fake, &WINDOW, &[], 80);
    chat.until_prompt(">");
    chat.keys("Which number?\r");
    chat.until("Slowly,");
    chat.keys("/later Is it even?\r");
    chat.until("queued for after the answer: Is it even?");
    chat.keys("Use tabs.\r");
    chat.until("queued for the next call: Use tabs.");
    opener.open();
    chat.until("delivered: Use tabs.");
    chat.until("With tabs.");
    chat.until("It is even.");
    chat.until("cached)");
    let last = |request| messages(request).pop().unwrap().1;
    let asked = fake.asked();
    assert_eq!(asked.len(), 3);
    assert!(last(&asked[1]).ends_with("Use tabs."));
    assert_eq!(last(&asked[2]), "Is it even?");
}

#[test]
fn an_interrupt_keeps_what_is_typed_and_two_leave() {
    let home = Home::with_notes();
    let fake = Fake::new([
        FakeAnswer::say("never whole").hang(),
        FakeAnswer::say("Here again."),
        FakeAnswer::say("never whole").hang(),
    ]);
    let mut chat = Terminal::chat(&home, &fake, &WINDOW, &[], 80);
    chat.until_prompt(">");
    chat.keys("Take your time.\r");
    fake.wait();
    chat.until("never");
    chat.until_prompt("+");
    chat.keys("Are you");
    chat.until_prompt("+ Are you");
    chat.keys(END);
    chat.keys(INTERRUPT);
    chat.until("interrupted; /go continues");
    chat.until_prompt("> Are you");
    chat.keys(" there?\r");
    fake.wait();
    chat.until("Here again.");
    chat.until("cached)");
    assert_eq!(
        messages(&fake.asked()[1]).pop().unwrap(),
        (
            "user".into(),
            "[The answer was cut off before its end.]\n\nAre you there?".into()
        )
    );
    chat.keys("And now?\r");
    fake.wait();
    chat.keys(INTERRUPT);
    chat.keys(INTERRUPT);
    assert_eq!(chat.end(), Some(130), "{}", chat.screen());
    assert!(chat.is_as_it_was());
}

#[test]
fn ctrl_c_clears_a_typed_line_like_a_shell() {
    let (home, fake) = (Home::new(), Fake::new([]));
    let mut chat = Terminal::chat(&home, &fake, &WINDOW, &[], 80);
    chat.until_prompt(">");
    chat.keys("half a line");
    chat.until_prompt("> half a line");
    chat.keys(INTERRUPT);
    chat.until("Ctrl-C again or Ctrl-D exits");
    chat.until_prompt(">");
    chat.keys(INTERRUPT);
    assert_eq!(chat.end(), Some(130), "{}", chat.screen());
}

#[test]
fn a_continued_chat_shows_the_conversation_again() {
    let home = Home::new();
    let fake = Fake::new([FakeAnswer::say("It is **forty-two**.")]);
    home.agent(&fake, &["Which number?"]).done();
    let mut chat = Terminal::chat(&home, &fake, &["-c"], &[], 80);
    chat.until_prompt(">");
    let screen = chat.screen();
    for words in ["> Which number?", "It is forty-two.", "1 run so far"] {
        assert!(screen.contains(words), "no {words}: {screen}");
    }
    chat.keys(END);
    chat.end();
}

#[test]
fn lines_are_remembered_for_their_owner_alone_and_commands_are_completed() {
    let home = Home::with_notes();
    let fake = Fake::new([FakeAnswer::say("one"), FakeAnswer::say("two")]);
    let mut chat = Terminal::chat(&home, &fake, &WINDOW, &[], 80);
    chat.until_prompt(">");
    chat.keys("First.\r");
    chat.until("cached)");
    chat.keys("/conte\t\r");
    chat.until("compacts at");
    // Between two lines the terminal is as a shell wants it, and eats the key.
    chat.until_prompt(">");
    chat.keys(END);
    assert_eq!(chat.end(), Some(0));
    let history = home.data().join("chat_history");
    let mode = std::fs::metadata(&history).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut chat = Terminal::chat(&home, &fake, &WINDOW, &[], 80);
    chat.until_prompt(">");
    chat.keys(UP);
    chat.until_prompt("> /context");
    chat.keys(UP);
    chat.until_prompt("> First.");
    chat.keys("\r");
    chat.until("two");
    chat.until("cached)");
}

#[test]
fn ctrl_d_leaves_no_run_behind() {
    let (home, fake) = (
        Home::with_notes(),
        Fake::new([FakeAnswer::say("never whole").hang()]),
    );
    let mut chat = Terminal::chat(&home, &fake, &WINDOW, &[], 80);
    chat.until_prompt(">");
    chat.keys("Take your time.\r");
    fake.wait();
    chat.until_prompt("+");
    chat.keys(END);
    chat.until("a run is in progress: Ctrl-C stops it, /quit exits");
    chat.keys("/quit\r");
    assert_eq!(chat.end(), Some(0), "{}", chat.screen());
    assert!(chat.screen().contains("interrupted"), "{}", chat.screen());
    assert!(chat.is_as_it_was());
}

#[test]
fn keys_in_the_middle_of_a_stream_hold_nothing_up() {
    let home = Home::with_notes();
    let words: String = (0..150).map(|n| format!("word{n} ")).collect();
    let fake = Fake::new([FakeAnswer::pieces(&words)]);
    let mut chat = Terminal::chat(&home, &fake, &WINDOW, &[], 40);
    chat.until_prompt(">");
    for run in 1..=5 {
        chat.keys("Say them.\r");
        // The prompt of the run may come and go within one piece that is read.
        fake.wait();
        // Each of these ends the editing of a line, and another begins.
        for _ in 0..40 {
            chat.keys("\r");
        }
        chat.until_times("cached)", run);
        chat.until_prompt(">");
    }
    chat.keys("/quit\r");
    assert_eq!(chat.end(), Some(0));
    assert!(chat.is_as_it_was());
}

#[test]
fn context_is_a_gauge_and_a_table_that_fit_the_terminal() {
    for columns in [40, 60, 80, 120] {
        let home = Home::with_notes();
        let fake = Fake::new([
            FakeAnswer::call(&[("read", "{\"path\":\"notes.txt\"}")]),
            FakeAnswer::say("Forty-two."),
        ]);
        let mut chat = Terminal::chat(&home, &fake, &WINDOW, &[], columns);
        chat.until_prompt(">");
        chat.keys("Which number?\r");
        chat.until("cached)");
        chat.until_prompt(">");
        chat.keys("/context\r");
        chat.until("answer reserve");
        chat.until_prompt(">");
        let screen = chat.screen();
        let (_, picture) = screen.split_once("> /context\n").unwrap();
        let lines: Vec<&str> = picture.lines().collect();
        assert!(
            lines[0].contains(" of ") && lines[0].contains(" tokens, "),
            "{screen}"
        );
        let gauge = lines[1].trim_end();
        assert!(gauge.starts_with('█') && gauge.contains('┊'), "{screen}");
        assert!(gauge.ends_with('░'), "{screen}");
        assert!(lines[2].starts_with("┊ compacts at "), "{screen}");
        let table = &lines[3..12];
        assert!(table[8].starts_with("answer reserve "), "{screen}");
        let widths = table.iter().map(|line| line.trim_end().chars().count());
        let mut widths: Vec<usize> = widths.collect();
        widths.dedup();
        assert_eq!(widths.len(), 1, "{screen}");
        assert!(widths[0] < usize::from(columns), "{screen}");
    }
}
