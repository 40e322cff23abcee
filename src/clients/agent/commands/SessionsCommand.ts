import { Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { printable } from "../boundary/Printable.ts"
import { readConfig } from "../config/ConfigFile.ts"
import { configDirectory } from "../config/Directories.ts"
import { findServer } from "../config/FindServer.ts"
import { fetchSessions, type AgentSession } from "../connection/ServerRest.ts"
import { url } from "./Flags.ts"

const lineOf = (session: AgentSession): string => {
  const { id, last_seen_at: lastSeen, model, prompts, status, workspace } = session
  return [id, status.padEnd(8), lastSeen, `${prompts} prompts`.padEnd(11), model, workspace.root].join("  ")
}

export const sessions = Command.make(
  "sessions",
  {
    url,
    limit: Flag.Int("limit").pipe(Flag.withDescription("How many, 1 to 100"), Flag.withDefault(20)),
    json: Flag.Boolean("json").pipe(
      Flag.withDescription("Print JSON for other programs"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* (flags) {
    const list = yield* Effect.tryPromise({
      try: () => {
        const given = Option.match(flags.url, { onNone: () => ({}), onSome: (url) => ({ url }) })
        const server = findServer(given, process.env, readConfig(configDirectory(process.env)))
        return fetchSessions(server, flags.limit)
      },
      catch: (error) => error
    })
    if (flags.json) return yield* Console.log(JSON.stringify(list, null, 2))
    if (list.length === 0) return yield* Console.log("No sessions")
    yield* Console.log(list.map((session) => printable(lineOf(session))).join("\n"))
  })
).pipe(Command.withDescription("List the latest sessions of the key's owner"))
