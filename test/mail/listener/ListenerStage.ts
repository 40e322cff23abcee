import { Context, Effect, Exit, Layer, Scope } from "effect"
import { type Problem, Unauthorized } from "#schemas/core/Problem.ts"
import { Bounces } from "#src/mail/bounces/Bounces.ts"
import { ReturnPaths } from "#src/mail/bounces/ReturnPaths.ts"
import type { ListenerSettings } from "#src/mail/listener/ListenerSettings.ts"
import { makeListener } from "#src/mail/listener/SmtpListener.ts"
import { Submissions } from "#src/mail/listener/Submissions.ts"
import { AppConfig } from "#src/Config.ts"
import type { Limits } from "#src/Limits.ts"
import { talkTo } from "./SmtpTalk.ts"

export const key = "sk_test"
export const login = `AUTH PLAIN ${Buffer.from(`\0ada\0${key}`).toString("base64")}`

interface Taken {
  /** of a login; undefined: to return paths */
  readonly owner?: string
  readonly to: ReadonlyArray<string>
  readonly text: string
}

interface StageOptions {
  readonly limits?: Partial<Limits>
  /** any that is free where absent */
  readonly port?: number
  readonly certificate?: ListenerSettings["certificate"]
  /** the work on a submission, or its refusal */
  readonly handling?: Effect.Effect<void, Problem>
}

/** Stand-ins for the rest of the room: one key, and a return path whose token is `good`. */
export const standIns = (taken: Array<Taken>, { handling, limits = {} }: StageOptions = {}) => {
  const bounces = {
    takes: (token: string) => token === "good",
    received: ({ raw, token }: { readonly token: string; readonly raw: Uint8Array }) =>
      Effect.sync(() => void taken.push({ to: [token], text: Buffer.from(raw).toString("latin1") })),
    reported: () => Effect.die("the listener does not ask for it"),
    told: () => Effect.die("the listener does not ask for it")
  }
  return Layer.mergeAll(
    AppConfig.layerOf({ limits }),
    Layer.succeed(Bounces, bounces),
    Layer.succeed(ReturnPaths, {
      addressOf: () => undefined,
      deliveryOf: () => undefined,
      tokenOf: (address) => /^b\+(.+)@bounce\.test$/.exec(address)?.[1]
    }),
    Layer.succeed(Submissions, {
      login: (secret) =>
        secret === key
          ? Effect.succeed({ secret, owner: "ada" })
          : Effect.fail(Unauthorized.of("No such key")),
      send: ({ by: { owner }, bytes, envelope }) =>
        Effect.andThen(handling ?? Effect.void, () =>
          Effect.sync(() => {
            taken.push({ owner, to: envelope, text: Buffer.from(bytes).toString("latin1") })
            return `eml_${taken.length}`
          })
        )
    })
  )
}

/** A listener before them. */
export const stage = Effect.fnUntraced(function* (options: StageOptions = {}) {
  const { certificate, port: wanted = 0 } = options
  const taken: Array<Taken> = []
  const context = yield* Layer.build(standIns(taken, options))
  const scope = yield* Scope.fork(yield* Effect.scope)
  const port = yield* makeListener(Context.get(context, AppConfig), { port: wanted, certificate }).pipe(
    Effect.provide(context),
    Scope.provide(scope)
  )
  return {
    port,
    taken,
    /** one that has said EHLO */
    talk: Effect.tap(talkTo(port), ({ say }) => say("EHLO client.test")),
    /** ends the listener, as the server does when it stops */
    stop: Scope.close(scope, Exit.void)
  }
})
