//! Tokens: who may do what. The file keeps hashes only, so reading it gives nobody a token.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use tolka_facts::{Hash, Time};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Read everything.
    View,
    /// Create sessions, prompt, cancel.
    Prompt,
    /// Answer permissions and questions.
    Approve,
    /// All of it, and what cannot be taken back.
    Admin,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scope::View => "view",
            Scope::Prompt => "prompt",
            Scope::Approve => "approve",
            Scope::Admin => "admin",
        })
    }
}

impl FromStr for Scope {
    type Err = TokenError;

    fn from_str(name: &str) -> Result<Self, TokenError> {
        let all = [Scope::View, Scope::Prompt, Scope::Approve, Scope::Admin];
        all.into_iter().find(|scope| scope.to_string() == name).ok_or_else(|| TokenError::UnknownScope(name.to_owned()))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("no scope is called `{0}`; there are view, prompt, approve, admin")]
    UnknownScope(String),
    #[error("a token called `{0}` exists already; revoke it first or choose another name")]
    NameTaken(String),
    #[error("no token is called `{0}`; `tolka token list` shows which are")]
    NoSuchToken(String),
    #[error("{path}: {error}")]
    File { path: PathBuf, error: std::io::Error },
    #[error("{path} is not a list of tokens: {error}")]
    Malformed { path: PathBuf, error: serde_json::Error },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    pub name: String,
    pub hash: Hash,
    pub scopes: Vec<Scope>,
    pub created: Time,
}

impl Token {
    pub fn allows(&self, wanted: Scope) -> bool {
        // Whoever may steer or approve must be able to see what.
        self.scopes.contains(&Scope::Admin) || self.scopes.contains(&wanted) || wanted == Scope::View
    }
}

/// `tokens.json` under the data folder.
#[derive(Debug, Clone)]
pub struct TokenFile {
    path: PathBuf,
}

impl TokenFile {
    pub fn new(data: &Path) -> Self {
        TokenFile { path: data.join("tokens.json") }
    }

    pub fn list(&self) -> Result<Vec<Token>, TokenError> {
        match std::fs::read(&self.path) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(|error| TokenError::Malformed { path: self.path.clone(), error })
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Makes a token and gives its secret, which is nowhere else afterwards.
    pub fn add(&self, name: &str, scopes: Vec<Scope>) -> Result<String, TokenError> {
        let mut tokens = self.list()?;
        if tokens.iter().any(|token| token.name == name) {
            return Err(TokenError::NameTaken(name.to_owned()));
        }
        let mut random = [0; 24];
        getrandom::fill(&mut random).map_err(|error| self.failed(std::io::Error::other(error.to_string())))?;
        let secret = format!("tolka_{}", &Hash::of(&random).as_str()[..48]);
        tokens.push(Token { name: name.to_owned(), hash: Hash::of(secret.as_bytes()), scopes, created: Time::now() });
        self.write(&tokens)?;
        Ok(secret)
    }

    pub fn revoke(&self, name: &str) -> Result<(), TokenError> {
        let mut tokens = self.list()?;
        let before = tokens.len();
        tokens.retain(|token| token.name != name);
        if tokens.len() == before {
            return Err(TokenError::NoSuchToken(name.to_owned()));
        }
        self.write(&tokens)
    }

    /// Whole or not at all: a new file takes the old one's place.
    fn write(&self, tokens: &[Token]) -> Result<(), TokenError> {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| self.failed(error))?;
        let fresh = self.path.with_extension("json.new");
        let json = serde_json::to_vec_pretty(tokens).unwrap_or_default();
        let written = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&fresh)
            .and_then(|mut file| file.write_all(&json).and_then(|()| file.sync_all()))
            .and_then(|()| std::fs::rename(&fresh, &self.path));
        written.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: std::io::Error) -> TokenError {
        TokenError::File { path: self.path.clone(), error }
    }

    /// Tells one state of the file from another: it is replaced, never written to, so that each has its own inode.
    fn print(&self) -> Option<Print> {
        use std::os::unix::fs::MetadataExt;
        let meta = std::fs::metadata(&self.path).ok()?;
        Some((meta.ino(), meta.len(), meta.modified().ok()?))
    }
}

/// The tokens that a running server knows. It reads the file again when it has changed, so that a revoked
/// token stops working at once.
pub(crate) struct Keyring {
    file: TokenFile,
    given: Option<Token>,
    /// A std mutex: held for a look and at times a small read, never over an await.
    known: Mutex<(Option<Print>, Vec<Token>)>,
    /// Once a token was needed it always is: revoking the last one must not open the door. The file stays, empty, so
    /// that this holds after a restart too.
    locked: AtomicBool,
}

type Print = (u64, u64, SystemTime);

impl Keyring {
    /// `exposed`: others than this machine can reach the server.
    pub(crate) fn open(data: &Path, given: Option<&str>, exposed: bool) -> Result<Self, TokenError> {
        let file = TokenFile::new(data);
        let known = (file.print(), file.list()?);
        let locked = AtomicBool::new(exposed || given.is_some() || known.0.is_some());
        let given = given.map(|secret| Token {
            name: "command-line".to_owned(),
            hash: Hash::of(secret.as_bytes()),
            scopes: vec![Scope::Admin],
            created: Time::now(),
        });
        Ok(Keyring { file, given, known: Mutex::new(known), locked })
    }

    /// Nobody could come in.
    pub(crate) fn is_empty(&self) -> bool {
        self.given.is_none() && self.tokens().is_empty()
    }

    /// Whether requests need a token; from the first token on they do.
    pub(crate) fn is_locked(&self) -> bool {
        if !self.locked.load(Ordering::Relaxed) && self.file.print().is_some() {
            self.locked.store(true, Ordering::Relaxed);
        }
        self.locked.load(Ordering::Relaxed)
    }

    /// Whether a token that was shown before is still one.
    pub(crate) fn knows(&self, hash: &Hash) -> bool {
        self.given.iter().any(|token| token.hash == *hash) || self.tokens().iter().any(|token| token.hash == *hash)
    }

    pub(crate) fn find(&self, secret: &str) -> Option<Token> {
        let hash = Hash::of(secret.as_bytes());
        let is_it = |token: &Token| bool::from(token.hash.as_str().as_bytes().ct_eq(hash.as_str().as_bytes()));
        let given = self.given.iter().find(|token| is_it(token)).cloned();
        given.or_else(|| self.tokens().into_iter().find(is_it))
    }

    fn tokens(&self) -> Vec<Token> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let print = self.file.print();
        if print != known.0 {
            match self.file.list() {
                Ok(tokens) => *known = (print, tokens),
                // Fail closed: the tokens of before stay, and the log says why.
                Err(error) => tracing::error!(%error, "the list of tokens cannot be read"),
            }
        }
        known.1.clone()
    }
}
