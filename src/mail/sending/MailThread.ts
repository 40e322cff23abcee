import { Result } from "effect"
import { isJsonRecord } from "#schemas/core/JsonRecord.ts"
import type { JobModule } from "#src/infra/workers/Job.ts"
import { type ReadMail, readMailJson } from "#streams/mail/MailJson.ts"

/** Reads long mails: see SendMailRoutes.ts. */
export const job: JobModule = (ask) => {
  if (!isJsonRecord(ask) || !(ask["bytes"] instanceof Uint8Array) || typeof ask["nowMillis"] !== "number")
    throw new Error("The ask is not that of a mail")
  const answer = Result.match(readMailJson(ask["bytes"], ask["nowMillis"]), {
    onSuccess: (fields): ReadMail => ({ fields }),
    onFailure: (fault): ReadMail => ({ fault })
  })
  return { answer }
}
