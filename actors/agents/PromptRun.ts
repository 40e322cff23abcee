/**
 * State: none of its own: its next action is read from the session's steps, so a run can stop and begin anywhere.
 * Messages: none; it is a fiber that lives while a prompt is worked on, and parks while no client is there.
 * Limits: `agentTurns` model calls a prompt, `callsInFlight` tool calls at once, the session's budget, a few retries.
 * Restart policy: a defect restarts it from the steps, `restartsMax` times; then the prompt ends with `internal`.
 * In a crash a model call under way is the platform's loss and is made again; nothing that was stored is done twice.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import type { AgentErrorCode, PromptStatus } from "#schemas/agents/ServerFrame.ts"
import { usdOf } from "#schemas/llm/Money.ts"
import { messagesOf } from "#streams/agents/ChatContext.ts"
import { callsOf, Conversation, type Next, type ToolCallPart } from "#streams/agents/Conversation.ts"
import { systemPrompt } from "#streams/agents/Prompts.ts"
import type { MessageStep, StepBody } from "#streams/agents/Step.ts"
import type { AgentSession } from "./AgentSession.ts"
import * as Compaction from "./Compaction.ts"
import { askModel, type Asked, type AttemptLimits, type AttemptParts } from "./ModelAttempts.ts"
import type { ModelMessage } from "./ModelCalls.ts"
import { type CallOutcome, failed } from "./OpenCalls.ts"
import type { StepStore } from "./StepStore.ts"
import type { Entry } from "./StoredSession.ts"
import { askOf, checked, isAsk } from "./ToolAsk.ts"

export interface RunLimits extends AttemptLimits {
  readonly agentTurns: number
}

interface RunParts extends AttemptParts {
  readonly limits: RunLimits
  readonly store: StepStore["Service"]
}

interface PromptError {
  readonly code: AgentErrorCode
  readonly message: string
}

const restartsMax = 3
const budgetWarnings = 0.8

/** Works on the session's prompt until it is done, or the session has another owner. */
export const work = (session: AgentSession, parts: RunParts): Effect.Effect<void> =>
  Effect.gen(function* () {
    let restarts = 0
    while (session.active !== undefined && !session.isLost) {
      const run = new PromptRun(session, parts, restarts === 0)
      yield* Effect.catchCauseIf(
        run.toEnd,
        (cause) => !Cause.hasInterruptsOnly(cause),
        (cause) =>
          Effect.andThen(
            Effect.annotateLogs(Effect.logError("A run crashed", cause), { session: session.facts.id }),
            restarts++ < restartsMax
              ? Effect.sleep(50 * 2 ** restarts)
              : run.finish("error", { code: "internal", message: "The server could not work on this prompt" })
          )
      )
    }
  })

class PromptRun {
  readonly #session: AgentSession
  readonly #parts: RunParts
  /** calls that were noted for a client with their message, and not sent yet */
  #fresh: ReadonlySet<string> = new Set()
  /** A call to a model that was lost with an earlier run is made again, whether a client is there or not. */
  #mayCallAlone: boolean
  #warned = false

  constructor(session: AgentSession, parts: RunParts, mayCallAlone: boolean) {
    this.#session = session
    this.#parts = parts
    this.#mayCallAlone = mayCallAlone
  }

  readonly toEnd: Effect.Effect<void> = Effect.suspend(() =>
    Effect.gen({ self: this }, function* () {
      const session = this.#session
      const conversation = yield* this.#conversation
      const { active } = session
      if (active?.kind === "compact") return yield* this.#compactNow(conversation)
      while (session.active === active && !session.isLost) {
        if (session.abortion.signal.aborted) yield* this.#aborted(conversation)
        else yield* this.#step(conversation, conversation.next())
      }
    })
  )

  /** The prompt is over: it is stored, and told. */
  finish(status: PromptStatus, error?: PromptError): Effect.Effect<void> {
    return Effect.suspend(() => {
      const session = this.#session
      const { active, conversation } = session
      if (active === undefined) return Effect.void
      const totals = (conversation ?? new Conversation([])).totals()
      const { completionTokens, cost, covered, promptTokens, toolCalls, toolCallsDenied, turns } = totals
      const body: StepBody = {
        kind: "done",
        id: active.id,
        status,
        ...(error === undefined ? {} : { error }),
        usage: { promptTokens, completionTokens, totalTokens: promptTokens + completionTokens },
        cost: String(cost),
        covered,
        turns,
        toolCalls,
        toolCallsDenied
      }
      const stored = session.record([{ body }], { status: "idle", ...baseOf(session, conversation) })
      session.finish()
      return Effect.asVoid(stored)
    })
  }

