import { Option } from "effect"

/** Only values that were given: an absent field and an undefined one are not the same to the API. */
export const given = <A>(name: string, value: Option.Option<A>): Record<string, A> =>
  Option.match(value, { onNone: () => ({}), onSome: (some) => ({ [name]: some }) })

/** A flag that may be repeated; none where it was not given. */
export const someOf = <A>(values: ReadonlyArray<A>): Option.Option<ReadonlyArray<A>> =>
  values.length === 0 ? Option.none() : Option.some(values)
