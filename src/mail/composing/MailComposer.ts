import { Context, Effect, Layer } from "effect"
import { PayloadTooLarge, type Problem, ServiceUnavailable } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import type { JobKind } from "#src/infra/workers/Job.ts"
import { type JobNotDone, Workers } from "#src/infra/workers/Workers.ts"
import type { MailFields } from "#streams/mail/MailFields.ts"
import { composeMail, type MailToCompose } from "./Compose.ts"
import { strippedText } from "./HtmlText.ts"
import type { HtmlAsk } from "./HtmlTextWorker.ts"

/** Numbers of composition. */
export const composingLimits = {
  /** JSON of more bytes is read in a thread, and texts and attachments are composed in one … */
  inPlaceBytes: 256 * 1024,
  /** … which is given so long, and this heap; bytes of attachments are not part of it */
  composeMillis: 30_000,
  composeHeapMegabytes: 512,
  /** after which the text of HTML is made by stripping its tags */
  textMillis: 2_000,
  /** longer HTML is stripped in a worker, too, which is given so long */
  stripInPlaceCharacters: 64 * 1024,
  stripMillis: 10_000,
  textMegabytes: 384
} as const

interface OwnedMail extends MailToCompose {
  /** mails of different owners take turns in the workers */
  readonly owner: string
}

/** The HTML is a stranger's: the program that reads it can be ended at any instant. */
const textKind: JobKind = {
  module: new URL("./HtmlTextWorker.ts", import.meta.url),
  isolation: "process",
  deadlineMillis: composingLimits.textMillis,
  memoryMegabytes: composingLimits.textMegabytes
}

const stripKind: JobKind = { ...textKind, deadlineMillis: composingLimits.stripMillis }

const composeKind: JobKind = {
  module: new URL("./ComposeThread.ts", import.meta.url),
  isolation: "thread",
  deadlineMillis: composingLimits.composeMillis,
  memoryMegabytes: composingLimits.composeHeapMegabytes
}

/**
 * Makes messages of mails. A mail with HTML alone gets a text of it. Fails with `PayloadTooLarge` above 25 MiB, and with
 * `ServiceUnavailable` where too many large ones are under way.
 */
export class MailComposer extends Context.Service<
  MailComposer,
  { readonly compose: (mail: OwnedMail) => Effect.Effect<Buffer, Problem> }
>()("signalbox/mail/MailComposer") {
  static readonly layer = Layer.effect(
    MailComposer,
    Effect.gen(function* () {
      const workers = yield* Workers
      const { mailBytes } = (yield* AppConfig).limits

      const askText = (owner: string, ask: HtmlAsk): Effect.Effect<string, JobNotDone> => {
        const kind = ask.isStripped ? stripKind : textKind
        // HtmlTextWorker.ts answers with a text.
        return Effect.map(workers.run({ kind, owner, ask }), (answer) => answer as string)
      }

      const stripped = (owner: string, html: string): Effect.Effect<string, Problem> =>
        html.length <= composingLimits.stripInPlaceCharacters
          ? Effect.sync(() => strippedText(html))
          : Effect.mapError(askText(owner, { html, isStripped: true }), () => unmade)

      const textOf = (owner: string, html: string): Effect.Effect<string, Problem> =>
        askText(owner, { html, isStripped: false }).pipe(
          Effect.catch((failure) =>
            Effect.andThen(
              Effect.logDebug("The text of a mail is its HTML without the tags", failure),
              stripped(owner, html)
            )
          )
        )

      const inThread = ({ fields, owner, ...mail }: OwnedMail): Effect.Effect<Buffer, Problem> => {
        const attachments = fields.attachments.map((attachment) => ({
          ...attachment,
          content: new Uint8Array(attachment.content)
        }))
        return workers
          .run({
            kind: composeKind,
            owner,
            ask: { ...mail, fields: { ...fields, attachments } },
            transfer: attachments.map(({ content }) => content.buffer)
          })
          .pipe(
            Effect.map((answer) => bufferOf(answer as Uint8Array)),
            Effect.tapError((failure) =>
              failure.reason === "busy"
                ? Effect.void
                : Effect.logWarning("A large mail could not be composed", failure)
            ),
            Effect.mapError(() => unmade)
          )
      }

      const compose = Effect.fnUntraced(function* (mail: OwnedMail) {
        const { fields, owner } = mail
        if (leastBytes(fields) > mailBytes) return yield* tooLarge
        const text = fields.text ?? (fields.html === null ? null : yield* textOf(owner, fields.html))
        const whole = { ...mail, fields: { ...fields, text } }
        const message = yield* sizeOf(whole.fields) > composingLimits.inPlaceBytes
          ? inThread(whole)
          : Effect.sync(() => composeMail(whole))
        if (message.length > mailBytes) return yield* tooLarge
        return message
      })
      return MailComposer.of({ compose })
    })
  )
}

const unmade = ServiceUnavailable.of("Too many large mails are being composed; try again")
const tooLarge = PayloadTooLarge.of("The encoded message is larger than 25 MiB")

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const attachmentBytes = ({ attachments }: MailFields): number =>
  attachments.reduce((sum, { content }) => sum + content.length, 0)

/** Bytes of the attachments in base64, without line breaks. */
const leastBytes = (fields: MailFields): number => (attachmentBytes(fields) * 4) / 3

const sizeOf = (fields: MailFields): number =>
  attachmentBytes(fields) + (fields.html?.length ?? 0) + (fields.text?.length ?? 0)
