import { createHash } from "node:crypto"
import type { BodyEnd, RawBody, RawReply, RawRequest, RawRoute } from "#src/front/RawRoute.ts"
import { type Engine, type RunningFront, type TestFrontOptions, withFront } from "./TestFront.ts"

const mib = 1024 * 1024

/** A request that has come to the route of the test. */
export interface Call {
  readonly request: RawRequest
  readonly body: RawBody
  readonly reply: RawReply
  aborts: number
}

/** A front with one route, whose requests are answered by the test. */
export const staged = (
  engine: Engine,
  use: (front: RunningFront, arrival: () => Promise<Call>) => Promise<void>,
  options: Omit<TestFrontOptions, "engine"> & Partial<Pick<RawRoute, "maxBodyBytes">> = {}
): Promise<void> => {
  const calls: Array<Call> = []
  const waiting: Array<(call: Call) => void> = []
  const { maxBodyBytes = 64 * mib, ...rest } = options
  const route: RawRoute = {
    methods: ["POST", "GET"],
    path: "/up/*",
    cors: "open",
    maxBodyBytes,
    handle: (request, body, reply) => {
      const call: Call = { request, body, reply, aborts: 0 }
      reply.onAbort(() => void call.aborts++)
      const next = waiting.shift()
      if (next === undefined) calls.push(call)
      else next(call)
    }
  }
  const arrival = (): Promise<Call> => {
    const call = calls.shift()
    return call === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(call)
  }
  return withFront({ ...rest, engine, raw: [route] }, (front) => use(front, arrival))
}

/** Everything that is pulled until the end, and that end. */
export const drained = async (body: RawBody): Promise<readonly [Buffer, BodyEnd]> => {
  const pieces: Array<Buffer> = []
  for (;;) {
    const piece = await body.pull()
    if (typeof piece === "string") return [Buffer.concat(pieces), piece]
    pieces.push(Buffer.from(piece))
  }
}

/** The head of a request with a body of so many bytes. */
export const head = (bytes: number, more = ""): string =>
  `POST /up/x HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n${more}\r\n`

export const chunkedHead = "POST /up/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

export const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")

const tile = Buffer.from(Array.from({ length: 65_537 }, (_, index) => (index * 31 + (index >> 10)) & 255))

/** Bytes that differ from place to place. */
export const pattern = (length: number): Buffer => Buffer.alloc(length, tile)
