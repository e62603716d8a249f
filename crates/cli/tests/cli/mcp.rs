//! MCP servers in `run`, `chat`, `mcp test` and `doctor`: a server written in sh,
//! which leaves a mark when it is asked to end.

use std::time::Instant;

use serde_json::Value;

use super::chatting::Chat;
use super::command::Home;
use super::fake::{Fake, FakeAnswer};
use super::runs::messages;

/// It has one tool, `look`; once that was called, it has `see` besides, and says so.
const SHIP: &str = r#"
say() { printf '%s\n' "$1"; }
look='{"name":"look","description":"Looks out.","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true}}'
see='{"name":"see","description":"Sees.","inputSchema":{"type":"object","properties":{}}}'
tools=$look
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
  *'"initialize"'*) say '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"ship","version":"1"}}}' ;;
  *'"tools/list"'*) say '{"jsonrpc":"2.0","id":'$id',"result":{"tools":['"$tools"']}}' ;;
  *'"tools/call"'*)
    tools=$look,$see
    say '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
    say '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"a sail to '"$SIDE"'"}]}}' ;;
  esac
done
echo ended > ended
"#;

pub(crate) const CONFIG: &str = "[[mcp]]\nname = \"ship\"\ncommand = \"sh\"\nargs = [\"ship.sh\"]\nenv = { SIDE = \"starboard-hush\" }\ntrust = true\n";

pub(crate) fn home(config: &str) -> Home {
    let home = Home::new();
    home.file("ship.sh", SHIP);
    home.file("plimsoll.toml", config);
    home
}

fn tools(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let names = tools
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap());
    names.filter(|name| name.contains("ship")).collect()
}

fn result(request: &Value) -> String {
    let results = messages(request).into_iter().rev();
    let mut results = results.filter(|(role, _)| role == "tool");
    results.next().unwrap().1
}

pub(crate) const NAMED: [&str; 2] = ["--config", "plimsoll.toml"];

#[test]
fn a_run_has_the_tools_of_its_servers() {
    let home = home(CONFIG);
    let fake = Fake::new([
        FakeAnswer::call(&[("ship_look", "{}")]),
        FakeAnswer::say("Aye."),
    ]);
    let said = home.agent(&fake, &[&NAMED[..], &["Look."]].concat()).done();
    assert!(
        said.err.contains("MCP server ship: 1 tool\n"),
        "{}",
        said.err
    );
    let asked = fake.asked();
    // Within a run they stay as they were.
    assert_eq!(
        (tools(&asked[0]), tools(&asked[1])),
        (vec!["ship_look"], vec!["ship_look"])
    );
    assert_eq!(result(&asked[1]), "a sail to starboard-hush");
    // It was told that it is over.
    assert!(home.work().join("ended").exists());
}

#[test]
fn a_chat_reads_them_anew_between_runs() {
    let home = home(CONFIG);
    let fake = Fake::new([
        FakeAnswer::call(&[("ship_look", "{}")]),
        FakeAnswer::say("A sail."),
        FakeAnswer::say("I can see now."),
    ]);
    let mut chat = Chat::start(&home, &fake, &NAMED);
    chat.say("Look.");
    assert_eq!(chat.out(), "A sail.");
    chat.say("And now?");
    assert_eq!(chat.out(), "I can see now.");
    let asked = fake.asked();
    let seen: Vec<Vec<&str>> = asked.iter().map(tools).collect();
    assert_eq!(seen[0], ["ship_look"]);
    assert_eq!(seen[1], ["ship_look"]);
    assert_eq!(seen[2], ["ship_look", "ship_see"]);
}

#[test]
fn an_agent_names_its_servers() {
    let home = home(&format!(
        "{CONFIG}[[agents]]\nname = \"mate\"\nmcp = []\n[[agents]]\nname = \"bosun\"\nmcp = [\"ship\"]\n"
    ));
    for (agent, has) in [("mate", 0), ("bosun", 1)] {
        let fake = Fake::new([FakeAnswer::say("Aye.")]);
        home.agent(&fake, &[&NAMED[..], &["--agent", agent, "Look."]].concat())
            .done();
        assert_eq!(tools(&fake.asked()[0]).len(), has, "{agent}");
    }
    home.file(
        "plimsoll.toml",
        format!("{CONFIG}[[agents]]\nname = \"mate\"\nmcp = [\"shop\"]\n"),
    );
    let said = home.run(["config", "check", "plimsoll.toml"]);
    said.refused(
        1,
        &[
            "plimsoll.toml:9",
            "there is no MCP server `shop`; did you mean `ship`? there is: ship",
        ],
    );
}

