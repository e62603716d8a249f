//! Everything that a file, a variable or a flag may set. To add a setting, add a row with its
//! documentation, its default, its kind and the field that it sets: parsing, flags, variables, the
//! schema, the documentation and the tests follow from it.

/// Declares the fields of tables. A table has a heading in `--help` and a name in the file. Each field has
/// its documentation with the default, its kind, the field of `AgentSettings` that it sets
/// (`[get_or_insert_default]` creates an optional structure), and further properties.
macro_rules! fields {
    ($($(#[$meta:meta])* $group:literal, $name:literal {
        $($(#[doc = $doc:literal])+ $field:ident: $kind:expr
            $(=> $($target:ident $([$insert:ident])?).+)?
            $(, $property:ident = $value:expr)*;)*
    })+) => {
        pub(crate) fn fields() -> Vec<$crate::config::key::SettingKey> {
            vec![$($({
                #[allow(unused_mut, reason = "not every field has properties")]
                let mut key = $crate::config::key::SettingKey::of(
                    $group, $name, stringify!($field), $kind, concat!($($doc),+),
                );
                $(key.target = &[$(stringify!($target)),+];
                key.apply = |value, settings| {
                    settings.$($target $(.$insert())?).+ = serde_json::from_value(value).ok()?;
                    Some(())
                };)?
                $(key.$property = $value;)*
                key
            }),*),+]
        }
    };
}
pub(crate) use fields;

mod agent;
mod context;
mod limits;
mod model;

use super::key::SettingKey;
use super::{hook, mcp, permission, provider};

/// Returns the fields of all tables, in the order of the documentation.
pub(crate) fn all() -> Vec<SettingKey> {
    let tables = [
        agent::fields,
        model::fields,
        limits::fields,
        context::fields,
        permission::fields,
        hook::fields,
        mcp::fields,
        provider::fields,
    ];
    tables.into_iter().flat_map(|fields| fields()).collect()
}
