//! [`Test`]: the conditions of rules.

use plimsoll_wire::__internals::is_word;
use serde_json::Value;

use super::{Check, Flag, TableReader, get, length, named};

/// A condition of a value that needs nothing else. It receives the value and the text behind the colon.
type Plain = fn(Option<&Value>, &str) -> bool;

/// The plain conditions by name.
const PLAIN: [(&str, Plain); 20] = [
    // Even if it is `null`.
    ("there", |value, _| value.is_some()),
    ("given", |value, _| {
        value.is_some_and(|value| !value.is_null())
    }),
    ("text", |value, _| value.is_some_and(Value::is_string)),
    ("list", |value, _| value.is_some_and(Value::is_array)),
    ("object", |value, _| value.is_some_and(Value::is_object)),
    ("number", |value, _| value.is_some_and(Value::is_number)),
    // An integer that is not negative.
    ("whole", |value, _| value.is_some_and(Value::is_u64)),
    // A text that is not empty.
    ("said", |value, _| !text(value).is_empty()),
    ("empty", |value, _| {
        let is_any = value.is_some_and(|value| value.is_string() || value.is_array());
        is_any && length(value) == 0
    }),
    // A list that is not empty.
    ("filled", |value, _| {
        value.is_some_and(Value::is_array) && length(value) > 0
    }),
    // A text of white space only.
    ("blank", |value, _| {
        value.is_some_and(Value::is_string) && text(value).trim().is_empty()
    }),
    // A text that ends with white space.
    ("spaced", |value, _| {
        text(value).ends_with(char::is_whitespace)
    }),
    // More characters or entries.
    ("longer", |value, most| {
        bound(most).is_some_and(|most| length(value) as f64 > most)
    }),
    ("below", |value, least| {
        let values = number(value).zip(bound(least));
        values.is_some_and(|(number, least)| number < least)
    }),
    ("above", |value, most| {
        let values = number(value).zip(bound(most));
        values.is_some_and(|(number, most)| number > most)
    }),
    // A text of letters, digits, `_`, `-` and these signs that is not empty.
    ("word", |value, signs| {
        is_word(&text(value).replace(|letter| signs.contains(letter), "_"))
    }),
    ("begins", |value, beginning| {
        text(value).starts_with(beginning)
    }),
    ("ends", |value, end| text(value).ends_with(end)),
    // One of these texts. `true` and `false` count as texts, other types as an empty one.
    ("in", |value, texts| {
        let text = match value {
            Some(Value::Bool(true)) => "true",
            Some(Value::Bool(false)) => "false",
            value => text(value),
        };
        texts.split(',').any(|known| known == text)
    }),
    // An object with exactly one of these keys that is not `null`.
    ("one-of", |value, keys| {
        let is_set = |key: &&str| {
            value
                .and_then(|value| get(value, key))
                .is_some_and(|value| !value.is_null())
        };
        keys.split(',').filter(is_set).count() == 1
    }),
];

/// A condition of a rule.
#[derive(Clone)]
pub(super) enum Test<P: 'static> {
    Plain(Plain, &'static str),
    /// `among:a.*.b`: a text that is also in one of these places.
    Among(Place),
    /// `first` and `last`: the object is the first or the last entry of its list.
    First,
    Last,
    /// `place~test`: this test of the value in another place; of any of them if the place contains `*`.
    At(Place, Box<Test<P>>),
    /// A condition of the protocol, which is code.
    Flag(Flag<P>),
}

/// A place from which a condition takes a value.
#[derive(Clone, Copy)]
pub(super) struct Place {
    root: Root,
    path: &'static str,
}

/// The beginning of a place.
#[derive(Clone, Copy)]
enum Root {
    Object,
    /// `/store`: the whole request.
    Request,
    /// `@field`: the profile.
    Profile,
    /// `<role`: the entry before this one.
    Before,
}

