import { mediaTypeOf } from "#schemas/core/MediaTypes.ts"
import { anyBytes, safeContentType } from "./ContentType.ts"

/** `curl --data-binary` says this of every body. */
const saysNothing = /^(application\/octet-stream|application\/x-www-form-urlencoded)\s*(;|$)/i

/**
 * The type of a file: as it was sent, where that says something, else by the extension at the end of its name.
 *
 * @param sent "" where there is none
 */
export const fileType = (sent: string, name: string): string => {
  const type = safeContentType(sent.trim())
  return saysNothing.test(type) ? (mediaTypeOf(name) ?? anyBytes) : type
}
