import { Effect, Runtime, Schema } from "effect"
import { CliError, Command } from "effect/cli"
import { exitCodes } from "#src/clients/ExitCodes.ts"
import { Connection } from "#src/cli/Connection.ts"
import { json, show } from "#src/cli/Output.ts"

/** The server answers, but takes no traffic. */
export class NotReady extends Schema.TaggedError<NotReady>()("NotReady", {
  url: Schema.String,
  status: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = exitCodes.failed
  override get [CliError.userMessage](): string {
    return `${this.url} is ${this.status}`
  }
}

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
    if (readiness.status !== "ready") return yield* new NotReady({ url, status: readiness.status })
  })
).pipe(
  Command.withDescription(
    "Show whether the server is ready, and how its components are; exit code 1 where it is not"
  )
)
