//! `websearch`: pages that a configured search engine finds. Without one it is not offered.

use serde_json::json;

use super::act::{Act, Done, Stop};
use super::ask::Want;
use super::field::{COUNT, Fields, QUERY};
use super::read::fields as map;

const USUAL: u64 = 8;
const MOST: u64 = 20;
/// No question is longer.
const LONGEST: usize = 1_000;

pub(super) async fn run(act: &Act<'_>, fields: &Fields) -> Result<Done, Stop> {
    let Some(search) = act.tools.settings.web.search.clone() else {
        return Err(Stop::failed(
            "no search engine is configured here; a person can name one under `[web]` in tolka.toml",
        ));
    };
    let query = fields.need_words(QUERY)?;
    if query.len() > LONGEST {
        return Err(Stop::Failed(format!("`{}` is longer than {LONGEST} bytes; ask for less", QUERY[0])));
    }
    let count = fields.number(COUNT)?.unwrap_or(USUAL).clamp(1, MOST);
    let want = Want {
        permission: "websearch",
        subjects: vec![query.clone()],
        title: format!("Search the web ({}) for: {query}", search.engine),
        metadata: json!({ "query": query, "numResults": count }),
        always: vec!["*".to_owned()],
    };
    act.leave(want, &[]).await?;
    act.running_for_good(&query, &[]).await?;
    let finding = search.find(&query, usize::try_from(count).unwrap_or(1));
    let hits = tokio::select! {
        hits = finding => hits.map_err(Stop::Failed)?,
        () = act.scene.cancel.fired() => return Err(Stop::Cancelled(None)),
    };
    let told = hits.iter().zip(1..).map(|(hit, n)| format!("{n}. {}\n   {}\n   {}", hit.title, hit.url, hit.snippet));
    let output = told.map(|told| told.trim_end().to_owned()).collect::<Vec<_>>().join("\n");
    let results: Vec<_> =
        hits.iter().map(|hit| json!({ "title": hit.title, "url": hit.url, "snippet": hit.snippet })).collect();
    let mut metadata = map(json!({ "query": query, "count": results.len(), "results": results }));
    if hits.is_empty() {
        metadata.insert("note".to_owned(), "[nothing was found]".into());
    }
    Ok(Done { title: query, output, metadata, ..Done::default() })
}
