import * as Schema from "effect/Schema"

/** The actor's mailbox holds `mailboxCapacity` messages: this one was not taken. Nothing happened; try again later. */
export class MailboxFull extends Schema.TaggedError<MailboxFull>()("MailboxFull", {
  actor: Schema.String,
  key: Schema.String,
  mailboxCapacity: Schema.Number
}) {}

/**
 * The actor crashed while it handled this message, which is not handled again: its side effects before the crash stay.
 * Messages that waited are served by the rebuilt actor and never see this error.
 */
export class ActorCrashed extends Schema.TaggedError<ActorCrashed>()("ActorCrashed", {
  actor: Schema.String,
  key: Schema.String,
  cause: Schema.Defect()
}) {}

/** The actor crashed more than `maxRestarts` times within the window and is given up until the oldest crash leaves it. */
export class RestartIntensityExceeded extends Schema.TaggedError<RestartIntensityExceeded>()(
  "RestartIntensityExceeded",
  { actor: Schema.String, key: Schema.String, maxRestarts: Schema.Number, restartWindowMillis: Schema.Number }
) {}

/** `maxResidentActors` actors are alive and every one of them is at work, so none could make room. */
export class TooManyActors extends Schema.TaggedError<TooManyActors>()("TooManyActors", {
  actor: Schema.String,
  maxResidentActors: Schema.Number
}) {}

/** The supervisor is closing: it serves what it has taken and takes nothing new. */
export class ActorsStopped extends Schema.TaggedError<ActorsStopped>()("ActorsStopped", {
  actor: Schema.String
}) {}

/** The reason why an actor is unavailable. */
export type ActorUnavailable = RestartIntensityExceeded | TooManyActors | ActorsStopped

/** Why a message was not taken. */
export type ActorRefusal = ActorUnavailable | MailboxFull

/** Why a message that may have been taken has no reply. */
export type ActorError = ActorRefusal | ActorCrashed
