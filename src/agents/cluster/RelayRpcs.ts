import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { PrincipalKind } from "#schemas/core/Credential.ts"
import { SessionId } from "#schemas/core/Ids.ts"
import { TimestampOfDate } from "#schemas/core/Timestamp.ts"

/**
 * Messages between two machines, for clients of one whose sessions live on the other. All clients between the two share
 * one link: items for the home are pushed in order, one push at a time; items for the clients are one stream, whose
 * next part is sent when the last one was taken.
 */

/** Counts the clients of a link, from 1. */
const relay = Schema.Int

/** The key that the client's own machine has checked: `Principal`. */
const RelayedKey = Schema.Struct({
  kind: PrincipalKind,
  id: Schema.String,
  ownerId: Schema.String,
  scopes: Schema.Array(Schema.String),
  expiresAt: Schema.NullOr(TimestampOfDate),
  keyId: Schema.String,
  keyName: Schema.String,
  role: Schema.Literals(["user", "admin"]),
  models: Schema.NullOr(Schema.Array(Schema.String)),
  collections: Schema.NullOr(Schema.Array(Schema.String)),
  rateLimitPerMinute: Schema.NullOr(Schema.Int)
})

/** From the machine of the client to the home of the session. */
export const ToHome = Schema.Union([
  Schema.TaggedStruct("Open", { relay, sessionId: SessionId, key: RelayedKey }),
  Schema.TaggedStruct("Frame", {
    relay,
    text: Schema.NullOr(Schema.String).annotate({ description: "null: the frame was binary" })
  }),
  Schema.TaggedStruct("Taken", {
    relay,
    bytes: Schema.Int.annotate({ description: "Of all that was sent, what the client's system has taken" })
  }),
  Schema.TaggedStruct("Closed", { relay, code: Schema.Int })
])
export type ToHome = typeof ToHome.Type

/** From the home of the session to the machine of the client. */
export const ToClient = Schema.Union([
  Schema.TaggedStruct("Linked", {}),
  Schema.TaggedStruct("Frame", { relay, text: Schema.String }),
  Schema.TaggedStruct("Close", { relay, code: Schema.Int, reason: Schema.String })
])
export type ToClient = typeof ToClient.Type

/** The link is over; its clients come again. */
export class LinkGone extends Schema.TaggedError<LinkGone>()("LinkGone", { link: Schema.String }) {}

export class RelayRpcs extends RpcGroup.make(
  Rpc.make("Link", { payload: { link: Schema.String }, success: ToClient, stream: true }),
  Rpc.make("Push", {
    payload: { link: Schema.String, items: Schema.NonEmptyArray(ToHome) },
    error: LinkGone
  })
) {}
