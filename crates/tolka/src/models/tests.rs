use super::*;

async fn gather(config: &str, variables: &[(&str, &str)]) -> Catalogue {
    look(config, variables, Look::Everywhere).await
}

async fn look(config: &str, variables: &[(&str, &str)], look: Look) -> Catalogue {
    let config: Config = toml::from_str(config).unwrap();
    // Port 9 of this machine discards what it gets where anybody listens on it at all; nobody lists models there.
    let environment = Environment::default().with("OLLAMA_HOST", "127.0.0.1:9");
    let environment = variables.iter().fold(environment, |all, (name, value)| all.with(name, value));
    Catalogue::gather(&config, &environment, None, look).await
}

fn why<'a>(found: &'a Catalogue, name: &str) -> &'a str {
    let unusable = found.unusable.iter().find(|unusable| unusable.provider == name);
    unusable.map_or("(usable)", |unusable| unusable.why.as_str())
}

#[tokio::test]
async fn without_anything_every_provider_says_what_it_lacks() {
    let found = gather("", &[]).await;
    assert!(found.usable.is_empty() && found.usual.is_none());
    assert_eq!(found.unusable.len(), PROVIDERS.len());
    assert_eq!(why(&found, "openai"), "no OPENAI_API_KEY");
    assert_eq!(why(&found, "anthropic"), "no ANTHROPIC_API_KEY");
    assert_eq!(why(&found, "ollama"), "nothing answers at http://127.0.0.1:9");
}

#[tokio::test]
async fn each_variable_opens_its_provider() {
    for known in &PROVIDERS {
        let Some(variable) = known.key_env else { continue };
        let found = gather("", &[(variable, " k-123\n")]).await;
        let [provider] = &found.usable[..] else { panic!("{variable}: {:?}", found.usable) };
        assert_eq!((provider.name.as_str(), provider.base_url.as_str()), (known.name, known.base_url));
        assert_eq!(provider.key.as_ref().map(Secret::expose), Some("k-123"));
        let usual = found.usual.unwrap();
        assert_eq!((usual.provider.as_str(), usual.id.as_str()), (known.name, known.models[0].id));
        assert!(!format!("{provider:?}").contains("k-123"));
    }
}

#[tokio::test]
async fn a_variable_that_holds_no_key_opens_nothing() {
    assert_eq!(why(&gather("", &[("OPENAI_API_KEY", "  ")]).await, "openai"), "no OPENAI_API_KEY");
    let found = gather("", &[("OPENAI_API_KEY", "two words")]).await;
    assert!(why(&found, "openai").starts_with("OPENAI_API_KEY holds no key"), "{:?}", found.unusable);
    assert!(!format!("{found:?}").contains("two words"));
}

#[tokio::test]
async fn a_gateway_has_the_makers_models_and_a_server_here_its_own() {
    let found = gather("", &[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "https://proxy.example.com/v1/")]).await;
    let [provider] = &found.usable[..] else { panic!("{:?}", found.usable) };
    assert_eq!(provider.base_url.as_str(), "https://proxy.example.com/v1");
    assert_eq!(found.usual.map(|usual| usual.to_string()).as_deref(), Some("openai/gpt-5"), "a gateway to the same");
    // Nobody is on port 9: what the maker offers is not what a server on this machine has.
    let found = gather("", &[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")]).await;
    assert!(found.usable.is_empty() && found.usual.is_none(), "{:?}", found.usable);
    let found = gather("", &[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "proxy")]).await;
    assert!(why(&found, "openai").starts_with("OPENAI_BASE_URL: a base URL starts with"));
}

#[tokio::test]
async fn the_model_is_chosen_by_what_is_nearest() {
    let keys = [("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")];
    let usual = async |config: &str, more: &[(&str, &str)]| {
        let found = look(config, &[&keys[..], more].concat(), Look::WhereNeeded).await;
        found.usual.map(|usual| usual.to_string()).ok_or_else(|| found.refused.unwrap().says)
    };
    assert_eq!(usual("", &[]).await.unwrap(), "anthropic/claude-sonnet-4-5");
    let config = "model = \"openai/gpt-4.1\"";
    assert_eq!(usual(config, &[]).await.unwrap(), "openai/gpt-4.1");
    assert_eq!(usual(config, &[("TOLKA_MODEL", "openai/o4-mini")]).await.unwrap(), "openai/o4-mini");
    assert_eq!(usual(config, &[("TOLKA_MODEL", "openai/of-tomorrow")]).await.unwrap(), "openai/of-tomorrow");
    assert_eq!(usual("", &[("TOLKA_MODEL", "ollama/qwen3:8b")]).await.unwrap(), "ollama/qwen3:8b", "as it is named");
    assert!(usual("", &[("TOLKA_MODEL", "gpt-5")]).await.unwrap_err().starts_with("TOLKA_MODEL: a model is named"));
    let said = usual("", &[("TOLKA_MODEL", "groq/x")]).await.unwrap_err();
    assert_eq!(said, "the model groq/x cannot be used: no GROQ_API_KEY");
    let said = usual("", &[("TOLKA_MODEL", "nobody/x")]).await.unwrap_err();
    assert!(said.contains("nobody/x is of no provider that is configured or known (anthropic,"), "{said}");
}

