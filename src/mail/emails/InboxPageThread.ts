import type { JobModule } from "#src/infra/workers/Job.ts"
import { htmlOf } from "./InboxPage.ts"

/** Takes a long mail apart. */
export const job: JobModule = async (ask) => {
  if (!(ask instanceof Uint8Array)) throw new Error("The ask is not a mail")
  return { answer: await htmlOf(ask) }
}
