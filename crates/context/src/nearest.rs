//! [`nearest`]: the name that somebody may have meant. [`snake_case`]: a name as we write it.

/// Names further away than this from what was written are no suggestion.
const MAX_DISTANCE: usize = 3;

/// The name that is most like the one given, if any is near.
#[must_use]
pub fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = snake_case(given);
    let near = names
        .into_iter()
        .map(|name| (strsim::levenshtein(&given, name), name));
    // Half of the shorter name must be right.
    let most = |name: &str| MAX_DISTANCE.min(given.len().min(name.len()) / 2);
    near.filter(|(distance, name)| *distance <= most(name))
        .min()
        .map(|(_, name)| name)
}

/// Converts a name to snake case: `maxToken`, `max-token` and `MaxToken` to `max_token`, `baseURL`
/// to `base_url`. So the distance of a name does not depend on its case.
#[must_use]
pub fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut chars = name.chars().peekable();
    let mut before = '_';
    while let Some(c) = chars.next() {
        let begins = c.is_uppercase()
            && (before.is_lowercase()
                || before.is_numeric()
                || before.is_uppercase() && chars.peek().is_some_and(|c| c.is_lowercase()));
        if begins {
            snake.push('_');
        }
        match c {
            '-' => snake.push('_'),
            c => snake.extend(c.to_lowercase()),
        }
        before = c;
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_similar_name_is_suggested() {
        let names = ["gemini", "mistral", "openai", "xai"];
        for (given, near) in [
            ("gemni", Some("gemini")),
            ("Open-AI", Some("openai")),
            ("opnai", Some("openai")),
            ("mine", None),
            ("my", None),
        ] {
            assert_eq!(nearest(given, names), near, "{given}");
        }
    }

    #[test]
    fn names_are_in_snake_case() {
        for (given, name) in [
            ("maxToken", "max_token"),
            ("MaxToken", "max_token"),
            ("max-token", "max_token"),
            ("baseURL", "base_url"),
            ("OpenAIEngineConfig", "open_ai_engine_config"),
            ("max_tokens", "max_tokens"),
        ] {
            assert_eq!(snake_case(given), name);
        }
    }
}
