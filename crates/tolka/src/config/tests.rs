use std::time::Duration;

use tolka_workspace::command::{Level, Limits};

use super::*;

use tolka_mcp::Reach;

fn mistake(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn a_whole_file_is_read_in_its_order() {
    let config = parse(include_str!("whole.toml")).unwrap();
    assert_eq!(config.model, Some("openai/gpt-5".parse().unwrap()));
    assert_eq!(config.titles, TitleSource::Model);
    let sandbox = &config.sandbox;
    assert_eq!((sandbox.level, sandbox.require), (None, Some(Level::Bubblewrap)));
    assert_eq!(sandbox.network.name(), "list");
    let limits = Limits { processes: 300, memory: 2 << 30, file_size: 1_000_000_000, disk_left: 100_000_000 };
    assert_eq!(sandbox.limits(), limits);
    assert_eq!(config.compact, Compact::At(0.8));
    assert_eq!(config.limits.steps, Some(60));
    assert_eq!(config.limits.turn.map(|time| time.0), Some(Duration::from_secs(1200)));
    assert_eq!(config.limits.command.map(|time| time.0), Some(Duration::from_secs(90)));
    assert_eq!((config.limits.subagents, config.limits.subagent_depth), (Some(2), Some(2)));
    assert_eq!(config.ask.otherwise, Otherwise::Reject);
    let checkpoints = &config.checkpoints;
    assert_eq!((checkpoints.enabled, checkpoints.most_files), (Some(true), Some(1000)));
    assert_eq!(checkpoints.budget.map(|time| time.0), Some(Duration::from_secs(5)));
    assert_eq!(checkpoints.largest_file.map(|size| size.0), Some(8_000_000));
    assert_eq!(checkpoints.keep_days.map(|days| days.0), Some(Duration::from_secs(7 * 24 * 3600)));
    assert_eq!(checkpoints.max_size.map(|size| size.0), Some(2 << 30));
    let names: Vec<&str> = config.providers.0.iter().map(|provider| provider.name.as_str()).collect();
    assert_eq!(names, ["openai", "work", "claude"]);
    let work = config.providers.get("work").unwrap();
    assert_eq!(work.models[0].price.map(|price| (price.input, price.output)), Some((0.5, 1.5)));
    let known = |name: &str| name == "FILES_KEY";
    let found: Vec<_> = config
        .mcp
        .0
        .iter()
        .map(|entry| mcp::config(&entry.name, &entry.value, &|name| known(name).then(|| "k".to_owned())))
        .collect();
    let files = found[0].as_ref().unwrap();
    assert_eq!((files.enabled, files.timeout, files.wants("write_file")), (false, Duration::from_secs(120), false));
    let Reach::Program { env, .. } = &files.reach else { panic!("{files:?}") };
    assert_eq!(env[1], ("KEY".to_owned(), "k".to_owned()));
    let missing = found[1].as_ref().unwrap_err();
    assert_eq!(missing, "`tracker` wants the variable TRACKER_KEY, which is not set");
    let rules: Vec<String> = rules(&config).0.iter().map(|rule| format!("{rule:?}")).collect();
    let rules = &rules[Rules::default().0.len()..];
    let permissions: Vec<&str> = config.permissions.0.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(permissions, ["*", "read", "edit", "bash"]);
    assert_eq!(rules.len(), 7);
    assert!(rules[0].contains("\"*\"") && rules[6].contains("git push *") && rules[6].contains("Deny"), "{rules:#?}");
}

#[test]
fn nothing_has_to_be_in_it() {
    let config = parse("").unwrap();
    assert!(config.model.is_none() && config.providers.0.is_empty() && config.permissions.0.is_empty());
}

#[test]
fn every_mistake_has_its_line_and_says_what_would_be_right() {
    let wrong = [
        (
            "modell = \"a/b\"",
            "line 1: unknown field `modell`, expected one of `model`, `instructions`, `titles`, `compact`",
        ),
        ("\n\nmodel = \"gpt-5\"", "line 3: a model is named provider/model"),
        ("model = 5", "line 1: invalid type: integer `5`, expected a string"),
        ("titles = \"none\"", "line 1: unknown variant `none`, expected `prompt` or `model`"),
        ("compact = \"often\"", "line 1: invalid type: a string, expected true, false, or a share from 0.1 to 1"),
        ("compact = 2", "line 1: this is a share from 0.1 to 1"),
        ("sandbox = \"strict\"", "line 1: unknown variant `strict`, expected one of `auto`, `require`, `none`"),
        ("sandbox = 1", "line 1: invalid type: integer `1`, expected a table with level, require, network and limits"),
        (
            "[sandbox]\nlevel = \"strict\"",
            "line 2: unknown variant `strict`, expected one of `auto`, `bubblewrap`, `landlock`, `none`",
        ),
        ("[sandbox]\nrequire = \"none\"", "line 2: a sandbox that can be required is \"bubblewrap\" or \"landlock\""),
        ("[sandbox]\nlevel = \"none\"\nrequire = true", "line 1: level = \"none\" is less than what `require` wants"),
        ("[sandbox]\nnetwork = \"some\"", "line 2: the network is \"on\", \"off\" or a list of hosts"),
        (
            "[sandbox]\nnetwork = [\"https://a.org\"]",
            "line 2: this is no host that can be listed; write \"example.org\"",
        ),
        ("[sandbox]\nprocesses = 0", "line 2: this is a count of at least 1"),
        ("[sandbox]\nnet = \"off\"", "line 2: unknown field `net`, expected one of `level`, `require`, `network`"),
        ("[mcp.a]\nurl = \"http://h\"\ncommand = [\"x\"]", "line 1: `a` has both command and url; give one"),
        ("\n[mcp.a]\nenabled = true", "line 2: `a` has neither command nor url; give one"),
        ("[mcp.\"a b\"]\ncommand = [\"x\"]", "line 1: `a b` cannot be the name of an MCP server"),
        ("[mcp.a]\nurl = \"ftp://h\"", "line 1: the url of the MCP server `a` has to begin with http:// or https://"),
        (
            "[mcp.a]\nurl = \"http://h\"\nheaders = { Authorization = \"Bearer k\" }",
            "line 3: the header `Authorization` carries a key",
        ),
        ("[mcp.a]\ncommand = [\"x\"]\nheaders = { a = \"b\" }", "line 1: `a` is a program and has no headers"),
        ("[mcp.a]\ncmd = [\"x\"]", "line 2: unknown field `cmd`, expected one of `command`, `env`, `url`"),
        ("[limits]\nsteps = 0", "line 2: this is a count of at least 1"),
        ("[limits]\nsteps = -1", "line 2: invalid value: integer `-1`, expected u32"),
        ("[limits]\nturn = \"soon\"", "line 2: this is no time; write \"90s\", \"5m\""),
        ("[limits]\nturn = \"0s\"", "line 2: this is no time"),
        ("[limits]\ncommand = -5", "line 2: this is no time"),
        ("[limits]\ncommand = 1.5", "line 2: invalid type: floating point `1.5`, expected a time such as"),
        (
            "[limits]\nseconds = 1",
            "line 2: unknown field `seconds`, expected one of `steps`, `turn`, `tries`, `command`",
        ),
        ("[ask]\notherwise = \"hope\"", "line 2: unknown variant `hope`, expected `reject` or `allow`"),
        ("[checkpoints]\nenabled = \"yes\"", "line 2: invalid type: a string, expected a boolean"),
        ("[checkpoints]\nbudget = 0", "line 2: this is no time; write \"90s\""),
        ("[checkpoints]\nlargest_file = \"big\"", "line 2: this is no size; write \"500KB\", \"32MB\" or \"2GB\""),
        ("[checkpoints]\nlargest_file = 0", "line 2: this is no size"),
        ("[checkpoints]\nmax_size = \"99999999999GB\"", "line 2: this is no size"),
        ("[checkpoints]\nmax_size = true", "line 2: invalid type: boolean `true`, expected a size such as \"32MB\""),
        ("[checkpoints]\nmost_files = 0", "line 2: this is a count of at least 1"),
        ("[checkpoints]\nkeep_days = 0", "line 2: this is a count of days, from 1 to 36500"),
        ("[checkpoints]\nkeep_days = -3", "line 2: this is a count of days"),
        (
            "[checkpoints]\nkeep = 3",
            "line 2: unknown field `keep`, expected one of `enabled`, `budget`, `largest_file`",
        ),
        ("[permissions]\nbsh = \"ask\"", "line 2: no permission is called `bsh`; there are `*`, `bash`"),
        ("[permissions.mcp]\n\"files_write\" = \"deny\"", "line 2: `files_write` fits no tool of an MCP server"),
        ("[permissions]\nbash = \"maybe\"", "line 2: unknown variant `maybe`, expected one of `allow`, `ask`, `deny`"),
        (
            "[permissions]\nbash = true",
            "line 2: invalid type: boolean `true`, expected \"allow\", \"ask\", \"deny\" or a table",
        ),
        ("[permissions.bash]\n\"git *\" = \"yes\"", "line 2: unknown variant `yes`, expected one of `allow`"),
        ("[providers.mine]\nwire = \"openai\"", "line 1: `mine` is no provider that is known (anthropic, openai,"),
        (
            "[providers.mine]\nwire = \"soap\"",
            "line 2: unknown variant `soap`, expected one of `openai`, `anthropic`, `genai`",
        ),
        ("[providers.openai]\nbase_url = \"api.openai.com\"", "line 2: a base URL starts with http:// or https://"),
        ("[providers.openai]\nbase_url = \"https://me:pw@host/v1\"", "line 2: a base URL starts with"),
        ("[providers.openai]\nkey_env = \"A\"\nkey_file = \"b\"", "line 1: `openai` has both key_env and key_file"),
        ("[providers.openai]\nheaders = { Authorization = \"x\" }", "line 2: the header `Authorization` carries a key"),
        ("[providers.openai]\nheaders = { \"a b\" = \"x\" }", "line 2: `a b` is no header that can be sent"),
        ("[providers.\"a/b\"]\nwire = \"openai\"", "line 1: `a/b` cannot be a provider's name"),
        ("[providers.demo]\nwire = \"openai\"\nbase_url = \"http://x\"", "line 1: `demo` is the demo's own name"),
        ("[[providers.openai.models]]\nname = \"x\"", "line 1: missing field `id`"),
        ("[[providers.openai.models]]\nid = \"x\"\n[[providers.openai.models]]\nid = \"x\"", "has the model `x` twice"),
        ("[[providers.openai.models]]\nid = \"x\"\nprice = { input = nan }", "a price of `openai/x` is no sum"),
        ("[web]\nallow = [\"http://a\"]", "line 2: this is no host; write a name or an address"),
        ("[web]\nallow = \"a\"", "line 2: invalid type"),
        ("[web]\nsearch = \"bing\"", "line 2: unknown variant `bing`, expected one of `searxng`, `brave`, `tavily`"),
        ("[web]\nsearch = \"searxng\"", "[web] needs search_url"),
        ("[web]\nsearch = \"brave\"", "[web] needs search_key"),
        ("[web]\nsearch_url = \"http://a\"", "[web] says where to search and not what with"),
        ("[web]\nsearch_url = \"a\"", "line 2: a base URL starts with"),
        ("[web]\nsearch_key = \"x\"", "line 2: search_key is where the key is"),
        ("model = ", "line 1: "),
        ("[limits]\n[limits]", "line 2: "),
    ];
    for (text, message) in wrong {
        let said = mistake(text);
        assert!(said.contains(message), "{text:?}\n  said     {said}\n  expected {message}");
    }
}

#[test]
fn a_key_in_the_file_is_refused_and_never_repeated() {
    for text in [
        "[providers.openai]\nkey = \"sk-secret-123\"",
        "[providers.openai]\napi_key = \"sk-secret-123\"",
        "[providers.openai]\nkey_env = \"sk-secret-123\"",
        "[providers.openai]\nsecret = \"sk-secret-123\"",
        "[providers]\nopenai = \"sk-secret-123\"",
        "[providers.openai]\nheaders = \"sk-secret-123\"",
        "[providers.openai]\nheaders = { x-api-key = \"sk-secret-123\" }",
        "[providers.openai]\nidle_timeout = \"sk-secret-123\"",
        "[providers.openai]\nbase_url = \"sk-secret-123\"",
        "[providers.openai]\nkey = \"sk-secret-123",
        "[limits]\nsteps = \"sk-secret-123\"",
        "model = \"sk-secret-123\"",
        "[web]\nsearch = \"brave\"\nsearch_key = \"sk-secret-123\"",
        "[web]\nsearch_key = \"env:sk-secret-123\"",
    ] {
        let said = mistake(text);
        assert!(said.contains("line "), "{said}");
        assert!(!said.contains("secret-123"), "{text:?}: {said}");
    }
    assert!(mistake("[providers.openai]\nkey = \"x\"").contains("name an environment variable with key_env"));
}

#[test]
fn the_place_is_the_persons_own() {
    let at = |variables: &[(&str, &str)]| {
        let environment = variables.iter().fold(Environment::default(), |all, (name, value)| all.with(name, value));
        usual_place(&environment).map(|path| path.display().to_string())
    };
    assert_eq!(at(&[("HOME", "/home/a")]).as_deref(), Some("/home/a/.config/tolka/tolka.toml"));
    let set = [("HOME", "/home/a"), ("XDG_CONFIG_HOME", "/x")];
    assert_eq!(at(&set).as_deref(), Some("/x/tolka/tolka.toml"));
    let relative = [("HOME", "/home/a"), ("XDG_CONFIG_HOME", "x")];
    assert_eq!(at(&relative).as_deref(), Some("/home/a/.config/tolka/tolka.toml"), "a relative one does not count");
    assert_eq!(at(&[]), None);
}

#[test]
fn a_file_that_was_named_has_to_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment::default().with("XDG_CONFIG_HOME", folder.path().to_str().unwrap());
    assert!(ConfigArgs::default().read(&environment).unwrap().model.is_none());
    let path = folder.path().join("mine.toml");
    let named = ConfigArgs { config: Some(path.clone()) };
    let said = format!("{:#}", named.read(&environment).unwrap_err());
    assert!(said.contains("mine.toml cannot be used: No such file"), "{said}");
    std::fs::write(&path, "\nmodel = 1").unwrap();
    let said = format!("{:#}", named.read(&environment).unwrap_err());
    assert!(said.contains("mine.toml cannot be used: line 2: "), "{said}");
    std::fs::create_dir(folder.path().join("tolka")).unwrap();
    std::fs::write(folder.path().join("tolka/tolka.toml"), "model = \"openai/gpt-5\"").unwrap();
    assert!(ConfigArgs::default().read(&environment).unwrap().model.is_some());
}

