//! A recorded conversation: each line is what one side said, and when. Whoever reads or judges one does so by these
//! words.

use std::time::Duration;

use serde::Deserialize;
use tolka_facts::Json;

use super::method::Side;
use super::wire::lenient;

/// A line of a recording, `{"t","dir","msg"}`.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Since a moment that all lines have in common, as far as the line says.
    pub time: Option<Duration>,
    /// `None` for noise: what an agent wrote that is no message.
    pub side: Option<Side>,
    pub message: Json,
}

#[derive(Debug, thiserror::Error)]
pub enum RecordedError {
    #[error("not JSON of a message: {0}")]
    Json(#[from] serde_json::Error),
    #[error("`t` is no time: {0}")]
    Time(f64),
    #[error("`dir` is c2a, a2c or noise, not `{0}`")]
    Direction(String),
}

#[derive(Deserialize)]
struct Line {
    /// Seconds.
    #[serde(default, deserialize_with = "lenient")]
    t: Option<f64>,
    #[serde(default, deserialize_with = "lenient")]
    dir: Option<String>,
    msg: Option<Json>,
}

impl Recorded {
    /// `None` for a line without `dir` or `msg`: it may be a message itself.
    pub fn read(line: &str) -> Result<Option<Self>, RecordedError> {
        let Line { t, dir: Some(dir), msg: Some(message) } = serde_json::from_str(line)? else { return Ok(None) };
        let time = |t| Duration::try_from_secs_f64(t).map_err(|_| RecordedError::Time(t));
        Ok(Some(Recorded { time: t.map(time).transpose()?, side: side(&dir)?, message }))
    }
}

/// Who speaks in this direction; nobody in noise.
pub(super) fn side(dir: &str) -> Result<Option<Side>, RecordedError> {
    match dir {
        "c2a" => Ok(Some(Side::Client)),
        "a2c" => Ok(Some(Side::Agent)),
        "noise" => Ok(None),
        other => Err(RecordedError::Direction(other.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_who_spoke_and_when() {
        let read = |line: &str| Recorded::read(line).map_err(|e| e.to_string());
        let recorded = |time, side, message| {
            Ok(Some(Recorded { time, side, message: Json::parse(message).expect("the test writes JSON") }))
        };
        let second = Some(Duration::from_millis(1500));
        assert_eq!(
            read(r#"{"t":1.5,"dir":"c2a","msg":{"id":1}}"#),
            recorded(second, Some(Side::Client), r#"{"id":1}"#)
        );
        assert_eq!(read(r#"{"dir":"a2c","msg":{}}"#), recorded(None, Some(Side::Agent), "{}"));
        assert_eq!(read(r#"{"t":1.5,"dir":"noise","msg":"Hi"}"#), recorded(second, None, r#""Hi""#));
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":1,"result":null}"#), Ok(None));
        assert_eq!(read(r#"{"t":-1,"dir":"c2a","msg":{}}"#), Err("`t` is no time: -1".to_owned()));
        assert_eq!(read(r#"{"t":1,"dir":"b2b","msg":{}}"#), Err("`dir` is c2a, a2c or noise, not `b2b`".to_owned()));
        assert!(matches!(Recorded::read("Welcome!"), Err(RecordedError::Json(_))));
    }
}
