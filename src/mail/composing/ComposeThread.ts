import type { JobModule } from "#src/infra/workers/Job.ts"
import { composeMail, type MailToCompose } from "./Compose.ts"

/** Composes one message. The bytes of attachments have come as `Uint8Array`. */
export const job: JobModule = async (ask) => {
  // MailComposer.ts is this module's other half.
  const { fields, ...mail } = ask as MailToCompose
  const attachments = fields.attachments.map((attachment) => ({
    ...attachment,
    content: Buffer.from(attachment.content)
  }))
  const message = new Uint8Array(await composeMail({ ...mail, fields: { ...fields, attachments } }))
  return { answer: message, transfer: [message.buffer] }
}
