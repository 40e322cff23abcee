import * as fc from "fast-check"
import type { Notice } from "#streams/notify/channels/Channel.ts"

export const createdAtMillis = Date.UTC(2026, 10, 22, 12)

export const notice: Notice = {
  deliveryId: "dlv_0123456789abcdefABCDEF",
  messageId: "msg_0123456789abcdefABCDEF",
  project: { slug: "nightly", name: "Nightly jobs" },
  app: "backup",
  message: "It ended well.",
  pageUrl: "https://signalbox.example.com/n/m/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
  hasView: false,
  settingsUrl: "https://signalbox.example.com/n/me#sbt_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
  priority: "normal",
  hasPaperclip: false,
  createdAtMillis,
  expiresAtMillis: createdAtMillis + 72 * 3_600_000
}

const wide = 'Ä€𝄞\u{1F469}\u200D\u{1F469}\u200D\u{1F467}\u{1F1E9}\u{1F1EA}e\u0301"\\\n\u0001 \uD800'

/** Any code point, surrogates too. `fc.string` with such units takes seconds to prepare. */
const codePoint = fc.nat({ max: 0x10_ffff }).map((point) => String.fromCodePoint(point))

/** Text with all that makes JSON long: escapes, wide characters, lone surrogates, marks; up to `max` UTF-16 units. */
export const hostileText = (max: number): fc.Arbitrary<string> =>
  fc.oneof(
    fc
      .array(fc.oneof(fc.constantFrom(...wide, "\u{1F469}\u200D\u{1F467}", "a", "word "), codePoint))
      .map((parts) => parts.join("").slice(0, max)),
    // One thing over and over, up to the limit.
    fc
      .tuple(
        fc.constantFrom("a", "€", "\u0001", "\u{1F469}\u200D\u{1F467}", "e\u0301", "\uDC00", "\\"),
        fc.nat({ max })
      )
      .map(([one, length]) => one.repeat(length).slice(0, length))
  )

/** At least one unit. */
const named = (max: number): fc.Arbitrary<string> => hostileText(max - 1).map((text) => `x${text}`)

const address = fc.oneof(
  fc.constant("https://example.com/a?b=c"),
  hostileText(2_020).map((text) => `https://example.com/${text}`)
)

/** Notices whose every field may be at its limit. */
export const anyNotice: fc.Arbitrary<Notice> = fc
  .record({
    app: named(100),
    name: named(100),
    message: named(4_000),
    title: fc.option(named(200)),
    url: fc.option(address),
    hasView: fc.boolean(),
    hasPaperclip: fc.boolean()
  })
  .map(({ name, title, url, ...rest }) => ({
    ...notice,
    ...rest,
    project: { slug: "nightly", name },
    ...(title === null ? {} : { title }),
    ...(url === null ? {} : { url })
  }))
