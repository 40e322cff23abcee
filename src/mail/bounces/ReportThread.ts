import { isJsonRecord } from "#schemas/core/JsonRecord.ts"
import type { JobModule } from "#src/infra/workers/Job.ts"
import { type MailReport, readMailReport } from "#streams/mail/MailReport.ts"

/** Answer of the job below. */
export interface ReadReport {
  readonly report: MailReport | undefined
}

/** Reads reports: see Bounces.ts. 256 KiB of a stranger's may take seconds. */
export const job: JobModule = async (ask) => {
  if (!isJsonRecord(ask) || !(ask["bytes"] instanceof Uint8Array))
    throw new Error("The ask is not that of a report")
  const answer: ReadReport = { report: await readMailReport(ask["bytes"]) }
  return { answer }
}
