import { isJsonRecord } from "#schemas/core/JsonRecord.ts"
import type { Body, RenderedBody } from "#streams/notify/bodies/Body.ts"
import { formatOf } from "#streams/notify/bodies/DetectFormat.ts"
import { renderBody } from "#streams/notify/bodies/RenderBody.ts"
import { renderSource, renderText } from "#streams/notify/bodies/RenderText.ts"
import type { JobModule } from "#src/infra/workers/Job.ts"

/** Markdown with more bytes of UTF-8 is text. Source: contract/notify#bodies */
export const markdownBytesMax = 256 * 1024

const tooLong = "This is Markdown of more than 256 KB, so it is shown as text."

/** A body, or its source alone. */
export interface BodyAsk {
  readonly text: string
  readonly format: Body["format"] | "source"
}

const rendered = async ({ format: asked, text }: BodyAsk): Promise<RenderedBody> => {
  if (asked === "source") return { format: "text", html: renderSource(text), remark: undefined }
  const body = { text, format: asked }
  const format = formatOf(body)
  if (format !== "markdown") return renderBody(body.text, format)
  if (Buffer.byteLength(body.text) > markdownBytesMax) return renderText(body.text, tooLong)
  const { renderMarkdown } = await import("#streams/notify/bodies/RenderMarkdown.ts")
  return renderMarkdown(body.text)
}

const isBody = (ask: unknown): ask is BodyAsk => isJsonRecord(ask) && typeof ask["text"] === "string"

/** A `BodyAsk` as a `RenderedBody`. */
export const job: JobModule = async (ask) => {
  if (!isBody(ask)) throw new Error("this worker renders bodies")
  return { answer: await rendered(ask) }
}
