//! [`nearest`]: the name that somebody may have meant.

/// Names further away than this from what was written are no suggestion.
const MAX_DISTANCE: usize = 3;

/// The name that is most like the one given, if any is near.
#[must_use]
pub fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = snake(given);
    let near = names
        .into_iter()
        .map(|name| (strsim::levenshtein(&given, name), name));
    near.filter(|(distance, name)| *distance <= MAX_DISTANCE.min(name.len() / 2))
        .min()
        .map(|(_, name)| name)
}

/// `maxTurns` as `max_turns`: the distance of a name does not depend on its case.
fn snake(key: &str) -> String {
    let mut snake = String::with_capacity(key.len() + 4);
    for c in key.chars() {
        if c.is_ascii_uppercase() && !snake.is_empty() && !snake.ends_with('_') {
            snake.push('_');
        }
        snake.push(match c {
            '-' => '_',
            c => c.to_ascii_lowercase(),
        });
    }
    snake
}
