import { randomInt } from "node:crypto"
import type { RequestSource } from "#bench/harness/HttpLoad.ts"

/** A request in which each `mark` is replaced by a number of its own, of as many digits. */
export interface SmallUploads {
  /** latin1 */
  readonly request: string
}

/** In names and bytes, so that no two uploads are the same file or the same blob. */
export const mark = "#########"

export const source = ({ request }: SmallUploads): RequestSource => {
  const template = Buffer.from(request, "latin1")
  const places: Array<number> = []
  for (let at = template.indexOf(mark); at >= 0; at = template.indexOf(mark, at + 1)) places.push(at)
  // Others may have come to the same server before.
  let made = randomInt(10 ** (mark.length - 1))
  return {
    next: () => {
      const bytes = Buffer.from(template)
      const number = String(made++).padStart(mark.length, "0")
      for (const place of places) bytes.write(number, place, "latin1")
      return bytes
    }
  }
}
