import packageJson from "../../../../package.json" with { type: "json" }
import { printable } from "../boundary/Printable.ts"
import type { Read } from "./ReadFrame.ts"

/** The number of kinds of strange frames that are reported in one session; more add nothing. */
const toldMax = 8
/** Without these a client cannot say how the session stands. */
const needed: ReadonlySet<string> = new Set(["ready", "error"])

const frameText = (read: Read): string => {
  if (read.kind === "broken") return "something that is no JSON object"
  if (read.kind !== "strange" || read.type === "") return "a frame without a type"
  return `\`${printable(read.type)}\`${read.why === "" ? "" : ` (${printable(read.why)})`}`
}

const versionText = `Client and server may differ in version (this client: ${packageJson.version})`

/** Whether nothing can go on without this frame. */
export const isNeeded = (read: Read): boolean => read.kind === "strange" && needed.has(read.type)

/** The message to the user about a frame that is not understood. */
export const misunderstood = (read: Read): string =>
  `${versionText}: the server sent what is not understood, ${frameText(read)}`

/** Tells of each kind of strange frame once, up to a number. */
export class StrangeFrames {
  readonly #told = new Set<string>()

  /** undefined: it was reported before. */
  notice(read: Read): string | undefined {
    const name = read.kind === "strange" ? read.type : read.kind
    if (this.#told.has(name) || this.#told.size >= toldMax) return undefined
    this.#told.add(name)
    return misunderstood(read)
  }
}
