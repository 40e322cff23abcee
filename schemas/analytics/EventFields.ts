import { Schema } from "effect"
import { eventLimits, expectations } from "./EventLimits.ts"

/**
 * The parts of both event inputs. Each has one sentence for any fault (a number for text, a text too long), so that a
 * fault reads the same from the schema and from the hand-tuned decoder.
 */
const says = (expected: string) => ({ message: `Expected ${expected}` })

export const textField = (minLength: number, maxLength: number, expected: string) =>
  Schema.String.annotate(says(expected)).check(Schema.isBetweenLength(minLength, maxLength, says(expected)))

/** `null` and an absent key are the same, because many clients send unknown values as null. */
export const optional = <S extends Schema.Top>(schema: S, expected: string) =>
  Schema.optionalKey(Schema.NullOr(schema).annotate(says(expected)))

export const oneOf = <const L extends ReadonlyArray<string>>(literals: L, expected: string) =>
  Schema.Literals(literals).annotate(says(expected))

export const EngagedMillis = Schema.Finite.annotate(says(expectations.engaged)).check(
  Schema.isInt(says(expectations.engaged)),
  Schema.isBetween({ minimum: 0, maximum: eventLimits.engagedMillis }, says(expectations.engaged))
)

const PropValue = Schema.Union([
  Schema.String.check(Schema.isMaxLength(eventLimits.propValueLength, says(expectations.propValue))),
  Schema.Finite,
  Schema.Boolean
]).annotate(says(expectations.propValue))

const hasShortNames = (props: object): boolean =>
  Object.keys(props).every((name) => name.length > 0 && name.length <= eventLimits.propKeyLength)

/** A flat map; its values are kept as text. */
const FlatProps = Schema.Record(Schema.String, PropValue)
  .annotate(says(expectations.props))
  .check(
    Schema.isMaxProperties(eventLimits.propKeys, says(expectations.props)),
    Schema.makeFilter(hasShortNames, says(expectations.props))
  )

export type Props = typeof FlatProps.Type

/** Properties are a detail of an event: invalid ones are left out and counted, and the event stays. */
export const Props = Schema.Union([FlatProps, Schema.Unknown])

export const propsDescription =
  `A flat map of at most ${eventLimits.propKeys} properties, ${expectations.propValue} each. One that is null is ` +
  "absent; any other that does not fit is left out, counted as `property` in the drops, and the event stays"

/** Text in ISO-8601, or a number of epoch milliseconds. The pipeline limits its age, because it knows the time. */
export const EventTimestamp = Schema.Union([
  Schema.String.check(Schema.isMaxLength(eventLimits.timestampTextLength, says(expectations.timestamp))),
  // JSON's 1e999 is read as Infinity, and `Schema.Finite` would say so in its own words.
  Schema.Number.check(Schema.isFinite(says(expectations.timestamp)))
]).annotate(says(expectations.timestamp))

/** Networks send `T1` (Tor), `XX` or nothing if they know no country. */
export const CountryCode = Schema.String.annotate(says(expectations.country)).check(
  Schema.isPattern(/^(?:|[A-Za-z][A-Za-z0-9])$/u, says(expectations.country))
)
