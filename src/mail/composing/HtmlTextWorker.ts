import type { JobModule } from "#src/infra/workers/Job.ts"
import { textOfHtml } from "./HtmlText.ts"

/** Makes text of HTML. */
export const job: JobModule = (ask) => {
  if (typeof ask !== "string") throw new Error("this worker reads HTML")
  return { answer: textOfHtml(ask) }
}
