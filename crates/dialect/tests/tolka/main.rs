//! Our own wire: facts told as they are, told again, and judged.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]
#![allow(dead_code, reason = "the runs and their support are shared with the tests of OpenCode's wire")]

mod faults;
mod law;
#[path = "../opencode/runs.rs"]
mod runs;
#[path = "../opencode/support.rs"]
mod support;