#[test]
fn rules_hold_for_them_and_wait_for_one_that_is_missing() {
    let rules = "permissions = [{ tool = \"ship_*\", then = \"deny\" }, { tool = \"lost_*\", then = \"allow\" }]\n";
    let lost = "[[mcp]]\nname = \"lost\"\ncommand = \"no-such-program\"\n";
    let home = home(&format!("{rules}{CONFIG}{lost}"));
    let fake = Fake::new([
        FakeAnswer::call(&[("ship_look", "{}")]),
        FakeAnswer::say("Aye."),
    ]);
    home.agent(&fake, &[&NAMED[..], &["Look."]].concat()).done();
    let denied = result(&fake.asked()[1]);
    assert!(!denied.contains("a sail"), "{denied}");
}

#[test]
fn one_that_is_missing_is_said_and_ends_a_run_only_where_it_is_required() {
    let lost = "[[mcp]]\nname = \"lost\"\ncommand = \"sh\"\nargs = [\"-c\", \"echo no charts $KEY >&2; exit 4\"]\nenv = { KEY = \"hush-hush-hush\" }\n";
    let home = home(&format!("{CONFIG}{lost}"));
    let fake = Fake::new([FakeAnswer::say("Aye.")]);
    let said = home.agent(&fake, &[&NAMED[..], &["Look."]].concat()).done();
    let told = "the MCP server `lost` is not there: it ended before it was ready (exit 4); it said: no charts [secret]; its tools are left out";
    assert!(said.err.contains(told), "{}", said.err);
    assert_eq!(tools(&fake.asked()[0]), ["ship_look"]);

    let said = home.run(["mcp", "test"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.err.contains("MCP server ship: 1 tool\n"),
        "{}",
        said.err
    );
    assert!(said.err.contains(told), "{}", said.err);

    home.file("plimsoll.toml", format!("{CONFIG}{lost}required = true\n"));
    let fake = Fake::new([FakeAnswer::say("Aye.")]);
    let said = home.agent(&fake, &[&NAMED[..], &["Look."]].concat());
    let error = "plimsoll: the MCP server `lost` is not there: ";
    assert_eq!(
        (said.code, said.err.matches("lost").count()),
        (Some(1), 1),
        "{}",
        said.err
    );
    assert!(said.err.contains(error), "{}", said.err);
    assert!(fake.asked().is_empty() && !format!("{said:?}").contains("hush-hush"));
}

#[test]
fn they_are_listed_and_tried_without_a_model() {
    let home = home(&format!(
        "{CONFIG}[[mcp]]\nname = \"web\"\nurl = \"http://me:hush-hush@127.0.0.1:1/mcp?key=hush-hush-hush\"\nbearer_env = \"WEB_TOKEN\"\n"
    ));
    let said = home.run(["config", "check", "plimsoll.toml"]).done();
    assert!(
        said.out
            .contains("mcp: web, http://***@127.0.0.1:1/mcp?***\n"),
        "{}",
        said.out
    );
    let said = home.run(["mcp", "test"]);
    assert_eq!(said.out, "ship_look  Looks out.\n");
    assert!(
        said.err.contains("MCP server ship: 1 tool\n"),
        "{}",
        said.err
    );
    assert!(
        said.err.contains(
            "the MCP server `web` is not there: it needs the variable WEB_TOKEN, which is not set"
        ),
        "{}",
        said.err
    );
    let mut command = home.command(["mcp", "test"]);
    command.env("WEB_TOKEN", "tok-hush-hush");
    let said = super::command::feed(command, b"");
    assert_eq!(said.code, Some(1));
    assert!(!format!("{said:?}").contains("hush"), "{said:?}");
}

#[test]
fn a_server_is_added_and_tried() {
    let home = Home::new();
    home.file("ship.sh", SHIP);
    let add = ["mcp", "add", "ship", "--", "sh", "ship.sh", "a \"b\" \\ c"];
    let said = home.run(add).done();
    let users = home.data().join("plimsoll.toml");
    assert!(
        said.err.contains(&users.display().to_string()),
        "{}",
        said.err
    );
    let text = std::fs::read_to_string(&users).unwrap();
    home.run(add)
        .refused(2, &["nothing was added: two of [[mcp]] are named `ship`"]);
    assert_eq!(std::fs::read_to_string(&users).unwrap(), text);
    let words = "command = \"sh\"\nargs = [\"ship.sh\", 'a \"b\" \\ c']\n";
    assert!(text.ends_with(words), "{text}");
    let tried = home.run(["mcp", "test", "ship"]).done();
    assert!(tried.out.starts_with("ship_look (asks)"), "{tried:?}");
    home.run(["mcp", "test", "boat"])
        .refused(2, &["there is no server boat"]);

    let url = "https://mcp.example.com/mcp";
    let args = [
        "mcp",
        "add",
        "far",
        "--project",
        "--url",
        url,
        "--bearer-env",
        "TOKEN",
    ];
    home.file("plimsoll.toml", "max_turns = 3 # mine");
    let said = home.run(args).done();
    assert!(said.err.contains("`plimsoll config trust`"), "{}", said.err);
    let wrong = home.run(["mcp", "add", "bad", "--url", "notaurl"]);
    wrong.refused(2, &["nothing was added: `url`"]);
    let text = std::fs::read_to_string(home.work().join("plimsoll.toml")).unwrap();
    assert_eq!(
        text,
        format!(
            "max_turns = 3 # mine\n\n[[mcp]]\nname = \"far\"\nurl = \"{url}\"\nbearer_env = \"TOKEN\"\n"
        )
    );
    let url = "https://me:hush@mcp.example.com/keyed?key=hush";
    home.run(["mcp", "add", "keyed", "--url", url]).done();
    let checked = home.run(["config", "check"]).done().out;
    assert!(
        checked.contains("https://***@mcp.example.com/keyed?***"),
        "{checked}"
    );
    assert!(!checked.contains("hush"), "{checked}");
}

#[test]
fn nothing_is_added_to_a_file_that_would_be_wrong_then() {
    let home = Home::new();
    home.run(["mcp", "test"])
        .refused(2, &["no MCP servers are configured"]);
    for (text, why) in [
        ("max_turns = ", "plimsoll.toml"),
        ("mcp = []", "nothing was added"),
    ] {
        home.file("plimsoll.toml", text);
        let args = ["mcp", "add", "x", "--project", "--", "true"];
        let said = home.run(args);
        assert!(said.err.contains(why), "{}", said.err);
        let left = std::fs::read_to_string(home.work().join("plimsoll.toml")).unwrap();
        assert_eq!(left, text);
    }
}

#[test]
fn a_run_goes_on_without_a_server_whose_variable_is_not_set() {
    let home = Home::new();
    let config =
        "[[mcp]]\nname = \"far\"\nurl = \"http://127.0.0.1:9/mcp\"\nbearer_env = \"FAR_TOKEN\"\n";
    home.file("servers.toml", config);
    let fake = Fake::new([FakeAnswer::say("Aye.")]);
    let said = home
        .agent(&fake, &["--config", "servers.toml", "Go."])
        .done();
    assert!(
        said.err.contains(
            "`far` is not there: it needs the variable FAR_TOKEN, which is not set; its tools are left out"
        ),
        "{}",
        said.err
    );
    home.file("servers.toml", format!("{config}required = true\n"));
    let refused = home.agent(&fake, &["--config", "servers.toml", "Go."]);
    refused.refused(2, &["FAR_TOKEN, which is not set", "remove the server"]);
}

#[test]
fn the_maximum_duration_covers_a_server_that_hangs_at_its_start() {
    let home = home("[[mcp]]\nname = \"deaf\"\ncommand = \"sleep\"\nargs = [\"600\"]\n");
    let fake = Fake::new([FakeAnswer::say("Aye.")]);
    let begun = Instant::now();
    let limited = [&NAMED[..], &["--max-duration", "3", "Look."]].concat();
    let said = home.agent(&fake, &limited).done();
    assert!(
        said.err.contains("it was not ready within 3 s"),
        "{}",
        said.err
    );
    // Without the limit, it is waited for 30 s.
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

/// A server that did not list its tools is not asked again before the first run.
#[test]
fn a_server_that_lists_no_tools_is_waited_for_once() {
    let home = home(
        "[[mcp]]\nname = \"mute\"\ntimeout = \"1s\"\ncommand = \"sh\"\nargs = [\"mute.sh\"]\n",
    );
    let log = home.file("asked", "");
    let mute = SHIP.replace("  *'\"tools/list\"'*) say", "  *'\"tools/list\"'*) : ");
    home.file(
        "mute.sh",
        mute.replace("  case $line", "  echo \"$line\" >> asked\n  case $line"),
    );
    let fake = Fake::new([FakeAnswer::say("Aye.")]);
    let said = home.agent(&fake, &[&NAMED[..], &["Look."]].concat()).done();
    assert!(
        said.err.contains("no list of tools within 1 s"),
        "{}",
        said.err
    );
    let asked = std::fs::read_to_string(log).unwrap();
    assert_eq!(asked.matches("tools/list").count(), 1, "{asked}");
}
