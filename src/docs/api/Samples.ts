import { type Definitions, type Node, refName, resolved } from "#src/docs/page/FieldRows.ts"
import { answerExamples } from "./AnswerExamples.ts"

/** Stands where no text is known for a field; a test sees that it is nowhere. */
export const unknownText = "…"

/** Texts that the schemas do not give an example of, by the name of their field. */
const texts: Readonly<Record<string, string>> = {
  amount: "20.000000000000",
  apiKey: "Laptop of Ada",
  app: "backup.sh",
  arch: "linux-x64",
  auth: "Authorization: Bearer <API_KEY>",
  binary: "curl -fsSL https://signalbox.example.net/agent/install.sh | sh",
  bucket: "2026-11-21T08:00:00+01:00",
  call_id: "call_1",
  calls: "1204",
  categories: "tools",
  channel: "chn_2sJH7aQmXy4TzWcVbN8kLp",
  charged: "11.482000000000",
  code: "model_not_found",
  collection: "collection/best-effort",
  collections: "col_2sJH7aQmXy4TzWcVbN8kLp",
  contentType: "application/pdf",
  content: "Hello! What can I do for you?",
  continues: "logs-2026-10",
  default_model: "openai/gpt-5",
  description: "A general-purpose model",
  detail: "ClickHouse does not answer",
  dimension: "page",
  dir: "uploads",
  directoryId: "dir_2sJH7aQmXy4TzWcVbN8kLp",
  domain: "example.com",
  email: "ada@example.org",
  downloads_note: "",
  embedding: "AACAPwAAAEA=",
  entries: "20.000000000000",
  error: "url: expected an absolute URL",
  expected: "8.518000000000",
  filename: "report.pdf",
  filters: "/pricing",
  finish_reason: "stop",
  found: "8.518000000000",
  from: "2026-11-01",
  id: "chatcmpl-7Yk2",
  images: "data:image/png;base64,iVBORw0KGgo=",
  input: "A text",
  input_modalities: "text",
  instructions: "Keep what was decided",
  interval: "60s",
  joinUrl: "https://signalbox.example.net/n/join/7Yk2sJH7aQmXy4TzWcVbN8kLp3RfD9eG1hUo7Yk2",
  key: "sk_7Yk2sJH7aQmXy4TzWcVbN8kLp3RfD9eG1hUo",
  label: "Laptop of Ada",
  lane: "st_2sJH7aQmXy4TzWcVbN8kLp",
  lastError: "503 Service Unavailable",
  leased: "0.000000000000",
  limit: "credits",
  loss: "0.000000000000",
  message: "OK",
  message_id: "msg_1",
  model: "openai/gpt-5",
  models: "openai/gpt-5",
  name: "Example",
  next: "2026-11-22",
  note: "Invoice 42",
  output_modalities: "text",
  owned_by: "openai",
  param: "model",
  path: "/pricing",
  plan: "Team",
  platform: "linux",
  prefix: "sk_7Yk2sJH7a",
  problem: "The store refuses a text with NUL",
  prompt_id: "prm_1",
  props: "pro",
  provider: "openai",
  queue: "analytics-purges",
  reason: "usage",
  requested: "collection/best-effort",
  resolved: "openai/gpt-5",
  role: "assistant",
  root: "/home/ada/project",
  scope: "all",
  scopes: "full",
  secret: "ssk_3RfD9eG1hUo7Yk2sJH7aQmXy4TzWcVbN8kLp",
  sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  slug: "best-effort",
  source: "Google",
  status: "ok",
  summary: "The tests pass",
  supported_parameters: "temperature",
  text: "Add a test for the parser",
  timezone: "Europe/Berlin",
  title: "Backups",
  to: "2026-11-30",
  token: "sst_2sJH7aQmXy4TzWcVbN8kLp.1795396334.G80d8oWwurXGNLQTrDAuN9IVToxy09SGS1_5AhvqOoQ",
  tool: "fs.read",
  toppedUp: "20.000000000000",
  type: "invalid_request_error",
  url: "/api/v1/files/fil_2sJH7aQmXy4TzWcVbN8kLp",
  value: "/pricing",
  version: "0.1.0",
  viewUrl: "https://signalbox.example.net/n/m/7Yk2sJH7aQmXy4TzWcVbN8kLp3RfD9eG1hUo7Yk2"
}

