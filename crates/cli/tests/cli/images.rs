//! Images with a task: the provider's requests, and refused images.

use serde_json::Value;

use super::chatting::Chat;
use super::command::Home;
use super::fake::{Fake, FakeAnswer};

/// A PNG of two by three pixels, as far as its header.
pub(crate) fn png() -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend([0, 0, 0, 2, 0, 0, 0, 3, 8, 2, 0, 0, 0]);
    bytes.extend([0; 20]);
    bytes
}

#[test]
fn the_model_sees_the_images_after_the_task() {
    let home = Home::new();
    home.file("a.png", png());
    home.file("b.gif", b"GIF89a\x02\0\x03\0\0\0\0;".as_slice());
    let fake = Fake::new([FakeAnswer::say("A boat.")]);
    let args = ["-i", "a.png", "--image", "b.gif", "What is it?"];
    home.agent(&fake, &args).done();
    let requests = fake.asked();
    let body: &Value = &requests[0];
    let messages = body["messages"].as_array().unwrap();
    let content = messages.last().unwrap()["content"].as_array().unwrap();
    assert_eq!(content[0]["text"], "What is it?");
    for (part, kind) in content[1..].iter().zip(["png", "gif"]) {
        let url = part["image_url"]["url"].as_str().unwrap();
        let begin = format!("data:image/{kind};base64,");
        assert!(url.starts_with(&begin), "{url}");
    }
    assert_eq!(content.len(), 3);
}

#[test]
fn what_cannot_be_sent_is_refused_before_anything_is_called() {
    let home = Home::new();
    let fake = Fake::new([]);
    home.file("text.png", b"no pixels".as_slice());
    home.file("half.png", b"\x89PNG\r\n\x1a\n\0\0".as_slice());
    home.file("a.png", png());
    let large = std::fs::File::create(home.work().join("large.png")).unwrap();
    large.set_len(100 << 20).unwrap();
    for (name, why) in [
        ("none.png", "--image none.png: No such file"),
        ("text.png", "--image text.png is no PNG, JPEG, GIF or WebP"),
        ("half.png", "--image half.png is"),
        (
            "large.png",
            "--image large.png is larger than the limit of 20 MiB",
        ),
    ] {
        home.agent(&fake, &["-i", name, "Look."]).refused(2, &[why]);
    }
    let blind = [
        "run",
        "-i",
        "a.png",
        "Look.",
        "--model",
        "deepseek/deepseek-chat",
    ];
    let mut command = home.command(blind);
    command.env("DEEPSEEK_API_KEY", "k");
    super::command::feed(command, b"").refused(
        2,
        &["deepseek/deepseek-chat accepts no images; choose another model"],
    );
}

/// The parts of a request's message.
fn content(request: &Value, from_the_end: usize) -> Vec<Value> {
    let messages = request["messages"].as_array().unwrap();
    let content = &messages[messages.len() - 1 - from_the_end]["content"];
    content.as_array().cloned().unwrap_or_default()
}

#[test]
fn images_that_are_mentioned_go_along() {
    let home = Home::new();
    home.file("a.png", png());
    std::fs::create_dir(home.work().join("docs")).unwrap();
    home.file("docs/b b.png", png());
    let fake = Fake::new(vec![FakeAnswer::say("A boat."); 3]);
    home.agent(&fake, &["What is on @a.png?"]).done();
    let mut chat = Chat::start(&home, &fake, &["--quiet"]);
    chat.say("Is @\"docs/b b.png\" the same, says ada@example.com?");
    assert_eq!(chat.out(), "A boat.");
    chat.say("And @none.png?");
    chat.err_until("plimsoll: @none.png: No such file");
    chat.say("Read @notes.txt.");
    assert_eq!(chat.out(), "A boat.");
    chat.end();
    let asked = fake.asked();
    for (request, text) in [
        (0, "What is on @a.png?"),
        (1, "Is @\"docs/b b.png\" the same, says ada@example.com?"),
    ] {
        let content = content(&asked[request], 0);
        assert_eq!(content[0]["text"], text);
        assert_eq!(content[1]["type"], "image_url");
        assert_eq!(content.len(), 2);
    }
    assert_eq!(asked.len(), 3, "what cannot be sent is not said");
}

#[test]
fn the_model_reads_an_image_if_it_is_known_to_see() {
    let models = "[models.openai-compatible.\"m\"]\nimages = true\n";
    for sees in [true, false] {
        let home = Home::new();
        if sees {
            std::fs::create_dir_all(home.data()).unwrap();
            std::fs::write(home.data().join("plimsoll.toml"), models).unwrap();
        }
        home.file("a.png", png());
        let read = FakeAnswer::call(&[("read", r#"{"path":"a.png"}"#)]);
        let fake = Fake::new([read, FakeAnswer::say("A boat.")]);
        home.agent(&fake, &["What is on a.png?"]).done();
        let request = &fake.asked()[1];
        let text = request["messages"].to_string();
        assert_eq!(text.contains("data:image/png;base64,"), sees, "{text}");
        assert_eq!(text.contains("not text"), !sees, "{text}");
    }
}