impl<P> Test<P> {
    /// Parses a condition. Returns `None` for an unknown one.
    pub(super) fn parse(word: &'static str, reader: &TableReader<'_, P>) -> Option<Self> {
        let at = |place, test| Some(Self::At(Place::parse(place, reader)?, Box::new(test)));
        let plain = |name, argument| Some(Self::Plain(named(&PLAIN, name)?, argument));
        if let Some(flag) = named(reader.flags, word) {
            return Some(Self::Flag(flag));
        }
        if let Some((place, test)) = word.split_once('~') {
            return at(place, Self::parse(test, reader)?);
        }
        if let Some((place, texts)) = word.split_once('=') {
            return at(place, plain("in", texts)?);
        }
        if word.starts_with('@') {
            return at(word, plain("in", "true")?);
        }
        let (name, argument) = word.split_once(':').unwrap_or((word, ""));
        match name {
            "among" => Some(Self::Among(Place::parse(argument, reader)?)),
            "first" => Some(Self::First),
            "last" => Some(Self::Last),
            "longer" | "below" | "above" if bound(argument).is_none() => None,
            name => plain(name, argument),
        }
    }

    pub(super) fn holds(
        &self,
        check: &Check<'_, P>,
        object: &Value,
        value: Option<&Value>,
    ) -> bool {
        match self {
            Self::Plain(holds, argument) => holds(value, argument),
            Self::Among(place) => {
                let text = text(value);
                !text.is_empty() && place.any(check, object, &|other| self::text(other) == text)
            }
            Self::First => check.entry == 0,
            Self::Last => check.entry + 1 == check.list.len(),
            Self::At(place, test) => {
                place.any(check, object, &|value| test.holds(check, object, value))
            }
            Self::Flag(holds) => holds(check, object, value),
        }
    }

    /// Returns the number that the value is compared with.
    pub(super) fn bound(&self) -> Option<f64> {
        match self {
            Self::Plain(_, argument) => bound(argument),
            _ => None,
        }
    }
}

impl Place {
    /// Parses a place. Returns `None` for an unknown field of the profile.
    fn parse<P>(text: &'static str, reader: &TableReader<'_, P>) -> Option<Self> {
        let (root, path) = if let Some(path) = text.strip_prefix('@') {
            reader.profile.get(path.split('.').next()?)?;
            (Root::Profile, path)
        } else if let Some(path) = text.strip_prefix('/') {
            (Root::Request, path)
        } else if let Some(path) = text.strip_prefix('<') {
            (Root::Before, path)
        } else {
            (Root::Object, text)
        };
        Some(Self { root, path })
    }

    /// Checks whether the value in the place meets a condition, or any of them.
    fn any<P>(
        self,
        check: &Check<'_, P>,
        object: &Value,
        holds: &dyn Fn(Option<&Value>) -> bool,
    ) -> bool {
        let root = match self.root {
            Root::Object => Some(object),
            Root::Request => Some(check.request),
            Root::Profile => Some(check.fields()),
            Root::Before => check.before(),
        };
        any_under(root, Some(self.path), holds)
    }
}

/// Checks whether the value under a path meets a condition. In a path, `*` is any entry of a list and `$` the
/// last one.
fn any_under(
    value: Option<&Value>,
    path: Option<&str>,
    holds: &dyn Fn(Option<&Value>) -> bool,
) -> bool {
    let Some(path) = path else {
        return holds(value);
    };
    let (key, rest) = match path.split_once('.') {
        Some((key, rest)) => (key, Some(rest)),
        None => (path, None),
    };
    let list = || value.and_then(Value::as_array).map(Vec::as_slice);
    match key {
        "*" => {
            let mut entries = list().unwrap_or_default().iter();
            entries.any(|entry| any_under(Some(entry), rest, holds))
        }
        "$" => any_under(list().and_then(<[Value]>::last), rest, holds),
        key => any_under(value.and_then(|value| get(value, key)), rest, holds),
    }
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

fn number(value: Option<&Value>) -> Option<f64> {
    value.and_then(Value::as_f64)
}

fn bound(argument: &str) -> Option<f64> {
    argument.parse().ok()
}
