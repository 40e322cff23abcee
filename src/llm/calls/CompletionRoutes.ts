import { Cause, Effect, Result } from "effect"
import { Admission, anyKey, type Entry, invalidKey } from "#src/accounts/Admission.ts"
import { KeyWatch } from "#src/accounts/KeyWatch.ts"
import { openAiError, type Problem, bodyOf } from "#schemas/core/Problem.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import { AppConfig } from "#src/Config.ts"
import type { Limits } from "#src/Limits.ts"
import { Idempotency } from "#src/infra/postgres/Idempotency.ts"
import { traceHeaders, withRequestSpan } from "#src/http/RequestSpan.ts"
import type { HotReply, HotRequest, HotRoute } from "#src/front/HotRoute.ts"
import type { JobNotDone } from "#src/infra/workers/Workers.ts"
import { CallBodies, type HeldBody } from "./CallBodies.ts"
import { reportUnread } from "./CallReport.ts"
import { CallExchange } from "./CallExchange.ts"
import { type Client, ClientStream } from "./ClientStream.ts"
import type { AnswerSink } from "./CallParts.ts"
import type { ChatRequest } from "#src/llm/requests/ChatRequest.ts"
import { type CompletionAsk, Completions } from "./Completions.ts"
import { makeEmbeddings } from "./Embeddings.ts"
import type { EmbeddingsRequest } from "#src/llm/requests/EmbeddingsRequest.ts"
import { onceOnly } from "./OnceOnly.ts"
import type { PlainEnd } from "./PlainAnswer.ts"
import { type BodyToRead, makeRequestReader, type Read } from "#src/llm/requests/RequestReader.ts"
import { RequestFault } from "#src/llm/requests/JsonRequest.ts"
import { HttpRouter, HttpServerResponse } from "effect/http"
import * as CallFault from "./CallFault.ts"

/** The fault to answer with; undefined where the exchange was answered already. */
type Handled = Effect.Effect<Problem | undefined>

const eventStream: ReadonlyArray<readonly [string, string]> = [
  ["Content-Type", "text/event-stream; charset=utf-8"],
  ["Cache-Control", "no-cache"],
  // nginx would gather the stream into blocks otherwise.
  ["X-Accel-Buffering", "no"]
]

const noBody = new Uint8Array(0)
const tooMuch = CallFault.overloaded("The calls under way are too large together; try again")

/** A shorter body is not worth a look-up of its owner before that of its key. */
const shortBytes = 4 * 1024

/**
 * The work of an endpoint once the caller is let in. With `end`, it may be done without a fiber: then the answer is undefined,
 * and `end` is told.
 */
type Handle = (exchange: CallExchange, guest: Guest, end?: PlainEnd) => Handled | undefined

/** A caller who was let in. */
interface Guest {
  readonly key: Principal
  readonly body: HeldBody
  /** the answer no longer depends on the key, and the body is given up */
  readonly leave: () => void
}

