import { Readable } from "node:stream"
import { assert, describe, it } from "@effect/vitest"
import { KeyRefused, RequestRefused, ServerUnreachable } from "#src/cli/Connection.ts"
import {
  accepted,
  type Answer,
  type Asked,
  type ByteClient,
  ConnectionCut,
  Patience
} from "#src/files/cli/bytes/ByteClient.ts"
import { ResumableUpload } from "#src/files/cli/bytes/ResumableUpload.ts"

const url = "https://a.example/api"

const answer = (
  status: number,
  headers: Readonly<Record<string, string>> = {},
  error = `words of ${status}`
): Answer => ({
  status,
  header: (name) => headers[name] ?? "",
  body: Readable.from([Buffer.from(JSON.stringify({ error }))])
})

/** Pauses that take no time, and are written down. */
const waiting = () => {
  const pauses: Array<number> = []
  const pause = async (millis: number): Promise<void> => void pauses.push(millis)
  return { pauses, told: { signal: new AbortController().signal, pause, onBytes: () => undefined } }
}

/** The error that a promise is rejected with. */
const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "no failure",
    (error: unknown) => error
  )

/** The end of a request that gets these answers, and the pauses until then. */
const asked = async (answers: ReadonlyArray<Answer | ConnectionCut>, triesMost?: number) => {
  const { pauses, told } = waiting()
  const left = [...answers]
  const ask = async (): Promise<Answer> => {
    const next = left.shift() ?? answer(200)
    if (next instanceof ConnectionCut) throw next
    return next
  }
  const end = await accepted(ask, new Patience(url, told, triesMost)).catch((error: unknown) => error)
  return { end, pauses, left: left.length }
}

describe("a command that moves bytes", () => {
  it("waits longer and longer behind connections that are cut, up to half a minute, and gives up in the end", async () => {
    const cuts = Array.from({ length: 20 }, () => new ConnectionCut("cut off"))
    const { end, left, pauses } = await asked(cuts)
    assert.deepStrictEqual([pauses.length, left], [9, 10])
    assert.instanceOf(end, ServerUnreachable)
    for (const [index, pause] of pauses.entries()) {
      assert.isAtLeast(pause, 75 * 2 ** index)
      assert.isAtMost(pause, 125 * 2 ** index)
    }
    const more = await asked(cuts, 12)
    assert.isAtLeast(more.pauses.at(-1) ?? 0, 22_500)
    assert.isAtMost(more.pauses.at(-1) ?? 0, 37_500)
  })

  it("begins anew with short pauses where something has come", async () => {
    const { pauses, told } = waiting()
    const patience = new Patience(url, told)
    for (let tries = 0; tries < 30; tries++) {
      await patience.wait("cut off")
      if (tries % 5 === 4) patience.progressed()
    }
    assert.isAtMost(Math.max(...pauses), 2_000)
  })

  it("waits for a server that asks it to, for up to a minute", async () => {
    for (const status of [408, 429, 503]) {
      const { end, pauses } = await asked([answer(status, { "retry-after": "60" })])
      assert.deepInclude(end, { status: 200 })
      assert.isAtLeast(pauses[0] ?? 0, 60_000)
      const long = await asked([answer(status, { "retry-after": "61" })])
      assert.instanceOf(long.end, RequestRefused)
      assert.deepStrictEqual(long.pauses, [])
      assert.lengthOf((await asked([answer(status)])).pauses, 1)
    }
  })

  it("does not wait behind other refusals, and shows no more of their words than a terminal bears", async () => {
    for (const status of [400, 403, 404, 409, 413, 507]) {
      const { end, pauses } = await asked([answer(status, {}, "no\u001b[31m")])
      assert.instanceOf(end, RequestRefused)
      assert.deepInclude(end, { text: "no\ufffd[31m" })
      assert.deepStrictEqual(pauses, [])
    }
    assert.instanceOf((await asked([answer(401)])).end, KeyRefused)
    assert.deepInclude((await asked([answer(302, { location: "https://b.example" })])).end, {
      text: "words of 302"
    })
  })
})

describe("a long file", () => {
  it("gives way to another run of it, longer each time, and leaves it to that one in the end", async () => {
    const { pauses, told } = waiting()
    const file = { path: "long.bin", relative: "long.bin", sizeBytes: 100, modifiedAt: new Date(0) }
    let offset = 0
    const client = {
      ask: async ({ method }: Asked) => {
        if (method === "HEAD") return answer(200, { "upload-offset": String(offset) })
        // The other one gets on meanwhile.
        offset++
        return answer(409, {}, "Another request goes on with this upload")
      }
    } satisfies Pick<ByteClient, "ask">
    const target = { url, headers: {}, bucket: "docs", below: "" }
    const upload = new ResumableUpload(client, target, file, "0".repeat(64), told)
    const failure = await failureOf(upload.send("/api/uploads/upl_1"))
    assert.instanceOf(failure, RequestRefused)
    assert.deepInclude(failure, { text: `${file.path}: Another request goes on with this upload` })
    assert.lengthOf(pauses, 9)
    assert.isAbove(pauses.at(-1) ?? 0, 19_000)
  })
})
