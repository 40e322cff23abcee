import type { JobModule } from "#src/infra/workers/Job.ts"
import { bodyHashOf } from "./Dkim.ts"

/** Makes the hashes of long bodies: see RecipientHead.ts. */
export const job: JobModule = (ask) => {
  if (!(ask instanceof Uint8Array)) throw new Error("The ask is not a message")
  return { answer: bodyHashOf(Buffer.from(ask.buffer, ask.byteOffset, ask.length)) }
}
