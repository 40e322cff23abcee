import { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { AgentSession } from "#actors/agents/AgentSession.ts"
import { AgentSessions, type SessionsFull } from "#actors/agents/AgentSessions.ts"
import {
  type NotOwner,
  StepStore,
  type StepStoreAway,
  type TooManySessions
} from "#actors/agents/StepStore.ts"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import type { Hello } from "#schemas/agents/ClientFrame.ts"
import { type AgentErrorCode, type AgentModel, closeCodes, type Ready } from "#schemas/agents/ServerFrame.ts"
import { toolNames } from "#schemas/agents/ToolCall.ts"
import { picoOfNumber } from "#schemas/llm/Money.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import type { SessionState } from "#streams/agents/SessionRecord.ts"
import { missedFrames } from "#streams/agents/StepFrames.ts"
import { ModelAccess } from "#src/llm/ModelAccess.ts"
import { SessionPlacement } from "../SessionPlacement.ts"
import type { ClientSocket } from "./ClientSocket.ts"

/** The reason for which a hello is refused. */
interface Refusal {
  readonly code: AgentErrorCode
  readonly message: string
  readonly closeCode: number
  readonly retryAfterMs?: number
}

type Trouble = SqlError | NotOwner | StepStoreAway | SessionsFull | TooManySessions

const no = (code: AgentErrorCode, message: string): Refusal => ({
  code,
  message,
  closeCode: closeCodes.protocol
})

const later = (message: string): Refusal => ({
  code: "overloaded",
  message,
  closeCode: closeCodes.restart,
  retryAfterMs: 1_000
})

/** A hello with the journal of its client: a client without one gets one for this connection. */
type NamedHello = Hello & { readonly client: { readonly journalId: string } }

const named = (hello: Hello): NamedHello => ({
  ...hello,
  client: { ...hello.client, journalId: hello.client.journalId ?? newId("jnl") }
})

/** Changes of a session by a hello, for an existing session or a new one. */
type Changes = Partial<SessionState>

/**
 * Answers a client's hello: finds or makes its session, and attaches it. Ends when the socket is attached, or with the
 * refusal to send. Source: contract/agents#resuming.
 */
export const makeHelloHandler = Effect.gen(function* () {
  const offer = yield* ModelAccess
  const homes = yield* SessionPlacement
  const sessions = yield* AgentSessions
  const store = yield* StepStore

  const parts: Parts = { offer, homes, sessions, store }

  const greet = Effect.fnUntraced(function* (socket: ClientSocket, said: Hello) {
    const hello = named(said)
    const wanted = yield* chosen(offer, socket, hello.model)
    if ("closeCode" in wanted) return wanted
    if (hello.resume === undefined) {
      if (wanted.model === undefined)
        return no("model_forbidden", "There is no model that this key can run and pay for")
      // Before it is made: a session whose id was never sent would count as live.
      const billing = yield* offer.billing(socket.key, wanted.model.id)
      const session = yield* made(parts, socket, hello, wanted.model.id)
      if ("closeCode" in session) return session
      if (socket.isClosed) return yield* Effect.as(sessions.end(session, "client_bye"), undefined)
      return yield* attach(parts, socket, hello, session, wanted.model, billing)
    }
    return yield* resumed(parts, socket, hello, hello.resume, wanted.model)
  })

  return (socket: ClientSocket, hello: Hello): Effect.Effect<Refusal | undefined> =>
    Effect.catch(greet(socket, hello), (trouble: Trouble) => Effect.succeed(refusalOf(trouble)))
})

interface Parts {
  readonly offer: ModelAccess["Service"]
  readonly homes: SessionPlacement["Service"]
  readonly sessions: AgentSessions["Service"]
  readonly store: StepStore["Service"]
}

const resumed = Effect.fnUntraced(function* (
  parts: Parts,
  socket: ClientSocket,
  hello: NamedHello,
  id: string,
  wanted: AgentModel | undefined
) {
  const session = yield* parts.sessions.acquire(id, socket.key.ownerId)
  if (session === undefined) return no("unknown_session", `There is no session ${id} to resume`)
  // It is claimed for this client, and noted as attached.
  return yield* Effect.ensuring(
    resume(parts, socket, hello, session, wanted),
    Effect.sync(() => session.noteAbsence())
  )
})

const resume = Effect.fnUntraced(function* (
  parts: Parts,
  socket: ClientSocket,
  hello: NamedHello,
  session: AgentSession,
  wanted: AgentModel | undefined
) {
  const { offer } = parts
  const { id, root } = session.facts
  if (root !== hello.workspace.root)
    return no("workspace_mismatch", `The session ${id} belongs to another workspace: ${root}`)
  const known = offer.modelOf(socket.key, session.state.model)
  const model = hello.model === undefined && typeof known !== "string" ? known : wanted
  if (model === undefined)
    return no("model_forbidden", `The model ${session.state.model} is no longer available`)
  const billing = yield* offer.billing(socket.key, model.id)
  return yield* attach(parts, socket, hello, session, model, billing)
})

/** ids are shared among several machines: if so many tries find none of this one, it has none */
const idsTried = 10_000

/** The id's home is here: the client need not be relayed. */
const made = Effect.fnUntraced(function* (
  { homes, sessions }: Parts,
  { key }: ClientSocket,
  hello: NamedHello,
  model: string
) {
  let id = newId("ses")
  for (let tried = 1; !homes.isHere(id); tried++) {
    if (tried === idsTried) return later("This process has no sessions to give at the moment; try again")
    id = newId("ses")
  }
  const { keyId, ownerId: userId } = key
  const startedAt = Date.now()
  const { name: workspaceName, root } = hello.workspace
  const facts = { id, userId, keyId, root, workspaceName, startedAt }
  return yield* sessions.create(facts, stateOf(hello, model, startedAt))
})

const attach = Effect.fnUntraced(function* (
  { sessions, store }: Parts,
  socket: ClientSocket,
  hello: NamedHello,
  session: AgentSession,
  model: AgentModel,
  billing: Ready["billing"]
) {
  const lastSeq = Math.min(hello.lastSeq ?? 0, session.outbox.seq)
  const missed = yield* missedBy(store, session, lastSeq)
  if (socket.isClosed) return undefined
  // It was let go, or has ended, while this hello was answered: frames for it would be lost.
  if (session.isLost || sessions.peek(session.facts.id) !== session)
    return later("The session was about to be let go; try again")
  const { key, sink } = socket
  const client = { sink, journalId: hello.client.journalId, keyId: key.keyId }
  const ready = readyOf(hello, session, model, billing)
  socket.belongsTo(session, client)
  session.attach(client, { ready, lastSeq, missed }, changesOf(hello, model.id))
  socket.readEarly()
  return undefined
})

const refusalOf = (trouble: Trouble): Refusal => {
  switch (trouble._tag) {
    case "NotOwner":
      return no("not_owner", `The session ${trouble.sessionId} is somebody else's`)
    case "TooManySessions":
      return no("rate_limited", `This key has ${trouble.live} live sessions; end one of them first`)
    case "SessionsFull":
      return later("Too many sessions are open here; try again")
    default:
      return later("Sessions cannot be read at the moment; try again")
  }
}

/** The model that a hello names, or the default one. */
const chosen = Effect.fnUntraced(function* (
  offer: ModelAccess["Service"],
  { key }: ClientSocket,
  named: string | undefined
) {
  if (named === undefined) return { model: yield* offer.defaultModel(key) }
  const model = offer.modelOf(key, named)
  if (model === "forbidden") return no("model_forbidden", `model: this key may not use ${named}`)
  return model === "unknown"
    ? no("model_forbidden", `model: there is no ${named} that calls tools`)
    : { model }
})

const budgetOf = ({ budgetUsd }: Hello): string | null => {
  const pico = budgetUsd === undefined ? undefined : picoOfNumber(budgetUsd)
  return pico === undefined ? null : String(pico)
}

const stateOf = (hello: NamedHello, model: string, now: number): SessionState => ({
  clientVersion: hello.client.version,
  clientPlatform: hello.client.platform,
  clientName: hello.client.name ?? "",
  journalId: hello.client.journalId,
  model,
  thinkingLevel: hello.thinkingLevel ?? "medium",
  budget: budgetOf(hello),
  status: "idle",
  prompts: 0,
  toolCalls: 0,
  toolCallsDenied: 0,
  cost: "0",
  promptTokens: 0,
  completionTokens: 0,
  seqReserved: 0,
  baseStep: 0,
  lastSeenAt: now,
  detachedAt: null,
  endedAt: null,
  endReason: null
})

const changesOf = (hello: Hello, model: string): Changes => ({
  clientVersion: hello.client.version,
  clientPlatform: hello.client.platform,
  clientName: hello.client.name ?? "",
  model,
  ...(hello.thinkingLevel === undefined ? {} : { thinkingLevel: hello.thinkingLevel }),
  ...(hello.budgetUsd === undefined ? {} : { budget: budgetOf(hello) })
})

const { frameBytes, promptBytes, streamChunkBytes, streamBytes, queue, pingMillis, deadMillis } = agentLimits
const limits = { frameBytes, promptBytes, streamChunkBytes, streamBytes, queue, pingMillis, deadMillis }

const readyOf = (
  hello: Hello,
  { active, facts, outbox, state }: AgentSession,
  model: AgentModel,
  billing: Ready["billing"]
): string => {
  const ready: Omit<Ready, "sessionId"> & { readonly sessionId: string } = {
    type: "ready",
    sessionId: facts.id,
    resumed: hello.resume !== undefined,
    seq: outbox.seq,
    model,
    thinkingLevel: hello.thinkingLevel ?? state.thinkingLevel,
    tools: [...toolNames],
    billing,
    ...(active === undefined ? {} : { activePrompt: active.id }),
    limits
  }
  return JSON.stringify(ready)
}

/** The frames that the client has not seen and that have left memory. */
const missedBy = Effect.fnUntraced(function* (
  store: StepStore["Service"],
  session: AgentSession,
  lastSeq: number
) {
  const { conversation, facts, state } = session
  // Memory answers as the store would, if no step was left out of it.
  if (conversation !== undefined && state.baseStep === 0) {
    return missedFrames(conversation.steps, lastSeq, session.outbox.floor)
  }
  for (;;) {
    const { floor } = session.outbox
    if (floor <= lastSeq) return []
    const steps = yield* store.announced(facts.id, lastSeq, floor)
    // Another client may have acknowledged more in the meantime.
    if (floor === session.outbox.floor) return missedFrames(steps, lastSeq, floor)
  }
})
