import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type Client, Connection } from "./Connection.ts"
import { json, show } from "./Output.ts"

type Fields = Command.Command.Config
type Values<F extends Fields> = Command.Command.Config.InferValue<F>

/** The values of a verb's fields. An optional field that was not given has no key: to the API, undefined is not the same. */
export type Given<V> = {
  readonly [K in keyof V as V[K] extends Option.Option<unknown> ? never : K]: V[K]
} & {
  readonly [K in keyof V as V[K] extends Option.Option<unknown> ? K : never]?: V[K] extends Option.Option<
    infer A
  >
    ? A
    : never
}

export const givenOf = <V>(values: V): Given<V> => {
  const given = Object.entries(values ?? {}).flatMap(([name, value]) =>
    Option.isOption(value) ? Option.toArray(value).map((some) => [name, some]) : [[name, value]]
  )
  return Object.fromEntries(given) as Given<V>
}

/** A flag that may be left out. */
export const optional = <A>(flag: Flag.Flag<A>, about: string): Flag.Flag<Option.Option<A>> =>
  flag.pipe(Flag.withDescription(about), Flag.optional)

/** A flag that may be given several times, or left out. */
export const many = (name: string, about: string): Flag.Flag<Option.Option<ReadonlyArray<string>>> =>
  Flag.String(name).pipe(
    Flag.withDescription(about),
    Flag.atLeast(0),
    Flag.map((values) => (values.length === 0 ? Option.none() : Option.some(values)))
  )

/** The argument `id`; `about` shows its form: `Id of the key (key_…)`. */
export const id = (about: string): { readonly id: Argument.Argument<string> } => ({
  id: Argument.String("id").pipe(Argument.withDescription(about))
})

/**
 * One request of the API as a command. Fields are named as the API names them, so that what was given is the payload, the
 * query or the parameters; `words` is what a person reads of the answer, which `--json` prints as it is.
 */
export const verb = <const F extends Fields, A, E>(
  name: string,
  about: string,
  fields: F,
  request: (client: Client, given: Given<Values<F>>) => Effect.Effect<A, E>,
  words: (answer: A, given: Given<Values<F>>) => string
) =>
  Command.make(
    name,
    { json, fields },
    Effect.fnUntraced(function* (input) {
      const { ask } = yield* Connection
      const given = givenOf<Values<F>>(input.fields)
      const answer = yield* ask((client) => request(client, given))
      yield* show(input.json, answer, (shown) => words(shown, given))
    })
  ).pipe(Command.withDescription(about))

/** A noun of the API and its verbs: `signalbox keys list`. */
export const noun = (name: string, about: string, verbs: ReadonlyArray<Command.Command.Any>) =>
  Command.make(name).pipe(Command.withDescription(about), Command.withSubcommands(verbs))
