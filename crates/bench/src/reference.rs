//! What the server is measured beside: programs that do one thing of what it does, and nothing else. Each runs in a
//! process of its own, like the server.

pub(crate) mod asks;
pub(crate) mod bare;
pub(crate) mod each;
pub(crate) mod raw;
