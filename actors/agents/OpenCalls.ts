/**
 * State: the tool calls of one session that wait for their client, and who was sent them.
 * Messages: none; the session calls it synchronously.
 * Limits: the run asks for at most `callsInFlight` at once; a call that its client does not end in its time is cancelled.
 * Restart policy: none of its own; the run that waits is restarted and asks again.
 * In a crash nothing is lost: open calls are in the steps, and the client's journal knows what it did.
 */
import type { ToolResult, ToolStream } from "#schemas/agents/ClientFrame.ts"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import type { cancelReasons } from "#schemas/agents/ServerFrame.ts"
import type { ToolError, ToolErrorCode, ToolMethod } from "#schemas/agents/ToolCall.ts"
import type { Outbox } from "#streams/agents/Outbox.ts"

/** A tool call for the client to run. */
export interface CallAsk {
  readonly callId: string
  readonly promptId: string
  readonly method: ToolMethod
  readonly params: unknown
  readonly replay: "safe" | "never"
  readonly timeoutMillis: number
}

export interface CallOutcome {
  readonly ok: boolean
  readonly result?: unknown
  readonly error?: ToolError
  readonly denied: boolean
  readonly durationMs: number
}

/** How long a client may take to report a call that it was told to end, and the margin beyond a call's own time. */
export interface CallLimits {
  readonly agentCancelMillis: number
  readonly agentCallGraceMillis: number
}

interface OpenCall {
  readonly ask: CallAsk
  readonly settle: (outcome: CallOutcome) => void
  /** the journal of who is, or was, to be sent it; noted in the steps */
  takenBy: string | undefined
  attempt: number
  /** a client may have received it */
  isSent: boolean
  /** the client that is there was */
  isAsked: boolean
  timer: NodeJS.Timeout | undefined
  /** its outcome if its client does not report one */
  cancelled: CallOutcome | undefined
  streamedBytes: number
  nextChunk: number
}

export const failed = (code: ToolErrorCode, message: string): CallOutcome => ({
  ok: false,
  error: { code, message },
  denied: false,
  durationMs: 0
})

const interrupted = failed(
  "interrupted",
  "The client that was to do this went away; it may have been done, in part or not at all"
)

const untold: ToolError = { code: "exec_failed", message: "The client did not say why" }

const bounded = ({ code, message }: ToolError): ToolError => ({
  code,
  message: message.slice(0, agentLimits.errorCharacters)
})

/** Most sessions are idle, and have none. */
const noCalls: ReadonlyMap<string, OpenCall> = new Map()

export class OpenCalls {
  #calls: ReadonlyMap<string, OpenCall> = noCalls
  readonly #outbox: Outbox
  readonly #limits: CallLimits

  constructor(outbox: Outbox, limits: CallLimits) {
    this.#outbox = outbox
    this.#limits = limits
  }