/** Ids have a prefix of their own. */
const idOf = (pattern: string): string | undefined => {
  const [, prefix] = /^\^([a-z]+_)\[0-9A-Za-z\]\{22\}\$$/.exec(pattern) ?? []
  return prefix === undefined ? undefined : `${prefix}2sJH7aQmXy4TzWcVbN8kLp`
}

const formats: Readonly<Record<string, string>> = {
  "date-time": "2026-11-21T08:30:00.000Z",
  date: "2026-11-21",
  email: "ada@example.org"
}

const textOf = (node: Node, name: string): string =>
  idOf(node.pattern ?? "") ?? formats[node.format ?? ""] ?? texts[name] ?? unknownText

/** Numbers that are not just any count, by the name of their field. */
const numbers: Readonly<Record<string, number>> = {
  amount_usd: 20,
  avgDurationSec: 64,
  balance_usd: 18.518,
  bounceRate: 42.5,
  bytes: 412,
  completionTokens: 5_210,
  costUsd: 0.0412,
  cost_usd: 0.0412,
  day: 1_000_000,
  daysLeft: 0,
  differenceCount: 1,
  errorCount: 1,
  errors: 1,
  failed: 1,
  hour: 200_000,
  index: 0,
  lifetime_spent_usd: 1.482,
  lifetime_topped_up_usd: 20,
  limit: 100,
  limit_remaining: 98.5,
  line: 7,
  lines: 10_000,
  minute: 0,
  offset: 0,
  price_usd: 20,
  promptTokens: 18_400,
  rate_limit_per_minute: 120,
  requests: 124,
  spend_limit_usd: 5,
  spent_usd: 1.482,
  step: 1,
  successes: 123,
  token_limit: 200_000,
  tokens_remaining: 176_390,
  tokens_used: 23_610,
  tool_calls_denied: 0,
  total: 1,
  totalTokens: 23_610,
  uptime: 86_412.3,
  usage: 1.5,
  viewsPerVisit: 2.4,
  visitors: 31,
  visits: 38,
  pageviews: 91,
  week: 5_000_000
}

const numberOf = ({ maximum = Infinity, minimum = 0 }: Node, name: string): number =>
  Math.min(Math.max(numbers[name] ?? 12, minimum), maximum)

/** Fields that may be null, and as a rule are. */
const usuallyNull = new Set(["canceled_at", "ended_at", "end_reason", "emailVerified", "continues", "next"])

/** A value that the schema takes, as it may be in an answer; `name` is the field's. */
export const sampleOf = (schema: Node, definitions: Definitions, name: string): unknown => {
  const whole = answerExamples[refName(schema.$ref ?? "")]
  if (whole !== undefined) return whole
  const node = resolved(schema, definitions)
  if (node.examples?.[0] !== undefined) return node.examples[0]
  if (node.enum !== undefined) return node.enum[0]
  if (node.anyOf !== undefined) {
    if (usuallyNull.has(name) && node.anyOf.some(({ type }) => type === "null")) return null
    const known =
      node.anyOf.find(({ $ref = "" }) => answerExamples[refName($ref)] !== undefined) ??
      node.anyOf.find(({ type }) => type !== "null") ??
      {}
    return sampleOf(
      { ...known, ...(node.pattern === undefined ? {} : { pattern: node.pattern }) },
      definitions,
      name
    )
  }
  switch (node.type) {
    case "object":
      return objectOf(node, definitions, name)
    case "array":
      return [sampleOf(node.items || {}, definitions, name)]
    case "string":
      return textOf(node, name)
    case "integer":
      return Math.ceil(numberOf(node, name))
    case "number":
      return numberOf(node, name)
    case "boolean":
      return true
    default:
      return null
  }
}

const objectOf = (node: Node, definitions: Definitions, name: string): object => {
  const members = Object.entries(node.properties ?? {}).map(([field, property]) => [
    field,
    sampleOf(property, definitions, field)
  ])
  const { additionalProperties: others } = node
  if (members.length > 0 || typeof others !== "object") return Object.fromEntries(members)
  return { [keys[name] ?? "page"]: sampleOf(others, definitions, name) }
}

/** The example key in each record with free keys, by its field. */
const keys: Readonly<Record<string, string>> = {
  components: "postgres",
  props: "plan",
  filters: "page",
  dropped: "bot",
  bots: "GPTBot",
  usage: "day"
}
