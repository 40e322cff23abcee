import type { JobModule } from "#src/infra/workers/Job.ts"
import { strippedText, textOfHtml } from "./HtmlText.ts"

export interface HtmlAsk {
  readonly html: string
  readonly isStripped: boolean
}

/** Makes text of HTML. */
export const job: JobModule = (ask) => {
  // MailComposer.ts is this module's other half.
  const { html, isStripped } = ask as HtmlAsk
  return { answer: isStripped ? strippedText(html) : textOfHtml(html) }
}
