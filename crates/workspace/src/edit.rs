//! Replacing a piece of text: exactly where it stands, else where it stands but for white space, and never where two
//! places could be meant.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places {
    One,
    All,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    pub text: String,
    /// Places that were replaced.
    pub places: usize,
    /// The text was not there to the letter; a place that differs in white space only was taken.
    pub is_tolerant: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("the old text is empty; to make a new file, write it")]
    Empty,
    #[error("the old text and the new text are the same; nothing would change")]
    Same,
    #[error("the old text is not in the file; read the file again and copy the lines exactly")]
    NotFound,
    #[error("the old text is in the file {0} times; add lines around it until it is in one place, or replace all")]
    Ambiguous(usize),
}

pub fn replace(_text: &str, _old: &str, _new: &str, _places: Places) -> Result<Edited, EditError> {
    Err(EditError::NotFound)
}