/** `POST /api/v1/chat/completions` and `/embeddings`, served beside the Effect pipeline. */
export const completionRoutes = Effect.gen(function* () {
  const { limits, otelEndpoint } = yield* AppConfig
  const isTraced = otelEndpoint !== undefined
  const admission = yield* Admission
  const bodies = new CallBodies(limits)
  const letIn = yield* lettingIn(bodies)
  const enter = yield* entering(letIn)
  const handles = yield* handling
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const clients = new Set<Client>()
  const begin = beginning(letIn, clients, run)
  // Calls that go on to keep their answer are settled all the same when the server ends.
  yield* Effect.addFinalizer(() => Effect.sync(() => clients.forEach((client) => client.leave())))

  /** Memory does not know the key, and asking Postgres may take a while. */
  const isUnknownKey = (authorization: string, bytes: number): boolean =>
    bytes > shortBytes && admission.recall(authorization) === "unknown"

  const routeOf = (path: string, handle: Handle): HotRoute => ({
    method: "POST",
    path,
    maxBodyBytes: limits.completionBodyBytes,
    headers: ["authorization", "x-request-id", "idempotency-key", ...(isTraced ? traceHeaders : [])],
    cors: "configured",
    errors: openAiError,
    admit: (request) => {
      const key = admission.recall(request.header("authorization"))
      if (key === "unknown") return { _tag: "Unknown" }
      if (key !== undefined) return { _tag: "Known", userId: key.ownerId }
      const answer = (reply: HotReply) => new CallExchange(request, noBody, reply).fail(invalidKey())
      return { _tag: "Refused", answer }
    },
    handle: (request, body, reply) => {
      const exchange = new CallExchange(request, body, reply)
      // The hot path: memory knows the key, and the answer is not to be kept.
      const entry =
        isTraced || exchange.idempotencyKey !== ""
          ? undefined
          : admission.enterAtHand(exchange.authorization, anyKey, request, () => true)
      if (entry !== undefined) return begin(exchange, entry, handle)
      const hasUnknownKey = isUnknownKey(exchange.authorization, body.length)
      const held = hasUnknownKey ? bodies.ofUnknownKey(request.remoteAddress, body.length) : undefined
      if (hasUnknownKey && held === undefined) return exchange.fail(tooMuch)
      clients.add(exchange.client)
      const leave = Effect.sync(() => {
        held?.keep(0)
        clients.delete(exchange.client)
      })
      const answered = answering(exchange, enter(exchange, request, handle))
      const requested = { method: "POST", route: path, traceparent: request.header("traceparent") }
      const traced = isTraced ? withRequestSpan(answered, exchange, requested) : answered
      run(Effect.ensuring(traced, leave))
    }
  })

  return [
    routeOf("/api/v1/chat/completions", handles.completion),
    routeOf("/api/v1/embeddings", handles.embeddings)
  ]
})

/** Handles the request of a caller whom memory knows; a fiber is made only for what has to be waited for. */
const beginning =
  (letIn: LetIn, clients: Set<Client>, run: (effect: Effect.Effect<void>) => unknown) =>
  (exchange: CallExchange, entry: Entry, handle: Handle): void => {
    const guest = letIn(exchange, entry)
    if ("status" in guest) return exchange.fail(guest)
    clients.add(exchange.client)
    const leave = () => {
      guest.leave()
      clients.delete(exchange.client)
    }
    const slowly = (handled: Handled) =>
      void run(Effect.ensuring(answering(exchange, handled), Effect.sync(leave)))
    const died = (defect: unknown) => slowly(Effect.die(defect))
    const over = (fault: Problem | undefined) => {
      leave()
      if (fault !== undefined) exchange.fail(fault)
    }
    try {
      const handled = handle(exchange, guest, { over, died, run })
      if (handled !== undefined) slowly(handled)
    } catch (defect) {
      died(defect)
    }
  }

/** The handling of a request once its body was read. */
const handling = Effect.gen(function* () {
  const answers = yield* Idempotency
  const { limits } = yield* AppConfig
  const reader = yield* makeRequestReader
  const completions = yield* Completions
  const askOf = completionAsk(limits)
  const embed = embedding(yield* makeEmbeddings)
  const once = (exchange: CallExchange, key: Principal, path: string, make: Handled) =>
    onceOnly(answers, exchange, key, path, make)
  const completion: Handle = (exchange, guest, end) => {
    const { key } = guest
    const read = reader.chat(toRead(exchange, guest))
    if (end !== undefined && isRead(read) && completions.completeAtHand(askOf(exchange, key, read), end))
      return undefined
    return reading(exchange, key, read, (request) =>
      once(exchange, key, "/api/v1/chat/completions", completions.complete(askOf(exchange, key, request)))
    )
  }
  const embeddings: Handle = (exchange, guest) =>
    reading(exchange, guest.key, reader.embeddings(toRead(exchange, guest)), (request) =>
      once(exchange, guest.key, "/api/v1/embeddings", embed(exchange, guest.key, request))
    )
  return { completion, embeddings }
})

/** A call with an Idempotency-Key is told apart by its body until it is over. */
const toRead = (exchange: CallExchange, { body, key }: Guest): BodyToRead => {
  const isKept = exchange.idempotencyKey !== ""
  const onLetGo = (left: number) => (isKept ? undefined : body.keep(left))
  return { bytes: exchange.body, isKept, userId: key.ownerId, onLetGo }
}

const isRead = <A extends object>(read: Read<A>): read is A =>
  !Effect.isEffect(read) && !(read instanceof RequestFault)

