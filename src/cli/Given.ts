import { Option } from "effect"

/** Only what was said: an absent field and one that is undefined are not the same to the API. */
export const given = <A>(name: string, value: Option.Option<A>): Record<string, A> =>
  Option.match(value, { onNone: () => ({}), onSome: (some) => ({ [name]: some }) })

/** A flag that may be said again and again, and was not. */
export const someOf = <A>(values: ReadonlyArray<A>): Option.Option<ReadonlyArray<A>> =>
  values.length === 0 ? Option.none() : Option.some(values)