#[tokio::test]
async fn the_demo_is_for_where_nobody_set_anything_up() {
    let stuck = async |config: &str, more: &[(&str, &str)]| look(config, more, Look::WhereNeeded).await.stuck();
    assert_eq!(stuck("", &[]).await, None);
    assert_eq!(stuck("", &[("ANTHROPIC_API_KEY", "k")]).await, None, "there is a model");
    assert_eq!(stuck("", &[("OPENAI_BASE_URL", "https://proxy.example.com/v1")]).await, None, "no key for it");
    let work = "[providers.work]\nwire = \"openai\"\nbase_url = \"https://work.example.com/v1?k=hidden\"\n";
    let said = stuck(work, &[]).await.unwrap();
    assert!(
        said.starts_with("which models https://work.example.com/v1 has is not known; name a model: --model work/<id>"),
        "{said}"
    );
    assert!(!said.contains("hidden"), "{said}");
    for (config, variables, why) in [
        (format!("{work}key_env = \"WORK_KEY\""), &[] as &[_], "(work: no WORK_KEY)"),
        (
            String::new(),
            &[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")],
            "(openai: nothing answers at http://127.0.0.1:9)",
        ),
        (String::new(), &[("XAI_API_KEY", "two words")], "(xai: XAI_API_KEY holds no key"),
        ("[providers.ollama]".to_owned(), &[], "(ollama: nothing answers at http://127.0.0.1:9)"),
    ] {
        let said = stuck(&config, variables).await.unwrap();
        assert!(said.starts_with("no model can be used ") && said.contains(why), "{said}");
        assert!(said.ends_with("--agent demo plays the demo"), "{said}");
    }
}

#[tokio::test]
async fn what_is_configured_comes_first_and_fills_in_what_is_known() {
    let config = "
        [providers.mine]
        wire = \"openai\"
        base_url = \"https://mine.example.com/v1\"
        [[providers.mine.models]]
        id = \"m\"
        [providers.openai]
        key_env = \"OTHER\"
        [[providers.openai.models]]
        id = \"gpt-5\"
        context = 1000";
    let found = gather(config, &[("OTHER", "k"), ("ANTHROPIC_API_KEY", "k")]).await;
    let names: Vec<&str> = found.usable.iter().map(|provider| provider.name.as_str()).collect();
    assert_eq!(names, ["mine", "openai", "anthropic"]);
    assert_eq!(found.usual.unwrap().to_string(), "mine/m");
    assert!(found.usable[0].key.is_none());
    let [gpt] = &found.usable[1].models[..] else { panic!() };
    assert_eq!((gpt.context, gpt.output, gpt.name.as_deref()), (Some(1000), Some(128_000), Some("GPT-5")));
    assert_eq!(why(&gather(config, &[("OPENAI_API_KEY", "k")]).await, "openai"), "no OTHER");
}

#[tokio::test]
async fn a_key_may_be_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    let config = format!("[providers.openai]\nkey_file = {:?}", path.to_str().unwrap());
    let found = gather(&config, &[("OPENAI_API_KEY", "not this")]).await;
    assert!(why(&found, "openai").contains("key cannot be read: No such file"), "{:?}", found.unusable);
    std::fs::write(&path, "\n").unwrap();
    assert!(why(&gather(&config, &[]).await, "openai").contains("holds no key"));
    std::fs::write(&path, "k-in-a-file\n").unwrap();
    let found = gather(&config, &[]).await;
    assert_eq!(found.usable[0].key.as_ref().map(Secret::expose), Some("k-in-a-file"));
}

#[test]
fn the_address_of_ollama_is_read_as_ollama_reads_it() {
    for (host, url) in [
        ("127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:99", "http://127.0.0.1:99/v1"),
        ("box", "http://box:11434/v1"),
        ("http://box:1/", "http://box:1/v1"),
        ("https://ollama.example.com", "https://ollama.example.com/v1"),
        ("http://box:1/v1", "http://box:1/v1"),
        ("[::1]:5", "http://[::1]:5/v1"),
        ("[::1]", "http://[::1]:11434/v1"),
    ] {
        assert_eq!(ollama(host), url);
    }
}
