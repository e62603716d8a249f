//! `plimsoll chat` over pipes, as a script or another program drives it: one message per line,
//! and the end of the chat.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::chatting::Chat;
use super::command::Home;
use super::fake::{Fake, FakeAnswer};
use super::runs::messages;
use serde_json::Value;

/// A server whose first answer waits until the test says so; then the others, the last for ever.
fn held(first: FakeAnswer, then: Vec<FakeAnswer>) -> (Fake, Receiver<()>, Sender<()>) {
    let (arrived, arrivals) = channel();
    let (go, gone) = channel();
    let mut answers = then.into_iter();
    let fake = Fake::scripted("compatible", Vec::new(), move |_, n| {
        if n == 0 {
            arrived.send(()).unwrap();
            gone.recv().unwrap();
            return first.clone();
        }
        answers.next().expect("no further request was expected")
    });
    (fake, arrivals, go)
}

fn read() -> FakeAnswer {
    FakeAnswer::call(&[("read", "{\"path\":\"notes.txt\"}")])
}

/// The users' messages of a request.
fn said(request: &Value) -> Vec<String> {
    let all = messages(request).into_iter();
    all.filter(|(role, _)| role == "user")
        .map(|(_, text)| text)
        .collect()
}

#[test]
fn a_line_is_a_message_and_the_end_of_the_lines_is_the_end() {
    let home = Home::with_notes();
    let fake = Fake::new([
        read(),
        FakeAnswer::say("Forty-two."),
        FakeAnswer::say("Even.\nQuite."),
    ]);
    let chat = Chat::start(&home, &fake, &[]);
    let said = chat.lines("Which number?\n\n  \nIs it even?\n");
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(said.out, "Forty-two.\nEven.\nQuite.\n");
    let asked = fake.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!(self::said(&asked[2]), ["Which number?", "Is it even?"]);
    for part in [
        "openai-compatible/m in .",
        "· read notes.txt · 1 line\n",
        "2 turns, 1 tool call │ read 200 (40 % cached), wrote 20\n",
        "continue with: plimsoll chat --session ",
    ] {
        assert!(said.err.contains(part), "no {part}: {}", said.err);
    }
    assert!(
        !(said.err + &said.out).contains('\u{1b}'),
        "a pipe gets no escapes"
    );
}

#[test]
fn a_scripts_lines_wait_for_the_run_before_them() {
    let home = Home::with_notes();
    let answers = vec![FakeAnswer::say("two"), FakeAnswer::say("three")];
    let (fake, arrived, go) = held(FakeAnswer::say("one"), answers);
    let mut chat = Chat::start(&home, &fake, &[]);
    chat.say("First.");
    arrived.recv().unwrap();
    chat.say("Second.");
    chat.say("/undo");
    chat.say("Third.");
    go.send(()).unwrap();
    assert_eq!(chat.out(), "one");
    assert_eq!(chat.out(), "two");
    assert!(chat.out().starts_with("run 2 is undone"));
    assert_eq!(chat.out(), "three");
    assert_eq!(chat.end().code, Some(0));
    assert_eq!(said(&fake.asked()[2]), ["First.", "Third."]);
}

#[test]
fn a_first_interrupt_ends_the_run_and_the_chat_goes_on() {
    let home = Home::with_notes();
    let fake = Fake::new([
        FakeAnswer::say("never").silent(),
        FakeAnswer::say("Here again."),
    ]);
    let mut chat = Chat::start(&home, &fake, &[]);
    chat.say("Take your time.");
    fake.wait();
    chat.interrupt();
    chat.err_until("interrupted; /go continues");
    chat.say("Are you there?");
    assert_eq!(chat.out(), "Here again.");
    let ended = chat.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(
        said(&fake.asked()[1]),
        ["Take your time.\n\nAre you there?"],
        "one message, as templates want it"
    );
}

#[test]
fn two_interrupts_leave_and_the_session_can_be_carried_on() {
    let home = Home::with_notes();
    let fake = Fake::new([
        FakeAnswer::say("never").silent(),
        FakeAnswer::say("Done after all."),
    ]);
    let mut chat = Chat::start(&home, &fake, &[]);
    chat.say("Take your time.");
    fake.wait();
    chat.interrupt();
    chat.err_until("interrupted; /go continues");
    chat.interrupt();
    let left = chat.wait();
    assert_eq!(left.code, Some(130), "{}", left.err);
    let id = left.session();
    let again = Chat::start(&home, &fake, &["--session", &id]).lines("/go\n");
    assert_eq!(
        (again.code, again.out.as_str()),
        (Some(0), "Done after all.\n")
    );
    assert_eq!(again.session(), id);
}

#[test]
fn an_interrupt_with_nothing_under_way_leaves() {
    let (home, fake) = (Home::with_notes(), Fake::new([FakeAnswer::say("Hello.")]));
    let mut chat = Chat::start(&home, &fake, &[]);
    chat.say("/model");
    chat.out();
    chat.interrupt();
    assert_eq!(chat.wait().code, Some(130));
}

#[test]
fn an_interrupt_gets_through_however_many_lines_wait() {
    let home = Home::with_notes();
    let fake = Fake::new([FakeAnswer::say("never").silent(), FakeAnswer::say("ok")]);
    let mut chat = Chat::start(&home, &fake, &[]);
    for line in 0..200 {
        chat.say(&format!("Line {line}."));
    }
    fake.wait();
    chat.interrupt();
    chat.err_until("interrupted; /go continues");
    let ended = chat.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(ended.out, "ok\n".repeat(199));
}

#[test]
fn a_script_is_not_asked_but_told_what_allows_a_call() {
    let home = Home::with_notes();
    let bash = FakeAnswer::call(&[("bash", "{\"command\":\"echo ran\"}")]);
    let fake = Fake::new([bash, FakeAnswer::say("one"), FakeAnswer::say("two")]);
    let said = Chat::start(&home, &fake, &[]).lines("Run it.\ny\n");
    assert_eq!((said.code, said.out.as_str()), (Some(0), "one\ntwo\n"));
    assert!(
        said.err
            .contains("`bash` did not run; --allow bash allows it"),
        "{}",
        said.err
    );
    assert_eq!(self::said(&fake.asked()[2]), ["Run it.", "y"]);
}

#[test]
fn a_line_that_is_no_text_is_passed_over() {
    let (home, fake) = (Home::with_notes(), Fake::new([FakeAnswer::say("Hello.")]));
    let said = Chat::start(&home, &fake, &[]).lines(b"\xff\xfe\nHi\n");
    assert_eq!((said.code, said.out.as_str()), (Some(0), "Hello.\n"));
    assert!(said.err.contains("not UTF-8"), "{}", said.err);
}

#[test]
fn a_session_whose_runs_are_undone_is_not_called_new() {
    let home = Home::new();
    let fake = Fake::new([FakeAnswer::say("one")]);
    let tour = ["--session", "tour"];
    Chat::start(&home, &fake, &tour).lines("First.\n/undo\n");
    let said = Chat::start(&home, &fake, &tour).lines("");
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("session tour"), "{}", said.err);
    assert!(!said.err.contains("this session is new"), "{}", said.err);
}

#[test]
fn a_session_with_nothing_but_a_pin_belongs_to_its_folder() {
    let home = Home::new();
    let fake = Fake::new([]);
    let pinned = Chat::start(&home, &fake, &["--session", "pinned"]);
    pinned.lines("/pin Be brief.\n");
    let said = Chat::start(&home, &fake, &["--continue"]).lines("/context\n");
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("\npins "), "{}", said.out);
}
