import { hostname } from "node:os"
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { DevicePlatform } from "#schemas/files/Device.ts"
import { CommandFailed } from "#src/cli/CommandFailed.ts"
import { Connection, findServer } from "#src/cli/Connection.ts"
import { loginFile, removeLogin, writeLogin } from "#src/cli/LoginFile.ts"
import { json, show } from "#src/cli/Output.ts"

const pollEvery = "2 seconds"

const fields = {
  url: Argument.String("url").pipe(
    Argument.withDescription(
      "Address of the server; default: SIGNALBOX_URL, or the server that is known already"
    ),
    Argument.optional
  ),
  name: Flag.String("name").pipe(
    Flag.withDescription("Shown to the person who lets this machine in; default: its host name"),
    Flag.withDefault(hostname())
  ),
  platform: Flag.Literals("platform", DevicePlatform.literals).pipe(
    Flag.withDescription("What kind of device this is"),
    Flag.withDefault("cli")
  )
}

/** Asks until a person has let this machine in. A server that is away for a while is asked again. */
const awaitKey = Effect.fnUntraced(function* (url: string, token: string) {
  const { askOf } = yield* Connection
  const ask = askOf({ url, key: "" })
  const poll = ask((client) => client.cliLogin.pollCliLogin({ query: { token } })).pipe(
    Effect.catchTag("ServerUnreachable", () => Effect.succeed({ status: "pending" as const }))
  )
  while (true) {
    const answer = yield* poll
    if (answer.status === "complete") return answer.apiKey
    if (answer.status === "expired")
      return yield* new CommandFailed({
        problem: "Nobody let this machine in within ten minutes. Begin again."
      })
    yield* Effect.sleep(pollEvery)
  }
})

/** Shows the page's address and the digits; answers the key. A login that nobody waits for any more is over by itself. */
const keyOf = Effect.fnUntraced(function* (
  url: string,
  machine: { readonly name: string; readonly platform: typeof DevicePlatform.Type }
) {
  const { askOf } = yield* Connection
  const begun = yield* askOf({ url, key: "" })((client) =>
    client.cliLogin.beginCliLogin({ payload: { ...machine, name: machine.name.slice(0, 100) } })
  )
  yield* Console.error(
    `Open this address in a browser, and let ${machine.name} in:\n\n  ${begun.url}\n\n` +
      `The page shows the digits ${begun.digits}. Waiting …`
  )
  return yield* awaitKey(url, begun.token)
})

export const login: Command.Command.Any = Command.make(
  "login",
  { json, fields },
  Effect.fnUntraced(function* (input) {
    const { url: given, ...machine } = input.fields
    const url = yield* findServer(Option.getOrUndefined(given))
    yield* writeLogin({ url, key: yield* keyOf(url, machine) })
    yield* show(
      input.json,
      { url, file: loginFile() },
      ({ file }) => `Logged in to ${url}. The key is in ${file}.`
    )
  })
).pipe(Command.withDescription("Log this machine in to a server, by a page in a browser"))

export const logout: Command.Command.Any = Command.make(
  "logout",
  { json },
  Effect.fnUntraced(function* (input) {
    const isGone = yield* removeLogin
    yield* show(input.json, { file: loginFile(), removed: isGone }, ({ file, removed }) =>
      removed
        ? `${file} is gone. The key itself goes with this machine's device: signalbox devices delete ID`
        : `There is no ${file}: this machine was not logged in.`
    )
  })
).pipe(Command.withDescription("Forget the key of signalbox login"))
