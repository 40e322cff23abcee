import { Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import * as Sandbox from "#src/sandbox/Sandbox.ts"
import { CommandFailed } from "#src/cli/CommandFailed.ts"
import { json, tableOf } from "#src/cli/Output.ts"

const start = (options: Sandbox.SandboxOptions) =>
  Effect.mapError(Sandbox.start(options), ({ problem }) => new CommandFailed({ problem }))

const words = ({ models, url }: Sandbox.RunningSandbox): string => {
  const rows = models.map(({ entry, id }) => ({
    id,
    what: String(entry["description"] ?? "").split("\n")[0]
  }))
  return [
    `The sandbox upstream serves ${models.length} made-up models at ${url}`,
    `A server uses it when it is started with UPSTREAM_URL=${url}; GET ${url}/account says what was served.`,
    "",
    tableOf(["id", "what"], rows),
    "",
    "Ctrl+C ends it."
  ].join("\n")
}

export const sandboxUpstream = Command.make(
  "sandbox-upstream",
  {
    json,
    port: Flag.Int("port").pipe(
      Flag.withDescription("Port on 127.0.0.1; a free one where absent"),
      Flag.withDefault(0)
    ),
    models: Flag.File("models", { mustExist: true }).pipe(
      Flag.withDescription("Serve this list of models (JSON, as OpenRouter's GET /models answers) instead"),
      Flag.optional
    ),
    wordMillis: Flag.Int("word-millis").pipe(
      Flag.withDescription("Pause between two words of a stream"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ json, models, port, wordMillis }) {
    const sandbox = yield* start({
      port,
      modelsFile: Option.getOrUndefined(models),
      wordMillis: Option.getOrUndefined(wordMillis)
    })
    const answer = { url: sandbox.url, models: sandbox.models.map(({ id }) => id) }
    yield* Console.log(json ? JSON.stringify(answer, null, 2) : words(sandbox))
    return yield* Effect.never
  }, Effect.scoped)
).pipe(Command.withDescription("Serve made-up models over OpenRouter's API, for tests and benches"))
