import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import PostalMime from "postal-mime"
import { AppConfig } from "#src/Config.ts"
import { JobNotDone, Workers } from "#src/infra/workers/Workers.ts"
import { mailLimits } from "#src/mail/Limits.ts"
import { composeMail } from "#src/mail/composing/Compose.ts"
import { composingLimits, MailComposer } from "#src/mail/composing/MailComposer.ts"
import type { MailFields } from "#streams/mail/MailFields.ts"
import { mailOf } from "./Mails.ts"

const config = AppConfig.layerOf({ limits: { workerThreads: 1, workerProcesses: 1 } })

const provided = Effect.provide(
  MailComposer.layer.pipe(Layer.provideMerge(Workers.layer), Layer.provide(config))
)

const stats = () => ({ workers: 0, waiting: 0, failed: 0 })
const busy = Layer.succeed(Workers, {
  run: () => Effect.fail(new JobNotDone({ reason: "busy", problem: "many jobs wait already" })),
  stats: { thread: stats, process: stats }
})

const base = { messageId: "<eml_1@example.com>", dateMillis: 1_770_000_000_000 }

const compose = Effect.fnUntraced(function* (fields: MailFields) {
  const composer = yield* MailComposer
  return yield* composer.compose({ ...base, fields, owner: "usr_1" })
})

const parsed = (raw: Buffer) => Effect.promise(() => PostalMime.parse(raw))

const file = (bytes: number) => ({
  filename: "a.bin",
  contentType: "application/octet-stream",
  content: Buffer.alloc(bytes, "0123456789")
})

/** Without the boundaries, which are random. */
const comparable = (raw: Buffer): string => raw.toString("latin1").replace(/--_NmP-[\da-f]+/g, "--_NmP")

describe("the composer", () => {
  it.live("gives a mail with HTML alone a text of it, and lets a text be", () =>
    Effect.gen(function* () {
      const html =
        '<h1>Order 7</h1><p>It is <a href="https://a.example/x">on its way</a>.</p><img alt="A map">'
      const made = yield* parsed(yield* compose(mailOf({ html, text: null })))
      assert.strictEqual(made.text?.trim(), "Order 7\n\nIt is on its way [https://a.example/x].\n\nA map")
      assert.strictEqual(made.html?.trim(), html)
      const given = yield* parsed(yield* compose(mailOf({ html, text: "mine" })))
      assert.strictEqual(given.text?.trim(), "mine")
    }).pipe(provided)
  )

  it.live("strips HTML that is nested too deep, and composes what comes after it", () =>
    Effect.gen(function* () {
      const deep = `${"<div>".repeat(100_000)}deep${"</div>".repeat(100_000)}`
      const made = yield* parsed(yield* compose(mailOf({ html: deep, text: null })))
      assert.strictEqual(made.text?.trim(), "deep")
      const next = yield* parsed(yield* compose(mailOf({ html: "<p>next</p>", text: null })))
      assert.strictEqual(next.text?.trim(), "next")
    }).pipe(provided)
  )

  it.live("composes large mails in a thread, to the same message; the attachments stay the caller's", () =>
    Effect.gen(function* () {
      const { stats } = yield* Workers
      const small = mailOf({ attachments: [file(1_000)] })
      yield* compose(small)
      assert.strictEqual(stats.thread().workers, 0)
      const large = mailOf({ attachments: [file(composingLimits.inPlaceBytes), file(7)] })
      const message = yield* compose(large)
      assert.strictEqual(stats.thread().workers, 1)
      assert.strictEqual(large.attachments[0]?.content.length, composingLimits.inPlaceBytes)
      const here = composeMail({ ...base, fields: large })
      assert.strictEqual(comparable(message), comparable(here))
    }).pipe(provided)
  )

  it.live("refuses messages over 25 MiB", () =>
    Effect.gen(function* () {
      // In base64 with line breaks 78 bytes have 57; the rest of the message has fewer than 4,000.
      const most = Math.floor(((mailLimits.mailBytes - 4_000) * 57) / 78)
      const message = yield* compose(mailOf({ attachments: [file(most)] }))
      assert.isAtMost(message.length, mailLimits.mailBytes)
      for (const bytes of [most + 4_000, mailLimits.mailBytes]) {
        const problem = yield* Effect.flip(compose(mailOf({ attachments: [file(bytes)] })))
        assert.strictEqual(problem._tag, "PayloadTooLarge")
        assert.strictEqual(problem.message, "The encoded message is larger than 25 MiB")
      }
    }).pipe(provided)
  )

  it.live("strips small HTML itself where no worker is free; large mails are to be tried again", () =>
    Effect.gen(function* () {
      const made = yield* parsed(yield* compose(mailOf({ html: "<h1>a</h1>b", text: null })))
      assert.strictEqual(made.text?.trim(), "a\nb")
      const long = `<p>${"x".repeat(composingLimits.stripInPlaceCharacters)}</p>`
      for (const large of [
        { html: long, text: null },
        { attachments: [file(composingLimits.inPlaceBytes)] }
      ]) {
        const problem = yield* Effect.flip(compose(mailOf(large)))
        assert.strictEqual(problem._tag, "ServiceUnavailable")
        assert.strictEqual(problem.message, "Too many large mails are being composed; try again")
      }
    }).pipe(Effect.provide(MailComposer.layer.pipe(Layer.provide([busy, config]))))
  )
})
