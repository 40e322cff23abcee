import { Cause, Effect } from "effect"
import type { Principal } from "#schemas/core/Authorization.ts"
import type { JsonBounds } from "#schemas/core/JsonBounds.ts"
import { type Problem, ServerError, ServiceUnavailable } from "#schemas/core/Problem.ts"
import { invalidKey } from "#src/accounts/Admission.ts"
import { KeyWatch } from "#src/accounts/KeyWatch.ts"
import { AppConfig } from "#src/Config.ts"
import { faultText } from "#src/http/ErrorBoundary.ts"
import { RequestId } from "#src/http/RequestId.ts"
import { FairShares } from "#src/infra/shares/FairShares.ts"
import type { JobKind } from "#src/infra/workers/Job.ts"
import { type JobNotDone, Workers } from "#src/infra/workers/Workers.ts"
import { answerOf, notAMessage, planOf, type Step, type Steps } from "#streams/mcp/Conversation.ts"
import { type Body, type PostedBody, readBody, received } from "#streams/mcp/Messages.ts"
import { codes, type Reply, RpcFault } from "#streams/mcp/Protocol.ts"
import { failedResult } from "#streams/mcp/Tool.ts"
import type { McpBodyAsk } from "./McpBodyThread.ts"
import type { McpCaller, McpEndpoint, PlainAnswer } from "./McpEndpoint.ts"
import type { McpExchange } from "./McpExchange.ts"

const noSession = new RpcFault(codes.sessionNotFound, "Session not found", 404)

const tooMuch = ServiceUnavailable.of("The calls under way are too large together; try again")
const unread = ServiceUnavailable.of("Too many large calls are being read; try again")

/** A body of more values takes some milliseconds to read. */
const inPlaceBounds: JsonBounds = { members: 4_000, values: 40_000 }

/** An answer without the headers of every answer, or the problem in its place. */
type Answered = Effect.Effect<(Omit<PlainAnswer, "body"> & { readonly body: string | undefined }) | Problem>

/** Serves requests that were let in: reads the body, calls the tools one after the other, answers. */
export const serving = Effect.fnUntraced(function* (endpoint: McpEndpoint) {
  const { limits } = yield* AppConfig
  const { watch } = yield* KeyWatch
  const read = yield* reading
  const shares = new FairShares(limits.mcpBodiesBytes)

  const answered = (exchange: McpExchange, key: Principal, bytes: Uint8Array<ArrayBuffer>): Answered => {
    // A thread that reads them takes them away.
    const size = bytes.length
    return Effect.flatMap(read(key.ownerId, bytes), (body) =>
      body === undefined ? Effect.succeed(unread) : answer(endpoint, exchange, key, body, size)
    )
  }

  /** The key ended amid its call. */
  const ended = (key: Principal) =>
    Effect.callback<Problem>((resume) => {
      const unwatch = watch(key.id, () => resume(Effect.succeed(invalidKey())))
      return Effect.sync(unwatch)
    })

  return (exchange: McpExchange, key: Principal, bytes: Uint8Array<ArrayBuffer>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const size = bytes.length
      if (!shares.take(key.ownerId, size)) return Effect.succeed(tooMuch)
      const served: Answered = Effect.raceFirst(answered(exchange, key, bytes), ended(key))
      return Effect.ensuring(
        served,
        Effect.sync(() => shares.release(key.ownerId, size))
      )
    }).pipe(
      Effect.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause) ? Effect.interrupt : reported("A call failed", cause, ServerError.of)
      ),
      Effect.provideService(RequestId, exchange.requestId),
      Effect.map((made) => {
        if (made instanceof Error) exchange.fail(made)
        else exchange.send(made.status, made.body, made.headers)
      })
    )
})

/** A fault of this server is logged, and its caller is told its id. */
const reported = <A>(
  text: string,
  cause: Cause.Cause<unknown>,
  told: (text: string) => A
): Effect.Effect<A> =>
  Effect.flatMap(RequestId, (requestId) =>
    Effect.logError(text, Cause.squash(cause)).pipe(
      Effect.annotateLogs({ requestId }),
      Effect.andThen(Effect.map(faultText, told))
    )
  )

