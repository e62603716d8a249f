//! A command that prints 50 MB, in a separate process, so that its memory can be measured.
#![cfg(unix)]

use plimsoll_context::{Bytes, CallId, Marker, head_tail};
use plimsoll_core::ToolContext;
use plimsoll_tools::{BASH_OUTPUT_MAX, Root, Toolbox};
use tokio_util::sync::CancellationToken;

/// What may be added to the memory of the process: buffers, the kept ends and the texts made of
/// them; nowhere near the flood.
const GROWTH_MAX: u64 = 16 * 1024;

/// The most memory that this process ever held, in KiB, where the system says so.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[tokio::test]
async fn a_flood_keeps_its_ends_and_a_later_cut_keeps_the_number_exact() {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = Toolbox::new(Root::new(folder.path()).unwrap());
    let command = "echo first; yes | head -c 50000000; echo last";
    let cx = ToolContext::new(CallId("c1".into()), CancellationToken::new());
    let before = peak();
    let call = toolbox.tool("bash").unwrap();
    let call = call.call(serde_json::json!({ "command": command }), cx);
    let got = call.await.unwrap();
    match before.zip(peak()) {
        Some((before, after)) => assert!(after - before < GROWTH_MAX, "{before}, {after}"),
        None => println!("memory not measured: no /proc here"),
    }

    let got = got.parts[0].as_text().unwrap();
    assert!(got.starts_with("first\ny\n") && got.ends_with("\ny\nlast\n[exit 0]"));
    let missing = 50_000_011 - BASH_OUTPUT_MAX.0;
    assert!(got.contains(&format!("\n[pruned: {missing} bytes]\n")));
    assert!(got.len() < BASH_OUTPUT_MAX.0 as usize + 100);

    // A budget that cuts it further merges the two gaps into one.
    let cut = head_tail(got, Bytes(1_000)).unwrap();
    let (_, number) = cut.split_once("[pruned: ").unwrap();
    let (number, _) = number.split_once(' ').unwrap();
    let kept = cut.len() - format!("\n[pruned: {number} bytes]\n").len();
    let all = 50_000_011 + "[exit 0]".len();
    assert_eq!(number.parse::<usize>().unwrap() + kept, all);
    assert_eq!(cut.matches("[pruned: ").count(), 1);
    assert_eq!(Marker::default().head_tail(&cut, Bytes(1_000)), None);
}
