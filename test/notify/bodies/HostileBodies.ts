import * as fc from "fast-check"

/** Bodies that want to run a script, to load something, to lead astray, or to be too much, in each of the formats. */

/** Each would set this, if it ran. */
export const mark = "globalThis.ran=1"

const escape = "\u001b"

const scripts = [
  `<script>${mark}</script>`,
  `</pre></div><script>${mark}</script>`,
  `<img src=x onerror=${mark}>`,
  `<svg onload=${mark}>`,
  `<svg><script>${mark}</script></svg>`,
  `<math><mtext></mtext><mglyph><style><img src=x onerror=${mark}></style></mglyph></math>`,
  `<iframe srcdoc="<script>parent.${mark}</script>"></iframe>`,
  `<details open ontoggle=${mark}>`,
  `<a href="javascript:${mark}" autofocus onfocus=${mark}>x</a>`,
  `"><script>${mark}</script>`,
  `' onmouseover='${mark}`,
  `&lt;script&gt;${mark}&lt;/script&gt;`,
  `&#60;script&#62;${mark}&#60;/script&#62;`,
  `<!--><script>${mark}</script>-->`,
  `<![CDATA[<script>${mark}</script>]]>`,
  `<base href="http://evil.test/"><meta http-equiv=refresh content="0;url=http://evil.test/">`,
  `<link rel=stylesheet href=http://evil.test/x.css><style>@import "http://evil.test/y.css"</style>`,
  `<form action=http://evil.test/><input name=q><button autofocus>go</button></form>`,
  `<template><script>${mark}</script></template><noscript><p title="</noscript><img src=x onerror=${mark}>">`,
  `\u003cscript\u003e${mark}\u003c/script\u003e`,
  `\uff1cscript\uff1e${mark}\uff1c/script\uff1e`
]

const addresses = [
  `javascript:${mark}`,
  `JaVaScRiPt:${mark}`,
  ` javascript:${mark}`,
  `\u0001javascript:${mark}`,
  `java\tscript:${mark}`,
  `java\nscript:${mark}`,
  `java&Tab;script:${mark}`,
  `java&NewLine;script:${mark}`,
  `javascript&colon;${mark}`,
  `&#106;avascript:${mark}`,
  `&#x6A;avascript:${mark}`,
  `javascript\\:${mark}`,
  `%6aavascript:${mark}`,
  `vbscript:${mark}`,
  `data:text/html,<script>${mark}</script>`,
  "data:text/html;base64,PHNjcmlwdD5nbG9iYWxUaGlzLnJhbj0xPC9zY3JpcHQ+",
  `data:image/svg+xml,<svg onload="${mark}"/>`,
  "blob:http://evil.test/1",
  "file:///etc/passwd",
  "//evil.test/x",
  "/n/me",
  "?source",
  "#main",
  "ftp://evil.test/x",
  "http:evil.test",
  'https://evil.test/"onmouseover="' + mark,
  "https://evil.test/<b>",
  "https://evil.test/\u202egpj.exe"
]

const markdown = [
  ...addresses.flatMap((address) => [
    `[text](${address})`,
    `[text](<${address}>)`,
    `![text](${address})`,
    `<${address}>`,
    `[text][a]\n\n[a]: ${address} "title"`
  ]),
  `[![x](http://evil.test/1.png)](http://evil.test/2)`,
  `![a ![b](http://evil.test/b) c](http://evil.test/a)`,
  `![x](http://evil.test/"onerror="${mark})`,
  `[x](http://evil.test 'y" onclick="${mark}')`,
  `[a](<http://evil.test/ "onclick=${mark}>)`,
  `\`\`\`"><script>${mark}</script>\n<script>${mark}</script>\n\`\`\``,
  `\`\`\`js onload=${mark}\nx\n\`\`\``,
  `| a | b |\n|:-:|--:|\n| <script>${mark}</script> | [x](javascript:${mark}) |`,
  `# <img src=x onerror=${mark}> {#id onclick=${mark}}`,
  "999999999. far\n\n0. zero",
  `${"> ".repeat(200)}deep`,
  `${"- ".repeat(200)}deep`,
  `<http://evil.test/?a="b'c>`,
  "https://evil.test/a_b*c*d~~e~~ www.evil.test evil@evil.test main.rs"
]

const terminal = [
  `${escape}]8;;javascript:${mark}${escape}\\click${escape}]8;;${escape}\\`,
  `${escape}]8;;http://evil.test/\u0007click${escape}]8;;\u0007`,
  `${escape}]0;<script>${mark}</script>\u0007title`,
  `${escape}]2;never ended <b>`,
  `${escape}P+q<script>${mark}</script>${escape}\\dcs`,
  `${escape}_apc${escape}\\${escape}^pm${escape}\\${escape}Xsos${escape}\\`,
  `${escape}[31"><script>${mark}</script>m red`,
  `${escape}[38;2;999;0;0mx${escape}[38;5mx${escape}[48;5;300mx${escape}[38;5;-1mx`,
  `${escape}[38;2;1;2;3;4;48;5;17;1;2;3;4;7;9mall${escape}[0m`,
  `${escape}[38:2::255:0:0mcolons${escape}[4:3mcurly${escape}[4:0mnone`,
  `${escape}[?25l${escape}[2J${escape}[H${escape}[6n${escape}c${escape}(B${escape}#8${escape}`,
  `${escape}[${"1;".repeat(1_000)}mlong`,
  `\u009b31mC1\u009d8;;http://evil.test/\u009cx\u0085y\u0090z`,
  `a\bb\u0007c\rd\u0000e\u007ff\u000bg\fh`,
  "10%\r20%\r100%\r\n"
]

