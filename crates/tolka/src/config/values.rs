//! Values that are checked while they are read, so that a mistake has its line.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use toml::Spanned;

/// A table whose order counts.
#[derive(Debug, Clone)]
pub(crate) struct Ordered<T>(pub(crate) Vec<Entry<T>>);

#[derive(Debug, Clone)]
pub(crate) struct Entry<T> {
    pub(crate) name: String,
    pub(crate) span: Range<usize>,
    pub(crate) value: T,
}

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Ordered(Vec::new())
    }
}

impl<T> Ordered<T> {
    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|entry| entry.name == name).map(|entry| &entry.value)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = Ordered<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some((name, value)) = map.next_entry::<Spanned<String>, T>()? {
                    entries.push(Entry { span: name.span(), name: name.into_inner(), value });
                }
                Ok(Ordered(entries))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

/// Whether conversations that grow long are summarised: `true`, `false`, or when, as a share of what the model takes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) enum Compact {
    #[default]
    Usual,
    Never,
    At(f64),
}

impl<'de> Deserialize<'de> for Compact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Compact;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or a share from 0.1 to 1")
            }

            fn visit_bool<E: Error>(self, wanted: bool) -> Result<Compact, E> {
                Ok(if wanted { Compact::Usual } else { Compact::Never })
            }

            fn visit_f64<E: Error>(self, share: f64) -> Result<Compact, E> {
                let is_share = (0.1..=1.0).contains(&share);
                if is_share { Ok(Compact::At(share)) } else { Err(E::custom("this is a share from 0.1 to 1")) }
            }

            fn visit_i64<E: Error>(self, share: i64) -> Result<Compact, E> {
                self.visit_f64(share as f64)
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// `"90s"`, `"5m"`, `"2h"`, `"250ms"`, or seconds as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) Duration);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time such as \"90s\", \"5m\" or \"2h\", or seconds as a number")
            }

            fn visit_i64<E: Error>(self, seconds: i64) -> Result<Time, E> {
                let seconds = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0 && *seconds <= LONGEST);
                Ok(Time(Duration::from_secs(seconds.ok_or_else(|| E::custom(TIME))?)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Time, E> {
                time(text).map(Time).ok_or_else(|| E::custom(TIME))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// A week: whoever wants more means something else, and sums of it must not overflow anything.
const LONGEST: u64 = 7 * 24 * 3600;
const TIME: &str =
    "this is no time; write \"90s\", \"5m\" or \"2h\" (more than nothing, a week at most), or seconds as a number";

fn time(text: &str) -> Option<Duration> {
    let (count, unit) = counted(text)?;
    let unit = match unit {
        "ms" => Duration::from_millis(1),
        "s" => Duration::from_secs(1),
        "m" => Duration::from_secs(60),
        "h" => Duration::from_secs(3600),
        _ => return None,
    };
    let time = unit.checked_mul(u32::try_from(count).ok()?)?;
    (!time.is_zero() && time.as_secs() <= LONGEST).then_some(time)
}

/// `"32MB"`, `"2GB"`, `"512KiB"`, or bytes as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as \"32MB\" or \"2GB\", or bytes as a number")
            }

            fn visit_i64<E: Error>(self, bytes: i64) -> Result<Size, E> {
                u64::try_from(bytes).ok().filter(|bytes| *bytes > 0).map(Size).ok_or_else(|| E::custom(SIZE))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Read)
    }
}

const SIZE: &str = "this is no size; write \"500KB\", \"32MB\" or \"2GB\" (more than nothing), or bytes as a number";

impl std::str::FromStr for Size {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let (count, unit) = counted(text).ok_or(SIZE)?;
        let unit: u64 = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kb" => 1000,
            "m" | "mb" => 1000 * 1000,
            "g" | "gb" => 1000 * 1000 * 1000,
            "kib" => 1 << 10,
            "mib" => 1 << 20,
            "gib" => 1 << 30,
            _ => return Err(SIZE),
        };
        count.checked_mul(unit).filter(|bytes| *bytes > 0).map(Size).ok_or(SIZE)
    }
}

/// `7d`, `12h`: how old something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Age(pub(crate) Duration);

const AGE: &str = "this is no age; write 12h, 7d or 4w";

impl std::str::FromStr for Age {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let (count, unit) = counted(text).ok_or(AGE)?;
        let seconds: u64 = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => DAY,
            "w" => 7 * DAY,
            _ => return Err(AGE),
        };
        let seconds = count.checked_mul(seconds).filter(|seconds| *seconds <= OLDEST * DAY).ok_or(AGE)?;
        Ok(Age(Duration::from_secs(seconds)))
    }
}

/// A count of days, of at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "i64")]
pub(crate) struct Days(pub(crate) Duration);

const DAY: u64 = 24 * 3600;
/// In days: a hundred years are for ever, and sums of them overflow nothing.
const OLDEST: u64 = 36_500;

impl TryFrom<i64> for Days {
    type Error = String;

    fn try_from(days: i64) -> Result<Self, String> {
        let days = u64::try_from(days).ok().filter(|days| (1..=OLDEST).contains(days));
        let days = days.ok_or_else(|| format!("this is a count of days, from 1 to {OLDEST}"))?;
        Ok(Days(Duration::from_secs(days * DAY)))
    }
}

/// A count, and the unit behind it.
fn counted(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..digits].parse().ok()?, text[digits..].trim()))
}

/// `provider/model`; all after the first slash is the model's.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Which {
    pub(crate) provider: String,
    pub(crate) id: String,
}

impl std::str::FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().split_once('/') {
            Some((provider, id)) if !provider.is_empty() && !id.is_empty() => {
                Ok(Which { provider: provider.to_owned(), id: id.to_owned() })
            }
            _ => Err("a model is named provider/model, as in \"openai/gpt-5\" or \"ollama/qwen3\"".to_owned()),
        }
    }
}

impl TryFrom<String> for Which {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.id)
    }
}

/// Where a provider answers, without a slash at its end. What stands after its `?` may be a key, and is not shown.
#[derive(Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct BaseUrl(String);

impl BaseUrl {
    /// The `genai` crate knows its providers' places itself.
    pub(crate) fn unsaid() -> Self {
        BaseUrl(String::new())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// As people may see it.
    pub(crate) fn shown(&self) -> &str {
        self.0.split('?').next().unwrap_or_default()
    }

    /// Whether what is sent there stays on this machine.
    pub(crate) fn is_local(&self) -> bool {
        let host = self.0.parse::<hyper::Uri>().ok().and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BaseUrl").field(&self.shown()).finish()
    }
}

impl TryFrom<String> for BaseUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let text = text.trim().trim_end_matches('/');
        let uri: Option<hyper::Uri> = text.parse().ok();
        let is_good = uri.is_some_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https"))
                && uri.host().is_some_and(|host| !host.is_empty())
                && !uri.authority().is_some_and(|authority| authority.as_str().contains('@'))
        });
        if is_good {
            return Ok(BaseUrl(text.to_owned()));
        }
        Err("a base URL starts with http:// or https:// and has no password in it".to_owned())
    }
}

/// The name of an environment variable. A key that was put here by mistake has other letters than a name.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Variable(pub(crate) String);

impl TryFrom<String> for Variable {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let is_name = name.len() <= 64
            && name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
            && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        if is_name {
            return Ok(Variable(name));
        }
        Err("key_env is the name of an environment variable, in capitals, as in OPENAI_API_KEY; not the key itself"
            .to_owned())
    }
}
