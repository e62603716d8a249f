//! `-r` at a terminal: a session is chosen by its number.

use super::command::Home;
use super::fake::{Fake, FakeAnswer};
use super::terminal::Terminal;

const QUESTION: &str = "Number [1]:";

#[test]
fn a_session_is_chosen_from_a_list() {
    let (home, fake) = (
        Home::new(),
        Fake::new(["Pools have eight.", "No.", "Again.", "Found."].map(FakeAnswer::say)),
    );
    let first = home.agent(&fake, &["First."]).done().session();
    let second = home.agent(&fake, &["Second."]).done().session();
    for (key, chosen) in [("2\r", &first), ("2\r", &second)] {
        let mut run = Terminal::run(&home, &fake, &["-r", "Go on."], 80);
        run.until(QUESTION);
        run.keys(key);
        assert_eq!(run.end(), Some(0), "{}", run.screen());
        let screen = run.screen();
        assert!(screen.ends_with(&format!("session {chosen}")), "{screen}");
    }
}

#[test]
fn nothing_runs_if_no_session_is_chosen() {
    let (home, fake) = (Home::new(), Fake::new([FakeAnswer::say("One.")]));
    home.agent(&fake, &["-r", "Go on."]).refused(
        2,
        &["a session can be chosen only at a terminal", "--session ID"],
    );
    let mut run = Terminal::run(&home, &fake, &["-r", "Go on."], 80);
    assert_eq!(run.end(), Some(2), "{}", run.screen());
    assert!(run.screen().contains("there are no sessions yet"));
    home.agent(&fake, &["First."]).done();
    let mut run = Terminal::run(&home, &fake, &["-r", "Go on."], 80);
    run.until(QUESTION);
    run.keys("\u{4}");
    assert_eq!(run.end(), Some(2), "{}", run.screen());
    let mut run = Terminal::run(&home, &fake, &["-r", "Go on."], 80);
    run.until(QUESTION);
    run.keys("2\r");
    assert_eq!(run.end(), Some(2), "{}", run.screen());
    assert_eq!(fake.asked().len(), 1);
}
