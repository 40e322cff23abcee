import { closeSync, fstatSync, ftruncateSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { RawReply, RawRoute } from "#src/front/RawRoute.ts"
import { RawClient, statusOf } from "./RawClient.ts"
import { pattern, sha256 } from "./RawStage.ts"
import { type Engine, engines, type RunningFront, type TestFrontOptions, withFront } from "./TestFront.ts"

const mib = 1024 * 1024
const sizeBytes = 5 * mib + 123

const content = pattern(sizeBytes)
let directory = ""
let path = ""

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "raw-files-"))
  path = join(directory, "file")
  writeFileSync(path, content)
})
afterAll(() => rmSync(directory, { recursive: true }))

interface Sent {
  readonly fd: number
  readonly bytes: number
  readonly isWhole: boolean
}

interface Stage extends RunningFront {
  readonly sent: Array<Sent>
  readonly opened: Array<number>
  readonly logged: Array<string>
  /** of the last request */
  reply: RawReply | undefined
  aborts: number
}

/** A front that answers `/file/<from>-<to>` out of the file; `/short` says more than there is. */
const staged = (
  engine: Engine,
  use: (stage: Stage) => Promise<void>,
  limits: TestFrontOptions["limits"] = {}
): Promise<void> => {
  const sent: Array<Sent> = []
  const opened: Array<number> = []
  const logged: Array<string> = []
  const state: { current: Stage | undefined } = { current: undefined }
  const route: RawRoute = {
    methods: ["GET", "POST"],
    path: "/file/:range",
    cors: "open",
    maxBodyBytes: 100 * mib,
    handle: (request, _, reply) => {
      const [from = 0, to = 0] = (request.params["range"] ?? "").split("-").map(Number)
      const fd = openSync(path, "r")
      opened.push(fd)
      if (state.current !== undefined) state.current.reply = reply
      reply.onAbort(() => {
        if (state.current !== undefined) state.current.aborts++
      })
      reply.sendFile(from === 0 ? 200 : 206, [["Content-Type", "x/y"]], { fd, from, to }, (bytes, isWhole) =>
        sent.push({ fd, bytes, isWhole })
      )
    }
  }
  return withFront({ engine, raw: [route], limits, log: (line) => logged.push(line) }, (front) => {
    state.current = { ...front, sent, opened, logged, reply: undefined, aborts: 0 }
    return use(state.current)
  })
}

const get = (from: number, to: number, more = ""): string =>
  `GET /file/${from}-${to} HTTP/1.1\r\nHost: x\r\n${more}\r\n`

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await pause(5)
}

const isOpen = (fd: number): boolean => {
  try {
    return fstatSync(fd).size === sizeBytes
  } catch {
    return false
  }
}

/** The body of the only answer on a connection. */
const bodyOf = async (client: RawClient, length: number): Promise<Buffer> => {
  const text = await client.until((heard) => heard.includes("\r\n\r\n"))
  const start = text.indexOf("\r\n\r\n") + 4
  return (await client.untilBytes(start + length)).subarray(start)
}

