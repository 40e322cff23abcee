import { Effect } from "effect"
import { Command } from "effect/cli"
import { Connection } from "./Connection.ts"
import { json, show } from "./Output.ts"

export const status = Command.make(
  "status",
  { json },
  Effect.fnUntraced(function* (flags) {
    const connection = yield* Connection
    const { url } = yield* connection.target
    const health = yield* connection.ask((client) => client.account.health())
    const readiness = yield* connection.ask((client) =>
      Effect.catchTag(client.system.ready(), "Unready", (unready) => Effect.succeed(unready))
    )
    const answer = { url, health, readiness: { status: readiness.status, components: readiness.components } }
    yield* show(flags.json, answer, () =>
      [
        `${url}  ${readiness.status}, version ${health.version}, up ${Math.round(health.uptime)} s`,
        ...Object.entries(readiness.components).map(
          ([name, { detail, status }]) => `  ${name}: ${status}${detail === undefined ? "" : ` (${detail})`}`
        )
      ].join("\n")
    )
  })
).pipe(Command.withDescription("Is the server up, and how are its components?"))