const json = [
  '{"__proto__":{"a":1},"constructor":{"prototype":1},"__proto__":2,"toString":3}',
  JSON.stringify(Object.fromEntries(scripts.map((script) => [script, script]))),
  JSON.stringify(addresses),
  '["\\u003cscript\\u003e","\\ud800","\\u202e","\\u0000","\ud800","\u202e","\u2028"]',
  '{"https://evil.test/\\"":"https://evil.test/\\" onclick=\\"x","b":"https://evil.test/<script>"}',
  "[1e400,-0,1E-7,12345678901234567890,0.1000]",
  `${"[".repeat(64)}${"]".repeat(64)}`,
  `${"[".repeat(65)}${"]".repeat(65)}`,
  `${'{"a":'.repeat(64)}"${"x".repeat(200)}"${"}".repeat(64)}`,
  `${"[".repeat(1_000)}${"]".repeat(1_000)}`,
  "[".repeat(1_000),
  `[${"{},".repeat(1_000)}{}]`,
  '{"a":1,}',
  "[1 2]",
  "{'a':1}",
  '{"a":1}{"b":2}',
  "[]",
  "{}",
  " \ufeff[1]",
  '"text"',
  "null"
]

const letters = [
  "\u202eevil\u202c \u2066isolated\u2069 \u200f\u200e\u061c",
  "\ud800 lone \udc00 halves \udbff",
  "NUL \u0000 ESC \u001b DEL \u007f C1 \u0085 BOM \ufeff noncharacter \uffff",
  "\u2028line\u2029paragraph",
  `e${"\u0301".repeat(1_000)}`,
  "👩‍👩‍👧‍👦".repeat(200),
  "\r\r\n\n\t\v\f",
  "",
  " ",
  "\n".repeat(1_000),
  `http://${"a".repeat(3_000)}`,
  "http://a.b)))))... (http://a.b/(c)) http:// https://[::1 http://user:pass@evil.test",
  "a < b > c & d \" e ' f"
]

const repeated = [
  "[",
  "![",
  "[a](",
  "[](https://a ",
  "*",
  "*a **a ",
  "_a",
  "`",
  "``a`",
  "~~a",
  "<",
  "<a ",
  "<!--",
  "<![CDATA[",
  "&",
  "&#",
  "\\",
  "](",
  "| ",
  "> ",
  "- ",
  "1. ",
  "http://",
  "mailto:a@b.",
  "<a@b.c>",
  "{",
  '"',
  "[1,",
  '{"a":',
  `${escape}`,
  `${escape}[`,
  `${escape}]`,
  `${escape}[31m`,
  "2026-11-23T04:00:00Z ",
  "[ERROR] "
]

/** All, each with a name to be found by. */
export const hostileBodies: ReadonlyArray<string> = [
  ...scripts,
  ...addresses,
  ...markdown,
  ...terminal,
  ...json,
  ...letters,
  ...repeated.map((text) => text.repeat(Math.ceil(300 / text.length)))
]

/** 1 MB each, of what costs most. */
export const largeBodies = (bytes: number): ReadonlyArray<readonly [name: string, text: string]> => [
  ["words", filled("The quick <b>brown</b> fox, https://example.com/a?b=c&d. ", bytes)],
  ["one line", "x".repeat(bytes)],
  ["quotes", '"'.repeat(bytes)],
  ["newlines", "\n".repeat(bytes)],
  ["a log", filled("2026-11-23T04:00:00.123Z ERROR http://localhost:8080/ failed\n", bytes)],
  ["colours", filled(`${escape}[31ma${escape}[1;38;5;200mb`, bytes)],
  ["sequences without an end", filled(`${escape}]`, bytes)],
  ["numbers", `[${filled("1,", bytes - 3)}1]`.replace(",,", ",")],
  [
    "objects",
    `[${Array.from({ length: Math.floor(bytes / 34) }, (_, id) => `{"id":${id % 10},"name":"a<b","n":[]}`).join(",")}]`
  ],
  ["deep lists", `[${filledList(`${"[".repeat(60)}"${"x".repeat(60)}"${"]".repeat(60)}`, bytes)}]`],
  ["open brackets", filled("[", bytes)],
  ["sequences that set nothing", filled(`${escape}[`, bytes)],
  ["addresses", filled("http://a.b/((((.... ", bytes)]
]

/** Beginnings without an end. */
export const repeatedBodies = (bytes: number): ReadonlyArray<readonly [name: string, text: string]> =>
  repeated.map((text) => [`${JSON.stringify(text)} over and over`, filled(text, bytes)])

const filled = (text: string, bytes: number): string => {
  const whole = text.repeat(Math.ceil(bytes / text.length))
  return text.length % 2 === 0 ? whole.slice(0, bytes - (bytes % text.length)) : whole.slice(0, bytes)
}

const filledList = (item: string, bytes: number): string =>
  Array.from({ length: Math.floor(bytes / (item.length + 1)) }, () => item).join(",")

/** Parts of the syntaxes of all formats, in any order: far more of it is valid than of any text. */
export const fragments = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        ..."[ ] ( ) ! < > & \" ' ` ``` * ** _ ~~ # | - > : ; , { } \\ / = \n \t \r \u0000 \u001b \u001b[ \u001b] m 31 1; \u009b \u202e \ud800".split(
          " "
        ),
        "http://a.b/",
        "javascript:x",
        "<script>",
        "</pre>",
        "&lt;",
        "&#60;",
        "\n\n",
        "    ",
        "|---|\n",
        "2026-11-23T04:00:00Z"
      ),
      fc.string({ maxLength: 4, unit: "binary" })
    ),
    { maxLength: 40 }
  )
  .map((parts) => parts.join(""))
