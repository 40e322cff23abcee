import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join, normalize } from "node:path"
import { assert, describe, it } from "@effect/vitest"

/** Code cites the contract in src/docs/contract as `contract/<page>#<heading>`, and no document that is not here. */
const root = normalize(join(import.meta.dirname, "..", ".."))
const contract = join(root, "src", "docs", "contract")

const text = (file: string): string => readFileSync(join(root, file), "utf8")

/** This file has to name what it looks for. */
const ownName = "test/docs/Citations.test.ts"

const code = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8"
})
  .split("\n")
  .filter((file) => /^(src|schemas|streams|actors|deploy|test|bench)\/.*\.(ts|tsx|mjs)$/.test(file))
  .filter((file) => file !== ownName && existsSync(join(root, file)))

/** As the document that a heading is in has it: `## Event times` is `#event-times`. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^a-z0-9 -]/g, "")
    .replaceAll(" ", "-")

/** The anchors of each page, with repetitions. */
const pages: ReadonlyMap<string, ReadonlyArray<string>> = new Map(
  readdirSync(contract)
    .filter((file) => file.endsWith(".md"))
    .map((file) => {
      const headings = readFileSync(join(contract, file), "utf8").matchAll(/^#{2,} +(.+)$/gm)
      return [file.slice(0, -".md".length), Array.from(headings, ([, heading = ""]) => anchorOf(heading))]
    })
)

const hasPlace = (page: string, anchor: string | undefined): boolean =>
  anchor === undefined ? pages.has(page) : pages.get(page)?.includes(anchor) === true

/** Specifications, decisions, designs and issues that were never in the repository. */
const foreign = [
  /\b[Ss]pec [1-9]\b/,
  /\bspec\/[0-9]/,
  /\bdecisions\.md\b/,
  /\bdesign\.md\b/i,
  /\bissues? #?[0-9]+\b/,
  // A comment may break its line within a citation.
  /(?:\bSource:|;|\()\s+(?:\*\s+)?(?:decisions|design|issue(?: list)?)[ ,]\s*(?:\*\s+)?["A-Z]/,
  /\bcodes: decisions, /
]

const foreignIn = (source: string): ReadonlyArray<string> =>
  foreign.flatMap((pattern) => pattern.exec(source)?.[0] ?? [])

/** A page of the contract, and perhaps a heading; paths such as `test/contract/openapi.json` are none. */
const citation = /(?<![\w./#-])contract\/([a-z]+)(?:#([a-z0-9-]+))?(?![\w./]\w)/g

const citationsIn = (source: string) =>
  Array.from(source.matchAll(citation), ([whole, page = "", anchor]) => ({ whole, page, anchor }))

const none = (offences: ReadonlyArray<string>): void => assert.deepStrictEqual(offences, [])

describe("the code", () => {
  it("cites no document that is not in the repository", () => {
    none(code.flatMap((file) => foreignIn(text(file)).map((found) => `${file}: ${found}`)))
  })

  it("cites places of the contract that are there", () => {
    const cited = code.flatMap((file) => citationsIn(text(file)).map((one) => ({ file, ...one })))
    none(
      cited
        .filter(({ anchor, page }) => !hasPlace(page, anchor))
        .map(({ file, whole }) => `${file}: ${whole}`)
    )
    assert.isNotEmpty(cited)
  })
})

describe("the contract", () => {
  it("has each heading once a page, and pages of at most 300 lines", () => {
    none(
      [...pages].flatMap(([page, anchors]) =>
        anchors
          .filter((anchor, index) => anchors.indexOf(anchor) !== index)
          .map((anchor) => `${page}#${anchor}`)
      )
    )
    none([...pages.keys()].filter((page) => text(`src/docs/contract/${page}.md`).split("\n").length > 301))
  })

  it("links to places that are there", () => {
    none(
      [...pages.keys()].flatMap((page) =>
        Array.from(text(`src/docs/contract/${page}.md`).matchAll(/\]\(([a-z]+)\.md(?:#([a-z0-9-]+))?\)/g))
          .filter(([, to = "", anchor]) => !hasPlace(to, anchor))
          .map(([link]) => `${page}: ${link}`)
      )
    )
  })
})

describe("the test of citations", () => {
  it("finds documents that are not here, over a break of line too, and leaves others alone", () => {
    const wrong = [
      "Source: spec 1, Model entry.",
      "Source: RFC 6455, 7.4; decisions, Agents (Close codes).",
      "not work. Source: decisions,\n * Start-up.",
      "Source: spec/2, Collect",
      "Types and codes: decisions, Common.",
      "the default of decisions.md",
      "Design.md has it",
      "Source: design, Money.",
      "see issue 5 (Downloads)",
      'Source: issue list "Bad input"'
    ]
    none(wrong.filter((comment) => foreignIn(comment).length === 0))
    const right = ["Source: RFC 9110, 10.2.3.", "on average: for decisions, never for charges", "by design,"]
    none(right.flatMap(foreignIn))
  })

  it("tells a citation of the contract from a path", () => {
    assert.deepStrictEqual(citationsIn("Source: contract/llm#charging, (contract/http)."), [
      { whole: "contract/llm#charging", page: "llm", anchor: "charging" },
      { whole: "contract/http", page: "http", anchor: undefined }
    ])
    none(citationsIn('"#test/contract/Generated.ts", "test/contract/openapi.json"').map(({ whole }) => whole))
    assert.isFalse(hasPlace("llm", "no-such-heading"))
  })
})
