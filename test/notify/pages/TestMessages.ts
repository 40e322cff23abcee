import { renderBody } from "#streams/notify/bodies/RenderBody.ts"
import { renderMarkdown } from "#streams/notify/bodies/RenderMarkdown.ts"
import type { ShownFile, ShownMessage } from "#src/notify/pages/MessagePage.ts"

const createdAtMillis = Date.parse("2026-11-23T04:00:00Z")
const day = 86_400_000

/** As its page is given it: with a title, a link, no files and no body. */
export const messageWith = (changes: Partial<ShownMessage> = {}): ShownMessage => ({
  path: `/n/m/${"T".repeat(40)}`,
  project: "Builds",
  app: "ci",
  title: "Build 1234 failed",
  message: "2 of 310 tests failed on main.\nSee https://ci.example.com/1234 for the log.",
  url: "https://ci.example.com/1234?tab=log&all",
  priority: "normal",
  createdAtMillis,
  expiresAtMillis: createdAtMillis + 90 * day,
  body: undefined,
  files: [],
  ...changes
})

export const fileWith = (
  filename: string,
  contentType: string,
  changes: Partial<ShownFile> = {}
): ShownFile => ({
  id: `att_${filename.replace(/[^a-z]/gi, "").slice(0, 20)}`,
  filename,
  contentType,
  size: 12_345,
  expiresAtMillis: createdAtMillis + 30 * day,
  isExpired: false,
  ...changes
})

/** A picture of 2 by 2 points. */
export const samplePng = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFElEQVR4nGM4YWPz/zjDSQYbICUAMzAGHnu7y2EAAAAASUVORK5CYII=",
  "base64"
)

/** A tenth of a second of silence: 800 samples of 8 bits. Source: RIFF WAVE. */
export const sampleWave = ((): Buffer => {
  const head = Buffer.alloc(44)
  head.write("RIFF", 0)
  head.writeUInt32LE(36 + 800, 4)
  head.write("WAVEfmt ", 8)
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(8_000, 24)
  head.writeUInt32LE(8_000, 28)
  head.writeUInt16LE(1, 32)
  head.writeUInt16LE(8, 34)
  head.write("data", 36)
  head.writeUInt32LE(800, 40)
  return Buffer.concat([head, Buffer.alloc(800, 0x80)])
})()

/** One empty page. */
export const samplePdf = Buffer.from(
  "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n" +
    "3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
)

const markdown = `# Nightly build

Build **1234** of \`main\` failed after *13 minutes*, see [the pipeline](https://ci.example.com/1234).

> The cache was cold: ~~fixed~~ known.

## Failed tests

1. \`login > refuses a bad key\`
2. \`files > range of a range\`
   - only on arm64
   - ![screenshot](https://ci.example.com/shot.png)

| suite | passed | failed | time |
|:------|-------:|-------:|:----:|
| unit | 1,210 | 0 | 41 s |
| browser, in Chromium and Firefox | 310 | 2 | 4 min |

\`\`\`ts
assert.strictEqual(await ask("GET", "/api/v1/account-info"), 401) // a line that is too long for a phone
\`\`\`

---

Sent by the nightly job.
`

const log = `2026-11-23T04:00:00.123Z INFO  server listening at http://localhost:8080/
2026-11-23T04:00:01.004Z DEBUG cache miss key=users:17
2026-11-23T04:00:02.871Z WARN  slow query (1.2 s): select * from events where site = 'st_1' order by at desc limit 10000
2026-11-23T04:00:03.000Z ERROR cannot reach the store: connect ECONNREFUSED 127.0.0.1:5432
    at connect (node:net:1)
${Array.from({ length: 16 }, (_, color) => `\u001b[${color < 8 ? 30 + color : 82 + color}mcolour ${color}\u001b[0m \u001b[${color < 8 ? 40 + color : 92 + color}m ground ${color} \u001b[0m`).join("\n")}
\u001b[1mbold\u001b[0m \u001b[2mdim\u001b[0m \u001b[3mitalic\u001b[0m \u001b[4munder\u001b[0m \u001b[9mstrike\u001b[0m \u001b[7minverse\u001b[0m \u001b[1;7;31mall\u001b[0m
`

const json = JSON.stringify({
  build: { id: 1234, branch: "main", ok: false, url: "https://ci.example.com/1234", owner: null },
  durations: Array.from({ length: 40 }, (_, index) => index * 1.5),
  failed: [
    {
      suite: "browser",
      test: "login refuses a bad key",
      message: "expected 200 to equal 401, after three tries",
      line: 41
    },
    { suite: "browser", test: "files have a range", message: "timed out", line: 7, tags: [] }
  ]
})

/** A message with all that there can be, and a body in a format. */
export const everyFormat = (format: "text" | "markdown" | "json" | "log"): Partial<ShownMessage> => ({
  priority: "high",
  body:
    format === "markdown"
      ? renderMarkdown(markdown)
      : renderBody(format === "json" ? json : format === "log" ? log : markdown, format),
  files: [
    fileWith("report.pdf", "application/pdf", { size: 1_234_567 }),
    fileWith("trace-of-the-failed-run-2026-11-23T04-00-00.zip", "application/zip", { size: 345_678_901 }),
    fileWith("summary.json", "application/json", {
      head: { html: renderBody('{"failed":2,"passed":310}', "json").html, isWhole: true }
    }),
    fileWith("old.log", "text/plain", { isExpired: true })
  ]
})
