//! The environment variables that settings are made from, as one value: what is read is said in one place, and a test
//! can have an environment of its own.

use std::collections::HashMap;
use std::fmt;

#[derive(Clone, Default)]
pub(crate) struct Environment(HashMap<String, String>);

impl Environment {
    pub(crate) fn of_this_process() -> Self {
        // What is not UTF-8 is nothing that we look for.
        let known =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Environment(known.collect())
    }

    /// A variable that is set to nothing is not there.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }
}

/// Values are keys as often as not.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
impl Environment {
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.0.insert(name.to_owned(), value.to_owned());
        self
    }
}
