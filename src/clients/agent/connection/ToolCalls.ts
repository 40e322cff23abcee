import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import type { ClientFrame, ToolResult } from "#schemas/agents/ClientFrame.ts"
import type { ServerFrame, ToolRequest } from "#schemas/agents/ServerFrame.ts"
import { tools, type ToolErrorCode } from "#schemas/agents/ToolCall.ts"
import type { Approval, ApprovalAsk } from "../boundary/Approval.ts"
import type { StoredOutcome } from "../journal/JournalEntry.ts"
import type { SessionJournal } from "../journal/SessionJournal.ts"
import type { ToolOutcome, TurnHooks } from "../tools/ToolCall.ts"
import { ToolFailure } from "../tools/ToolFailure.ts"
import type { ToolRunner } from "../tools/ToolRunner.ts"
import type { Approve } from "./Client.ts"
import type { ToolState } from "./ClientEvents.ts"

/** The server has at most 8 under way; beyond this it is not one of ours. */
const runningMax = 32

interface ToolCallParts {
  readonly runner: Pick<ToolRunner, "runInTurn">
  readonly approve: Approve
  /** gives up on the frame where there is no connection */
  readonly send: (frame: ClientFrame) => void
  readonly tell: (state: ToolState) => void
  /** so much waits to be sent that output is better left out */
  readonly isCongested: () => boolean
}

interface Running {
  readonly promptId: string
  readonly stop: AbortController
}

interface Making extends Pick<TurnHooks, "signal" | "begin"> {
  readonly isNoted: boolean
}

const failure = (code: ToolErrorCode, message: string): StoredOutcome => ({
  ok: false,
  error: { code, message },
  durationMs: 0
})

const interruptedText =
  "The outcome is unknown: the client ended while this call ran. It may have been done, in part or not at all; look before you do it again."
const unwrittenText = "Not done: this machine's journal cannot be written"

/** The client's own table counts as well as the server's word: neither alone may have a call made twice. */
const mayRepeat = ({ method, replay }: ToolRequest): boolean =>
  replay === "safe" && tools.some((tool) => tool.method === method && tool.replay === "safe")

/**
 * The calls that the server requests of this machine. Each is made once: a running one goes on, a finished one is
 * reported again, and one begun in an earlier process that may not be repeated is answered with `interrupted`.
 */
export class ToolCalls {
  private readonly journal: SessionJournal
  private readonly parts: ToolCallParts
  private readonly running = new Map<string, Running>()
  /** kept until the server has them */
  private readonly finished = new Map<
    string,
    { readonly promptId: string; readonly outcome: StoredOutcome }
  >()
  private readonly ended = new Set<Promise<void>>()

  constructor(journal: SessionJournal, parts: ToolCallParts) {
    this.journal = journal
    this.parts = parts
  }

  request(request: ToolRequest): void {
    const { callId } = request
    if (this.running.has(callId)) return
    const known = this.finished.get(callId)?.outcome ?? this.known(request)
    if (known !== undefined) return this.answer(callId, known)
    if (this.running.size >= runningMax) {
      return this.answer(callId, failure("exec_failed", "Not done: too many calls at once"))
    }
    const running = { promptId: request.promptId, stop: new AbortController() }
    this.running.set(callId, running)
    const end = this.run(request, running).finally(() => this.ended.delete(end))
    this.ended.add(end)
  }

  /** A request that this version does not understand: the server waits for an answer. */
  strange(callId: string): void {
    if (!this.running.has(callId) && !this.finished.has(callId)) {
      this.answer(callId, failure("invalid_params", "This client does not know such a call"))
    }
  }

  /** Follows the server's frames about calls; `closed` outcomes are dropped. */
  observe(frame: ServerFrame): void {
    if (frame.type === "tool.cancel") this.running.get(frame.callId)?.stop.abort()
    else if (frame.type === "event" && frame.kind === "tool_end") this.close(frame.callId, frame.seq)
    else if (frame.type === "prompt.done") this.closePrompt(frame.id, frame.seq)
  }

  stopAll(): void {
    for (const { stop } of this.running.values()) stop.abort()
  }

  /** Done when nothing runs any more. */
  async settled(): Promise<void> {
    await Promise.all(this.ended)
  }

  /** The outcome known from an earlier process, or that it cannot be known. */
  private known(request: ToolRequest): StoredOutcome | undefined {
    const call = this.journal.call(request.callId)
    if (call?.state === "finished") return call.outcome
    if (mayRepeat(request)) return undefined
    const mayHaveBegun =
      call?.state === "started" ||
      call?.state === "closed" ||
      (call === undefined && this.journal.damaged && request.attempt > 1)
    return mayHaveBegun ? failure("interrupted", interruptedText) : undefined
  }

