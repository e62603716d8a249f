//! Names that an API accepts of tools, and whose blocks are whose. Ids of calls are as `plimsoll_wire::anthropic` has them.

use std::borrow::Cow;

use super::api::Api;

/// Whose blocks Gemini gets back, wherever it is served.
pub(super) const ORIGIN_GEMINI: &str = "gemini";
/// Whose blocks Converse gets back.
pub(super) const ORIGIN_BEDROCK: &str = "bedrock";

/// The longest name of a tool (BR6, and the same at Google).
const MAX_NAME: usize = 64;
/// What the library takes for a tool of Google's own.
const BUILT_IN: [&str; 4] = [
    "googleSearch",
    "googleSearchRetrieval",
    "codeExecution",
    "urlContext",
];

/// A tool's name as the API accepts it: `_` stands for what no name may have.
pub(super) fn tool_name<'n>(name: &'n str, api: &Api) -> Cow<'n, str> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let google = api.gemini().is_some();
    let first = name.chars().next();
    // Google's begin with a letter.
    let begins = |c: char| !google || c.is_ascii_alphabetic() || c == '_';
    let fits = name.len() <= MAX_NAME && name.chars().all(legal) && first.is_some_and(begins);
    if fits && !(google && BUILT_IN.contains(&name)) {
        return Cow::Borrowed(name);
    }
    let head = match first {
        Some(first) if begins(if legal(first) { first } else { '_' }) => "",
        _ => "_",
    };
    let tail = if google && BUILT_IN.contains(&name) {
        "_"
    } else {
        ""
    };
    let legal = name.chars().map(|c| if legal(c) { c } else { '_' });
    let name: String = head.chars().chain(legal).chain(tail.chars()).collect();
    Cow::Owned(name.chars().take(MAX_NAME).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model_ref::ModelRef;

    #[test]
    fn names_are_made_legal() {
        let long = "x".repeat(80);
        let cut = "x".repeat(64);
        for (model, name, sent) in [
            ("bedrock/m", "read_file", "read_file"),
            ("bedrock/m", "mcp.files/read", "mcp_files_read"),
            ("bedrock/m", "7zip", "7zip"),
            ("bedrock/m", "", "_"),
            ("bedrock/m", long.as_str(), cut.as_str()),
            ("gemini/m", "7zip", "_7zip"),
            ("gemini/m", "größe", "gr__e"),
            ("gemini/m", "ähm", "_hm"),
            ("gemini/m", "codeExecution", "codeExecution_"),
            ("bedrock/m", "codeExecution", "codeExecution"),
        ] {
            let api = Api::of(&ModelRef::parse(model).unwrap()).unwrap().unwrap();
            assert_eq!(tool_name(name, &api), sent, "{model} {name}");
        }
    }
}
