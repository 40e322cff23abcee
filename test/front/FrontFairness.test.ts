import { openAiError } from "#schemas/core/Problem.ts"
import { assert, describe, it } from "@effect/vitest"
import type { HotRoute } from "#src/front/HotRoute.ts"
import { RawClient, statusOf } from "./RawClient.ts"
import { type Engine, engines, withFront } from "./TestFront.ts"

/** Knows users by a header, and refuses who has none. */
const route: HotRoute = {
  method: "POST",
  path: "/hot",
  maxBodyBytes: 1_000_000,
  headers: ["x-user"],
  cors: "open",
  errors: openAiError,
  admit: (request) => {
    const userId = request.header("x-user")
    if (userId === "stranger") return { _tag: "Unknown" }
    if (userId !== "") return { _tag: "Known", userId }
    return { _tag: "Refused", answer: (reply) => reply.send(401, [["X-Why", "no user"]], "who are you?") }
  },
  handle: (request, body, reply) => reply.send(202, [], `${request.header("x-user")} ${body.length}`)
}

const head = (user: string, length: number): string =>
  `POST /hot HTTP/1.1\r\nHost: x\r\n${user === "" ? "" : `X-User: ${user}\r\n`}Content-Length: ${length}\r\n\r\n`

/** A body that is begun and not ended; the front has it when this resolves. */
const begin = async (port: number, user: string, bytes: number): Promise<RawClient> => {
  const client = await RawClient.open(port)
  await client.send(head(user, bytes + 1))
  await client.send("x".repeat(bytes))
  await new Promise((resolve) => setTimeout(resolve, 60))
  return client
}

const whole = async (port: number, user: string, bytes: number): Promise<string> => {
  const client = await RawClient.open(port)
  await client.send(head(user, bytes))
  await client.send("x".repeat(bytes / 2))
  await new Promise((resolve) => setTimeout(resolve, 30))
  await client.send("x".repeat(bytes / 2))
  const heard = await client.until((text) => /\r\n\r\n./s.test(text))
  client.destroy()
  return heard
}

const limits = { hotBodiesBytes: 400_000, strangersBodiesBytes: 200_000, lingerMillis: 200 }

const served = (engine: Engine, use: (port: number) => Promise<void>, more: object = {}) =>
  withFront({ engine, hot: [route], limits: { ...limits, ...more } }, ({ port }) => use(port))

describe.each(engines)("bodies that are still arriving on %s", (engine) => {
  it("are refused unread where their sender may not send them, in the route's own words", () =>
    served(engine, async (port) => {
      const client = await begin(port, "", 300_000)
      const heard = await client.until((text) => text.includes("who are you?"))
      assert.strictEqual(statusOf(heard), 401)
      assert.match(heard, /x-why: no user\r\n/i)
      assert.match(heard, /connection: close\r\n/i)
      client.destroy()
    }))

  it("are heard to their end where they are refused, so that the client hears the answer and may go on", () =>
    served(engine, async (port) => {
      const client = await begin(port, "", 50_000)
      await client.send("x")
      assert.strictEqual(statusOf(await client.until((text) => text.includes("who are you?"))), 401)
      await client.send(`${head("one", 4)}four`)
      assert.include(await client.until((text) => text.includes("one 4")), " 202 ")
      client.destroy()
    }))

  it("leave room for others, however much one user or all strangers begin", () =>
    served(engine, async (port) => {
      const open: Array<RawClient> = []
      for (let count = 0; count < 6; count++) {
        open.push(await begin(port, "stranger", 90_000))
        open.push(await begin(port, "greedy", 90_000))
      }
      for (const user of ["honest", "another"])
        assert.include(await whole(port, user, 60_000), `${user} 60000`)
      assert.strictEqual(statusOf(await whole(port, "greedy", 90_000)), 503)
      for (const client of open) client.destroy()
      await new Promise((resolve) => setTimeout(resolve, 100))
      assert.include(await whole(port, "greedy", 90_000), "greedy 90000")
    }))

  it("are answered 408 where they come too slowly, and closed", () =>
    served(
      engine,
      async (port) => {
        const client = await begin(port, "one", 100)
        const heard = await client.closed()
        assert.strictEqual(statusOf(heard), 408)
        const { error } = JSON.parse(heard.slice(heard.indexOf("{")))
        assert.deepStrictEqual(error, {
          message: "The request body arrives too slowly",
          type: "invalid_request_error",
          code: null,
          param: null
        })
      },
      { slowUploadWindowMillis: 300, minHotUploadBytesPerSecond: 4_000 }
    ))
})
