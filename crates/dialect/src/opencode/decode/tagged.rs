//! Enums that one field of their JSON tells apart. serde's own tagging has no place for a kind that is
//! not listed and loses how numbers were written; these keep both.

use serde::de::{Deserialize, Deserializer, Error};
use tolka_facts::Json;

/// Declares `enum Name { Listed(Type), …, Other(Json) }`. With `in "field"` the content stands in a field of
/// its own (and may be left out where nothing in it is required); else it stands beside the tag.
macro_rules! tagged {
    ($(#[$doc:meta])* $name:ident by $tag:literal $(in $content:literal)? {
        $($kind:literal => $variant:ident($type:ty)),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $name {
            $($variant($type),)*
            /// A kind that is not listed, as it came.
            Other(tolka_facts::Json),
        }

        impl $name {
            /// The kinds that have a type here.
            pub const KINDS: &'static [&'static str] = &[$($kind),*];
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let content: Option<&str> = None $(.or(Some($content)))?;
                let (whole, kind, inner) = $crate::opencode::decode::tagged::split(deserializer, $tag, content)?;
                let wrong = |e: serde_json::Error| {
                    <D::Error as serde::de::Error>::custom(format!("{kind}: {e}"))
                };
                match kind.as_str() {
                    $($kind => serde_json::from_str(inner.as_ref().unwrap_or(&whole).get()).map($name::$variant).map_err(wrong),)*
                    _ => Ok($name::Other(whole)),
                }
            }
        }
    };
}

pub(super) use tagged;

/// The whole, its kind, and its content where that is a field.
pub(super) fn split<'de, D: Deserializer<'de>>(
    deserializer: D,
    tag: &str,
    content: Option<&str>,
) -> Result<(Json, String, Option<Json>), D::Error> {
    let whole = Json::deserialize(deserializer)?;
    let mut fields: Fields = serde_json::from_str(whole.get()).map_err(D::Error::custom)?;
    let kind = match fields.remove(tag).and_then(|kind| kind.read::<String>()) {
        Some(kind) => kind,
        None => return Err(D::Error::custom(format!("no `{tag}`"))),
    };
    let inner = content.map(|field| fields.remove(field).unwrap_or_else(|| Json::from_value(&serde_json::json!({}))));
    Ok((whole, kind, inner))
}

type Fields = std::collections::HashMap<String, Json>;
