import { Effect } from "effect"
import type { Html } from "#src/http/Html.ts"
import type { Body, RenderedBody } from "#streams/notify/bodies/Body.ts"
import { formatOf } from "#streams/notify/bodies/DetectFormat.ts"
import { renderBody } from "#streams/notify/bodies/RenderBody.ts"
import { renderSource, renderText } from "#streams/notify/bodies/RenderText.ts"
import type { JobKind } from "#src/infra/workers/Job.ts"
import { type JobNotDone, Workers } from "#src/infra/workers/Workers.ts"
import { type BodyAsk, markdownBytesMax } from "./BodyWorker.ts"

const module = new URL("./BodyWorker.ts", import.meta.url)

/** Markdown's parser has worst cases of its own, so it runs where it can be killed. Source: contract/notify#bodies */
const markdownKind: JobKind = { module, isolation: "process", deadlineMillis: 2_000, memoryMegabytes: 256 }

/** The other formats take time and memory by the length alone: a thread bears them, and starts sooner. */
const plainKind: JobKind = { module, isolation: "thread", deadlineMillis: 10_000, memoryMegabytes: 256 }

/** Looked at and rendered on the event loop, in some milliseconds at worst. */
const inPlaceLength = 16 * 1024

/** Where a body goes that is not rendered here. The format of a long one is found out there as well. */
const kindFor = ({ format, text }: BodyAsk): JobKind => {
  const mayBeMarkdown = format === "auto" || format === "markdown"
  return mayBeMarkdown && text.length <= markdownBytesMax ? markdownKind : plainKind
}

const notDone = "This could not be shown in its format in time, so it is shown as text."

/**
 * A body of at most 1 MB as HTML, rendered beside the event loop where that would take long. One that cannot be rendered in
 * its format is text.
 *
 * @param owner bodies of different owners take turns
 */
export const renderedBody = (owner: string, body: Body): Effect.Effect<RenderedBody, never, Workers> =>
  Effect.suspend(() => {
    if (body.text.length <= inPlaceLength) {
      const format = formatOf(body)
      if (format !== "markdown") return Effect.succeed(renderBody(body.text, format))
    }
    return Effect.catchTag(beside(owner, body), "JobNotDone", ({ problem, reason }) =>
      Effect.as(
        Effect.logDebug("A body was not rendered in its format", { reason, problem }),
        renderText(body.text, notDone)
      )
    )
  })

/** A body as its sender wrote it. */
export const renderedSource = (owner: string, text: string): Effect.Effect<Html, never, Workers> =>
  Effect.suspend(() => {
    const here = Effect.sync((): Html => ({ html: renderSource(text) }))
    return text.length <= inPlaceLength
      ? here
      : beside(owner, { text, format: "source" }).pipe(Effect.catchTag("JobNotDone", () => here))
  })

/** BodyWorker.ts is this module's other half. */
const beside = (owner: string, ask: BodyAsk): Effect.Effect<RenderedBody, JobNotDone, Workers> =>
  Effect.flatMap(Workers, ({ run }) =>
    Effect.map(run({ kind: kindFor(ask), owner, ask }), (answer) => answer as RenderedBody)
  )
