import { Result } from "effect"

const whiteSpace = /[\t\n\r ]/

/**
 * The bytes of Base64 with padding (RFC 4648 section 4), white space aside, or the fault. Node's own decoder skips
 * what it does not know and ends where the text was cut off.
 */
export const decodeBase64 = (text: string): Result.Result<Buffer<ArrayBuffer>, string> => {
  const digits = whiteSpace.test(text) ? text.replace(/[\t\n\r ]+/g, "") : text
  const padding = digits.endsWith("==") ? 2 : digits.endsWith("=") ? 1 : 0
  if (/[^A-Za-z0-9+/]/.test(digits.slice(0, digits.length - padding)))
    return Result.fail("expected base64: letters, digits, + and /, with = at the end alone")
  if (digits.length % 4 !== 0)
    return Result.fail(`expected base64 in groups of 4: ${digits.length % 4} are left over`)
  const bytes = Buffer.from(digits, "base64")
  // The last group has 2 or 4 bits to spare: set, they would be lost, so that the text was cut off or altered.
  if (
    padding > 0 &&
    bytes.subarray(bytes.length - (bytes.length % 3)).toString("base64") !== digits.slice(-4)
  )
    return Result.fail("expected base64: bits after its last byte are set")
  return Result.succeed(bytes)
}