const reading = <A extends object>(
  exchange: CallExchange,
  key: Principal,
  read: Read<A>,
  handle: (request: A) => Handled
): Handled => {
  const taken = (request: A | RequestFault): Handled => {
    if (!(request instanceof RequestFault)) return handle(request)
    const fault = CallFault.invalidRequest(request)
    return Effect.as(reportUnread(exchange.requestId, key, fault), fault)
  }
  if (!Effect.isEffect(read)) return taken(read)
  return Effect.matchEffect(read, { onSuccess: taken, onFailure: unread })
}

const unread = (failure: JobNotDone): Handled =>
  Effect.as(
    failure.reason !== "busy" ? Effect.logWarning("A large request could not be read", failure) : Effect.void,
    CallFault.overloaded("Too many large requests are being read; try again")
  )

const completionAsk =
  (limits: Limits) =>
  (exchange: CallExchange, key: Principal, request: ChatRequest): CompletionAsk => {
    const { callId: id, client, requestId, startedAt } = exchange
    const sink: AnswerSink = {
      json: (answer) => exchange.sendJson(200, JSON.stringify(answer)),
      stream: (onDrain) => {
        const headers = [...eventStream, ...exchange.headers]
        const opened = () => exchange.answers(200)
        exchange.stream = new ClientStream(exchange.reply, headers, limits, onDrain, opened)
        return exchange.stream
      },
      began: (head) => {
        exchange.streamHead = head
      },
      failedMidStream: () => {
        exchange.isInvalid = true
      }
    }
    return { id, requestId, key, source: "api", request, client, sink, startedAt }
  }

const embedding =
  (embed: Effect.Success<typeof makeEmbeddings>) =>
  (exchange: CallExchange, key: Principal, request: EmbeddingsRequest): Handled => {
    const { callId: id, client, requestId, startedAt } = exchange
    const send = (answer: unknown) => exchange.sendJson(200, JSON.stringify(answer))
    return embed({ id, requestId, key, request, client, send, startedAt })
  }

/** Lets in who may call and has room for the body, or answers why not. */
const lettingIn = Effect.fnUntraced(function* (bodies: CallBodies) {
  const admission = yield* Admission
  const { watch } = yield* KeyWatch
  return (exchange: CallExchange, { headers, key, refusal }: Entry): Guest | Problem => {
    for (const name in headers) exchange.headers.push([name, headers[name] ?? ""])
    exchange.onStatus = (status) => admission.record(key, status)
    if (refusal !== undefined) return refusal
    const body = bodies.ofUser(key.ownerId, exchange.body.length)
    if (body === undefined) return tooMuch
    const unwatch = watch(key.id, () => exchange.expel())
    const leave = () => {
      unwatch()
      body.keep(0)
    }
    return { key, body, leave }
  }
})

type LetIn = Effect.Success<ReturnType<typeof lettingIn>>

/** Of a caller whom memory may not know. */
const entering = Effect.fnUntraced(function* (letIn: LetIn) {
  const admission = yield* Admission
  return Effect.fnUntraced(function* (exchange: CallExchange, request: HotRequest, handle: Handle) {
    const entry = yield* Effect.result(admission.enter(exchange.authorization, anyKey, request))
    if (Result.isFailure(entry)) {
      const { failure } = entry
      return failure._tag === "ServiceUnavailable" ? CallFault.overloaded(failure.message) : failure
    }
    const guest = letIn(exchange, entry.success)
    if ("status" in guest) return guest
    return yield* Effect.ensuring(
      Effect.suspend(() => handle(exchange, guest) ?? Effect.undefined),
      Effect.sync(guest.leave)
    )
  })
})

/** Answers the fault, if there is one. A fault of this server itself is logged, and answered 500. */
const answering = <E>(
  exchange: CallExchange,
  handled: Effect.Effect<Problem | undefined, E>
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

/** A format that clients of this base address may try, and that it does not support. Source: contract/llm#endpoints. */
const unsupportedPath = "/api/v1/responses"

const formatFault = CallFault.unknownFormat(unsupportedPath)

/** 404 in the form of errors that those clients read. */
export const unsupportedFormat = HttpRouter.add(
  "*",
  unsupportedPath,
  HttpServerResponse.text(bodyOf(formatFault, "openai"), {
    status: formatFault.status,
    contentType: "application/json"
  })
)
