export const half = "half \ud800"
const unicode = "expected well-formed Unicode, not half of a surrogate pair"
const appText = "app: expected text of 1 to 100 characters"
const messageText = "message: expected text of 1 to 4000 characters"
export const titleText = "title: expected text of 1 to 200 characters"
const urlText = "url: expected an http or https address of at most 2048 characters"
export const projectText = "project: expected an id or a slug, or a list of 1 to 100 of them"
export const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)])
const ids = (count: number) => Array.from({ length: count }, (_, index) => `att_${index}`)

/** Fields just outside what they may be, and the fault; undefined: just inside. */
export const sendCases: ReadonlyArray<readonly [fields: object, fault: string | undefined]> = [
  [{ app: undefined }, "app: is required"],
  [{ app: null }, "app: is required"],
  [{ app: "" }, appText],
  [{ app: 1 }, appText],
  [{ app: "x".repeat(100) }, undefined],
  [{ app: "x".repeat(101) }, appText],
  [{ app: "a\nb" }, appText],
  [{ app: half }, `app: ${unicode}`],
  [{ message: undefined }, "message: is required"],
  [{ message: "" }, messageText],
  [{ message: "\u0000\u001b" }, messageText],
  [{ message: ["m"] }, messageText],
  [{ message: `\u0007${"x".repeat(4_000)}` }, undefined],
  [{ message: "x".repeat(4_001) }, messageText],
  [{ message: half }, `message: ${unicode}`],
  [{ title: "" }, undefined],
  [{ title: "x".repeat(200) }, undefined],
  [{ title: "x".repeat(201) }, titleText],
  [{ title: "a\tb" }, titleText],
  [{ title: false }, titleText],
  [{ url: "https://example.com/" }, undefined],
  [{ url: "HTTP://example.com" }, undefined],
  [{ url: `https://e.example/${"x".repeat(2_048 - 18)}` }, undefined],
  [{ url: `https://e.example/${"x".repeat(2_049 - 18)}` }, urlText],
  [{ url: "javascript:alert(1)" }, urlText],
  [{ url: "/relative" }, urlText],
  [{ url: "https://a b" }, urlText],
  [{ url: "https://e.example/\n" }, urlText],
  [{ url: `https://e.example/${half}` }, urlText],
  [{ url: "" }, urlText],
  [{ url: {} }, urlText],
  [{ body: "x".repeat(1_048_576) }, undefined],
  [{ body: "x".repeat(1_048_577) }, "body: at most 1048576 bytes"],
  [{ body: "€".repeat(349_526) }, "body: at most 1048576 bytes"],
  [{ body: ["x".repeat(1_048_572)] }, undefined],
  [{ body: ["x".repeat(1_048_573)] }, "body: at most 1048576 bytes"],
  [{ body: 1 }, "body: expected text, an object or an array"],
  [{ body: true }, "body: expected text, an object or an array"],
  [{ body: "a\u0000b" }, "body: expected text without NUL characters"],
  [{ body: half }, `body: ${unicode}`],
  [{ body: { a: [half] } }, `body.a[0]: ${unicode}`],
  [{ body: [Infinity] }, "body[0]: expected a number within the range of a double"],
  [{ body: nested(64) }, undefined],
  [{ body: nested(65) }, "body: nested deeper than 64"],
  [{ bodyFormat: "html" }, 'bodyFormat: expected "auto" | "text" | "markdown" | "json" | "log"'],
  [{ priority: "urgent" }, 'priority: expected "low" | "normal" | "high"'],
  [{ project: [] }, projectText],
  [{ project: [1] }, projectText],
  [{ project: 1 }, projectText],
  [{ project: Array.from({ length: 100 }, () => "a") }, undefined],
  [{ project: Array.from({ length: 101 }, () => "a") }, projectText],
  [{ attachments: ids(20) }, undefined],
  [{ attachments: ids(21) }, "attachments: at most 20"],
  [{ attachments: ["a", "b", "a"] }, "attachments[2]: given twice"],
  [{ attachments: ["a", 1] }, "attachments[1]: expected text"],
  [{ attachments: "a" }, "attachments: expected a list of ids"],
  [{ unknown: half }, undefined]
]
