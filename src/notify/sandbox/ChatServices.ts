import { Predicate } from "effect"
import { type SandboxAnswer, SandboxRefusal } from "./SandboxRequest.ts"

/** A request to a webhook of a chat, as far as its service looks at it. */
export interface ChatRequest {
  /** undefined: the body is no JSON */
  readonly json: unknown
  readonly url: URL
  /** requests that were taken before in the service's window, and the milliseconds until another one begins */
  readonly taken: number
  readonly leftMillis: number
}

/** A chat, as its webhooks behave. */
export interface ChatService {
  readonly kind: "slack" | "discord"
  /** requests that one webhook takes in a window of so long */
  readonly window: { readonly most: number; readonly millis: number }
  /** Answers of webhooks that were not there, or are no more, by their state. */
  readonly ends: Readonly<Record<string, ChatRefusal>>
  /** Throws a `ChatRefusal` where the service refuses. */
  readonly judge: (request: ChatRequest) => SandboxAnswer
}

/** A refusal in the service's own words; `problem` says it to people. */
export class ChatRefusal extends SandboxRefusal {
  readonly #answer: Omit<SandboxAnswer, "status">

  constructor(status: number, problem: string, answer: Omit<SandboxAnswer, "status">) {
    super(status, problem)
    this.#answer = answer
  }

  override get answer(): SandboxAnswer {
    return { status: this.status, ...this.#answer }
  }
}

const plain = (body: string) => ({ text: { contentType: "text/plain; charset=utf-8", body } })

const slackRefusal = (status: number, word: string, problem: string): ChatRefusal =>
  new ChatRefusal(status, `${word}: ${problem}`, plain(word))

/** Slack shortens a longer text. */
const slackTextMax = 40_000
const slackBlocksMax = 50

/** Text of a block's element, which Slack refuses to take empty. */
const isElement = (value: unknown): boolean =>
  Predicate.isReadonlyObject(value) &&
  (Array.isArray(value["elements"])
    ? value["elements"].length > 0 && value["elements"].every(isElement)
    : (value["type"] !== "text" && value["type"] !== "link") ||
      (isText(value["text"]) && (value["type"] === "text" || isAddress(value["url"]))))

const isText = (value: unknown): value is string => typeof value === "string" && value !== ""

const isAddress = (value: unknown): boolean => typeof value === "string" && URL.canParse(value)

const takenBySlack = ({ json, leftMillis, taken }: ChatRequest): SandboxAnswer => {
  if (taken >= slack.window.most)
    throw new ChatRefusal(429, `rate_limited: one message a second, and ${slack.window.most} at once`, {
      ...plain("rate_limited"),
      headers: { "retry-after": String(Math.ceil(leftMillis / 1_000)) }
    })
  if (!Predicate.isReadonlyObject(json)) throw slackRefusal(400, "invalid_payload", "expected a JSON object")
  const { blocks, text } = json
  if (text !== undefined && typeof text !== "string")
    throw slackRefusal(400, "invalid_payload", "text: expected text")
  if (!isText(text) && blocks === undefined)
    throw slackRefusal(400, "no_text", "there is neither text nor a block")
  if (isText(text) && text.length > slackTextMax)
    throw slackRefusal(400, "msg_too_long", `text: at most ${slackTextMax} characters`)
  if (
    blocks !== undefined &&
    !(Array.isArray(blocks) && blocks.length <= slackBlocksMax && blocks.every(isElement))
  )
    throw slackRefusal(
      400,
      "invalid_blocks",
      `expected at most ${slackBlocksMax} blocks with text and addresses`
    )
  return { status: 200, ...plain("ok") }
}

/** Slack: one message a second, of which it tolerates some at once. */
export const slack: ChatService = {
  kind: "slack",
  window: { most: 5, millis: 5_000 },
  ends: {
    unknown: slackRefusal(404, "no_service", "there is no such webhook"),
    gone: slackRefusal(404, "no_service", "the webhook was removed"),
    archived: slackRefusal(410, "channel_is_archived", "its channel was archived")
  },
  judge: takenBySlack
}

const discordRefusal = (status: number, code: number, message: string): ChatRefusal =>
  new ChatRefusal(status, `${code}: ${message}`, { json: { message, code } })

const discordContentMax = 2_000
const mentionKinds: ReadonlyArray<unknown> = ["roles", "users", "everyone"]

const isMentions = (value: unknown): boolean =>
  value === undefined ||
  (Predicate.isReadonlyObject(value) &&
    (value["parse"] === undefined ||
      (Array.isArray(value["parse"]) && value["parse"].every((one) => mentionKinds.includes(one)))))

const takenByDiscord = ({ json, leftMillis, taken, url }: ChatRequest): SandboxAnswer => {
  const { most } = discord.window
  const resetAfter = (leftMillis / 1_000).toFixed(3)
  const headers = {
    "x-ratelimit-limit": String(most),
    "x-ratelimit-remaining": String(Math.max(0, most - taken - 1)),
    "x-ratelimit-reset-after": resetAfter
  }
  if (taken >= most)
    throw new ChatRefusal(429, `${most} messages in ${discord.window.millis / 1_000} s`, {
      json: { message: "You are being rate limited.", retry_after: Number(resetAfter), global: false },
      headers: { ...headers, "retry-after": String(Math.ceil(leftMillis / 1_000)) }
    })
  if (!Predicate.isReadonlyObject(json))
    throw discordRefusal(400, 50_109, "The request body contains invalid JSON.")
  const { allowed_mentions: mentions, content, flags } = json
  if (!isText(content) || content.trim() === "")
    throw discordRefusal(400, 50_006, "Cannot send an empty message")
  if (Array.from(content).length > discordContentMax)
    throw discordRefusal(
      400,
      50_035,
      `Invalid Form Body: content: Must be ${discordContentMax} or fewer in length.`
    )
  if (!isMentions(mentions) || (flags !== undefined && !Number.isInteger(flags)))
    throw discordRefusal(400, 50_035, "Invalid Form Body: allowed_mentions, flags")
  return url.searchParams.get("wait") === "true"
    ? { status: 200, headers, json: { type: 0, content, flags: flags ?? 0, mentions: [] } }
    : { status: 204, headers }
}

/** Discord: its documents name no limit of webhooks, and send every one to read it from the headers; this one is an example. */
export const discord: ChatService = {
  kind: "discord",
  window: { most: 5, millis: 2_000 },
  ends: {
    unknown: discordRefusal(404, 10_015, "Unknown Webhook"),
    gone: discordRefusal(404, 10_015, "Unknown Webhook")
  },
  judge: takenByDiscord
}
