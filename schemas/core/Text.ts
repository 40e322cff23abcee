import { Schema } from "effect"

/** Control characters (NUL above all, which PostgreSQL refuses in text) are never valid in a one-line field. */
// oxlint-disable-next-line no-control-regex
const printable = /^[^\u0000-\u001f\u007f]*$/u

/** One line of text between two lengths, counted in UTF-16 units. */
export const line = (minLength: number, maxLength: number) => {
  const expected = `text of ${minLength} to ${maxLength} characters on one line`
  return Schema.String.check(
    Schema.isBetweenLength(minLength, maxLength, { expected }),
    Schema.isPattern(printable, { expected })
  )
}

/** An address with one `@`, no spaces, at most 254 characters (RFC 5321, 4.5.3.1.3, less the angle brackets). */
export const Email = Schema.String.check(
  Schema.isMaxLength(254, { expected: "an e-mail address of at most 254 characters" }),
  // oxlint-disable-next-line no-control-regex
  Schema.isPattern(/^[^\s@\u0000-\u001f\u007f]{1,64}@[^\s@\u0000-\u001f\u007f]+$/u, {
    expected: "an e-mail address"
  })
).annotate({ format: "email", examples: ["ada@example.org"] })

/** A whole number between two bounds, bounds included. */
export const integer = (minimum: number, maximum: number) =>
  Schema.Int.check(
    Schema.isBetween({ minimum, maximum }, { expected: `an integer between ${minimum} and ${maximum}` })
  )