describe.each(engines)("answers out of files on %s", (engine) => {
  it("are the bytes of the range, with their length, on a connection that goes on", () =>
    staged(engine, async ({ port, sent, opened }) => {
      const ranges = [
        [0, sizeBytes],
        [1, 2],
        [123_456, 3 * mib],
        [sizeBytes - 1, sizeBytes],
        [0, 0]
      ] as const
      const client = await RawClient.open(port)
      let before = 0
      for (const [from, to] of ranges) {
        await client.send(get(from, to))
        await client.until((text) => text.indexOf("\r\n\r\n", before) > 0)
        const start = client.text.indexOf("\r\n\r\n", before) + 4
        const head = client.text.slice(before, start)
        assert.strictEqual(statusOf(head), from === 0 ? 200 : 206)
        assert.match(head, new RegExp(`content-length: ${to - from}\r\n`, "i"))
        assert.match(head, /content-type: x\/y\r\n/i)
        assert.notMatch(head, /transfer-encoding/i)
        const all = await client.untilBytes(start + to - from)
        assert.strictEqual(sha256(all.subarray(start)), sha256(content.subarray(from, to)))
        before = start + to - from
      }
      client.destroy()
      await until(() => sent.length === ranges.length)
      assert.deepStrictEqual(
        sent.map(({ bytes, isWhole }) => [bytes, isWhole]),
        ranges.map(([from, to]) => [to - from, true])
      )
      await until(() => !opened.some(isOpen))
    }))

  it("are heads alone where HEAD asks", () =>
    staged(engine, async ({ port, opened }) => {
      const client = await RawClient.open(port)
      await client.send(`${get(0, sizeBytes).replace("GET", "HEAD")}${get(1, 3)}`)
      const text = await client.until((heard) => / 206 [^]*\r\n\r\n../.test(heard))
      assert.match(text, new RegExp(`^HTTP/1.1 200 [^]*content-length: ${sizeBytes}\r\n`, "i"))
      assert.strictEqual(text.length, text.lastIndexOf("\r\n\r\n") + 6)
      client.destroy()
      await until(() => !opened.some(isOpen))
    }))

  it("share few blocks between many clients, of whom some take nothing", () =>
    staged(
      engine,
      async ({ port, sent, opened }) => {
        const stalled = await Promise.all(Array.from({ length: 8 }, () => RawClient.open(port)))
        for (const client of stalled) {
          client.socket.pause()
          await client.send(get(0, sizeBytes))
        }
        await until(() => opened.length === stalled.length)
        await pause(100)
        const readers = await Promise.all(Array.from({ length: 6 }, () => RawClient.open(port)))
        for (const client of readers) await client.send(get(0, sizeBytes))
        for (const client of [...readers, ...stalled]) {
          client.socket.resume()
          assert.strictEqual(sha256(await bodyOf(client, sizeBytes)), sha256(content))
          client.destroy()
        }
        await until(() => sent.length === 14 && !opened.some(isOpen))
        assert.isTrue(sent.every(({ isWhole }) => isWhole))
      },
      { fileBlocks: 2, fileBlockBytes: 64 * 1024 }
    ))

  it("end with their client, which the handler hears of once, and close their file", () =>
    staged(engine, async (stage) => {
      const client = await RawClient.open(stage.port)
      client.socket.pause()
      await client.send(get(0, sizeBytes))
      await until(() => stage.opened.length === 1)
      await pause(50)
      client.destroy()
      await until(() => stage.sent.length === 1 && !stage.opened.some(isOpen))
      assert.isFalse(stage.sent[0]?.isWhole)
      assert.strictEqual(stage.aborts, 1)
      assert.isTrue(stage.reply?.aborted)
    }))

  it("drop a client that takes nothing", () =>
    staged(
      engine,
      async ({ port, sent, opened }) => {
        const client = await RawClient.open(port)
        client.socket.pause()
        await client.send(get(0, sizeBytes))
        await until(() => sent.length === 1)
        assert.isFalse(sent[0]?.isWhole)
        await until(() => !opened.some(isOpen))
        client.destroy()
      },
      { stalledStreamMillis: 200 }
    ))

  it("can be cut", () =>
    staged(engine, async (stage) => {
      const client = await RawClient.open(stage.port)
      client.socket.pause()
      await client.send(get(0, sizeBytes))
      await until(() => stage.reply !== undefined)
      await pause(50)
      stage.reply?.cut()
      client.socket.resume()
      await client.closed()
      assert.isBelow(client.receivedBytes, sizeBytes)
      await until(() => stage.sent.length === 1 && !stage.opened.some(isOpen))
    }))

  it("end the connection, and are reported, where the file is shorter than it was said to be", () =>
    staged(engine, async ({ port, sent, opened, logged }) => {
      const client = await RawClient.open(port)
      await client.send(get(0, sizeBytes + 10))
      await client.closed()
      assert.isBelow(client.receivedBytes, sizeBytes + 1000)
      assert.strictEqual(statusOf(client.text), 200)
      await until(() => sent.length === 1 && !opened.some(isOpen))
      assert.deepInclude(sent[0], { bytes: sizeBytes, isWhole: false })
      assert.isTrue(logged.some((line) => line.includes("The file ends 10 bytes before its length")))
    }))

  it("end where a file is cut short while it is read", () =>
    staged(engine, async ({ port, sent }) => {
      const other = join(directory, `cut-${engine}`)
      writeFileSync(other, content)
      const before = path
      path = other
      const client = await RawClient.open(port)
      client.socket.pause()
      await client.send(get(0, sizeBytes))
      await pause(100)
      const fd = openSync(other, "r+")
      ftruncateSync(fd, 10)
      closeSync(fd)
      client.socket.resume()
      await client.closed()
      path = before
      await until(() => sent.length === 1)
      assert.isFalse(sent[0]?.isWhole)
    }))

  it("wait for a body that nobody wanted, and are the last where the client wants no more", () =>
    staged(engine, async ({ port, opened }) => {
      const client = await RawClient.open(port)
      await client.send("POST /file/0-10 HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
      await pause(50)
      assert.strictEqual(client.receivedBytes, 0)
      await client.send(Buffer.alloc(100_000))
      assert.strictEqual((await bodyOf(client, 10)).toString("hex"), content.subarray(0, 10).toString("hex"))
      client.destroy()
      const gone = await RawClient.open(port)
      await gone.send("POST /file/0-10 HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
      await until(() => opened.length === 2)
      gone.destroy()
      const last = await RawClient.open(port)
      await last.send(get(0, 200_000, "Connection: close\r\n"))
      assert.strictEqual(sha256(await bodyOf(last, 200_000)), sha256(content.subarray(0, 200_000)))
      const { receivedBytes } = last
      await last.send(get(0, 7))
      await pause(50)
      assert.strictEqual(last.receivedBytes, receivedBytes)
      last.destroy()
      await until(() => !opened.some(isOpen))
    }))
})
