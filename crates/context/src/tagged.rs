//! Enums whose variant is a field of their object, such as `"role"` of a message: defined by
//! [`tagged_enum!`](crate::tagged_enum), and read by [`FirstTag`].
//!
//! The reader that serde derives for such an enum takes twice as long: it first reads the whole object into
//! memory, since the field may be anywhere. We write it first, so it is read in one pass. An object that has
//! it elsewhere is read all the same.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IgnoredAny, MapAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

/// Defines an enum whose variant is a field of its object, and derives how it is written and read. The
/// variants are stated once; those that [`FirstTag`] reads are a private copy without a tag.
#[doc(hidden)]
#[macro_export]
macro_rules! tagged_enum {
    (
        tag = $tag:tt, reader = $reader:ident, name = $quoted:tt;
        $(#[$attribute:meta])*
        pub enum $name:ident { $($variants:tt)* }
    ) => {
        $(#[$attribute])*
        #[derive(serde::Serialize)]
        #[serde(tag = $tag, rename_all = "snake_case")]
        pub enum $name { $($variants)* }

        #[derive(serde::Deserialize)]
        #[serde(remote = $quoted, rename_all = "snake_case")]
        enum $reader { $($variants)* }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $reader::deserialize($crate::tagged::FirstTag::new(deserializer, $tag))
            }
        }
    };
}

/// A deserializer of an enum that is derived without a tag. It reads one with a tag.
pub struct FirstTag<D> {
    inner: D,
    tag: &'static str,
}

impl<'de, D: Deserializer<'de>> FirstTag<D> {
    /// Reads the variant from the field `tag`.
    pub fn new(inner: D, tag: &'static str) -> Self {
        Self { inner, tag }
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for FirstTag<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, D::Error> {
        Err(Error::custom("only an enum is read by its tag"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let tag = self.tag;
        self.inner.deserialize_map(Object { tag, visitor })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Object<V> {
    tag: &'static str,
    visitor: V,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Object<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with the field `{}`", self.tag)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<V::Value, A::Error> {
        let Some(key) = fields.next_key_seed(FieldName(self.tag))? else {
            return Err(A::Error::missing_field(self.tag));
        };
        let Some(key) = key else {
            return self.visitor.visit_enum(Fields(fields));
        };
        // The tag comes later.
        let first: Value = fields.next_value()?;
        let mut rest = Map::new();
        rest.insert(key, first);
        while let Some((key, value)) = fields.next_entry()? {
            rest.insert(key, value);
        }
        let Some(tag) = rest.remove(self.tag) else {
            return Err(A::Error::missing_field(self.tag));
        };
        let mut ordered = Map::new();
        ordered.insert(self.tag.to_owned(), tag);
        ordered.extend(rest);
        let object = Value::Object(ordered);
        object.deserialize_map(self).map_err(A::Error::custom)
    }
}

/// A field's name; `None` if it is the tag.
struct FieldName(&'static str);

impl<'de> DeserializeSeed<'de> for FieldName {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for FieldName {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok((key != self.0).then(|| key.to_owned()))
    }
}

/// The fields of an object whose tag comes next.
struct Fields<A>(A);

impl<'de, A: MapAccess<'de>> EnumAccess<'de> for Fields<A> {
    type Error = A::Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(
        mut self,
        seed: S,
    ) -> Result<(S::Value, Self), A::Error> {
        let variant = self.0.next_value_seed(seed)?;
        Ok((variant, self))
    }
}

impl<'de, A: MapAccess<'de>> VariantAccess<'de> for Fields<A> {
    type Error = A::Error;

    fn unit_variant(mut self) -> Result<(), A::Error> {
        while self.0.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        seed.deserialize(MapAccessDeserializer::new(self.0))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, A::Error> {
        Err(A::Error::invalid_type(Unexpected::Map, &visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        visitor.visit_map(self.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Message, Part};

    fn read(json: &str) -> Result<Message, String> {
        serde_json::from_str(json).map_err(|error: serde_json::Error| error.to_string())
    }

    #[test]
    fn a_tag_is_found_wherever_it_stands() {
        for json in [
            r#"{"role":"user","parts":[{"type":"text","text":"a \n b"}]}"#,
            r#"{"role":"user","other":[1,{}],"parts":[{"text":"a \n b","type":"text"}]}"#,
            r#"{"parts":[{"type":"text","text":"a \n b"}],"role":"user"}"#,
        ] {
            assert_eq!(read(json), Ok(Message::user("a \n b")), "{json}");
        }
        let result = Message::result(crate::CallId("c".to_owned()), "text");
        let json = serde_json::to_value(&result).unwrap();
        assert_eq!(serde_json::from_value::<Message>(json).unwrap(), result);
        let image = r#"{"source":{"kind":"url","url":"u"},"size":[1,2],"type":"image"}"#;
        let image: Part = serde_json::from_str(image).unwrap();
        assert!(matches!(image, Part::Image(image) if image.size == Some((1, 2))));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (json, why) in [
            (r#"{"parts":[]}"#, "missing field `role`"),
            ("{}", "missing field `role`"),
            (r#"{"role":"nobody"}"#, "unknown variant `nobody`"),
            (r#"{"role":"user"}"#, "missing field `parts`"),
            (r#"{"role":7}"#, "invalid type"),
            ("[]", "expected an object with the field `role`"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(why), "{json}: {error}");
        }
    }
}
