//! Times as this wire prints them: Python's `isoformat` with microseconds and `+00:00`, never `Z`. The family's first
//! wire prints the same digits in its own way.

use jiff::{Timestamp, tz::Offset};
use serde::{Deserialize, Serialize, Serializer};
use tolka_facts::{Json, Time};

const LENGTH: usize = "2026-01-22T00:11:51.712150+00:00".len();
const DIGITS: usize = "2026-01-22T00:11:51.712150".len();

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp(pub(super) Time);

impl Stamp {
    fn write(self) -> [u8; LENGTH] {
        let mut text = *b"0000-00-00T00:00:00.000000+00:00";
        text[..DIGITS].copy_from_slice(&digits(self.0));
        text
    }

    pub(super) fn with<T>(self, use_it: impl FnOnce(&str) -> T) -> T {
        // All of it is ASCII.
        use_it(std::str::from_utf8(&self.write()).unwrap_or_default())
    }
}

/// The time down to the microsecond, in ASCII. Written by hand: a format string is parsed on every call, and every chunk
/// has a stamp.
pub(crate) fn digits(time: Time) -> [u8; DIGITS] {
    let micros = i64::try_from(time.micros()).unwrap_or(i64::MAX);
    let time = Offset::UTC.to_datetime(Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX));
    let mut text = *b"0000-00-00T00:00:00.000000";
    put(&mut text[0..4], time.year().unsigned_abs().into());
    put(&mut text[5..7], time.month().unsigned_abs().into());
    put(&mut text[8..10], time.day().unsigned_abs().into());
    put(&mut text[11..13], time.hour().unsigned_abs().into());
    put(&mut text[14..16], time.minute().unsigned_abs().into());
    put(&mut text[17..19], time.second().unsigned_abs().into());
    put(&mut text[20..26], time.subsec_nanosecond().unsigned_abs() / 1000);
    text
}

/// A time as this family prints it, for routes.
pub fn timestamp(time: Time) -> String {
    Stamp(time).with(str::to_owned)
}

/// When a packet says that it was sent.
pub(crate) fn read(packet: &Json) -> Option<Time> {
    #[derive(Deserialize)]
    struct Stamped {
        timestamp: String,
    }
    let stamp: Timestamp = packet.read::<Stamped>()?.timestamp.parse().ok()?;
    u64::try_from(stamp.as_microsecond()).ok().map(Time::from_micros)
}

fn put(digits: &mut [u8], mut value: u32) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with(|text| serializer.serialize_str(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_the_documents_own_time() {
        let stamp = |micros| Stamp(Time::from_micros(micros)).with(str::to_owned);
        assert_eq!(stamp(1_769_040_711_712_150), "2026-01-22T00:11:51.712150+00:00");
        assert_eq!(stamp(0), "1970-01-01T00:00:00.000000+00:00");
        assert_eq!(stamp(951_782_400_000_001), "2000-02-29T00:00:00.000001+00:00");
        assert!(stamp(u64::MAX).starts_with("9999-12-30T"));
    }
}
