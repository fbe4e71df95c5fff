//! Document 003's results of tools. They are not streamed; `/tool-results` has them.
