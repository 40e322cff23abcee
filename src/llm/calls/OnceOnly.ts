import { Effect, Exit } from "effect"
import type { Principal } from "#schemas/core/Authorization.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import {
  type Finish,
  type Idempotency,
  isIdempotencyKey,
  type KeptAnswer
} from "#src/infra/postgres/Idempotency.ts"
import type { CallExchange } from "./CallExchange.ts"
import type { Problem } from "#schemas/core/Problem.ts"
import * as CallFault from "./CallFault.ts"
import { RecordedReply } from "./RecordedReply.ts"
import { RequestFault } from "#src/llm/requests/JsonRequest.ts"

type Handled = Effect.Effect<Problem | undefined>

/**
 * Makes a call with an Idempotency-Key once: a repetition gets the same answer, or the error that the first one is
 * still under way. The call goes on to its end when its client leaves, because the repetition asks for that. A failed
 * call is not kept, and its repetition is made.
 */
export const onceOnly = (
  answers: Idempotency["Service"],
  exchange: CallExchange,
  { keyId, ownerId }: Pick<Principal, "keyId" | "ownerId">,
  path: string,
  make: Handled
): Handled => {
  const { body, idempotencyKey: key } = exchange
  if (key === "") return make
  if (!isIdempotencyKey(key))
    return Effect.succeed(
      CallFault.invalidRequest(new RequestFault("Idempotency-Key", "at most 255 characters of ASCII"))
    )
  const claim = answers.claim({ scope: `call:${keyId}`, userId: ownerId, key, request: [`${path}\n`, body] })
  return Effect.flatMap(storeAway(claim), (claimed): Handled => {
    switch (claimed._tag) {
      case "InFlight":
        return refused("A call with this Idempotency-Key is still in progress")
      case "OtherRequest":
        return refused("This Idempotency-Key was used with another request")
      case "Answered":
        return replay(exchange, claimed.answer)
      case "Claimed":
        return recorded(exchange, claimed.finish, make)
    }
  }).pipe(
    Effect.catchTag("ServiceUnavailable", ({ message }) => Effect.succeed(CallFault.overloaded(message)))
  )
}

const refused = (problem: string): Handled => Effect.succeed(CallFault.conflict(problem))

const replay = (exchange: CallExchange, { body, contentType, status }: KeptAnswer): Handled =>
  body === null
    ? refused("This call was answered; its answer cannot be repeated")
    : Effect.as(
        Effect.sync(() => exchange.send(status, contentType, body, [["Idempotent-Replayed", "true"]])),
        undefined
      )

const recorded = (exchange: CallExchange, finish: Finish, make: Handled): Handled =>
  Effect.suspend(() => {
    const reply = new RecordedReply(exchange.reply)
    exchange.reply = reply
    exchange.client.stay()
    return make.pipe(
      Effect.onExit((exit) => {
        const isKept = Exit.isSuccess(exit) && exit.value === undefined && !exchange.isInvalid
        return finish(isKept ? reply.answer : undefined)
      }),
      // Everything later is sent at once: faults as well, this server's own among them.
      Effect.ensuring(
        Effect.sync(() => {
          reply.flush()
          exchange.reply = reply.original
        })
      )
    )
  })
