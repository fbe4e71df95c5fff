//! When an event happened, as far as it says so: the wire has times in many places and none that is always there.

use serde::Deserialize;
use serde_json::Value;
use tolka_facts::Time;

use super::event::{SessionStatus, WireEvent};
use super::part::Status;

const STAMP_MASK: u64 = (1 << 36) - 1;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Timed {
    properties: Properties,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Properties {
    time: Value,
    info: Holder,
    part: Holder,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Holder {
    time: Value,
    state: State,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct State {
    time: Value,
}

/// The latest of them: an event that tells the end of something names its beginning too.
pub(super) fn read(raw: &str) -> Option<Time> {
    let Timed { properties } = serde_json::from_str(raw).ok()?;
    let Properties { time, info, part } = properties;
    [time, info.time, info.state.time, part.time, part.state.time].iter().filter_map(latest).max()
}

/// The id of an event begins with the last 36 bits of its time in milliseconds. When the next attempt comes says which
/// of the times that end so it is: the last one before it.
pub(super) fn before_retry(event: &WireEvent, raw: &str) -> Option<Time> {
    #[derive(Deserialize)]
    struct Named {
        id: String,
    }
    let WireEvent::SessionStatus(SessionStatus { status: Status::Retry(retry), .. }) = event else { return None };
    let Named { id } = serde_json::from_str(raw).ok()?;
    let stamp = u64::from_str_radix(id.strip_prefix("evt_")?.get(..12)?, 16).ok()? >> 12;
    let next = whole(retry.next);
    let delay = next.wrapping_sub(stamp) & STAMP_MASK;
    // More than half of a round is no wait of a year: the attempt was due before the event.
    let delay = if delay > STAMP_MASK / 2 { 0 } else { delay };
    next.checked_sub(delay).map(Time::from_millis)
}

/// Numbers of this wire are JavaScript's.
pub(super) fn whole(number: f64) -> u64 {
    number.round() as u64
}

/// Milliseconds, or an object of such.
fn latest(value: &Value) -> Option<Time> {
    match value {
        Value::Object(times) => times.values().filter_map(latest).max(),
        value => value.as_u64().map(Time::from_millis),
    }
}
