import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { cleanText } from "#streams/notify/bodies/CleanText.ts"
import type { ChannelRequest, Notice } from "#streams/notify/channels/Channel.ts"
import { discord } from "#streams/notify/channels/Discord.ts"
import { slack } from "#streams/notify/channels/Slack.ts"
import { telegram } from "#streams/notify/channels/Telegram.ts"
import { digestNotice } from "#streams/notify/digests/DigestNotice.ts"
import { Vapid } from "#streams/notify/channels/Vapid.ts"
import {
  ownRules,
  readBlocks,
  readDiscord,
  readMarkdown,
  type ReadMessage,
  readMrkdwn,
  readTelegram,
  type SentToTelegram
} from "./ChatReaders.ts"
import { hostileTexts } from "./HostileTexts.ts"
import { anyNotice, createdAtMillis, notice } from "./Notices.ts"

const sender = { vapid: new Vapid({ secret: Buffer.alloc(32, 1) }), nowMillis: createdAtMillis }

type JsonOf = Readonly<Record<string, unknown>>
const jsonOf = ({ body }: ChannelRequest) => JSON.parse(Buffer.from(body).toString()) as JsonOf

interface Written {
  /** as it counts for the limit */
  readonly text: string
  readonly read: ReadonlyArray<ReadMessage>
}

/** The services, each with the message as its readers see it. */
const services: ReadonlyArray<{
  readonly name: string
  readonly max: number
  readonly write: (one: Notice, isSmaller?: boolean) => Written & { readonly request: ChannelRequest }
}> = [
  {
    name: "Discord",
    max: 2_000,
    write: (one, isSmaller = false) => {
      const target = { url: "https://discord.com/api/webhooks/1/token" }
      const request = discord.request(target, one, { ...sender, adjustments: { isSmaller } })
      const text = String(jsonOf(request)["content"])
      return { request, text, read: [readDiscord(text)] }
    }
  },
  {
    name: "Telegram",
    max: 4_096,
    write: (one, isSmaller = false) => {
      const target = { chatId: -5, isGroup: true }
      const request = telegram.request(target, one, { ...sender, adjustments: { isSmaller } })
      const message = JSON.parse(Buffer.from(request.body).toString()) as SentToTelegram
      return { request, text: message.text, read: [readTelegram(message)] }
    }
  },
  ...["https://hooks.slack.com/services/T/B/x", "https://chat.example.com/hooks/x"].map((url) => ({
    name: new URL(url).host,
    max: 3_000,
    write: (one: Notice, isSmaller = false) => {
      const request = slack.request({ url }, one, { ...sender, adjustments: { isSmaller } })
      const { blocks, text } = jsonOf(request) as { text: string; blocks: Parameters<typeof readBlocks>[0] }
      const isSlack = url.startsWith("https://hooks.slack.com/")
      return { request, text, read: [isSlack ? readMrkdwn(text) : readMarkdown(text), readBlocks(blocks)] }
    }
  }))
]

const clean = (text: string) => text.replaceAll("\u200B", "").replace(/\s+/gu, " ").trim()

/** As it reads where marks are replaced by letters that look like them. */
const looks = (text: string) =>
  clean(text)
    .replace(/%40(?=everyone|here|channel|all)/gu, "@")
    .replace(/[∗ˋ∼ˍ∣]/gu, (one) => ({ "∗": "*", ˋ: "`", "∼": "~", ˍ: "_", "∣": "|" })[one] ?? one)

const page = notice.pageUrl

