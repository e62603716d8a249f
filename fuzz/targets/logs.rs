//! `SessionLog::read`, `repair` and `copy` on any log: nothing breaks, and the copy is a log without damage.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use plimsoll_foreign::{Reasoning, repair};
use plimsoll_logs::{Ids, SessionLog, copy, detect};
use plimsoll_wire::Target;

fuzz_target!(|data: &[u8]| {
    let path = std::env::temp_dir().join(format!("plimsoll-fuzz-{}", std::process::id()));
    fs::write(&path, data).unwrap();
    let Ok(mut log) = SessionLog::read(&path, None) else {
        return;
    };
    let mut chat = log.take_chat();
    let target = Target::of_protocol(log.agent.protocol().name(), None).unwrap();
    repair(&mut chat, &target, Reasoning::Keep);
    let Ok(copy) = copy(&log, &chat.units, Some(1_000), Ids::new(b"fuzz")) else {
        return;
    };
    let (id, mut text) = (copy.id.clone(), Vec::new());
    copy.write(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    // An entry may have the keys of two agents. The copy lies in the folder of its own.
    if detect(text.as_bytes()) != Some(log.agent) {
        return;
    }
    fs::write(&path, &text).unwrap();
    let again = SessionLog::read(&path, None);
    let again = again.unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(again.id, id, "{text}");
    assert_eq!(again.damage, [], "{text}");
});
