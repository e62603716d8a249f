//! `plimsoll acp` with the protocol's own client: a run as shown by an editor, the questions to it,
//! and its operations on sessions.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::Command;

use agent_client_protocol::v1::schema::{
    AudioContent, BlobResourceContents, CloseSessionRequest, ContentBlock, EmbeddedResource,
    EmbeddedResourceResource, ImageContent, ListSessionsRequest, McpServer, McpServerStdio,
    ResourceLink, SetSessionModeRequest, StopReason, TextResourceContents,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::command::Home;
use super::editing::{Editor, edit};
use super::fake::{Fake, FakeAnswer};
use super::images::png;
use super::mcp;
use super::runs::messages;

const WINDOW: [&str; 2] = ["--max-context", "20000"];

fn home() -> Home {
    let home = Home::new();
    home.file("main.rs", "fn main() {\n    serve(8430);\n}\n");
    home
}

fn change(from: u32, to: u32) -> FakeAnswer {
    let arguments = format!(r#"{{"path":"main.rs","old":"{from}","new":"{to}"}}"#);
    FakeAnswer::call(&[("edit", &arguments)])
}

fn main_rs(home: &Home) -> String {
    std::fs::read_to_string(home.work().join("main.rs")).unwrap()
}

#[test]
fn a_prompt_streams_shows_its_calls_and_asks_about_them() {
    let home = home();
    let look = FakeAnswer::call(&[("read", r#"{"path":"main.rs"}"#)]);
    let fake = Fake::new([look, change(8430, 8431), FakeAnswer::say("It is done now.")]);
    let ((), said) = edit(&home, &fake, &WINDOW, async |editor| {
        let session = editor.open(home.work()).await;
        editor.answers(["allow_once"]);
        let stop = editor.say(&session, "Change the port.").await;
        assert_eq!(stop.unwrap(), StopReason::EndTurn);
        assert_eq!(editor.text(&session), "It is done now.");
        let calls = editor.calls(&session);
        let calls: Vec<(&str, &str)> = calls
            .iter()
            .map(|(_, title, status)| (title.as_str(), status.as_str()))
            .collect();
        assert_eq!(
            calls,
            [
                ("read", ""),
                ("read main.rs", "in_progress"),
                ("", "completed"),
                ("edit", ""),
                ("edit main.rs", "pending"),
                ("edit main.rs", "in_progress"),
                ("", "completed"),
            ]
        );
        let options = ["Allow", "Always allow edits in this session", "Reject"];
        let options = options.map(str::to_owned).to_vec();
        assert_eq!(editor.asked(), [("edit main.rs".to_owned(), options)]);
        let updates = editor.updates(&session);
        let shown = updates
            .iter()
            .find(|update| update["title"] == "edit main.rs");
        let shown = shown.unwrap();
        let path = home.work().join("main.rs");
        assert_eq!(shown["kind"], "edit");
        assert_eq!(shown["locations"][0]["path"], path.to_str().unwrap());
        assert_eq!(shown["locations"][0]["line"], 2);
        let diff = &shown["content"][0];
        assert_eq!(diff["type"], "diff");
        assert_eq!(diff["path"], path.to_str().unwrap());
        assert_eq!(diff["oldText"], "fn main() {\n    serve(8430);\n}\n");
        assert_eq!(diff["newText"], "fn main() {\n    serve(8431);\n}\n");
        let window = updates.iter().find(|update| update["size"] == 20_000);
        assert!(window.unwrap()["used"].as_u64().unwrap() > 100);
    });
    assert!(main_rs(&home).contains("8431"));
    assert_eq!(said.done().err, "");
}

#[test]
fn an_answer_holds_for_one_call_or_for_the_session() {
    let home = home();
    let fake = Fake::new([
        change(8430, 8431),
        FakeAnswer::say("No."),
        change(8430, 8432),
        change(8432, 8433),
        FakeAnswer::say("Yes."),
    ]);
    edit(&home, &fake, &WINDOW, async |editor| {
        let session = editor.open(home.work()).await;
        editor.answers(["reject_once"]);
        editor.say(&session, "Change it.").await.unwrap();
        assert!(main_rs(&home).contains("8430"));
        let calls = editor.calls(&session);
        assert_eq!(calls.last().unwrap().2, "failed");
        let (_, told) = messages(&fake.asked()[1]).pop().unwrap();
        assert!(told.contains("the user did not allow this call"), "{told}");
        editor.answers(["allow_always"]);
        editor.say(&session, "Do change it.").await.unwrap();
        assert_eq!(editor.asked().len(), 2, "the third is not asked about");
    });
    assert!(main_rs(&home).contains("8433"));
}

#[test]
fn a_prompt_is_cancelled_while_it_streams_and_while_it_asks() {
    let home = home();
    let fake = Fake::new([
        FakeAnswer::pieces("It is a long story that never ends.").hang(),
        change(8430, 8431),
        FakeAnswer::say("Well?"),
    ]);
    edit(&home, &fake, &WINDOW, async |editor| {
        let session = editor.open(home.work()).await;
        let cancels = async {
            editor.until(&session, "It ").await;
            editor.cancel(&session);
        };
        let (stop, ()) = tokio::join!(editor.say(&session, "Tell me."), cancels);
        assert_eq!(stop.unwrap(), StopReason::Cancelled);
        editor.answers(["cancel"]);
        let stop = editor.say(&session, "Change it.").await;
        assert_eq!(stop.unwrap(), StopReason::Cancelled);
        assert_eq!(editor.calls(&session).last().unwrap().2, "failed");
        // With nothing under way it means nothing.
        editor.cancel(&session);
        let stop = editor.say(&session, "Go on.").await;
        assert_eq!(stop.unwrap(), StopReason::EndTurn);
    });
    assert!(main_rs(&home).contains("8430"));
}

#[test]
fn a_prompt_that_is_cancelled_at_once_calls_no_tool() {
    let home = home();
    let fake = Fake::new([change(8430, 8431)]);
    edit(&home, &fake, &["--yes"], async |editor| {
        let session = editor.open(home.work()).await;
        let cancels = async { editor.cancel(&session) };
        let (stop, ()) = tokio::join!(editor.say(&session, "Change it."), cancels);
        assert_eq!(stop.unwrap(), StopReason::Cancelled);
    });
    assert!(main_rs(&home).contains("8430"));
}

#[test]
fn an_agent_that_is_called_asks_the_same_person() {
    let home = home();
    home.file(
        "plimsoll.toml",
        "[[agents]]\nname = \"chief\"\ntools = [\"read\"]\nsub_agents = [\"mate\"]\n\
         [[agents]]\nname = \"mate\"\ntools = [\"edit\"]\n",
    );
    let call = FakeAnswer::call(&[("mate", r#"{"task":"Change the port."}"#)]);
    let fake = Fake::new([
        call,
        change(8430, 8431),
        FakeAnswer::say("Changed."),
        FakeAnswer::say("It is done."),
    ]);
    let args = [&WINDOW[..], &["--agent", "chief"]].concat();
    edit(&home, &fake, &args, async |editor| {
        let session = editor.open(home.work()).await;
        editor.answers(["allow_once"]);
        editor.say(&session, "Have it changed.").await.unwrap();
        assert_eq!(editor.asked()[0].0, "edit main.rs");
        let mut ended = editor.calls(&session).into_iter();
        let ended = ended
            .by_ref()
            .filter(|(_, _, status)| status == "completed");
        assert_eq!(ended.count(), 2, "the question, and the call of the agent");
    });
    assert!(main_rs(&home).contains("8431"));
}

#[test]
fn a_session_is_loaded_with_all_that_was_said_and_goes_on() {
    let home = home();
    let fake = Fake::new([
        change(8430, 8431),
        FakeAnswer::say("Changed."),
        FakeAnswer::say("A pun."),
        FakeAnswer::say("Gladly."),
    ]);
    let (session, _) = edit(&home, &fake, &WINDOW, async |editor| {
        let session = editor.open(home.work()).await;
        editor.answers(["allow_once"]);
        editor.say(&session, "Change it.").await.unwrap();
        editor.say(&session, "A joke, please.").await.unwrap();
        session
    });
    let undo = ["sessions", "undo", session.0.as_ref()];
    home.run(undo).done();
    let (updates, said) = edit(&home, &fake, &WINDOW, async |editor| {
        editor.load(&session, home.work()).await;
        let updates = editor.updates(&session);
        editor.say(&session, "Thank you.").await.unwrap();
        updates
    });
    said.done();
    let shown: Vec<&str> = updates
        .iter()
        .map(|update| update["sessionUpdate"].as_str().unwrap())
        .collect();
    let expected = [
        "user_message_chunk",
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
        "usage_update",
    ];
    assert_eq!(shown[..5], expected, "what was undone is not shown");
    assert_eq!(updates[0]["content"]["text"], "Change it.");
    assert_eq!(updates[1]["title"], "edit main.rs");
    assert_eq!(updates[1]["content"][0]["newText"], "8431");
    assert_eq!(updates[2]["status"], "completed");
    assert_eq!(updates[3]["content"]["text"], "Changed.");
    let last = messages(fake.asked().last().unwrap());
    let users = last.iter().filter(|(role, _)| role == "user");
    let users: Vec<&str> = users.map(|(_, text)| text.as_str()).collect();
    assert_eq!(users, ["Change it.", "Thank you."]);
    // The other commands know of it as well.
    let listed = home.run(["sessions", "list", "--here"]).done();
    assert!(listed.out.contains(session.0.as_ref()), "{}", listed.out);
}

#[test]
fn sessions_are_listed_closed_and_loaded_over_a_prompt() {
    let home = home();
    let fake = Fake::new([
        FakeAnswer::say("One."),
        FakeAnswer::pieces("Two and so on").hang(),
        FakeAnswer::say("Three."),
    ]);
    edit(&home, &fake, &WINDOW, async |editor| {
        let session = editor.open(home.work()).await;
        editor.say(&session, "Count.").await.unwrap();
        let listed = ListSessionsRequest::new().cwd(home.work());
        let listed = editor.agent.send_request(listed).block_task().await;
        let listed = listed.unwrap().sessions;
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].session_id, session);
        assert_eq!(listed[0].title.as_deref(), Some("Count."));
        assert!(listed[0].updated_at.as_ref().unwrap().ends_with('Z'));
        let close = CloseSessionRequest::new(session.clone());
        editor.agent.send_request(close).block_task().await.unwrap();
        let error = editor.say(&session, "On.").await.unwrap_err();
        assert!(error.message.contains("is open; open it with"), "{error:?}");
        editor.load(&session, home.work()).await;
        // An editor that was restarted may load what it has lost.
        let loads = async {
            editor.until(&session, "Two ").await;
            editor.load(&session, home.work()).await;
        };
        let (stop, ()) = tokio::join!(editor.say(&session, "On."), loads);
        assert_eq!(stop.unwrap(), StopReason::Cancelled);
        editor.say(&session, "And?").await.unwrap();
        assert!(editor.text(&session).ends_with("Three."));
    });
}

#[test]
fn modes_say_what_is_asked_about() {
    let home = home();
    let bash = || FakeAnswer::call(&[("bash", r#"{"command":"touch ran"}"#)]);
    let fake = Fake::new([
        change(8430, 8431),
        FakeAnswer::say("One."),
        change(8431, 8432),
        FakeAnswer::say("Two."),
        bash(),
        FakeAnswer::say("Three."),
    ]);
    edit(&home, &fake, &WINDOW, async |editor| {
        let session = editor.open(home.work()).await;
        for (mode, text) in [
            ("auto-edit", "Change it."),
            ("read-only", "Change it again."),
            ("yes", "Run it."),
        ] {
            let request = SetSessionModeRequest::new(session.clone(), mode);
            editor
                .agent
                .send_request(request)
                .block_task()
                .await
                .unwrap();
            editor.say(&session, text).await.unwrap();
        }
        assert!(editor.asked().is_empty());
    });
    assert!(main_rs(&home).contains("8431"), "not in read-only");
    assert!(home.work().join("ran").exists());
}

#[test]
fn a_run_that_a_limit_ends_says_so() {
    let home = home();
    let look = || FakeAnswer::call(&[("read", r#"{"path":"main.rs"}"#)]);
    let fake = Fake::new([look(), look(), FakeAnswer::say("So far so good.")]);
    let args = [&WINDOW[..], &["--max-turns", "2"]].concat();
    edit(&home, &fake, &args, async |editor| {
        let session = editor.open(home.work()).await;
        let stop = editor.say(&session, "Look.").await.unwrap();
        assert_eq!(stop, StopReason::MaxTurnRequests);
        let text = editor.text(&session);
        assert!(
            text.contains("[Agent stopped: Max turns reached (2/2)]"),
            "{text}"
        );
    });
    let fake = Fake::new([FakeAnswer::blocked("I must not")]);
    edit(&home, &fake, &WINDOW, async |editor| {
        let session = editor.open(home.work()).await;
        let stop = editor.say(&session, "Look.").await.unwrap();
        assert_eq!(stop, StopReason::Refusal);
        let text = editor.text(&session);
        assert!(text.contains("content filter ended"), "{text}");
    });
    let fake = Fake::new([FakeAnswer::error(401, "no such key")]);
    edit(&home, &fake, &WINDOW, async |editor| {
        let session = editor.open(home.work()).await;
        let error = editor.say(&session, "Look.").await.unwrap_err();
        assert!(error.message.contains("no such key"), "{error:?}");
    });
}

#[test]
fn the_model_reads_links_files_and_images() {
    let home = home();
    let fake = Fake::new([FakeAnswer::say("Seen.")]);
    let file = TextResourceContents::new("use a::b;\n", "file:///src/a%20b.rs");
    let file = EmbeddedResourceResource::TextResourceContents(file);
    let prompt = vec![
        ContentBlock::from("Compare "),
        ContentBlock::ResourceLink(ResourceLink::new("main.rs", "file:///src/main.rs")),
        ContentBlock::from(" with"),
        ContentBlock::Resource(EmbeddedResource::new(file)),
        ContentBlock::Image(ImageContent::new(STANDARD.encode(png()), "image/png")),
    ];
    edit(&home, &fake, &WINDOW, async |editor| {
        let session = editor.open(home.work()).await;
        editor.prompt(&session, prompt).await.unwrap();
    });
    let asked = fake.asked();
    let content = &asked[0]["messages"].as_array().unwrap().last().unwrap()["content"];
    let text = "Compare `/src/main.rs` with\n<file path=\"/src/a b.rs\">\nuse a::b;\n</file>\n";
    assert_eq!(content[0]["text"], text);
    let url = content[1]["image_url"]["url"].as_str().unwrap();
    assert!(url.starts_with("data:image/png;base64,"), "{url}");
}

#[test]
fn a_prompt_that_cannot_be_sent_is_refused_and_the_session_goes_on() {
    let home = home();
    let fake = Fake::new([FakeAnswer::say("Heard.")]);
    let blob = BlobResourceContents::new("AAAA", "https://example.com/a.bin");
    let blob = EmbeddedResourceResource::BlobResourceContents(blob);
    edit(&home, &fake, &WINDOW, async |editor| {
        let session = editor.open(home.work()).await;
        for (block, words) in [
            (
                ContentBlock::Audio(AudioContent::new("AAAA", "audio/wav")),
                "audio and parts of an unknown kind are not supported",
            ),
            (
                ContentBlock::Image(ImageContent::new("AAAA", "image/png")),
                "the image is no PNG",
            ),
            (
                ContentBlock::Image(ImageContent::new("?", "image/png")),
                "not valid base64",
            ),
            (
                ContentBlock::Resource(EmbeddedResource::new(blob)),
                "https://example.com/a.bin is neither text nor an image",
            ),
            (ContentBlock::from(" "), "the task is empty"),
        ] {
            let error = editor.prompt(&session, vec![block]).await.unwrap_err();
            assert!(error.message.contains(words), "{error:?}");
        }
        let stop = editor.say(&session, "Do you hear me?").await;
        assert_eq!(stop.unwrap(), StopReason::EndTurn);
    });
}

#[test]
fn sessions_go_on_side_by_side_each_in_its_folder() {
    let home = home();
    for name in ["one", "two"] {
        std::fs::create_dir(home.work().join(name)).unwrap();
        home.file(&format!("{name}/AGENTS.md"), format!("This is {name}."));
        home.trust(name);
    }
    let (slow, opener) = FakeAnswer::pieces("Slowly, but surely.").gated(1);
    let mut answers = [slow, FakeAnswer::say("At once.")].into_iter();
    let fake = Fake::scripted("compatible", Vec::new(), move |_, _| {
        answers.next().unwrap()
    });
    edit(&home, &fake, &WINDOW, async |editor| {
        let one = editor.open(home.work().join("one")).await;
        let two = editor.open(home.work().join("two")).await;
        let second = async {
            editor.until(&one, "Slowly, ").await;
            let error = editor.say(&one, "More.").await.unwrap_err();
            assert!(error.message.contains("in progress"), "{error:?}");
            editor.say(&two, "Quick.").await.unwrap();
            opener.open();
        };
        let (first, ()) = tokio::join!(editor.say(&one, "Take your time."), second);
        assert_eq!(first.unwrap(), StopReason::EndTurn);
        assert_eq!(editor.text(&one), "Slowly, but surely.");
        assert_eq!(editor.text(&two), "At once.");
    });
    for (request, name) in fake.asked().iter().zip(["one", "two"]) {
        let (_, system) = messages(request).remove(0);
        assert!(system.contains(&format!("This is {name}.")), "{system}");
    }
}

#[test]
fn a_session_whose_server_is_slow_lets_the_others_go_on() {
    let home = mcp::home("");
    let fake = Fake::new([FakeAnswer::say("At once.")]);
    let gate = home.work().join("gate");
    assert!(
        Command::new("mkfifo")
            .arg(&gate)
            .status()
            .unwrap()
            .success()
    );
    // Opened for both, so that it does not wait for the server.
    let mut opener = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&gate)
        .unwrap();
    let script = "read -r open < gate; exec sh ship.sh";
    let ship = McpServerStdio::new("ship", "sh").args(vec!["-c".to_owned(), script.to_owned()]);
    let (_, said) = edit(&home, &fake, &WINDOW, async |editor: &Editor| {
        let one = editor.open(home.work()).await;
        let slow = editor.open_with(home.work(), vec![McpServer::Stdio(ship)]);
        let others = async {
            let agent = &editor.agent;
            let list = ListSessionsRequest::new();
            agent.send_request(list).block_task().await.unwrap();
            let mode = SetSessionModeRequest::new(one.clone(), "yes");
            agent.send_request(mode).block_task().await.unwrap();
            editor.say(&one, "Quick.").await.unwrap();
            let two = editor.open(home.work()).await;
            let close = CloseSessionRequest::new(two);
            agent.send_request(close).block_task().await.unwrap();
            opener.write_all(b"open\n").unwrap();
        };
        let (slow, ()) = tokio::join!(slow, others);
        slow.unwrap();
        assert_eq!(editor.text(&one), "At once.");
    });
    // It was still waited for when the others were done.
    assert!(said.err.contains("MCP server ship: 1 tool"), "{}", said.err);
}

#[test]
fn the_end_of_the_connection_ends_a_run_at_once_and_keeps_it() {
    let home = home();
    let fake = Fake::new([FakeAnswer::pieces("Once upon a time there was").hang()]);
    let (session, said) = edit(&home, &fake, &WINDOW, async |editor| {
        let session = editor.open(home.work()).await;
        tokio::select! {
            _ = editor.say(&session, "A story.") => panic!("it hangs"),
            () = editor.until(&session, "Once ") => {}
        }
        session
    });
    said.done();
    let shown = home.run(["sessions", "show", session.0.as_ref()]).done();
    assert!(shown.out.contains("A story."), "{}", shown.out);
    let fake = Fake::new([FakeAnswer::say("The end.")]);
    let args = ["--session", session.0.as_ref(), "And?"];
    assert_eq!(home.agent(&fake, &args).done().out, "The end.\n");
}

#[test]
fn commands_are_offered_and_done() {
    let home = home();
    std::fs::create_dir_all(home.work().join(".plimsoll/prompts")).unwrap();
    home.file(
        ".plimsoll/prompts/review.md",
        "Review $ARGUMENTS with care.",
    );
    let fake = Fake::new([FakeAnswer::say("Fine."), FakeAnswer::say("What is /etc?")]);
    edit(&home, &fake, &WINDOW, async |editor| {
        let session = editor.open(home.work()).await;
        editor.say(&session, "/review main.rs").await.unwrap();
        let updates = editor.updates(&session);
        let offered = updates
            .iter()
            .find_map(|update| update["availableCommands"].as_array())
            .unwrap();
        let names: Vec<&str> = offered
            .iter()
            .map(|command| command["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["go", "compact", "context", "cost", "review"]);
        for (command, words) in [
            ("/cost", "1 run: read 100"),
            ("/context", "of 20000"),
            ("/compact", "nothing"),
        ] {
            editor.say(&session, command).await.unwrap();
            let text = editor.text(&session);
            assert!(text.contains(words), "{command}: {text}");
        }
        // That is no command of ours.
        editor.say(&session, "/etc/hosts").await.unwrap();
    });
    let last = |request| messages(request).pop().unwrap().1;
    let asked = fake.asked();
    assert_eq!(last(&asked[0]), "Review main.rs with care.");
    assert_eq!(last(&asked[1]), "/etc/hosts");
}

#[test]
fn the_editors_servers_of_tools_are_used_and_their_calls_asked_about() {
    let home = mcp::home("");
    let fake = Fake::new([
        FakeAnswer::call(&[("my_ship_look", "{}")]),
        FakeAnswer::say("A sail."),
    ]);
    let script = home.work().join("ship.sh");
    let ship = McpServerStdio::new("my ship", "sh").args(vec![script.display().to_string()]);
    let (_, said) = edit(&home, &fake, &WINDOW, async |editor: &Editor| {
        let servers = vec![McpServer::Stdio(ship)];
        let session = editor.open_with(home.work(), servers).await.unwrap();
        editor.answers(["allow_once"]);
        editor.say(&session, "Look.").await.unwrap();
        assert_eq!(editor.asked()[0].0, "my_ship_look");
    });
    assert!(
        said.err.contains("MCP server my_ship: 1 tool"),
        "{}",
        said.err
    );
    assert!(home.work().join("ended").exists());
}
