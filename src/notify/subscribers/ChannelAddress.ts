import { randomBytes } from "node:crypto"
import { Effect, Result } from "effect"
import type { FieldFault } from "#schemas/core/FieldFault.ts"
import { type BadRequest, invalidField, ServiceUnavailable } from "#schemas/core/Problem.ts"
import type { NewChannel } from "#schemas/notify/Settings.ts"
import type { ChannelOf } from "#streams/notify/channels/Channel.ts"
import { readAddress, readSubscription, readWebhookKind } from "#streams/notify/channels/Targets.ts"
import { webhookSecret } from "#streams/notify/channels/Webhook.ts"
import { Egress } from "#src/infra/egress/Egress.ts"

/** An address of a channel that may be reached, as `channels` has it. */
export type ChannelAddress = ChannelOf & { readonly name: string; readonly address: string }

const secretBytes = 32

/** Addresses that strangers gave: read, and looked up once. The fault is told by its field. */
export const makeChannelAddress = Effect.gen(function* () {
  const egress = yield* Egress

  const { isHttpAllowed } = egress
  const reach = (address: string, field: string): Effect.Effect<void, BadRequest | ServiceUnavailable> =>
    egress.check(address).pipe(
      Effect.catchTags({
        EgressRefused: ({ reason }) =>
          Effect.fail(invalidField(field, reason === "not https" ? httpsExpected : "not a public address")),
        EgressFailed: ({ kind }) =>
          Effect.fail(
            kind === "name"
              ? invalidField(field, "its name has no address")
              : ServiceUnavailable.of(`${field}: its name could not be looked up; try again`)
          )
      })
    )

  /** @param prefix of the fields in a fault, such as `push.` */
  const read = <A>(result: Result.Result<A, FieldFault>, prefix: string): Effect.Effect<A, BadRequest> =>
    Result.isSuccess(result)
      ? Effect.succeed(result.success)
      : Effect.fail(invalidField(`${prefix}${result.failure.field}`, result.failure.text))

  /** @param of the fields of a webhook in a fault: where they are in the body */
  return Effect.fnUntraced(function* ({ push, webhook }: NewChannel, of = "webhook.") {
    if (push !== undefined && webhook !== undefined)
      return yield* invalidField("webhook", "is not taken beside push")
    if (push !== undefined) {
      const target = yield* read(readSubscription(push, { isHttpAllowed }), "push.")
      yield* reach(target.endpoint, "push.endpoint")
      return { kind: "push" as const, name: push.name ?? "", address: target.endpoint, target }
    }
    if (webhook === undefined) return undefined
    const url = yield* read(readAddress(webhook.url, "url", { isHttpAllowed }), of)
    const kind = yield* read(readWebhookKind(url, webhook.kind), of)
    yield* reach(url, `${of}url`)
    const named = { name: webhook.name ?? "", address: url }
    return kind === "webhook"
      ? { ...named, kind, target: { url, secret: webhookSecret(randomBytes(secretBytes)) } }
      : { ...named, kind, target: { url } }
  })
})

const httpsExpected = "expected an https address of at most 2048 characters"
