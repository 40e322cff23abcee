/** Texts that would do something in some chat, or break one: each is a message of 1 to 4,000 UTF-16 units. */
export interface HostileText {
  readonly name: string
  readonly text: string
}

const family = "\u{1F469}\u200D\u{1F469}\u200D\u{1F467}\u200D\u{1F466}"
const flag = "\u{1F1E9}\u{1F1EA}"

const mentions: ReadonlyArray<HostileText> = [
  { name: "mentions of everybody", text: "@everyone @here @channel @all @group" },
  { name: "mentions without spaces", text: "(@everyone),@here.@channel!@all;_@everyone_ x@everyone" },
  { name: "Slack's commands", text: "<!channel> <!here> <!everyone> <!subteam^S012AB3CD|@admins>" },
  { name: "Slack's people and channels", text: "<@U012AB3CD> <@W012|bob> <#C012AB3CD> <#C012|general>" },
  { name: "Slack's dates", text: "<!date^1392734382^{date_num} {time_secs}|Feb 2014>" },
  { name: "Slack's commands as entities", text: "&lt;!channel&gt; &amp;lt;!here&amp;gt; &#60;!all&#62;" },
  {
    name: "Discord's people, roles and channels",
    text: "<@123456789012345678> <@!1> <@&1> <#1> </say:1> <id:home>"
  },
  {
    name: "Discord's instants and emojis",
    text: "<t:1618953630:R> <:party:41771983429993937> <a:dance:417719>"
  },
  { name: "Telegram's people", text: '@durov [bob](tg://user?id=123) <a href="tg://user?id=1">bob</a>' },
  { name: "commands of bots", text: "/start /stop@bot /settings abc" },
  { name: "channels and tags of Mattermost", text: "~town-square #incident #1 ~off-topic" },
  {
    name: "mentions with invisible letters",
    text: "@\u200Beveryone <\u200B!channel> @\u2060here <@\u200D123>"
  },
  { name: "wide letters", text: "\uFF20everyone \uFF1C!channel\uFF1E \uFF0A\uFF0Abold\uFF0A\uFF0A" },
  { name: "an address with a mention", text: "https://example.com/@everyone/@here?x=<@123>&y=@channel" },
  { name: "mail addresses", text: "ops@example.com mailto:ops@example.com <ops@example.com>" }
]

const links: ReadonlyArray<HostileText> = [
  {
    name: "links that hide in Markdown",
    text: '[your bank](https://evil.example) [x](<https://evil.example> "t")'
  },
  { name: "links that hide in Slack", text: "<https://evil.example|your bank> <mailto:a@evil.example|mail>" },
  { name: "an image", text: "![alt](https://evil.example/track.png) !<https://evil.example|x>" },
  { name: "links by reference", text: "[your bank][1] and [1]\n\n[1]: https://evil.example 'title'" },
  {
    name: "an address in brackets",
    text: "<https://evil.example> <http://evil.example/a|> [](https://evil.example)"
  },
  {
    name: "an address as a label",
    text: "[https://bank.example](https://evil.example) <https://evil.example|https://bank.example>"
  },
  { name: "bare addresses", text: "see https://example.com/a_b_c/*x*?q=[1]&r=(2), http://b.example." },
  {
    name: "an address beside marks",
    text: "**https://example.com/** _https://example.com/_ `https://example.com/`"
  },
  {
    name: "schemes that run something",
    text: "[x](javascript:alert(1)) <javascript:alert(1)|x> [y](data:text/html,x)"
  },
  {
    name: "a name and password",
    text: "https://bank.example@evil.example/ https://bank.example:443@evil.example"
  },
  { name: "invitations", text: "discord.gg/abc t.me/joinchat/abc www.evil.example" },
  {
    name: "HTML",
    text: '<a href="https://evil.example">bank</a><b>bold</b><script>x</script><img src=x onerror=y>&copy;'
  }
]

