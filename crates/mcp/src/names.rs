//! Names for a server's tools: valid for every provider, unique and stable.
//!
//! The server itself is called with its original names.

use std::collections::HashSet;

/// Maximum length of a name that every provider accepts.
pub const MCP_NAME_MAX: usize = 64;
/// Length of the hash in a name, including the `_` before it.
const HASHED: usize = 9;

/// Returns `server_tool` in characters that every provider accepts, different from all names in
/// `taken`.
pub(crate) fn name(server: &str, tool: &str, taken: &mut HashSet<String>) -> String {
    let plain = clean(&format!("{server}_{tool}"));
    let kept: String = plain.chars().take(MCP_NAME_MAX - HASHED).collect();
    let hashed = |salt: u8| format!("{kept}_{:08x}", hash(&format!("{server}/{tool}/{salt}")));
    let is_whole = plain.len() <= MCP_NAME_MAX;
    let names = is_whole.then_some(plain).into_iter();
    // The tools of a server have different names, so the first hash nearly always succeeds.
    let mut names = names.chain((0..u8::MAX).map(hashed));
    let name = names.find(|name| !taken.contains(name));
    let name = name.unwrap_or_else(|| kept.clone());
    taken.insert(name.clone());
    name
}

fn clean(name: &str) -> String {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    // Some providers require a letter first.
    let first = name.starts_with(|c: char| !c.is_ascii_alphabetic());
    let before = first.then_some('_').into_iter();
    let rest = name.chars().map(|c| if good(c) { c } else { '_' });
    before.chain(rest).collect()
}

/// FNV-1a with 32 bits, which is the same in every version and on every machine.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_unique_and_the_same_every_time() {
        let of = |server: &str, tools: &[&str]| -> Vec<String> {
            let mut taken = HashSet::from(["files_read".to_owned()]);
            tools
                .iter()
                .map(|tool| name(server, tool, &mut taken))
                .collect()
        };
        let long = "x".repeat(80);
        let names = of("files", &["list", "read", "a.b", "a b", "日本", &long]);
        assert_eq!(names[0], "files_list");
        assert_eq!(names[1], "files_read_ef1491e2");
        assert_eq!(names[2], "files_a_b");
        assert!(names[3].starts_with("files_a_b_"), "{}", names[3]);
        assert_eq!(names[4], "files___");
        assert_eq!(of("1st", &["a"]), ["_1st_a"]);
        assert_eq!(names[5].len(), MCP_NAME_MAX);
        let all: HashSet<&String> = names.iter().collect();
        assert_eq!(all.len(), names.len());
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        assert!(names.iter().all(|name| name.chars().all(good)));
        assert_eq!(
            names,
            of("files", &["list", "read", "a.b", "a b", "日本", &long])
        );
    }
}
