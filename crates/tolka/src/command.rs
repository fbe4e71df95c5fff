pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod token;
