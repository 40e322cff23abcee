import type { JobModule } from "#src/infra/workers/Job.ts"
import { composeMail, type MailToCompose } from "./Compose.ts"

/** Composes one message. */
export const job: JobModule = (ask) => {
  // MailComposer.ts is this module's other half.
  const message = new Uint8Array(composeMail(ask as MailToCompose))
  return { answer: message, transfer: [message.buffer] }
}
