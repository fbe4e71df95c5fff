use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, value::RawValue};

use crate::{BlobRef, Blobs, Hash, INLINE_LIMIT};

const BLOB_MARK: &str = r#"{"$blob":"#;

#[derive(Serialize, Deserialize)]
struct Spilled {
    #[serde(rename = "$blob")]
    blob: BlobRef,
}

/// A JSON value kept as it was written: numbers keep their digits, objects their order, nulls their place.
///
/// It holds no line break, so that it can stand in a line of a stream as it is.
#[derive(Clone, Default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(type = "unknown"))]
pub struct Json(Box<RawValue>);

impl Json {
    /// Takes JSON text; white space between tokens is dropped where the text has line breaks.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let raw: Box<RawValue> = serde_json::from_str(text)?;
        Ok(Json(one_line(raw)?))
    }

    pub fn from_value(value: &Value) -> Self {
        Json(serde_json::value::to_raw_value(value).unwrap_or_default())
    }

    /// Any serde value that JSON can express; what it cannot (a map with keys that are no strings) becomes null.
    pub fn of<T: Serialize>(value: &T) -> Self {
        Json(serde_json::value::to_raw_value(value).unwrap_or_default())
    }

    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    pub fn get(&self) -> &str {
        self.0.get()
    }

    pub fn value(&self) -> Value {
        serde_json::from_str(self.get()).unwrap_or_default()
    }

    pub fn is_null(&self) -> bool {
        self.get() == "null"
    }

    /// Moves a long value out to `put`, as [`crate::Body::spill`] does, and leaves `{"$blob":{"hash","size"}}`.
    /// A value that only looks like such a reference is moved out too, so that nobody can forge one.
    pub fn spill(&mut self, put: &mut dyn FnMut(&[u8])) {
        let text = self.get();
        if text.len() > INLINE_LIMIT || text.starts_with(BLOB_MARK) {
            put(text.as_bytes());
            let blob = BlobRef { hash: Hash::of(text.as_bytes()), size: text.len() as u64 };
            *self = Json::of(&Spilled { blob });
        }
    }

    /// The reference that [`Json::spill`] left, if this is one.
    pub fn blob(&self) -> Option<BlobRef> {
        self.get().starts_with(BLOB_MARK).then(|| self.read::<Spilled>()).flatten().map(|s| s.blob)
    }

    /// The value itself, wherever it stands.
    pub fn whole<'a>(&'a self, blobs: &dyn Blobs) -> Cow<'a, Json> {
        let Some(blob) = self.blob() else { return Cow::Borrowed(self) };
        let text = blobs.blob(&blob.hash).and_then(|bytes| String::from_utf8(bytes).ok());
        let json = text.and_then(|text| Json::parse(&text).ok());
        Cow::Owned(json.unwrap_or_else(|| Json::of(&format!("[{} bytes are no longer kept]", blob.size))))
    }

    /// Reads the value as a type of the caller's; `None` if it has another shape.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        serde_json::from_str(self.get()).ok()
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Json::from_value(&value)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        one_line(raw).map(Json).map_err(serde::de::Error::custom)
    }
}

/// A line break in valid JSON can only be white space between tokens, so dropping it changes nothing.
fn one_line(raw: Box<RawValue>) -> Result<Box<RawValue>, serde_json::Error> {
    if !raw.get().contains(['\n', '\r']) {
        return Ok(raw);
    }
    let mut compact = String::with_capacity(raw.get().len());
    let (mut in_string, mut escaped) = (false, false);
    for c in raw.get().chars() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if c.is_ascii_whitespace() {
            continue;
        } else {
            in_string = c == '"';
        }
        compact.push(c);
    }
    RawValue::from_string(compact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_was_written_and_drops_line_breaks() {
        let json = Json::parse("{\"a\": 1.50,\n \"b\\\"\": [null, \"x \\n y\"]\r\n}").unwrap();
        assert_eq!(json.get(), r#"{"a":1.50,"b\"":[null,"x \n y"]}"#);
        assert_eq!(Json::parse(r#"{"a": 1}"#).unwrap().get(), r#"{"a": 1}"#);
    }
}
