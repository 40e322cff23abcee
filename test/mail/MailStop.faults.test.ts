import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { ask, textAt } from "#test/harness/ApiClient.ts"
import { until } from "#test/harness/Eventually.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { type Sink, startSink } from "./SmtpSink.ts"
import { plain } from "./Stage.ts"

/** A single account's part of the relay's ten connections, and so its transactions under way. */
const atOnce = 8
const recipients = 3 * atOnce

describe("a server that is told to stop while a relay takes its mail", () => {
  const scope = Scope.makeUnsafe()
  let sink: Sink
  let server: ServerProcess

  beforeAll(async () => {
    sink = await Effect.runPromise(startSink().pipe(Scope.provide(scope)))
    const env = { ROOMS: "accounts,mail", SMTP_URL: `smtp://127.0.0.1:${sink.port}` }
    server = await startServer({ env })
  })
  afterAll(async () => {
    await server?.dispose()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  it("ends what is under way, begins nothing more, and hands the rest over after its start", async () => {
    const ended: Array<number> = []
    sink.play({
      moves: {
        end: (nth) => {
          ended.push(nth)
          return { reply: "250 2.0.0 taken\r\n", afterMillis: 5_000 }
        }
      }
    })
    const to = Array.from({ length: recipients }, (_, n) => `r${n}@example.org`).join(",")
    const id = textAt(await ask(server, "POST", "/send", { json: { ...plain, to } }), "message_id")
    await until("all transactions wait for the reply", () =>
      Promise.resolve(ended.length === atOnce ? undefined : `${ended.length}`)
    )
    assert.strictEqual(await server.stop("SIGTERM"), 0, server.output())
    assert.lengthOf(sink.accepted, atOnce)

    sink.play({})
    await server.start()
    const path = `/api/v1/emails/${id}`
    await until("all are sent", async () => {
      const { body } = await ask(server, "GET", path)
      const { recipients: states } = body as {
        readonly recipients: ReadonlyArray<{ readonly status: string }>
      }
      return states.every(({ status }) => status === "sent") ? undefined : JSON.stringify(states)
    })
    const { attempts } = (await ask(server, "GET", `${path}/attempts`)).body as {
      readonly attempts: ReadonlyArray<{ readonly outcome: string }>
    }
    assert.deepStrictEqual(
      attempts.map(({ outcome }) => outcome),
      Array.from({ length: recipients }, () => "sent")
    )
    assert.lengthOf(sink.accepted, recipients)
    assert.strictEqual(new Set(sink.accepted.map((one) => one.to.join())).size, recipients)
  })
})
