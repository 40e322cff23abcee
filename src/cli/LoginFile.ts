import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { dirname, isAbsolute, join } from "node:path"
import { Effect, Predicate, Schema } from "effect"
import { CommandFailed } from "./CommandFailed.ts"

/** The server that `signalbox login` logged in to, and the key that it got. Source: contract/start#command-line. */
const Login = Schema.Struct({ url: Schema.String, key: Schema.String })
export type Login = typeof Login.Type

const json = Schema.fromJsonString(Login)

/** A relative directory would lie wherever the command is run. Source: XDG Base Directory Specification. */
export const loginFile = (): string => {
  const { XDG_CONFIG_HOME: config = "" } = process.env
  return join(isAbsolute(config) ? config : join(homedir(), ".config"), "signalbox", "login.json")
}

const isAbsent = (error: unknown): boolean => Predicate.hasProperty(error, "code") && error.code === "ENOENT"

const failed = (cause: unknown): CommandFailed =>
  new CommandFailed({ problem: `${loginFile()}: ${cause instanceof Error ? cause.message : String(cause)}` })

/** undefined: nobody is logged in */
export const readLogin: Effect.Effect<Login | undefined, CommandFailed> = Effect.try({
  try: (): string | undefined => {
    try {
      return readFileSync(loginFile(), "utf8")
    } catch (error) {
      if (isAbsent(error)) return undefined
      throw error
    }
  },
  catch: failed
}).pipe(
  Effect.flatMap((text) =>
    text === undefined
      ? Effect.succeed(undefined)
      : Effect.mapError(Schema.decodeEffect(json)(text), () => failed("it is not what a login writes"))
  )
)

/** Whole or not at all, and never readable by others, not even for an instant. */
export const writeLogin = (login: Login): Effect.Effect<void, CommandFailed> =>
  Effect.try({
    try: () => {
      const file = loginFile()
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
      const temporary = `${file}.${process.pid}.tmp`
      rmSync(temporary, { force: true })
      writeFileSync(temporary, `${JSON.stringify(login, null, 2)}\n`, {
        mode: 0o600,
        flag: "wx",
        flush: true
      })
      renameSync(temporary, file)
    },
    catch: failed
  })

/** Whether there was one. */
export const removeLogin: Effect.Effect<boolean, CommandFailed> = Effect.try({
  try: () => {
    try {
      rmSync(loginFile())
      return true
    } catch (error) {
      if (isAbsent(error)) return false
      throw error
    }
  },
  catch: failed
})
