import { Cause, Effect } from "effect"
import type { Principal } from "#schemas/core/Authorization.ts"
import type { Problem } from "#schemas/core/Problem.ts"
import { invalidKey } from "#src/accounts/Admission.ts"
import type { KeyedExchange, KeyedRoute } from "#src/accounts/KeyedRoute.ts"
import { AppConfig } from "#src/Config.ts"
import { faultText } from "#src/http/ErrorBoundary.ts"
import { inPlaceBounds, readInThread } from "#src/http/ReadInThread.ts"
import { wholeBody } from "#src/http/WholeBody.ts"
import { headerOf } from "#src/front/RawRoute.ts"
import { FairShares } from "#src/infra/shares/FairShares.ts"
import { Workers } from "#src/infra/workers/Workers.ts"
import { answerOf, notAMessage, planOf, type Step, type Steps } from "#streams/mcp/Conversation.ts"
import { type Body, type PostedBody, readBody, received } from "#streams/mcp/Messages.ts"
import { codes, type Reply, RpcFault } from "#streams/mcp/Protocol.ts"
import { failedResult } from "#streams/mcp/Tool.ts"
import type { McpCaller, McpEndpoint, PlainAnswer } from "./McpEndpoint.ts"

const noSession = new RpcFault(codes.sessionNotFound, "Session not found", 404)

const ownReading = { module: new URL("./McpBodyThread.ts", import.meta.url), readers: {} }

/** An answer without the headers of every answer. */
type Answered = Effect.Effect<Omit<PlainAnswer, "body"> & { readonly body: string | undefined }, Problem>

/** Serves requests that were let in: takes the body, calls the tools one after the other, answers. */
export const serving = Effect.fnUntraced(function* (endpoint: McpEndpoint) {
  const { limits } = yield* AppConfig
  const read = yield* reading(endpoint)
  const shares = new FairShares(limits.mcpBodiesBytes)

  const answered = (exchange: KeyedExchange, key: Principal): Answered =>
    Effect.suspend(() => {
      let heldBytes = 0
      const reserve = (bytes: number): boolean => {
        const isTaken = shares.take(key.ownerId, bytes)
        if (isTaken) heldBytes += bytes
        return isTaken
      }
      return Effect.gen(function* () {
        const bytes = yield* wholeBody(exchange.body, { ...endpoint, reserve })
        // The client has left, which ends all of this.
        if (bytes === undefined) return yield* Effect.never
        // A thread that reads them takes them away.
        const size = bytes.length
        const body = yield* read(key.ownerId, bytes)
        return yield* answer(endpoint, exchange, key, body, size)
      }).pipe(Effect.ensuring(Effect.sync(() => shares.release(key.ownerId, heldBytes))))
    })

  const handle: KeyedRoute["handle"] = (exchange, key) =>
    Effect.map(Effect.raceFirst(answered(exchange, key), ended(exchange)), (made) => {
      if (made === undefined) return
      const type = made.body === undefined ? [] : [["Content-Type", "application/json"] as const]
      for (const [name, value] of made.headers) exchange.setHeader(name, value)
      exchange.send(made.status, type, made.body)
    })
  return handle
})

/** The key ended amid its call, or the client left, to whom nothing is said. */
const ended = (exchange: KeyedExchange): Effect.Effect<undefined, Problem> =>
  Effect.callback((resume) => {
    exchange.onLeave(() => resume(Effect.succeed(undefined)))
    const unwatch = exchange.watch(() => resume(Effect.fail(invalidKey())))
    return Effect.sync(unwatch)
  })

/** Reads bodies: small ones at once, large ones and those of many values in a thread. */
const reading = Effect.fnUntraced(function* (endpoint: McpEndpoint) {
  const { module, readers } = endpoint.reading ?? ownReading
  const workers = yield* Workers
  const { limits } = yield* AppConfig
  return (owner: string, bytes: Uint8Array<ArrayBuffer>): Effect.Effect<Body, Problem> => {
    const body = bytes.length > limits.mcpInPlaceBytes ? undefined : readBody(bytes, readers, inPlaceBounds)
    if (body !== undefined) return Effect.succeed(body)
    // McpBodyThread.ts is this module's other half.
    return Effect.map(readInThread(workers, limits, { owner, module, bytes }), (posted) =>
      received(posted as PostedBody)
    )
  }
})

const answer = (
  endpoint: McpEndpoint,
  exchange: KeyedExchange,
  key: Principal,
  body: Body,
  bytes: number
): Answered => {
  const { request, requestId } = exchange
  const header = (name: string): string => request.header(name)
  const plan = planOf(endpoint.server(request.query), header, body)
  const isBatch = plan._tag === "Steps" && plan.isBatch
  const caller: McpCaller = {
    key,
    requestId,
    request,
    setHeader: (name, value) => exchange.setHeader(name, value),
    idempotencyKey: isBatch ? undefined : headerOf(request.headers, "idempotency-key"),
    session: plan._tag === "Steps" && plan.isModern ? "" : header("mcp-session-id")
  }
  if (plan._tag === "Steps") return stepsTaken(endpoint, plan, caller)
  const contentType = header("content-type")
  return endpoint.plain === undefined
    ? stepsTaken(endpoint, notAMessage, caller)
    : endpoint.plain({ read: plan.read, bytes, contentType }, caller)
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
        : Effect.andThen(
            Effect.logError(`The tool ${tool} failed`, Cause.squash(cause)),
            Effect.map(faultText, failedResult)
          )
    ),
    Effect.map(reply)
  )
}