#[test]
fn what_may_be_secret_is_not_shown() {
    let config = parse(
        "[providers.work]\nwire = \"openai\"\nbase_url = \"https://example.com/v1?key=sk-1234\"\n\
         headers = { x-team = \"sk-5678\" }",
    )
    .unwrap();
    let work = config.providers.get("work").unwrap();
    assert_eq!(work.headers.0[0].value.expose(), "sk-5678");
    let shown = format!("{config:?}");
    assert!(shown.contains("https://example.com/v1") && !shown.contains("sk-"), "{shown}");
}

#[test]
fn sizes_and_ages_are_read_as_people_write_them() {
    let size = |text: &str| text.parse::<Size>().ok().map(|size| size.0);
    assert_eq!(size("2GB"), Some(2_000_000_000));
    assert_eq!(size(" 3 mib "), Some(3 << 20));
    assert_eq!(size("7"), Some(7));
    assert_eq!([size("0"), size("GB"), size("1.5GB"), size("-1GB"), size("2XB"), size("")], [None; 6]);
    let age = |text: &str| text.parse::<Age>().ok().map(|age| age.0.as_secs());
    assert_eq!(age("7d"), Some(7 * 24 * 3600));
    assert_eq!([age("0d"), age("12h"), age("2w")], [Some(0), Some(12 * 3600), Some(14 * 24 * 3600)]);
    assert_eq!([age("7"), age("d"), age("7y"), age("99999999d"), age("18446744073709551615w")], [None; 5]);
}
