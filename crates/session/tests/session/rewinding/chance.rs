//! Lives by chance, with snapshots that are missing: whatever happened, a rewind never writes over what somebody else wrote.

use std::collections::{BTreeMap, HashSet};

use tolka_facts::{MessageId, SessionId};
use tolka_session::What;

use super::Studio;
use super::after::{go_on, stall};

const PATHS: [&str; 5] = ["a", "b", "c", "sub/d", "sub/e"];

/// The same for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

struct Life {
    chance: Chance,
    session: SessionId,
    neighbour: SessionId,
    turns: usize,
    messages: Vec<MessageId>,
    /// Nothing is written twice.
    written: usize,
    /// What the session's turns wrote. All else that is there came from somebody else, or from a restore.
    ours: HashSet<String>,
    restored: usize,
}

impl Life {
    async fn new(studio: &Studio, seed: u64) -> Self {
        for path in PATHS {
            studio.write(path, &format!("first {path}"));
        }
        let (session, neighbour) = (studio.session().await, studio.session().await);
        let (turns, messages, written, restored) = (0, Vec::new(), 0, 0);
        Life { chance: Chance(seed), session, neighbour, turns, messages, written, ours: HashSet::new(), restored }
    }

    fn content(&mut self) -> String {
        self.written += 1;
        format!("v{}", self.written)
    }

    fn path(&mut self) -> &'static str {
        PATHS[self.chance.below(PATHS.len())]
    }

    /// `tells`: all of it is told.
    fn deeds(&mut self, tells: bool) -> (String, Vec<String>) {
        let (mut deeds, mut contents) = (Vec::new(), Vec::new());
        for _ in 0..=self.chance.below(3) {
            let (path, content) = (self.path(), self.content());
            let tell = if tells || self.chance.below(3) > 0 { "tell " } else { "" };
            deeds.push(format!("{tell}{path}={content}"));
            contents.push(content);
        }
        (deeds.join("; "), contents)
    }

    fn our_deeds(&mut self) -> String {
        let (deeds, contents) = self.deeds(false);
        self.ours.extend(contents);
        deeds
    }

    /// A person, who tells nothing.
    fn edit(&mut self, studio: &Studio) {
        let (path, content) = (self.path(), self.content());
        studio.write(path, &content);
    }

    async fn turn(&mut self, studio: &Studio) {
        let deeds = self.our_deeds();
        let message = studio.turn(&self.session, &deeds).await;
        self.went(message);
    }

    fn went(&mut self, message: MessageId) {
        self.turns += 1;
        self.messages.push(message);
    }

    async fn begin(&mut self, studio: &Studio) {
        let deeds = format!("{}; wait", self.our_deeds());
        let message = studio.begin(&self.session, &deeds).await.message;
        studio.world.waits.notified().await;
        self.went(message);
    }

    /// Its snapshot does not come in time, and a person goes on at once.
    async fn cancelled_turn(&mut self, studio: &Studio) {
        self.begin(studio).await;
        stall(studio);
        studio.world.go.notify_one();
        while !studio.world.desk.cancel(&self.session, false).await.unwrap() {}
        studio.world.ended(&self.session, self.turns).await;
        self.edit(studio);
        go_on(studio);
    }

    async fn killed_turn(&mut self, studio: Studio) -> Studio {
        self.begin(&studio).await;
        let studio = studio.crash();
        self.edit(&studio);
        studio.world.desk.recover().await.unwrap();
        studio.world.ended(&self.session, self.turns).await;
        studio
    }

    async fn neighbours_turn(&mut self, studio: &Studio) {
        let (deeds, _) = self.deeds(false);
        studio.turn(&self.neighbour, &deeds).await;
    }

    /// What commands of a neighbour change meanwhile is taken for the turn's, if the turn told it too.
    async fn turn_beside_a_neighbour(&mut self, studio: &Studio) {
        self.begin(studio).await;
        let (deeds, _) = self.deeds(true);
        studio.turn(&self.neighbour, &deeds).await;
        studio.world.go.notify_one();
        studio.world.ended(&self.session, self.turns).await;
    }

    async fn rewind(&mut self, studio: &Studio) {
        let before = studio.tree();
        let at = self.chance.below(self.messages.len() + 1);
        let went = match self.messages.get(at) {
            Some(message) => studio.rewind(&self.session, message, What::Files).await,
            None => studio.unrewind(&self.session).await,
        };
        self.judge(&before, &studio.tree());
        self.restored += went.map_or(0, |went| went.files.len());
    }

    fn judge(&mut self, before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) {
        for (path, content) in before {
            let is_now = after.get(path);
            assert!(self.ours.contains(content) || is_now == Some(content), "{path}: {content} became {is_now:?}");
        }
        // What a restore put there it may take away again.
        let put = after.iter().filter(|(path, content)| before.get(*path) != Some(content));
        self.ours.extend(put.map(|(_, content)| content.clone()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_wrote_is_never_written_over() {
    let mut restored = 0;
    for seed in 1..=6 {
        let mut studio = Studio::new();
        let mut life = Life::new(&studio, seed).await;
        for _ in 0..18 {
            match life.chance.below(9) {
                0 | 1 => life.turn(&studio).await,
                2 => life.cancelled_turn(&studio).await,
                3 => studio = life.killed_turn(studio).await,
                4 => life.neighbours_turn(&studio).await,
                5 => life.turn_beside_a_neighbour(&studio).await,
                6 => life.edit(&studio),
                _ => life.rewind(&studio).await,
            }
        }
        restored += life.restored;
    }
    assert!(restored > 0, "{restored} files went back: the lives were too dull to show anything");
}
