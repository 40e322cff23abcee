import type { JsonRecord } from "#schemas/core/JsonRecord.ts"
import { callsOf, isTurning, type UserStep } from "./Conversation.ts"
import type { CompactionStep, MessageStep, ResultStep, Step } from "./Step.ts"
import { toolText } from "./ToolText.ts"

/** A message as chat-completions has it; images are named by their file and filled in by who sends it. */
export type ChatMessage = JsonRecord

/** Characters that make a token, on average, and tokens of an image: for decisions, never for charges. */
const tokenCharacters = 4
const imageTokens = 1_000

export const tokensOfText = (text: string): number => Math.ceil(text.length / tokenCharacters)

/** The content part that stands for an account file. */
export const imagePartType = "image_file"

const tokensOf = ({ body }: Step): number => {
  switch (body.kind) {
    case "prompt":
      return tokensOfText(body.text) + body.images.length * imageTokens
    case "applied":
      return tokensOfText(body.text)
    case "message":
      return tokensOfText(JSON.stringify(body.content))
    case "result":
      return tokensOfText(JSON.stringify(body.ok ? body.result : body.error) ?? "")
    default:
      return 0
  }
}

const compactionOf = (steps: ReadonlyArray<Step>): CompactionStep | undefined =>
  steps.map(({ body }) => body).findLast((body) => body.kind === "compaction")

/** The steps that models see: those from the last compaction's cut on, behind its summary. */
const told = (steps: ReadonlyArray<Step>) => {
  const compaction = compactionOf(steps)
  return {
    compaction,
    kept: compaction === undefined ? steps : steps.filter(({ index }) => index >= compaction.keepFrom)
  }
}

/** A model's messages besides the system prompt. */
export const messagesOf = (steps: ReadonlyArray<Step>): ReadonlyArray<ChatMessage> => {
  const { compaction, kept } = told(steps)
  const results = new Map<string, ResultStep>()
  for (const { body } of kept) if (body.kind === "result") results.set(body.callId, body)
  const messages: Array<ChatMessage> = []
  if (compaction !== undefined) messages.push({ role: "user", content: summaryText(compaction.summary) })
  for (const { body } of kept) {
    if (body.kind === "prompt" || body.kind === "applied") messages.push(said(body))
    if (body.kind === "message") messages.push(...answered(body, results))
  }
  return messages
}

const summaryText = (summary: string): string =>
  `The conversation so far was too long to keep. This is its summary; go on from it.\n\n${summary}`

const said = (body: UserStep): ChatMessage => {
  const images = body.kind === "prompt" ? body.images : []
  if (images.length === 0) return { role: "user", content: body.text }
  return {
    role: "user",
    content: [
      { type: "text", text: body.text },
      ...images.map((file_id) => ({ type: imagePartType, file_id }))
    ]
  }
}

/** The message and, in its order, the results of its calls: models refuse a call without a result. */
const answered = (
  message: MessageStep,
  results: ReadonlyMap<string, ResultStep>
): ReadonlyArray<ChatMessage> => {
  const text = message.content
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("")
  const calls = callsOf(message).filter(({ callId }) => results.has(callId))
  if (text === "" && calls.length === 0) return []
  const tool_calls = calls.map(({ args, callId, tool }) => ({
    id: callId,
    type: "function",
    function: { name: tool, arguments: typeof args === "string" ? args : JSON.stringify(args) }
  }))
  return [
    { role: "assistant", content: text, ...(calls.length === 0 ? {} : { tool_calls }) },
    ...calls.map(({ callId, tool }) => ({
      role: "tool",
      tool_call_id: callId,
      content: toolTextOf(tool, results.get(callId))
    }))
  ]
}

const toolTextOf = (tool: string, result: ResultStep | undefined): string =>
  result === undefined ? "" : toolText(tool, result)

/** The size of the context in tokens: the last model's count, and an estimate of the steps since. */
export const contextTokens = (steps: ReadonlyArray<Step>, overhead: number): number => {
  const { compaction, kept } = told(steps)
  const from = compaction === undefined ? -1 : steps.findLastIndex(({ body }) => body === compaction)
  const counted = steps.findLastIndex(({ body }) => body.kind === "message" && body.usage.totalTokens > 0)
  const last = steps[counted]?.body
  if (counted > from && last?.kind === "message")
    return (
      last.usage.totalTokens + sum(steps.slice(counted + 1).filter(({ body }) => body.kind !== "message"))
    )
  return overhead + tokensOfText(compaction?.summary ?? "") + sum(kept)
}

const sum = (steps: ReadonlyArray<Step>): number => steps.reduce((all, step) => all + tokensOf(step), 0)

/**
 * The cut of a compaction: the index of the first step that is kept, so that about `keepTokens` stay and no result is
 * parted from its call. undefined: no step before it could go.
 */
export const cutOf = (steps: ReadonlyArray<Step>, keepTokens: number): number | undefined => {
  const { kept } = told(steps)
  let tokens = 0
  let cut: Step | undefined
  for (const step of kept.toReversed()) {
    tokens += tokensOf(step)
    if (tokens > keepTokens && cut !== undefined) break
    if (isTurning(step)) cut = step
  }
  return cut === undefined || kept.findIndex(isTurning) === kept.indexOf(cut) ? undefined : cut.index
}

/** The text to summarise: everything that models see now and that comes before a cut. */
export const textBefore = (steps: ReadonlyArray<Step>, keepFrom: number): string => {
  const { compaction, kept } = told(steps)
  const before = kept.filter(({ body, index }) => index < keepFrom && body.kind !== "compaction")
  return [
    ...(compaction === undefined ? [] : [`Summary of what came before:\n${compaction.summary}`]),
    ...messagesOf(before).map(lineOf)
  ].join("\n\n")
}

/** Without its middle if it is too long: the task stands at the beginning, and the latest work at the end. */
export const shortened = (text: string, characters: number): string => {
  if (text.length <= characters) return text
  const head = Math.floor(characters / 4)
  return `${text.slice(0, head)}\n\n[What came here is left out]\n\n${text.slice(head - characters)}`
}

const lineOf = (message: ChatMessage): string => {
  const content = message["content"]
  const text = typeof content === "string" ? content : JSON.stringify(content)
  const calls = message["tool_calls"]
  return `${String(message["role"])}: ${text}${calls === undefined ? "" : `\ncalls: ${JSON.stringify(calls)}`}`
}
