import type { ContentPart } from "#schemas/agents/ServerFrame.ts"
import type { AppliedStep, CompactStep, MessageStep, PromptStep, ResultStep, Step } from "./Step.ts"

export type ToolCallPart = Extract<ContentPart, { readonly type: "tool_call" }>

/** The next action for a prompt. */
export type Next =
  | { readonly _tag: "CallModel" }
  | { readonly _tag: "Results"; readonly message: MessageStep; readonly open: ReadonlyArray<ToolCallPart> }
  | { readonly _tag: "Finish"; readonly message: MessageStep }

/** The totals of a prompt so far. Amounts in pico-USD. */
interface PromptTotals {
  readonly promptTokens: number
  readonly completionTokens: number
  readonly cost: bigint
  /** drawn from a plan's allowances, and nothing of it charged to credits */
  readonly covered: boolean
  readonly turns: number
  readonly toolCalls: number
  readonly toolCallsDenied: number
}

/** The state derived from a session's steps, from the first step on that models see. */
export class Conversation {
  readonly #steps: Array<Step> = []
  #active: PromptStep | CompactStep | undefined
  #activeFrom = 0
  #message: MessageStep | undefined
  readonly #results = new Map<string, ResultStep>()
  readonly #taken = new Map<string, string>()

  constructor(steps: ReadonlyArray<Step>) {
    for (const step of steps) this.add(step)
  }

  get steps(): ReadonlyArray<Step> {
    return this.#steps
  }

  /** The prompt or compaction under way. */
  get active(): PromptStep | CompactStep | undefined {
    return this.#active
  }

  /** A step that is known already is passed over. */
  add(step: Step): void {
    const last = this.#steps.at(-1)
    if (last !== undefined && step.index <= last.index) return
    this.#steps.push(step)
    const { body } = step
    switch (body.kind) {
      case "prompt":
      case "compact":
        this.#active = body
        this.#activeFrom = this.#steps.length - 1
        this.#message = undefined
        break
      case "applied":
        this.#message = undefined
        break
      case "message":
        this.#message = body
        this.#results.clear()
        this.#taken.clear()
        break
      case "taken":
        for (const callId of body.callIds) this.#taken.set(callId, body.journalId)
        break
      case "result":
        this.#results.set(body.callId, body)
        break
      case "done":
        this.#active = undefined
        this.#message = undefined
        break
      default:
    }
  }

  /** The journal of the client that was sent this call; undefined: none was. */
  takenBy(callId: string): string | undefined {
    return this.#taken.get(callId)
  }

  hasResult(callId: string): boolean {
    return this.#results.has(callId)
  }

  next(): Next {
    const message = this.#message
    if (message === undefined) return { _tag: "CallModel" }
    const calls = callsOf(message)
    const open = calls.filter(({ callId }) => !this.#results.has(callId))
    if (open.length > 0) return { _tag: "Results", message, open }
    return calls.length > 0 ? { _tag: "CallModel" } : { _tag: "Finish", message }
  }

  totals(): PromptTotals {
    let promptTokens = 0
    let completionTokens = 0
    let cost = 0n
    let isDrawn = false
    let isCharged = false
    let turns = 0
    let toolCalls = 0
    let toolCallsDenied = 0
    for (const { body } of this.#steps.slice(this.#activeFrom)) {
      if (body.kind === "result") {
        toolCalls++
        if (body.denied) toolCallsDenied++
      }
      if (body.kind !== "message" && body.kind !== "compaction") continue
      if (body.kind === "message") turns++
      promptTokens += body.usage.promptTokens
      completionTokens += body.usage.completionTokens
      cost += BigInt(body.cost)
      isDrawn ||= body.covered
      isCharged ||= body.cost !== "0"
    }
    const covered = isDrawn && !isCharged
    return { promptTokens, completionTokens, cost, covered, turns, toolCalls, toolCallsDenied }
  }
}

export const callsOf = ({ content }: MessageStep): ReadonlyArray<ToolCallPart> =>
  content.filter((part) => part.type === "tool_call")

/** Steps by which the conversation goes on: a compaction may cut before one, never between a call and its result. */
export const isTurning = ({ body }: Step): boolean =>
  body.kind === "prompt" || body.kind === "applied" || body.kind === "message"

/** A step with the person's words. */
export type UserStep = PromptStep | AppliedStep