/** Reads bodies: small ones at once, large ones and those of many values in a thread. undefined: there was none for it. */
const reading = Effect.gen(function* () {
  const workers = yield* Workers
  const { limits } = yield* AppConfig
  // The bounds of readBody hold before anything large is made: a thread is safe, and takes bytes without a copy.
  const kind: JobKind = {
    module: new URL("./McpBodyThread.ts", import.meta.url),
    isolation: "thread",
    deadlineMillis: limits.mcpReadMillis,
    memoryMegabytes: limits.mcpReadHeapMegabytes
  }
  const inThread = (owner: string, bytes: Uint8Array<ArrayBuffer>): Effect.Effect<Body, JobNotDone> => {
    const ask: McpBodyAsk = { bytes }
    return Effect.map(
      workers.run({ kind, owner, ask, transfer: [bytes.buffer] }),
      // McpBodyThread.ts is this module's other half.
      (posted) => received(posted as PostedBody)
    )
  }
  return (owner: string, bytes: Uint8Array<ArrayBuffer>): Effect.Effect<Body | undefined> => {
    const body = bytes.length > limits.mcpInPlaceBytes ? undefined : readBody(bytes, inPlaceBounds)
    if (body !== undefined) return Effect.succeed(body)
    return Effect.catch(inThread(owner, bytes), (failure) =>
      Effect.as(
        failure.reason === "busy"
          ? Effect.void
          : Effect.logWarning("A large call could not be read", failure),
        undefined
      )
    )
  }
})

const answer = (
  endpoint: McpEndpoint,
  exchange: McpExchange,
  key: Principal,
  body: Body,
  bytes: number
): Answered => {
  const { request, requestId } = exchange
  const { query, remoteAddress } = request
  const header = (name: string): string => request.header(name)
  const plan = planOf(endpoint.server(query), header, body)
  const isBatch = plan._tag === "Steps" && plan.isBatch
  const caller: McpCaller = {
    key,
    requestId,
    query,
    remoteAddress,
    idempotencyKey: isBatch ? "" : header("idempotency-key"),
    session: plan._tag === "Steps" && plan.isModern ? "" : header("mcp-session-id")
  }
  if (plan._tag === "Steps") return stepsTaken(endpoint, plan, caller)
  const contentType = header("content-type")
  return endpoint.plain === undefined
    ? stepsTaken(endpoint, notAMessage, caller)
    : endpoint.plain({ json: plan.body, bytes, contentType }, caller)
}

/** The answer, once every step was taken, one after the other. */
const stepsTaken = (
  { callMillis, sessions }: McpEndpoint,
  plan: Steps<McpCaller>,
  caller: McpCaller
): Answered =>
  Effect.gen(function* () {
    if (sessions !== undefined && !plan.isInitialize && caller.session !== "") {
      const isOpen = yield* sessions.isOpen(caller.session, caller.key)
      if (!isOpen)
        return { status: noSession.status, headers: [], body: JSON.stringify(noSession.reply(undefined)) }
    }
    const replies = yield* Effect.forEach(plan.steps, (step) => replyOf(step, caller, callMillis))
    const session =
      sessions !== undefined && plan.isInitialize ? yield* sessions.issue(caller.key) : undefined
    const headers: PlainAnswer["headers"] = session === undefined ? [] : [["Mcp-Session-Id", session]]
    return { ...answerOf(plan, replies), headers }
  })

const replyOf = (
  step: Step<McpCaller>,
  caller: McpCaller,
  callMillis: number
): Effect.Effect<Reply | undefined> => {
  if (step._tag === "Nothing") return Effect.succeed(undefined)
  if (step._tag === "Reply") return Effect.succeed(step.reply)
  const { reply, run, tool } = step.call
  return run(caller).pipe(
    Effect.timeoutOrElse({
      duration: callMillis,
      orElse: () => Effect.succeed(failedResult(`${tool} took longer than ${callMillis / 1_000} s`))
    }),
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.interrupt
        : reported(`The tool ${tool} failed`, cause, failedResult)
    ),
    Effect.map(reply)
  )
}
