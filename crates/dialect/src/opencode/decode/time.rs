//! When an event happened, as far as it says so: the wire has times in many places and none that is always there.

use serde::Deserialize;
use serde_json::Value;
use tolka_facts::Time;

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

/// Milliseconds, or an object of such.
fn latest(value: &Value) -> Option<Time> {
    match value {
        Value::Object(times) => times.values().filter_map(latest).max(),
        value => value.as_u64().map(Time::from_millis),
    }
}