  private async run(request: ToolRequest, running: Running): Promise<void> {
    const { callId, method, params, promptId } = request
    const isNoted = !mayRepeat(request)
    this.parts.tell({ state: "started", callId, method, params })
    let beganMillis = performance.now()
    // A call that waits for its turn has not begun: a client that dies then leaves nothing unknown.
    const begin = async (): Promise<void> => {
      beganMillis = performance.now()
      if (isNoted) await this.begun(callId, promptId)
    }
    const made = await this.make(request, { signal: running.stop.signal, isNoted, begin })
    const durationMs = Math.round(performance.now() - beganMillis)
    const outcome = this.fitting(callId, { ...made, durationMs })
    if (isNoted) await this.note(callId, outcome)
    const { denied = false, ...rest } = outcome
    this.parts.tell({ state: "ended", callId, denied, ...rest })
    // Otherwise the server has closed the call meanwhile.
    if (this.running.get(callId) !== running) return
    this.running.delete(callId)
    this.finished.set(callId, { promptId, outcome })
    this.answer(callId, outcome)
  }

  private async begun(callId: string, promptId: string): Promise<void> {
    try {
      await this.journal.started(callId, promptId)
    } catch (error) {
      throw new ToolFailure("exec_failed", `${unwrittenText}: ${String(error)}`)
    }
  }

  private async make(
    { callId, method, params, promptId, timeoutMs }: ToolRequest,
    { begin, isNoted, signal }: Making
  ): Promise<ToolOutcome> {
    try {
      return await this.parts.runner.runInTurn(
        { callId, method, params, timeoutMs },
        {
          signal,
          begin,
          onOutput: this.outputOf(callId),
          approve: (ask) => (isNoted ? this.approved(ask, signal, promptId) : this.asked(ask, signal))
        }
      )
    } catch (error) {
      return { ok: false, error: { code: "exec_failed", message: String(error) } }
    }
  }

  private outputOf(callId: string): (stream: "stdout" | "stderr", text: string) => void {
    let index = 0
    return (stream, text) => {
      this.parts.tell({ state: "output", callId, stream, data: text })
      if (this.parts.isCongested()) return
      for (const data of streamPieces(text)) {
        this.parts.send({ type: "tool.stream", callId, index: index++, stream, data })
      }
    }
  }

  /** Nothing was done so far: a client that dies while its user thinks leaves nothing unknown. */
  private async approved(ask: ApprovalAsk, signal: AbortSignal, promptId: string): Promise<Approval> {
    this.journal.asked(ask.callId)
    const approval = await this.asked(ask, signal)
    if (approval === "no") return approval
    try {
      await this.journal.started(ask.callId, promptId)
      return approval
    } catch {
      // Without a line in the journal the call could be made twice. The next one gets the reason.
      return "no"
    }
  }

  /** The answer of the user, not awaited once the call is cancelled. */
  private asked(ask: ApprovalAsk, signal: AbortSignal): Promise<Approval> {
    const given = this.parts.approve(ask, signal)
    const cancelled = new Promise<"no">((resolve) => {
      if (signal.aborted) resolve("no")
      else signal.addEventListener("abort", () => resolve("no"), { once: true })
    })
    return Promise.race([given, cancelled])
  }

  /** Results are capped by the tools; one that is too large all the same would close the socket. */
  private fitting(callId: string, outcome: StoredOutcome): StoredOutcome {
    const bytes = Buffer.byteLength(JSON.stringify(resultFrame(callId, outcome)))
    if (bytes <= agentLimits.frameBytes) return outcome
    const message = `Done, but its result of ${bytes} bytes is too large to be sent`
    return { ...failure("too_large", message), durationMs: outcome.durationMs }
  }

  private async note(callId: string, outcome: StoredOutcome): Promise<void> {
    try {
      await this.journal.finished(callId, outcome)
    } catch {
      // The journal reports the failure from now on, and no further call begins. This one was made: it is answered.
    }
  }

  private close(callId: string, seq: number): void {
    this.running.get(callId)?.stop.abort()
    this.running.delete(callId)
    this.finished.delete(callId)
    if (this.journal.call(callId) !== undefined) this.journal.closed(callId, seq)
  }

  private closePrompt(promptId: string, seq: number): void {
    const ofPrompt = (calls: ReadonlyMap<string, { readonly promptId: string }>): ReadonlyArray<string> =>
      [...calls].flatMap(([callId, call]) => (call.promptId === promptId ? [callId] : []))
    const open = [...ofPrompt(this.running), ...ofPrompt(this.finished), ...this.journal.openCalls(promptId)]
    for (const callId of new Set(open)) this.close(callId, seq)
  }

  private answer(callId: string, outcome: StoredOutcome): void {
    this.parts.send(resultFrame(callId, outcome))
  }
}

const resultFrame = (callId: string, outcome: StoredOutcome): ToolResult => ({
  type: "tool.result",
  callId,
  ...outcome
})

/** A character of JavaScript's strings takes at most so many bytes as UTF-8; a pair of surrogates takes 4. */
const bytesPerCharacterMax = 3
const pieceCharacters = Math.floor(agentLimits.streamChunkBytes / bytesPerCharacterMax)

/** Cuts output into what `tool.stream` may carry, between whole characters. */
export const streamPieces = (text: string): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  let from = 0
  while (from < text.length) {
    let to = Math.min(from + pieceCharacters, text.length)
    const last = text.charCodeAt(to - 1)
    if (to < text.length && last >= 0xd8_00 && last <= 0xdb_ff) to -= 1
    pieces.push(text.slice(from, to))
    from = to
  }
  return pieces
}
