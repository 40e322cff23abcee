import { assert, describe, it } from "@effect/vitest"
import type { ByteSource, RawReply, RawRoute } from "#src/front/RawRoute.ts"
import { RawClient, statusOf } from "./RawClient.ts"
import { pattern, sha256 } from "./RawStage.ts"
import { type Engine, engines, type RunningFront, type TestFrontOptions, withFront } from "./TestFront.ts"

const sizeBytes = 3 * 1024 * 1024 + 123
const content = pattern(sizeBytes)

/** The content in pieces of uneven length, some at once and some later; it cannot be read from `brokenAt` on. */
class Pieces implements ByteSource {
  readonly from: number
  readonly to: number
  readonly brokenAt: number
  reads = 0
  isReading = false
  closes = 0
  isClosedAmidRead = false

  constructor(from: number, to: number, brokenAt = Infinity) {
    this.from = from
    this.to = to
    this.brokenAt = brokenAt
  }

  read(into: Buffer, at: number, done: (error: Error | null, count: number) => void): void {
    assert.isFalse(this.isReading)
    this.isReading = true
    const reads = this.reads++
    const count = Math.min(into.length, this.to - at, 1 + ((reads * 7919) % 100_000))
    const answer = (): void => {
      this.isReading = false
      if (at + count > this.brokenAt) return done(new Error("A piece is broken"), 0)
      content.copy(into, 0, at, at + count)
      done(null, count)
    }
    if (reads % 3 === 0) setTimeout(answer, 2)
    else setImmediate(answer)
  }

  close(): void {
    this.closes++
    this.isClosedAmidRead ||= this.isReading
  }
}

interface Stage extends RunningFront {
  readonly sources: Array<Pieces>
  readonly sent: Array<readonly [bytes: number, isWhole: boolean]>
  readonly logged: Array<string>
  readonly replies: Array<RawReply>
}

/** A front that answers `/made/<from>-<to>`, or `/made/<from>-<to>-<broken at>`. */
const staged = (
  engine: Engine,
  use: (stage: Stage) => Promise<void>,
  limits: TestFrontOptions["limits"] = {}
): Promise<void> => {
  const heard = {
    sources: new Array<Pieces>(),
    sent: new Array<readonly [number, boolean]>(),
    logged: new Array<string>(),
    replies: new Array<RawReply>()
  }
  const route: RawRoute = {
    methods: ["GET", "POST"],
    path: "/made/:range",
    cors: "open",
    maxBodyBytes: 1024,
    handle: (request, _, reply) => {
      const [from = 0, to = 0, brokenAt] = (request.params["range"] ?? "").split("-").map(Number)
      const source = new Pieces(from, to, brokenAt)
      heard.sources.push(source)
      heard.replies.push(reply)
      reply.sendSource(200, [["Content-Type", "x/y"]], source, (bytes, isWhole) =>
        heard.sent.push([bytes, isWhole])
      )
    }
  }
  const options = { engine, raw: [route], limits, log: (line: string) => void heard.logged.push(line) }
  return withFront(options, (front) => use({ ...front, ...heard }))
}

const get = (range: string): string => `GET /made/${range} HTTP/1.1\r\nHost: x\r\n\r\n`
const whole = `0-${sizeBytes}`

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))
const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await pause(5)
}

const bodyOf = async (client: RawClient, length: number): Promise<Buffer> => {
  const text = await client.until((heard) => heard.includes("\r\n\r\n"))
  const start = text.indexOf("\r\n\r\n") + 4
  return (await client.untilBytes(start + length)).subarray(start)
}

const areClosedOnce = (sources: ReadonlyArray<Pieces>): boolean => sources.every(({ closes }) => closes === 1)

describe.each(engines)("answers out of sources on %s", (engine) => {
  it("are the bytes of the range, with their length, on a connection that goes on", () =>
    staged(engine, async ({ port, sources, sent }) => {
      const client = await RawClient.open(port)
      let before = 0
      for (const [from, to] of [
        [0, sizeBytes],
        [17, 2_000_000],
        [5, 5]
      ] as const) {
        await client.send(get(`${from}-${to}`))
        await client.until((text) => text.indexOf("\r\n\r\n", before) > 0)
        const start = client.text.indexOf("\r\n\r\n", before) + 4
        assert.match(client.text.slice(before, start), new RegExp(`content-length: ${to - from}\r\n`, "i"))
        assert.notMatch(client.text.slice(before, start), /transfer-encoding/i)
        const all = await client.untilBytes(start + to - from)
        assert.strictEqual(sha256(all.subarray(start)), sha256(content.subarray(from, to)))
        before = start + to - from
      }
      client.destroy()
      await until(() => areClosedOnce(sources))
      assert.deepStrictEqual(sent, [
        [sizeBytes, true],
        [1_999_983, true],
        [0, true]
      ])
    }))

  it("are not read for HEAD, and closed", () =>
    staged(engine, async ({ port, sources }) => {
      const client = await RawClient.open(port)
      await client.send(get(whole).replace("GET", "HEAD"))
      const text = await client.until((heard) => heard.includes("\r\n\r\n"))
      assert.match(text, new RegExp(`content-length: ${sizeBytes}\r\n`, "i"))
      assert.deepStrictEqual(
        sources.map(({ closes, reads }) => [closes, reads]),
        [[1, 0]]
      )
      client.destroy()
    }))

  it("share few blocks between readers and clients who take nothing, whose pieces are read again", () =>
    staged(
      engine,
      async ({ port, sources, sent }) => {
        const stalled = await Promise.all(Array.from({ length: 6 }, () => RawClient.open(port)))
        for (const client of stalled) {
          client.socket.pause()
          await client.send(get(whole))
        }
        await until(() => sources.length === stalled.length)
        await pause(100)
        const readers = await Promise.all(Array.from({ length: 3 }, () => RawClient.open(port)))
        for (const client of readers) await client.send(get(whole))
        for (const client of [...readers, ...stalled]) {
          client.socket.resume()
          assert.strictEqual(sha256(await bodyOf(client, sizeBytes)), sha256(content))
          client.destroy()
        }
        await until(() => sent.length === 9 && areClosedOnce(sources))
        assert.isTrue(sent.every(([, isWhole]) => isWhole))
      },
      { fileBlocks: 2, fileBlockBytes: 64 * 1024 }
    ))

  it("end the connection where a piece cannot be had, which is reported", () =>
    staged(engine, async ({ logged, port, sent, sources }) => {
      const client = await RawClient.open(port)
      await client.send(get(`${whole}-1000000`))
      await client.closed()
      assert.strictEqual(statusOf(client.text), 200)
      assert.isBelow(client.receivedBytes, 1_001_000)
      await until(() => sent.length === 1 && areClosedOnce(sources))
      assert.isFalse(sent[0]?.[1])
      assert.isTrue(logged.some((line) => line.includes("A piece is broken")))
    }))

  it("are closed when nothing of them is being read, where they are cut or their client leaves", () =>
    staged(engine, async ({ port, replies, sent, sources }) => {
      for (const end of ["cut", "leave"]) {
        const client = await RawClient.open(port)
        const before = sources.length
        await client.send(get(whole))
        await until(() => (sources[before]?.reads ?? 0) > 3)
        if (end === "cut") replies[before]?.cut()
        else client.destroy()
        await client.closed()
        await until(() => sent.length === before + 1 && sources[before]?.closes === 1)
        assert.isFalse(sent[before]?.[1])
      }
      await pause(50)
      assert.isTrue(areClosedOnce(sources))
      assert.isFalse(sources.some(({ isClosedAmidRead }) => isClosedAmidRead))
    }))
})
