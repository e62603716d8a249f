//! Evicted messages, from outside: the ledger lists them, and they can be recalled byte for byte.

use plimsoll::Message;
use serde_json::Value;

use super::command::Home;
use super::fake::{Fake, FakeAnswer};
use super::runs::messages;

/// What the tool reads: more than one result may weigh in the window below, on several lines.
fn story() -> String {
    (0..900)
        .map(|n| format!("line {n} of the é story\n"))
        .collect()
}

/// A run whose one tool result is shortened as it arrives; its session.
pub(crate) fn run(home: &Home) -> String {
    home.file("story.txt", story());
    let bash = FakeAnswer::call(&[("bash", "{\"command\":\"cat story.txt\"}")]);
    let fake = Fake::new([bash, FakeAnswer::say("a story")]);
    let args = ["--yes", "--max-context", "6000", "Which file is it?"];
    home.agent(&fake, &args).done().session()
}

pub(crate) fn ledger(home: &Home, id: &str) -> Vec<Value> {
    let said = home.run(["sessions", "ledger", "--json", id]).done();
    let lines = said.out.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

#[test]
fn what_was_shortened_is_in_the_ledger_and_comes_back() {
    let home = Home::new();
    let id = run(&home);
    let rows = ledger(&home, &id);
    let [row] = rows.as_slice() else {
        panic!("{rows:?}");
    };
    assert_eq!(row["kind"], "tool_result");
    assert_eq!(row["tool"], "bash");
    assert_eq!(row["how"], "shortened");
    assert_eq!(row["why"], "request");
    assert!(row["tokens"].as_u64() > row["after"].as_u64(), "{row}");
    // The run counts plans as the ledger does.
    assert!(row["plan"].is_null(), "{row}");
    let item = row["id"].as_str().unwrap();

    let table = home.run(["sessions", "ledger", &id]).done();
    let cure = format!("plimsoll sessions recall {id} {item}");
    let head = format!("session {id}: 1 result shortened on arrival");
    for part in [&head, item, "result of bash", "shortened", "request", &cure] {
        assert!(table.out.contains(part), "no {part}: {}", table.out);
    }

    for key in [item, item.trim_start_matches('m')] {
        let whole = home.run(["sessions", "recall", &id, key]).done();
        assert!(whole.out.contains(&story()), "{}", whole.out.len());
        let note = format!("{item}, tool result: {} bytes", whole.out.len());
        assert!(whole.err.contains(&note), "{}", whole.err);
    }
    let message = home.run(["sessions", "recall", &id, item, "--json"]).done();
    let message: Message = serde_json::from_str(&message.out).unwrap();
    assert!(matches!(message, Message::ToolResult(_)));
}

/// The id that a marker in the newest result names.
fn marked(request: &Value) -> String {
    let (role, text) = messages(request).pop().unwrap();
    assert_eq!(role, "tool");
    assert!(text.len() < story().len(), "{}", text.len());
    let (_, after) = text.split_once("recall m").expect("a marker");
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    format!("m{digits}")
}

#[test]
fn a_model_follows_the_marker_and_gets_the_bytes() {
    let home = Home::new();
    home.file("story.txt", story());
    // What the model would do: each answer comes from what it is shown.
    let fake = Fake::scripted("compatible", Vec::new(), |request, number| {
        match number + 1 {
            1 => FakeAnswer::call(&[("bash", "{\"command\":\"cat story.txt\"}")]),
            2 => {
                let id = marked(request);
                let ask = format!("{{\"id\":\"{id}\",\"offset\":0}}");
                FakeAnswer::call(&[("recall", &ask)])
            }
            3 => {
                let (_, text) = messages(request).pop().unwrap();
                let (note, page) = text.split_once("]\n").unwrap();
                assert!(note.contains("result of bash: bytes 0-"), "{note}");
                assert!(
                    story().contains(page.trim_start_matches(|c| c != 'l')),
                    "{page}"
                );
                let query = "{\"query\":\"line 777 of\"}";
                FakeAnswer::call(&[("recall_search", query)])
            }
            4 => {
                let (_, text) = messages(request).pop().unwrap();
                assert!(
                    text.contains("result of bash") && text.contains("line 777 of"),
                    "{text}"
                );
                let id = text.split(',').next().unwrap();
                let ask = format!("{{\"id\":\"{id}\",\"pattern\":\"line 777 \"}}");
                FakeAnswer::call(&[("recall", &ask)])
            }
            5 => {
                let (_, text) = messages(request).pop().unwrap();
                assert!(text.contains(": line 777 of the é story\n"), "{text}");
                FakeAnswer::say("found")
            }
            more => panic!("asked {more} times"),
        }
    });
    let args = ["--yes", "--max-context", "12000", "Look for line 777."];
    let said = home.agent(&fake, &args).done();
    assert_eq!(said.out, "found\n");
    let rows = ledger(&home, &said.session());
    assert_eq!(rows.len(), 1, "{rows:?}");
}

#[test]
fn what_is_not_there_is_refused_with_a_cure() {
    let home = Home::new();
    let id = run(&home);
    let unknown = home.run(["sessions", "recall", &id, "m999"]);
    unknown.refused(2, &["m999", "sessions ledger"]);
    home.run(["sessions", "ledger", "nobody"])
        .refused(2, &["there is no session nobody"]);
    let empty = Fake::new([FakeAnswer::say("yes")]);
    let id = home.agent(&empty, &["Are you there?"]).done().session();
    let said = home.run(["sessions", "ledger", &id]).done();
    assert!(said.out.contains("nothing was evicted"), "{}", said.out);
    assert!(ledger(&home, &id).is_empty());
    let said = home.run(["sessions", "recall", &id, "m0"]).done();
    assert_eq!(said.out, "Are you there?");
}

/// Every command is another process, and the run was killed before anything else was written.
#[test]
fn a_killed_run_and_its_fork_recall_what_was_evicted() {
    let home = Home::new();
    home.file("story.txt", story());
    let bash = FakeAnswer::call(&[("bash", "{\"command\":\"cat story.txt\"}")]);
    let fake = Fake::new([bash, FakeAnswer::say("a st").hang()]);
    let args = [
        "--yes",
        "--max-context",
        "12000",
        "--session",
        "killed",
        "Which?",
    ];
    let under = home.start(&fake, &args);
    fake.wait();
    fake.wait();
    under.kill();
    under.end();
    let rows = ledger(&home, "killed");
    let item = rows[0]["id"].as_str().unwrap();
    home.run(["sessions", "fork", "killed", "--to", "fork"])
        .done();
    for session in ["killed", "fork"] {
        let whole = home.run(["sessions", "recall", session, item]).done();
        assert!(whole.out.contains(&story()), "{session}: {}", whole.out);
        let ask = format!("{{\"id\":\"{item}\",\"pattern\":\"line 777 \"}}");
        let search = "{\"query\":\"line 777 of\"}";
        let next = Fake::new([
            FakeAnswer::call(&[("recall", &ask)]),
            FakeAnswer::call(&[("recall_search", search)]),
            FakeAnswer::say("found"),
        ]);
        home.agent(&next, &["--session", session, "Which line?"])
            .done();
        let asked = next.asked();
        let result = |request: &Value| messages(request).pop().unwrap().1;
        let recalled = result(&asked[1]);
        assert!(
            recalled.contains(": line 777 of the é story\n"),
            "{recalled}"
        );
        let found = result(&asked[2]);
        assert!(
            found.contains(&format!("{item}, result of bash")),
            "{found}"
        );
    }
}
