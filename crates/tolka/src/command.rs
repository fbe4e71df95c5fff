pub(crate) mod check;
pub(crate) mod convert;
pub(crate) mod dialects;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod token;
