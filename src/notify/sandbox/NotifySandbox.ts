import { Clock, Context, Effect, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import { Egress } from "#src/infra/egress/Egress.ts"
import { Readiness, up } from "#src/infra/telemetry/Readiness.ts"
import * as ChannelsSandbox from "./ChannelsSandbox.ts"

/** For people: on `/readyz` and in the start message. */
const words = (origin: string): string =>
  `a sandbox of push services, webhooks and chats, which shows what came: ${origin}/ (NOTIFY_SANDBOX)`

/**
 * The sandbox of channels, where `NOTIFY_SANDBOX` has one: in this process, or alone at an address. Its origin, and no other
 * of loopback, passes the egress check, over http too; `Egress.isHttpAllowed` and `Egress.check` know of it.
 */
export class NotifySandbox extends Context.Service<
  NotifySandbox,
  {
    /** `http://127.0.0.1:<port>`; undefined where it is off */
    readonly origin: string | undefined
  }
>()("signalbox/notify/NotifySandbox") {
  static readonly layer = Layer.effect(
    NotifySandbox,
    Effect.gen(function* () {
      const { notifySandbox: setting, telegram } = yield* AppConfig
      const egress = yield* Egress
      const clock = yield* Clock.Clock
      if (setting === "off" || (setting === "auto" && telegram !== undefined)) return { origin: undefined }
      const { origin } =
        typeof setting === "object"
          ? setting
          : yield* ChannelsSandbox.start({
              port: typeof setting === "number" ? setting : 0,
              nowMillis: () => clock.currentTimeMillisUnsafe()
            })
      yield* egress.open(origin)
      const state = { ...up, detail: words(origin) }
      yield* (yield* Readiness).register("channels", Effect.succeed(state))
      return { origin }
    })
  )
}
