//! The task that keeps a server: it opens the connection, watches over it, and opens it again, within reason.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{Order, Shared, State, Status};
use crate::connection::Connection;
use crate::error::McpError;
use crate::lists::Lists;

/// In a row.
const TRIES: u32 = 5;
/// Who stood so long has not failed in a row.
const STABLE: Duration = Duration::from_secs(60);
/// Nobody has needed it for so long: it need not run.
const UNUSED: Duration = Duration::from_secs(30 * 60);

/// Why a connection is no more.
enum Over {
    Ended(McpError),
    Unused,
    Ordered,
    /// Nobody can give orders any more.
    Dropped,
}

pub(super) async fn keep(shared: Arc<Shared>, mut orders: watch::Receiver<Order>) {
    let mut failures = 0;
    let mut restarts = 0;
    let mut error = None;
    let mut is_needed = false;
    loop {
        let order = *orders.borrow_and_update();
        match order {
            Order::Never => {
                shared.set(Status::new(State::Disabled));
                (failures, restarts, error, is_needed) = (0, 0, None, false);
                if orders.changed().await.is_err() {
                    return;
                }
                continue;
            }
            Order::WhenNeeded if !is_needed => {
                shared.set(Status::new(State::Idle));
                tokio::select! {
                    () = shared.needed.notified() => is_needed = true,
                    changed = orders.changed() => match changed {
                        Ok(()) => continue,
                        Err(_) => return,
                    },
                }
            }
            Order::WhenNeeded | Order::Now => {}
        }
        shared.set(Status { error: error.clone(), restarts, ..Status::new(State::Connecting) });
        let opened = tokio::select! {
            opened = open(&shared) => opened,
            changed = orders.changed() => match changed {
                Ok(()) => {
                    (failures, error) = (0, None);
                    continue;
                }
                Err(_) => return,
            },
        };
        let failed = match opened {
            Ok((connection, lists)) => {
                let since = Instant::now();
                let over = watch_over(&shared, connection, lists, restarts, &mut orders).await;
                if since.elapsed() >= STABLE {
                    failures = 0;
                }
                match over {
                    Over::Ended(why) => why,
                    Over::Dropped => return,
                    Over::Ordered => {
                        (failures, error) = (0, None);
                        continue;
                    }
                    Over::Unused => {
                        (failures, restarts, error, is_needed) = (0, 0, None, false);
                        // Whoever ordered it has not needed it either.
                        if *orders.borrow() == Order::Now && !wait_until_needed(&shared, &mut orders).await {
                            return;
                        }
                        continue;
                    }
                }
            }
            Err(why) => why,
        };
        let told = shared.told(failed.clone());
        tracing::warn!(server = %shared.config.name, error = %told, "an MCP server");
        failures += 1;
        restarts += 1;
        // One that does not answer, or answers what is none, will do no better for being asked again, and one that asks who
        // we are neither.
        let is_final = failures >= TRIES
            || matches!(failed, McpError::TimedOut(_) | McpError::NeedsAuth(_) | McpError::Unreadable(_));
        error = Some(told.to_string());
        let over = if is_final {
            let state = if matches!(failed, McpError::NeedsAuth(_)) { State::NeedsAuth } else { State::Failed };
            shared.set(Status { error: error.clone(), restarts, ..Status::new(state) });
            failures = TRIES - 1;
            give_up(&shared, &mut orders).await
        } else {
            shared.set(Status { error: error.clone(), restarts, ..Status::new(State::Connecting) });
            tokio::select! {
                () = sleep(shared.ways.times().pause * (1 << (failures - 1))) => None,
                changed = orders.changed() => Some(changed.is_ok()),
            }
        };
        match over {
            None => {}
            Some(true) => {
                (failures, error) = (0, None);
            }
            Some(false) => return,
        }
    }
}

/// Until somebody needs it again after a while (`None`), or says something new about it (whether anybody still can).
async fn give_up(shared: &Shared, orders: &mut watch::Receiver<Order>) -> Option<bool> {
    let cool = async {
        sleep(shared.ways.times().cool).await;
        // What was needed while it cooled off was told why it cannot be had.
        let _ = timeout(Duration::ZERO, shared.needed.notified()).await;
        shared.needed.notified().await;
    };
    tokio::select! {
        () = cool => None,
        changed = orders.changed() => Some(changed.is_ok()),
    }
}

async fn wait_until_needed(shared: &Shared, orders: &mut watch::Receiver<Order>) -> bool {
    shared.set(Status::new(State::Idle));
    tokio::select! {
        () = shared.needed.notified() => true,
        changed = orders.changed() => changed.is_ok(),
    }
}

async fn open(shared: &Shared) -> Result<(Arc<Connection>, Lists), McpError> {
    let limit = shared.config.timeout.max(shared.ways.times().opening);
    let opening = async {
        let connection =
            Connection::open(&shared.config, &shared.workspace, &*shared.ways, shared.tail.clone()).await?;
        let lists = Lists::of(&connection, &shared.config, limit).await?;
        Ok((Arc::new(connection), lists))
    };
    timeout(limit, opening).await.unwrap_or(Err(McpError::TimedOut(limit)))
}

async fn watch_over(
    shared: &Shared,
    connection: Arc<Connection>,
    lists: Lists,
    restarts: u32,
    orders: &mut watch::Receiver<Order>,
) -> Over {
    shared.is_late.store(false, Ordering::Relaxed);
    shared.touch();
    let about = &connection.about;
    let ready = Status {
        restarts,
        about: Some((about.name.clone(), about.version.clone())),
        lists: Arc::new(lists),
        connection: Some(connection.clone()),
        ..Status::new(State::Ready)
    };
    shared.set(ready);
    let relist = async || {
        let looked = Instant::now();
        connection.news().await;
        sleep_until(looked + shared.ways.times().lists).await;
        Lists::of(&connection, &shared.config, shared.config.timeout).await
    };
    // One look at a time, whatever else happens: news that it has taken in must not be lost with it.
    let mut relisting = pin!(relist());
    let over = loop {
        tokio::select! {
            why = connection.ended() => break Over::Ended(why),
            changed = orders.changed() => match changed {
                // To be connected now, and it is.
                Ok(()) if *orders.borrow() == Order::Now => {}
                Ok(()) => break Over::Ordered,
                Err(_) => break Over::Dropped,
            },
            () = unused(shared) => break Over::Unused,
            relisted = &mut relisting => {
                match relisted {
                    Ok(lists) => shared.status.send_modify(|status| status.lists = Arc::new(lists)),
                    Err(error) => {
                        let error = shared.told(error);
                        tracing::warn!(server = %shared.config.name, %error, "what it has is not known");
                    }
                }
                relisting.set(relist());
            }
        }
    };
    // Nobody shall begin anything with it while it says goodbye.
    shared.status.send_modify(|status| {
        status.connection = None;
        status.state = State::Connecting;
    });
    if !matches!(over, Over::Ended(_)) {
        connection.close().await;
    }
    over
}

async fn unused(shared: &Shared) {
    loop {
        let due = shared.used() + UNUSED;
        if due <= Instant::now() {
            return;
        }
        sleep_until(due).await;
    }
}

impl Shared {
    fn set(&self, status: Status) {
        self.status.send_replace(status);
    }
}
