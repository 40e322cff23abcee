import { Cause, Effect } from "effect"
import { KeyGate } from "#src/accounts/KeyGate.ts"
import { KeyWatch } from "#src/accounts/KeyWatch.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import { AppConfig } from "#src/Config.ts"
import type { Limits } from "#src/Limits.ts"
import { nestedStoreAway } from "#src/infra/http/StoreAway.ts"
import { HeldBytes } from "#src/infra/uws/HeldBytes.ts"
import type { HotRoute } from "#src/infra/uws/HotRoute.ts"
import { Idempotency } from "#src/infra/postgres/Idempotency.ts"
import { CallExchange } from "./CallExchange.ts"
import * as CallFault from "./CallFault.ts"
import type { Client } from "./Client.ts"
import type { AnswerSink } from "./CallParts.ts"
import { readChatRequest } from "#src/llm/requests/ChatRequest.ts"
import { ClientStream } from "./ClientStream.ts"
import { Completions } from "./Completions.ts"
import { Embeddings } from "./Embeddings.ts"
import { readEmbeddingsRequest } from "#src/llm/requests/EmbeddingsRequest.ts"
import { readJson } from "#src/llm/requests/JsonRequest.ts"
import { onceOnly } from "./OnceOnly.ts"
import { RequestFault } from "#src/llm/requests/RequestFault.ts"

/** The fault to answer with; undefined where the exchange was answered already. */
type Handled = Effect.Effect<CallFault.CallFault | undefined>

const eventStream: ReadonlyArray<readonly [string, string]> = [
  ["Content-Type", "text/event-stream; charset=utf-8"],
  ["Cache-Control", "no-cache"],
  // nginx would gather the stream into blocks otherwise.
  ["X-Accel-Buffering", "no"]
]

const noBody = new Uint8Array(0)
const tooMuch = CallFault.overloaded("The calls under way are too large together; try again")

/** What an endpoint does with a body that is JSON. */
type Handle = (exchange: CallExchange, key: Principal, body: unknown) => Handled

/** `POST /api/v1/chat/completions` and `/embeddings`, served beside the Effect pipeline. */
export const completionRoutes = Effect.gen(function* () {
  const answers = yield* Idempotency
  const { limits } = yield* AppConfig
  const enter = yield* entering
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const bodies = new HeldBytes(limits.callBodiesBytes)
  const clients = new Set<Client>()
  // Calls that go on for their answer's sake are settled all the same when the server ends.
  yield* Effect.addFinalizer(() => Effect.sync(() => clients.forEach((client) => client.leave())))

  const routeOf = (path: string, handle: Handle): HotRoute => ({
    method: "POST",
    path,
    maxBodyBytes: limits.completionBodyBytes,
    headers: ["authorization", "x-request-id", "idempotency-key"],
    cors: "configured",
    errors: "nested",
    handle: (request, body, reply) => {
      const bytes = body.length
      if (!bodies.take(bytes)) return new CallExchange(request, noBody, reply).fail(tooMuch)
      const exchange = new CallExchange(request, body, reply)
      const once = (key: Principal, json: unknown) =>
        onceOnly(answers, exchange, key, path, handle(exchange, key, json))
      clients.add(exchange.client)
      const leave = Effect.sync(() => {
        bodies.release(bytes)
        clients.delete(exchange.client)
      })
      run(Effect.ensuring(answering(exchange, enter(exchange, once)), leave))
    }
  })

  return [
    routeOf("/api/v1/chat/completions", completing(yield* Completions, limits)),
    routeOf("/api/v1/embeddings", embedding(yield* Embeddings))
  ]
})

const completing =
  (completions: Completions["Service"], limits: Limits): Handle =>
  (exchange, key, body) => {
    const request = readChatRequest(body)
    if (request instanceof RequestFault) return Effect.succeed(CallFault.invalidRequest(request))
    const { callId: id, client, startedAt } = exchange
    const sink: AnswerSink = {
      json: (answer) => exchange.sendJson(200, JSON.stringify(answer)),
      stream: (onDrain) => {
        const headers = [...eventStream, ...exchange.headers]
        const opened = () => exchange.onStatus(200)
        exchange.stream = new ClientStream(exchange.reply, headers, limits, onDrain, opened)
        return exchange.stream
      },
      began: (head) => {
        exchange.streamHead = head
      },
      brokeOff: () => {
        exchange.isSpoilt = true
      }
    }
    return completions.complete({ id, key, source: "api", request, client, sink, startedAt })
  }

const embedding =
  (embeddings: Embeddings["Service"]): Handle =>
  (exchange, key, body) => {
    const request = readEmbeddingsRequest(body)
    if (request instanceof RequestFault) return Effect.succeed(CallFault.invalidRequest(request))
    const { callId: id, client, startedAt } = exchange
    const send = (answer: unknown) => exchange.sendJson(200, JSON.stringify(answer))
    return embeddings.embed({ id, key, request, client, send, startedAt })
  }

/** Lets in who may call, and reads the body. */
const entering = Effect.gen(function* () {
  const gate = yield* KeyGate
  const { watch } = yield* KeyWatch
  const { rateLimitMode } = yield* AppConfig
  return Effect.fnUntraced(function* (
    exchange: CallExchange,
    handle: (key: Principal, body: unknown) => Handled
  ) {
    const entry = yield* Effect.catchTag(
      nestedStoreAway(gate.enter(exchange.authorization)),
      "NestedServiceUnavailable",
      ({ error }) => Effect.succeed(CallFault.overloaded(error.message))
    )
    if ("status" in entry) return entry
    if (entry._tag === "Unknown") return CallFault.invalidKey
    exchange.headers.push(...entry.headers)
    exchange.onStatus = (status) => gate.record(entry.key, status)
    const { allowed, limit, retryAfterSeconds } = entry.rate
    if (!allowed) {
      const text = `Rate limit of ${limit} requests a minute reached; try again in ${retryAfterSeconds} s`
      return rateLimitMode === "block"
        ? CallFault.blocked(text, retryAfterSeconds)
        : CallFault.rateLimited(text, retryAfterSeconds)
    }
    const body = readJson(exchange.body)
    if (body instanceof RequestFault) return CallFault.invalidRequest(body)
    const unwatch = watch(entry.key.keyId, () => exchange.expel())
    return yield* Effect.ensuring(handle(entry.key, body), Effect.sync(unwatch))
  })
})

/** Answers the fault, if there is one. What is nobody's fault but this server's is logged, and answered 500. */
const answering = <E>(
  exchange: CallExchange,
  handled: Effect.Effect<CallFault.CallFault | undefined, E>
): Effect.Effect<void> =>
  handled.pipe(
    Effect.catchCause((cause) =>
      Effect.as(
        Effect.annotateLogs(Effect.logError("A call failed", Cause.squash(cause)), {
          requestId: exchange.requestId
        }),
        CallFault.internalError(exchange.requestId)
      )
    ),
    Effect.map((fault) => {
      if (fault !== undefined) exchange.fail(fault)
    })
  )