describe("a message in a chat", () => {
  for (const { max, name, write } of services)
    describe(name, () => {
      for (const { name: of, text } of hostileTexts)
        it(`is escaped, so that mentions and markup do nothing: ${of}`, () => {
          const line = text.replace(/[\n\r]/gu, " ")
          for (const one of [
            { ...notice, message: text },
            { ...notice, message: text, title: line.slice(0, 200), app: "x", hasView: true },
            { ...notice, message: text, app: line.slice(0, 100), url: "https://ci.example.com/(a)?b=|c" }
          ]) {
            const written = write(one)
            assert.isAtMost(written.text.length, max)
            for (const { bare, links, mentions, shown, styles } of written.read) {
              assert.deepStrictEqual(mentions, [], shown)
              const [heading = "", ...more] = styles
              assert.deepStrictEqual(more, [], shown)
              if (heading !== "") assert.match(heading, /^bold: /)
              for (const [label, url] of links) {
                const ours = url === page ? "Show all" : "ci.example.com"
                assert.strictEqual(label, ours, url)
                assert.include(["Show all", "ci.example.com"], label)
              }
              // They show where they lead, and are what was sent.
              for (const address of bare) assert.include(clean(shown), clean(address))
            }
          }
        })

      if (name === "chat.example.com")
        it("has none of the marks of Mattermost and Rocket.Chat that are not Markdown's", () => {
          for (const { name: of, text } of hostileTexts) {
            const [, ...lines] = write({ ...notice, message: text }).text.split("\n")
            const written = lines.filter((line) => !line.startsWith("[Show all](")).join("\n")
            for (const [rule, pattern] of ownRules)
              assert.notMatch(
                written.replace(/https?:\/\/[\w./?=%():@&,-]+/gu, "address"),
                pattern,
                `${rule}: ${of}`
              )
          }
        })

      it("says what was sent, whole where it fits", () => {
        for (const { name: of, text } of hostileTexts) {
          if (text.length > 400) continue
          const written = write({ ...notice, message: text, title: "A title" })
          for (const { shown } of written.read)
            assert.strictEqual(
              looks(shown),
              looks(`A title\n${cleanText(text).replaceAll("\u0085", "\n")}`),
              of
            )
        }
      })

      it("is cut on a grapheme with …, at the limit of the service, and leads to its page then", () => {
        for (const { name: of, text } of hostileTexts) {
          const { read, text: written } = write({ ...notice, message: text })
          const sent = looks(
            cleanText(text)
              .replaceAll("\u0085", "\n")
              .replace(/\n(?:[^\S\n]*\n){3,}/gu, "\n")
          )
          for (const { links, shown } of read) {
            const isCut = links.some(([, url]) => url === page)
            const [, message = ""] = /^backup([^]*?)(?:Show all)?$/u.exec(looks(shown)) ?? []
            if (!isCut) {
              assert.strictEqual(message.trim(), sent, of)
              continue
            }
            assert.isTrue(message.trim().endsWith("…"), of)
            const kept = message.trim().slice(0, -1)
            assert.isTrue(sent.startsWith(kept), of)
            const ends = Array.from(new Intl.Segmenter("en").segment(sent), ({ index }) => index)
            assert.include(ends, kept.length, of)
            // No more of it fits: the next unit, each of its characters written by three at most, is too much.
            const [unit = ""] = /^(?:\s+\S?|https?:\S+)/u.exec(sent.slice(kept.length)) ?? [
              sent.slice(
                kept.length,
                ends.find((end) => end > kept.length)
              )
            ]
            if (!/^\s/u.test(unit)) assert.isAbove(written.length + 3 * unit.length + 3, max, of)
          }
        }
      })

      it("of a digest is escaped as others are, and leads to the digest's page", () => {
        for (const { name: of, text } of hostileTexts) {
          const item = { ...notice, app: "x", title: text.slice(0, 200), message: text }
          const digest = digestNotice({
            id: "dig_x",
            pageUrl: page,
            count: 7,
            items: [item, item],
            createdAtMillis
          })
          const { read, text: written } = write({ ...notice, ...digest })
          assert.isAtMost(written.length, max, of)
          for (const { links, mentions, shown, styles } of read) {
            assert.deepStrictEqual(mentions, [], shown)
            assert.deepStrictEqual(links, [["Show all", page]], of)
            assert.deepStrictEqual(
              styles.filter((style) => style !== "bold: 7 messages"),
              [],
              shown
            )
          }
        }
      })

      it("has the message's own address first and then its page, and never the settings", () => {
        const url = "https://ci.example.com/run/7"
        const linksOf = (fields: Partial<Notice>) => {
          const { read, request } = write({ ...notice, ...fields })
          assert.notInclude(Buffer.from(request.body).toString(), "/n/me")
          for (const { links } of read) assert.deepStrictEqual(links, read[0]?.links)
          return read[0]?.links.map(([, to]) => to)
        }
        assert.deepStrictEqual(linksOf({}), [])
        assert.deepStrictEqual(linksOf({ url }), [url])
        assert.deepStrictEqual(linksOf({ hasView: true }), [page])
        assert.deepStrictEqual(linksOf({ hasView: true, url }), [url, page])
        const message = "long ".repeat(Math.ceil(max / 5))
        assert.deepStrictEqual(linksOf({ message, url }), [url, page])
        // The page has it too.
        const far = `https://ci.example.com/${"a".repeat(2_000)}`
        assert.deepStrictEqual(
          linksOf({ message, url: far }),
          [max > 2_500 ? far : page, page].slice(max > 2_500 ? 0 : 1)
        )
      })

      it("has a paperclip before its text where it has attachments", () => {
        for (const { shown } of write({ ...notice, hasPaperclip: true }).read)
          assert.strictEqual(clean(shown), "backup 📎 It ended well.")
      })

      it("is whole JSON within its limit, whatever the message, and within 2,000 bytes after 413", () => {
        fc.assert(
          fc.property(anyNotice, (one) => {
            assert.isAtMost(write(one).text.length, max)
            assert.isTrue(write(one).text.isWellFormed())
            assert.isAtMost(write(one, true).request.body.length, 2_000)
          }),
          { numRuns: 40 }
        )
      })
    })
})

describe("a digest", () => {
  it("tells no part of an address: half of one leads to another host", () => {
    const address = `https://bank.example.${"a".repeat(200)}.evil.example/x`
    const told = (fields: Partial<Notice>) =>
      digestNotice({
        id: "dig_x",
        pageUrl: page,
        count: 2,
        items: [{ ...notice, ...fields }],
        createdAtMillis
      }).message.split("\n")[0]
    for (const before of ["", "see "])
      assert.match(
        told({ message: `${before}${address} ${"more ".repeat(60)}` }) ?? "",
        new RegExp(`^Nightly jobs · backup: ${before}${address.replaceAll(".", "\\.")} more[a-z ]*…$`)
      )
    for (const before of ["x".repeat(100), `${"x".repeat(276)} `, "é".repeat(140)])
      assert.strictEqual(told({ message: `${before}${address}` }), `Nightly jobs · backup: ${before.trim()}…`)
    assert.strictEqual(
      told({ title: `Log in: ${address}`, message: "now", project: { slug: "p", name: address } }),
      "… · Log in:…: now"
    )
  })
})