const marks: ReadonlyArray<HostileText> = [
  { name: "bold, italic, struck", text: "*a* **b** ***c*** _d_ __e__ ___f___ ~g~ ~~h~~ _*i*_ a*b*c a_b_c" },
  { name: "spoilers", text: "||hidden|| | a | || ||\nb\n||" },
  { name: "code", text: "`a` ``b`` ```c``` `d" },
  { name: "a fence", text: "before\n```js\nalert('*x*')\n```\nafter\n~~~\ny\n~~~" },
  { name: "an open fence", text: "```\nnever closed **b**" },
  {
    name: "headings",
    text: "# a\n## b\n### c\n-# small\n   # indented\n#no heading\nSetext\n===\nOther\n---"
  },
  { name: "quotes", text: "> a\n>> b\n>>> c\n  > d\n&gt; e" },
  { name: "lists", text: "- a\n* b\n+ c\n  - d\n1. e\n2) f\n- [x] done\n- [ ] open\n• g" },
  { name: "code by indentation", text: "a\n\n    rm -rf /\n\n\tb" },
  { name: "a table", text: "| a | b |\n|---|---|\n| **c** | d |\n\na | b\n--- | ---\nc | d" },
  { name: "rules", text: "a\n\n---\n\n***\n\n___\n\n- - -" },
  { name: "escapes", text: String.raw`\*a\* \\*b\\* \[c\](d) \_ \\\ C:\Users\_x\*.txt \n \@everyone` },
  { name: "a backslash at the end", text: "the end \\" },
  { name: "formulas and colours", text: "$x^2$ $$y$$ \\(z\\) \\[w\\] color:#ff0000" },
  { name: "names of emojis", text: ":smile: :+1::skin-tone-2: :a:b:c: 12:30:45 :100:" },
  { name: "words with underscores", text: "test_user_login_x __init__ _a _b_ 1_2_3 ä_b_ö x__y" },
  { name: "marks that are not closed", text: "*a _b ~c `d **e [f (g <h |i" },
  { name: "entities", text: "&amp; &lt;b&gt; &#42;x&#42; &copy &nbsp;" }
]

const letters: ReadonlyArray<HostileText> = [
  { name: "overrides of direction", text: "\u202Egpj.exe \u202Dabc\u202C \u2066x\u2069 \u2067y" },
  {
    name: "letters from right to left",
    text: "\u05E9\u05DC\u05D5\u05DD *\u0645\u0631\u062D\u0628\u0627* https://example.com"
  },
  { name: "invisible letters", text: "a\u200Bb\u200Cc\u200Dd\u2060e\uFEFFf\u00ADg" },
  { name: "invisible letters before marks", text: "\u200B# a\n\u200B> b\n\u2060*c\u2060*\n*\u200Bd\u200B*" },
  { name: "other ends of lines", text: "a\r\n# b\r> c\u2028# d\u2029- e\u0085> f\u000B# g" },
  { name: "halves of pairs", text: "\uD83D a \uDC69 \uD800\uD800 \uDFFF" },
  { name: "controls", text: "a\u0007b\u001B[31mred\u001B[0m\u0000c\u007F" },
  { name: "only spaces", text: " \u00A0\u3000\t " },
  { name: "only an override", text: "\u202E" },
  { name: "many lines", text: "\n".repeat(3_999) + "x" },
  { name: "indentation of spaces of all kinds", text: "\u00A0\u2003\u3000# a\n \t - b" }
]

const long: ReadonlyArray<HostileText> = [
  { name: "4,000 letters", text: "x".repeat(4_000) },
  { name: "4,000 marks that are escaped", text: "*".repeat(4_000) },
  { name: "4,000 backslashes", text: "\\".repeat(4_000) },
  { name: "4,000 ampersands", text: "&".repeat(4_000) },
  { name: "4,000 mentions", text: "<!channel> @everyone ".repeat(190) },
  { name: "combining marks without an end", text: `e${"\u0301".repeat(3_999)}` },
  { name: "combining marks", text: `e${"\u0301".repeat(9)}`.repeat(400) },
  { name: "families at the cut", text: family.repeat(360) },
  { name: "flags at the cut", text: flag.repeat(1_000) },
  { name: "flags at the cut, a unit later", text: `x${flag.repeat(999)}` },
  { name: "pairs at the cut", text: `x${"\u{1D11E}".repeat(1_999)}` },
  {
    name: "an address at the cut",
    text: `https://bank.example.${"a".repeat(1_850)}.evil.example/${"b".repeat(2_100)}`
  },
  { name: "addresses", text: "https://example.com/a_(b) ".repeat(150) },
  { name: "an escape at the cut", text: `${"x".repeat(1_900)}${"**".repeat(1_050)}` },
  { name: "a word of underscores", text: "a_".repeat(2_000) },
  { name: "spaces before the cut", text: `word${" ".repeat(3_990)}end` },
  { name: "brackets", text: "[".repeat(2_000) + "](".repeat(1_000) },
  { name: "a link at the cut", text: "[x](https://evil.example/) ".repeat(148) }
]

export const hostileTexts: ReadonlyArray<HostileText> = [...mentions, ...links, ...marks, ...letters, ...long]
