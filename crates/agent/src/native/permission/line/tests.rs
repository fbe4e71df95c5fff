use super::*;

#[track_caller]
fn check(line: &str, commands: &[&str], is_odd: bool) {
    let read = Line::read(line);
    let found: Vec<_> = read.commands.iter().map(Command::plain).collect();
    assert_eq!(
        (found.iter().map(String::as_str).collect::<Vec<_>>(), read.is_odd),
        (commands.to_vec(), is_odd),
        "{line}"
    );
}

#[test]
fn every_command_of_a_line_is_found() {
    for (line, commands) in [
        ("ls", &["ls"][..]),
        ("ls -la && git status", &["ls -la", "git status"]),
        ("a || b; c | d |& e\nf", &["a", "b", "c", "d", "e", "f"]),
        ("echo 'a; b && c' \"d | e\"", &[r"echo a\;\ b\ \&\&\ c d\ \|\ e"]),
        (r"echo a\;b", &[r"echo a\;b"]),
        ("ls # && rm -rf x", &["ls"]),
        ("ls# && a#b #c", &["ls#", "a#b"]),
        ("ls \\\n -la", &["ls -la"]),
        ("l\\\ns", &["ls"]),
        ("ls 2>/dev/null", &["ls"]),
        ("ls >/dev/null -la </dev/null", &["ls -la"]),
        (">/dev/null rm x", &["rm x"]),
        ("make 2>&1 | tail", &["make", "tail"]),
        ("make >\\\n&2 | tail", &["make", "tail"]),
        ("a 2 >&- b", &["a 2 b"]),
        ("r\"\"m 'x' \\y", &["rm x y"]),
        ("'rm x' '' \"\"", &[r"rm\ x '' ''"]),
        ("echo \"a\\b\\\\\\\"\" '\\'", &["echo a\\\\b\\\\\\\" \\\\"]),
        ("git diff HEAD~1 @{u}", &["git diff HEAD~1 @{u}"]),
        ("[ -f a ]", &["[ -f a ]"]),
        ("  ", &[]),
        ("# only words", &[]),
    ] {
        check(line, commands, false);
    }
}

#[test]
fn what_is_more_than_words_is_odd() {
    for (line, commands) in [
        ("echo $(rm -rf x)", &["rm -rf x", "echo ''"][..]),
        ("echo \"$(a; rm -rf x)\"; b", &["a", "rm -rf x", "echo ''", "b"]),
        ("echo $(a $(b \")\"))", &[r"b \)", "a ''", "echo ''"]),
        ("echo `rm x`", &["rm x", "echo ''"]),
        ("echo \"`rm x`\"", &["rm x", "echo ''"]),
        // A quote inside does not reach beyond.
        ("echo `'` | rm x", &["''", "echo ''", "rm x"]),
        ("echo \"`\"` | rm x\"", &["''", "echo \\ \\|\\ rm\\ x"]),
        ("echo $(rm x", &["rm x", "echo ''"]),
        ("echo ${x:- #}; rm x", &["echo ''", "rm x"]),
        (r"echo $'\''; rm x #'", &["echo ''", "rm x"]),
        ("((a # b)); rm x", &["b", "rm x", "a"]),
        ("r$()m ${x}y", &["y", "rm y"]),
        ("$x rm y", &["rm y", "y", "$x rm y"]),
        ("(cd a; rm b)", &["cd a", "rm b"]),
        ("f(){ rm x;}", &["f", "rm x"]),
        ("case a in a) rm x;; esac", &["a in a", "rm x"]),
        ("ls > out", &["ls"]),
        ("ls >> ~/.bashrc", &["ls"]),
        ("ls >/dev/nullx", &["ls"]),
        ("ls >|x", &["ls", "x"]),
        ("ls >&x", &["ls"]),
        ("ls >", &["ls"]),
        ("ls &> out", &["ls", "ls"]),
        ("git &>/dev/null push", &["git", "push", "git push"]),
        ("cat < in", &["cat"]),
        ("cat <<E\nrm x\nE", &["cat", "rm x", "E"]),
        ("diff <(a) <(b)", &["a", "b", "diff"]),
        ("sleep 9 &", &["sleep 9"]),
        ("LD_PRELOAD=x ls", &["ls"]),
        ("a[1+1]=x ls", &["ls"]),
        ("for x in a; do rm $x; done", &["x in a", "rm $x"]),
        ("if a; then b; fi", &["a", "b"]),
        ("echo 'open", &["echo open"]),
        ("echo \"open", &["echo open"]),
        ("sudo ls", &["ls", "sudo ls"]),
        ("/usr/bin/env -i rm x", &["-i rm x", "rm x", "x", "/usr/bin/env -i rm x"]),
        ("echo {a,b}", &["echo {a,b}"]),
        ("echo {1..3}", &["echo {1..3}"]),
        ("/bin/r? x", &["/bin/r? x"]),
        ("ls \\", &["ls"]),
        ("ls\ra", &["ls\ra"]),
        ("ls\u{a0}a", &["ls\u{a0}a"]),
    ] {
        check(line, commands, true);
    }
}

#[test]
fn what_files_are_called_may_change_a_word() {
    let is_open = |line| Line::read(line).commands[0].words.iter().any(|word| word.is_open);
    for line in ["a *", "a b?", "a [x]", "a ~", "a x=~/y"] {
        assert!(is_open(line), "{line}");
    }
    for line in ["a '*'", r"a b\?", "a HEAD~1", "a \"[x]\"", "a b"] {
        assert!(!is_open(line), "{line}");
    }
}

#[test]
fn no_line_takes_long() {
    let lines = ["(", "$(", "${", "\"${", "(#", "a &>b ", "env ", "'", "`", "{,", "$'"].map(|part| part.repeat(40_001));
    for line in lines {
        let began = std::time::Instant::now();
        assert!(Line::read(&line).is_odd, "{}", &line[..8]);
        assert!(began.elapsed().as_secs() < 5, "{}", &line[..8]);
    }
}

proptest::proptest! {
    /// Whatever it is, it is read; and the same again when it is written in the one way.
    #[test]
    fn any_line_can_be_read(line in "([a-z ;|&$()`'\"<>\\\\\n#={}!*~]|ö){0,60}") {
        let read = Line::read(&line);
        for command in read.commands.iter().filter(|_| !read.is_odd) {
            let again = Line::read(&command.plain());
            proptest::prop_assert_eq!(again.commands[0].plain(), command.plain());
            let words = |command: &Command| command.words.iter().map(|word| word.text.clone()).collect::<Vec<_>>();
            proptest::prop_assert_eq!((again.is_odd, words(&again.commands[0])), (false, words(command)));
        }
    }
}
