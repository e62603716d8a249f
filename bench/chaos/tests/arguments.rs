//! Error messages for a program that cannot be started.
#![cfg(unix)]

use std::process::Command;

#[test]
fn a_program_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_plimsoll-chaos"))
        .args(["--only", "local", "--kills", "1", "--seed", "1"])
        .args(["--program", "no-such-program", "--logs"])
        .arg(folder.path())
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(
        words.contains("could not start `no-such-program`"),
        "{words}"
    );
}
