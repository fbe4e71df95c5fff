//! Forks with files of their own.
