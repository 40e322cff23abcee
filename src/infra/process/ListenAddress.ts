import { createServer } from "node:net"
import { Effect, Predicate } from "effect"
import { AppConfig, ConfigInvalid } from "#src/Config.ts"

const faults: Readonly<Record<string, string>> = {
  ENOTFOUND: "does not resolve to an address",
  EAI_AGAIN: "does not resolve to an address at the moment",
  EADDRNOTAVAIL: "is no address of this machine",
  EINVAL: "is no address that can be listened on",
  EAFNOSUPPORT: "is of a family of addresses that this machine does not have"
}

/** A HOST that cannot be listened on is found before the stores start, on a port of the system's choice. */
export const checkHost: Effect.Effect<void, ConfigInvalid, AppConfig> = Effect.flatMap(
  AppConfig,
  ({ host }) =>
    Effect.callback<void, ConfigInvalid>((resume) => {
      const server = createServer()
      server.once("error", (error) => {
        const code = Predicate.hasProperty(error, "code") ? String(error.code) : error.message
        const fault = `"${host}" ${faults[code] ?? `cannot be listened on (${code})`}`
        resume(Effect.fail(new ConfigInvalid({ faults: [{ variable: "HOST", fault }] })))
      })
      server.listen({ host, port: 0 }, () => server.close(() => resume(Effect.void)))
    })
)