  get #conversation(): Effect.Effect<Conversation> {
    const session = this.#session
    if (session.conversation !== undefined) return Effect.succeed(session.conversation)
    const { limits, store } = this.#parts
    // Waits while the store is away, as every write does: the answer could not be stored before it is back.
    return Effect.map(
      Effect.orDie(
        Effect.retry(store.steps(session.facts.id, session.state.baseStep), {
          schedule: Schedule.spaced(limits.agentRetryMillis)
        })
      ),
      (steps) => {
        const conversation = new Conversation(steps)
        session.reload(conversation)
        return conversation
      }
    )
  }

  #step(conversation: Conversation, next: Next): Effect.Effect<void> {
    switch (next._tag) {
      case "Results":
        return this.#results(conversation, next)
      case "Finish":
        return this.#atEnd()
      case "CallModel":
        return this.#turn(conversation)
    }
  }

  /** Adds waiting steps to the conversation; without any the prompt is completed. */
  #atEnd(): Effect.Effect<void> {
    const session = this.#session
    const steers = session.queue.some(({ mode }) => mode === "steer")
    if (session.queue.length === 0) return this.finish("completed")
    return Effect.asVoid(session.apply(({ mode }) => (steers ? mode === "steer" : true)))
  }

  readonly #turn = Effect.fnUntraced({ self: this }, function* (this: PromptRun, conversation: Conversation) {
    const session = this.#session
    if (!this.#mayCallAlone) {
      yield* session.attached()
      if (session.abortion.signal.aborted) return
    }
    yield* session.apply(({ mode }) => mode === "steer")
    const { turns } = conversation.totals()
    if (turns >= this.#parts.limits.agentTurns) return yield* this.finish("max_turns")
    if (turns > 0) session.say({ kind: "turn_start", turn: turns + 1 })
    if (Compaction.isDue(conversation, this.#window)) yield* this.#compact(conversation, "")
    if (session.abortion.signal.aborted) return
    const asked = yield* this.#ask(conversation)
    this.#mayCallAlone = false
    const { answer } = asked
    if (answer._tag === "Failed" && answer.code === "context_overflow") {
      if (yield* this.#compact(conversation, "")) return
    }
    if (answer._tag === "Failed") {
      const { code, message } = answer
      return yield* this.finish("error", { code, message })
    }
    if (answer._tag === "OverBudget") return yield* this.finish("budget", overBudget)
    yield* this.#keep(conversation, asked.messageId, answer.said)
    if (answer._tag === "Answered" && answer.isCutByCredits) yield* this.finish("error", outOfCredits)
  })

  #ask(conversation: Conversation): Effect.Effect<Asked> {
    const { facts, state } = this.#session
    const workspace = { root: facts.root, platform: state.clientPlatform }
    const system = { role: "system", content: systemPrompt(workspace) }
    return askModel(this.#session, this.#parts, {
      messages: [system, ...messagesOf(conversation.steps)],
      withTools: true
    })
  }

  /** Stores the model's message, and with it the client that gets its calls, if one is attached. */
  #keep(conversation: Conversation, messageId: string, said: ModelMessage): Effect.Effect<boolean> {
    const session = this.#session
    this.#tellFallback(conversation, said.model)
    const { content, covered, model, stopReason, usage } = said
    const body: MessageStep = {
      kind: "message",
      messageId,
      model,
      content,
      stopReason,
      usage,
      cost: String(said.cost),
      covered
    }
    const entries: Array<Entry> = [{ body }]
    const callIds = callsOf(body).map(({ callId }) => callId)
    const { client } = session
    if (client !== undefined && callIds.length > 0 && stopReason === "tool_calls") {
      entries.push({ body: { kind: "taken", callIds, journalId: client.journalId } })
      this.#fresh = new Set(callIds)
    }
    const stored = session.record(entries, Compaction.spent(session, said))
    this.#warn()
    if (callIds.length === 0) session.say({ kind: "turn_end", turn: conversation.totals().turns })
    return stored
  }

  #results(conversation: Conversation, { message, open }: Extract<Next, { _tag: "Results" }>) {
    const session = this.#session
    const one = (call: ToolCallPart) =>
      Effect.flatMap(
        message.stopReason === "tool_calls" ? this.#outcome(conversation, call) : Effect.succeed(cutOff),
        (outcome) => this.#keepResult(call, outcome)
      )
    return Effect.map(
      Effect.forEach(open, one, { concurrency: agentLimits.callsInFlight, discard: true }),
      () => session.say({ kind: "turn_end", turn: conversation.totals().turns })
    )
  }

  #outcome(conversation: Conversation, call: ToolCallPart): Effect.Effect<CallOutcome> {
    const session = this.#session
    const { args, callId, tool } = call
    const isSent = conversation.takenBy(callId) !== undefined && !this.#fresh.has(callId)
    if (!isSent) session.say({ kind: "tool_start", callId, tool, args })
    const ask = askOf(call, session.active?.id ?? "")
    if (!isAsk(ask)) return Effect.succeed(ask)
    return Effect.map(session.ask(ask, isSent), (outcome) => checked(tool, outcome))
  }

  #keepResult({ callId }: ToolCallPart, outcome: CallOutcome): Effect.Effect<boolean> {
    const session = this.#session
    const { toolCalls, toolCallsDenied } = session.state
    return session.record([{ body: { kind: "result", callId, ...outcome } }], {
      toolCalls: toolCalls + 1,
      toolCallsDenied: toolCallsDenied + (outcome.denied ? 1 : 0)
    })
  }

  /** Calls that were never sent to a client have a result too: a model must get one for each. */
  readonly #aborted = Effect.fnUntraced(
    { self: this },
    function* (this: PromptRun, conversation: Conversation) {
      const next = conversation.next()
      if (next._tag === "Results")
        for (const call of next.open) yield* this.#keepResult(call, failed("cancelled", "The user aborted"))
      yield* this.finish("aborted")
    }
  )

  readonly #compactNow = Effect.fnUntraced(
    { self: this },
    function* (this: PromptRun, conversation: Conversation) {
      const asked = conversation.active
      const instructions = asked?.kind === "compact" ? asked.instructions : ""
      yield* this.#compact(conversation, instructions)
      yield* this.finish(this.#session.abortion.signal.aborted ? "aborted" : "completed")
    }
  )

  #compact(conversation: Conversation, instructions: string): Effect.Effect<boolean> {
    return Compaction.compact(this.#session, conversation, {
      window: this.#window,
      instructions,
      summarise: (messages) =>
        Effect.map(
          askModel(this.#session, this.#parts, { messages, withTools: false }),
          ({ answer }) => answer
        )
    })
  }

  get #window(): number | undefined {
    const { payerId, state } = this.#session
    return this.#parts.models.contextLength(payerId, state.model)
  }

  #tellFallback(conversation: Conversation, model: string): void {
    const before = conversation.steps.map(({ body }) => body).findLast((body) => body.kind === "message")
    if (before !== undefined && before.model !== model && this.#session.state.model.startsWith("collection/"))
      this.#session.say({ kind: "model_fallback", from: before.model, to: model })
  }

  #warn(): void {
    const { budget, cost } = this.#session.state
    if (budget === null || this.#warned || Number(cost) < Number(budget) * budgetWarnings) return
    this.#warned = true
    const [spentUsd, budgetUsd] = [usdOf(BigInt(cost)), usdOf(BigInt(budget))]
    this.#session.say({ kind: "budget_warning", spentUsd, budgetUsd })
  }
}

const overBudget: PromptError = {
  code: "budget_exceeded",
  message: "What is left of the session's budget does not pay for another call"
}
const outOfCredits: PromptError = {
  code: "insufficient_credits",
  message: "The credits ended in the middle of the answer; top up to go on"
}
const cutOff = failed("invalid_params", "The message was cut off at its length, so its calls were not made")

/** The first step that the next run reads: those before the last compaction's cut are not needed. */
const baseOf = (session: AgentSession, conversation: Conversation | undefined) => {
  const last = conversation?.steps.map(({ body }) => body).findLast((body) => body.kind === "compaction")
  return last === undefined || session.queue.length > 0 ? {} : { baseStep: last.keepFrom }
}
