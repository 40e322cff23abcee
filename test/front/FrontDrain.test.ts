import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Response from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { RawClient, statusOf } from "./RawClient.ts"
import { engines, withFront } from "./TestFront.ts"

describe.each(engines)("leaving and stopping on %s", (engine) => {
  it("interrupts the handler's fiber when the client leaves", async () => {
    const started = Deferred.makeUnsafe<void>()
    const interrupted = Deferred.makeUnsafe<string>()
    const handler = Deferred.succeed(started, undefined).pipe(
      Effect.andThen(Effect.never),
      Effect.onInterrupt(() => Deferred.succeed(interrupted, "interrupted"))
    )
    await withFront({ engine, app: HttpRouter.add("GET", "/wait", handler) }, async ({ port }) => {
      const client = await RawClient.open(port)
      await client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
      await Effect.runPromise(Deferred.await(started))
      client.destroy()
      assert.strictEqual(await Effect.runPromise(Deferred.await(interrupted)), "interrupted")
    })
  })

  it("stops a streamed answer when the client leaves", async () => {
    const ended = Deferred.makeUnsafe<string>()
    const endless = Stream.fromEffectRepeat(Effect.succeed(new Uint8Array(64 * 1024))).pipe(
      Stream.onExit((exit) => Deferred.succeed(ended, exit._tag))
    )
    await withFront(
      { engine, app: HttpRouter.add("GET", "/endless", Response.stream(endless)) },
      async ({ port }) => {
        const client = await RawClient.open(port)
        await client.send("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
        await client.untilBytes(1_000_000)
        client.destroy()
        assert.strictEqual(await Effect.runPromise(Deferred.await(ended)), "Failure")
      }
    )
  })

  it("finishes what is in flight, closes its connection, and takes no new one", async () => {
    const started = Deferred.makeUnsafe<void>()
    const release = Deferred.makeUnsafe<void>()
    const app = Layer.mergeAll(
      HttpRouter.add("GET", "/text", Response.text("hello")),
      HttpRouter.add(
        "GET",
        "/slow",
        Deferred.succeed(started, undefined).pipe(
          Effect.andThen(Deferred.await(release)),
          Effect.as(Response.text("finished"))
        )
      )
    )
    await withFront({ engine, app }, async ({ port, stop }) => {
      const idle = await RawClient.open(port)
      await idle.send("GET /text HTTP/1.1\r\nHost: x\r\n\r\n")
      await idle.until((heard) => heard.endsWith("hello"))
      const client = await RawClient.open(port)
      await client.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
      await Effect.runPromise(Deferred.await(started))
      const stopped = stop()
      // Refused once the listener is closed.
      while (
        await RawClient.open(port).then(
          (late) => (late.destroy(), true),
          () => false
        )
      )
        continue
      Deferred.doneUnsafe(release, Effect.void)
      const text = await client.closed()
      assert.strictEqual(statusOf(text), 200)
      assert.isTrue(text.endsWith("finished"))
      assert.match(text, /connection: close/i)
      await stopped
      await idle.closed()
    })
  })

  it("interrupts what is still in flight at the deadline", async () => {
    const started = Deferred.makeUnsafe<void>()
    const interrupted = Deferred.makeUnsafe<void>()
    const handler = Deferred.succeed(started, undefined).pipe(
      Effect.andThen(Effect.never),
      Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined))
    )
    const app = HttpRouter.add("GET", "/wait", handler)
    await withFront({ engine, app, limits: { drainDeadlineMillis: 50 } }, async ({ port, stop }) => {
      const client = await RawClient.open(port)
      await client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
      await Effect.runPromise(Deferred.await(started))
      await stop()
      await Effect.runPromise(Deferred.await(interrupted))
      assert.oneOf(statusOf(await client.closed()), [0, 503])
    })
  })

  it("refuses a port that is taken", () =>
    withFront({ engine }, async ({ port }) => {
      const outcome = await withFront({ engine, port }, async () => "listening").catch(() => "refused")
      assert.strictEqual(outcome, "refused")
    }))
})
