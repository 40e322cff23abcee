import { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Principal } from "#schemas/core/Authorization.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import type { Idempotency, OnceRequest } from "#src/infra/postgres/Idempotency.ts"
import type { CallExchange } from "./CallExchange.ts"
import type { Problem, ServiceUnavailable } from "#schemas/core/Problem.ts"
import * as CallFault from "./CallFault.ts"
import { RecordedReply } from "./RecordedReply.ts"
import { RequestFault } from "#src/llm/requests/JsonRequest.ts"

type Handled = Effect.Effect<Problem | undefined>

/** Printable ASCII, as a header may carry it. */
const acceptable = /^[\x20-\x7e]{1,255}$/

const header = "Idempotency-Key"

/**
 * Makes a call with an Idempotency-Key once: a repetition gets the same answer, or the error that the first one is
 * still under way. The call goes on to its end when its client leaves, because the repetition asks for that. A failed
 * call is not kept, and its repetition is made.
 */
export const onceOnly = (
  answers: Idempotency["Service"],
  exchange: CallExchange,
  { keyId, userId }: Pick<Principal, "keyId" | "userId">,
  path: string,
  make: Handled
): Handled => {
  const { body, idempotencyKey } = exchange
  if (idempotencyKey === "") return make
  if (!acceptable.test(idempotencyKey))
    return Effect.succeed(
      CallFault.invalidRequest(new RequestFault(header, "at most 255 characters of ASCII"))
    )
  const request = Buffer.concat([Buffer.from(`${path}\n`), body])
  const call: OnceRequest = { scope: `call:${keyId}`, userId, key: idempotencyKey, request }
  return Effect.gen(function* () {
    const claim = yield* storeAway(answers.claim(call))
    switch (claim._tag) {
      case "InFlight":
        return CallFault.conflict("A call with this Idempotency-Key is still in progress")
      case "OtherRequest":
        return CallFault.conflict("This Idempotency-Key was used with another request")
      case "Answered":
        return replay(exchange, claim.answer)
      case "Claimed":
        return yield* recorded(answers, exchange, call, claim.claim, make)
    }
  }).pipe(Effect.catchTag("ServiceUnavailable", unavailable))
}

const unavailable = ({ message }: ServiceUnavailable) => Effect.succeed(CallFault.overloaded(message))

const replay = (
  exchange: CallExchange,
  {
    body,
    contentType,
    status
  }: { readonly body: string | null; readonly contentType: string; readonly status: number }
): Problem | undefined => {
  if (body === null) return CallFault.conflict("This call was answered; its answer cannot be repeated")
  exchange.send(status, contentType, body, [["Idempotent-Replayed", "true"]])
  return undefined
}

const recorded = (
  answers: Idempotency["Service"],
  exchange: CallExchange,
  call: OnceRequest,
  claim: string,
  make: Handled
): Handled =>
  Effect.suspend(() => {
    const reply = new RecordedReply(exchange.reply)
    exchange.reply = reply
    exchange.client.stay()
    return Effect.gen(function* () {
      const fault = yield* make
      const { answer } = reply
      const isKept = fault === undefined && answer !== undefined && !exchange.isInvalid
      yield* told(isKept ? answers.keep(claim, call, answer) : answers.release(claim, call))
      return fault
    }).pipe(
      Effect.onError(() => told(answers.release(claim, call))),
      // Everything later is sent at once: faults as well, this server's own among them.
      Effect.ensuring(
        Effect.sync(() => {
          reply.flush()
          exchange.reply = reply.original
        })
      )
    )
  })

/** The caller gets the answer all the same: at worst a repetition has to wait for a minute. */
const told = (write: Effect.Effect<void, SqlError>): Effect.Effect<void> =>
  Effect.catch(write, (error) =>
    Effect.logWarning("The answer of a call with an Idempotency-Key could not be kept", error)
  )