  /**
   * Takes a call; `send` asks for it. Answers a way to take it back.
   * @param takenBy the journal that is noted for it
   * @param isSent whether its client may have got it already
   */
  open(
    ask: CallAsk,
    takenBy: string | undefined,
    isSent: boolean,
    settle: (outcome: CallOutcome) => void
  ): () => void {
    const call: OpenCall = {
      ask,
      settle,
      takenBy,
      attempt: isSent ? 1 : 0,
      isSent,
      isAsked: false,
      timer: undefined,
      cancelled: undefined,
      streamedBytes: 0,
      nextChunk: 0
    }
    this.#calls = new Map(this.#calls).set(ask.callId, call)
    return () => {
      if (this.#calls.get(ask.callId) === call) this.#remove(call)
    }
  }

  /**
   * Ends as interrupted the calls whose outcome only a client with another journal can know; a
   * client with this journal is asked again.
   */
  giveUp(journalId: string): void {
    for (const call of Array.from(this.#calls.values()))
      if (call.ask.replay === "never" && call.isSent && call.takenBy !== journalId)
        this.#settle(call, interrupted)
  }

  /** Calls which may only be sent to this client once it is noted that it was. */
  toNote(journalId: string): ReadonlyArray<string> {
    return [...this.#calls.values()]
      .filter(({ ask, isSent, takenBy }) => ask.replay === "never" && !isSent && takenBy !== journalId)
      .map(({ ask }) => ask.callId)
  }

  /** It is stored that the client with this journal is sent these calls. */
  noted(callIds: ReadonlyArray<string>, journalId: string): void {
    for (const callId of callIds) {
      const call = this.#calls.get(callId)
      if (call !== undefined && !call.isSent) call.takenBy = journalId
    }
  }

  /**
   * Asks the client that is there for everything that it was not asked for yet, up to the first that it may not be asked
   * for before that is noted: the client makes calls of one file in the order in which it gets them.
   */
  send(journalId: string): void {
    for (const call of Array.from(this.#calls.values())) {
      if (call.ask.replay === "never" && call.takenBy !== journalId) return
      if (!call.isAsked) this.#send(call, journalId)
    }
  }

  /** Detaches the client: time limits pause, and cancelled calls end. */
  detach(): void {
    for (const call of Array.from(this.#calls.values())) {
      clearTimeout(call.timer)
      call.isAsked = false
      if (call.cancelled !== undefined) this.#settle(call, call.cancelled)
    }
  }

  /** false: no such call is open. */
  result({ callId, denied, durationMs, error, ok, result }: ToolResult): boolean {
    const call = this.#calls.get(callId)
    if (call === undefined || !call.isSent) return false
    const outcome = { ok, denied: denied === true, durationMs }
    this.#settle(
      call,
      ok ? { ...outcome, result } : { ...outcome, error: error === undefined ? untold : bounded(error) }
    )
    return true
  }

  /** Answers what of it is new and within the bound; undefined where no such call is open. */
  stream({ callId, data, index }: ToolStream): { promptId: string; data: string } | undefined {
    const call = this.#calls.get(callId)
    if (call === undefined || !call.isSent) return undefined
    const { promptId } = call.ask
    const bytes = Buffer.byteLength(data)
    if (index < call.nextChunk || call.streamedBytes + bytes > agentLimits.streamBytes)
      return { promptId, data: "" }
    call.nextChunk = index + 1
    call.streamedBytes += bytes
    return { promptId, data }
  }

  /** Asks the client to end all open calls; those it does not report in time count as cancelled. */
  abort(): void {
    for (const call of Array.from(this.#calls.values())) {
      const outcome = failed("cancelled", "The user aborted the prompt")
      if (call.isAsked) this.#cancel(call, "abort", outcome)
      else this.#settle(call, outcome)
    }
  }

  get size(): number {
    return this.#calls.size
  }

  #send(call: OpenCall, journalId: string): void {
    const { callId, method, params, promptId, replay, timeoutMillis } = call.ask
    call.isSent = true
    call.isAsked = true
    call.takenBy = journalId
    call.attempt++
    call.nextChunk = 0
    const timeoutMs = timeoutMillis
    const { attempt } = call
    const request = { type: "tool.request", callId, promptId, method, params, timeoutMs, replay, attempt }
    this.#outbox.request(request)
    this.#time(call)
  }

  /** The client may hold a call back for those before it, so its time runs anew once one of them is over. */
  #time(call: OpenCall): void {
    const { timeoutMillis } = call.ask
    const outcome = failed("timeout", `The client did not answer within ${timeoutMillis / 1_000} s`)
    const expire = (): void => {
      const [first] = this.#calls.values()
      if (first === call) this.#cancel(call, "timeout", outcome)
    }
    clearTimeout(call.timer)
    call.timer = setTimeout(expire, timeoutMillis + this.#limits.agentCallGraceMillis)
  }

  #cancel(call: OpenCall, reason: (typeof cancelReasons)[number], outcome: CallOutcome): void {
    if (call.cancelled !== undefined) return
    call.cancelled = outcome
    this.#outbox.say({ type: "tool.cancel", callId: call.ask.callId, reason })
    clearTimeout(call.timer)
    call.timer = setTimeout(() => this.#settle(call, outcome), this.#limits.agentCancelMillis)
  }

  #settle(call: OpenCall, outcome: CallOutcome): void {
    this.#remove(call)
    call.settle(outcome)
  }

  #remove(call: OpenCall): void {
    clearTimeout(call.timer)
    const all = [...this.#calls.values()]
    const left = new Map(this.#calls)
    left.delete(call.ask.callId)
    this.#calls = left.size === 0 ? noCalls : left
    for (const later of all.slice(all.indexOf(call) + 1))
      if (later.isAsked && later.cancelled === undefined) this.#time(later)
  }
}
