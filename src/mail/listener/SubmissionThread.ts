import { Result } from "effect"
import type { JobModule } from "#src/infra/workers/Job.ts"
import { readSubmission, type ReadSubmission, type SubmissionAsk } from "#streams/mail/Submission.ts"

/** Reads long submissions: see Submissions.ts. */
export const job: JobModule = async (ask) => {
  // Submissions.ts is this module's other half.
  const read = await readSubmission(ask as SubmissionAsk)
  const answer = Result.match(read, {
    onSuccess: (submission): ReadSubmission => ({ submission }),
    onFailure: (fault): ReadSubmission => ({ fault })
  })
  return { answer }
}
