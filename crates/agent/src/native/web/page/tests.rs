use super::*;

fn base() -> Url {
    Url::parse("https://example.com/docs/page.html").unwrap()
}

fn markdown(html: &str) -> String {
    told(html, &base(), Shape::Markdown, 1 << 20).0
}

#[test]
fn a_page_is_told_as_markdown() {
    for (html, expected) in [
        (
            "<h1>Title</h1><p>Some\n  <b>bold</b> and <i>soft</i> words.</p><p>More.",
            "# Title\n\nSome **bold** and *soft* words.\n\nMore.",
        ),
        ("<ul><li>one<li>two<ul><li>in</ul><li>three</ul>after", "- one\n- two\n  - in\n- three\n\nafter"),
        ("<ol start=3><li>a</li><li>b</li></ol>", "3. a\n4. b"),
        (
            "<a href=../x>there</a>, <a href='#y'>here</a>, <a href='javascript:x()'>no</a>",
            "[there](https://example.com/x), here, no",
        ),
        ("<a href=/a><b>bold</b> link</a>", "[**bold** link](https://example.com/a)"),
        ("<pre><code>fn main() {\n    x\n}\n</code></pre>then", "```\nfn main() {\n    x\n}\n```\n\nthen"),
        ("<pre>a ``` b</pre>", "````\na ``` b\n````"),
        ("<p>call <code>f()</code>.</p>", "call `f()`."),
        ("<blockquote><p>one</p><p>two</p></blockquote>three", "> one\n>\n> two\n\nthree"),
        ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "a | b\n--- | ---\n1 | 2"),
        ("<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>", "a | b\n--- | ---\n1 | 2"),
        ("<table><tr><td><p>a</p><div>b</div></td><td>c</td></tr></table>", "a b | c"),
        ("<img src=/i.png alt='A cat'> <img src=x>", "![A cat](https://example.com/i.png)"),
        ("a<br>b<hr>c", "a\nb\n\n---\n\nc"),
        ("&lt;b&gt; &amp; &copy; &#x41; &nbsp;x", "<b> & © A x"),
        ("<base href=https://other.test/><a href=a>x</a>", "[x](https://other.test/a)"),
    ] {
        assert_eq!(markdown(html), expected, "{html}");
    }
}

#[test]
fn plain_words_have_no_marks() {
    let html = "<h2>Title</h2><p>A <b>bold</b> <a href=/x>link</a></p><pre>code\n  in</pre><ul><li>one</ul>";
    assert_eq!(told(html, &base(), Shape::Text, 1000).0, "Title\n\nA bold link\n\ncode\n  in\n\n- one");
}

#[test]
fn what_is_not_for_readers_is_left_out() {
    for (html, expected) in [
        ("a<script>if (a < b) { '</p>' }</script>b", "a b"),
        ("<head><title>T</title><style>p { }</style></head><body>b", "b"),
        ("<div hidden>x<div>y</div>z</div>b", "b"),
        ("<div style='color: red; DISPLAY : none'>x</div>b", "b"),
        ("<span aria-hidden=true>x</span>b", "b"),
        ("<p hidden>x<p>b", "b"),
        ("<ul><li hidden>x<div>y</div></ul>b", "b"),
        ("<ul><li hidden>x<li>b</ul>", "- b"),
        ("<svg><path/><text>x</text></svg>b<!-- c -->", "b"),
        ("<noscript>Please enable</noscript>b", "b"),
        ("<body hidden>all of it", "all of it"),
    ] {
        assert_eq!(markdown(html), expected, "{html}");
    }
}

#[test]
fn a_hostile_page_is_only_ugly() {
    let deep = |open: &str, n: usize| format!("{}word", open.repeat(n));
    for html in [
        deep("<div>", 60_000),
        deep("<b><i>", 30_000),
        deep("<ul><li>", 30_000),
        deep("<blockquote>", 30_000),
        deep("<table><tr><td>", 30_000),
        deep("<a href=x>", 30_000),
        deep("<div hidden>", 30_000),
        deep("</div></ul></table></blockquote></b></a></pre>", 10_000),
        deep("<pre>", 30_000),
        format!("<p {}>word", "a=b ".repeat(30_000)),
        "<".repeat(60_000),
        format!("<script>{}", "x".repeat(300_000)),
        "\0\u{1}\u{7f}word\u{fffd}<\0>".to_owned(),
    ] {
        let (told, _) = told(&html, &base(), Shape::Markdown, 1 << 20);
        assert!(told.len() <= html.len() * 2 + 1000, "{} of {}", told.len(), html.len());
        assert!(!told.chars().any(|c| c.is_control() && c != '\n'), "{}", &told[..told.floor_char_boundary(80)]);
    }
}

#[test]
fn a_long_page_is_cut() {
    let (told, is_cut) = told(&"<p>some words".repeat(10_000), &base(), Shape::Markdown, 1000);
    assert!(is_cut && told.len() < 1100, "{}", told.len());
}
