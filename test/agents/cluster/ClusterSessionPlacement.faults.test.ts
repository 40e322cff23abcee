import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Redacted, Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { HomeAway } from "#src/agents/SessionPlacement.ts"
import { AppConfig } from "#src/Config.ts"
import * as Postgres from "#src/infra/postgres/Postgres.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { ClientSocket, holds, key, type Machine, startMachine } from "./Machine.ts"

describe("two machines that share agent sessions", () => {
  const scope = Scope.makeUnsafe()
  let databaseUrl: string
  let first: Machine
  let second: Machine

  beforeAll(async () => {
    const stores = await Effect.runPromise(Layer.buildWithScope(TestStores.layerEmpty, scope))
    databaseUrl = Context.get(stores, TestStores).databaseUrl
    ;[first, second] = await Promise.all([startMachine(databaseUrl), startMachine(databaseUrl)])
    await settled(first, second)
  })
  afterAll(async () => {
    await second?.stop()
    await first?.stop()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  const settled = (...machines: ReadonlyArray<Machine>): Promise<void> =>
    holds("each session has one home", () => {
      const ids = Array.from({ length: 400 }, (_, index) => `ses_${String(index).padStart(22, "0")}`)
      const isHome = (id: string) => (machine: Machine) => machine.homes.isHere(id)
      return (
        ids.every((id) => machines.filter(isHome(id)).length === 1) &&
        machines.every((machine) => ids.some((id) => isHome(id)(machine)))
      )
    })

  const attach = async (from: Machine, to: Machine, socket = new ClientSocket()) => {
    const sessionId = to.newSession()
    const before = to.clients.length
    const listener = await Effect.runPromise(from.homes.serveThere(sessionId, key, socket))
    await holds("it is served", () => to.clients.length > before)
    const served = to.clients[before]
    assert.isDefined(served)
    return { sessionId, listener, socket, served }
  }

  it("relay frames both ways, in order, as the key that the near machine checked", async () => {
    const { listener, served, socket } = await attach(first, second)
    const frames = Array.from({ length: 1_000 }, (_, index) => `frame ${index} \u{1f680}\n"`)
    for (const frame of frames) listener.received(frame)
    await holds("all came back", () => socket.frames.length === frames.length)
    assert.deepStrictEqual(served.received, frames)
    assert.deepStrictEqual(
      socket.frames,
      frames.map((frame) => `echo ${frame}`)
    )
    assert.deepStrictEqual(served.key, key)
    listener.received(new Uint8Array([1, 2]))
    await holds("a binary frame is told of", () => served.received.at(-1) === 0)
    listener.closed(1000)
    await holds("the end is told of", () => served.closed === 1000)
  })

  it("slow a session down for a client that is slow at the other machine", async () => {
    const { listener, served, socket } = await attach(first, second)
    socket.isSlow = true
    served.sink.send("x".repeat(1_000))
    served.sink.send("y".repeat(500))
    await holds("both arrived", () => socket.frames.length === 2)
    listener.received("after")
    await holds("the home heard of it", () => served.received.includes("after"))
    await holds("the echo arrived", () => socket.frames.length === 3)
    assert.strictEqual(served.sink.bufferedBytes, 1_500 + "echo after".length)
    assert.strictEqual(served.drained, 0)
    socket.bufferedBytes = 0
    listener.drained()
    await holds("the session is told", () => served.drained === 1)
    assert.strictEqual(served.sink.bufferedBytes, 0)
    socket.isSlow = false
    served.sink.send("z")
    await holds("what is taken at once drains at once", () => served.drained === 2)
  })

  it("carry the session's close to the client, behind what it said before", async () => {
    const { listener, served, socket } = await attach(second, first)
    listener.received("last words")
    listener.received("close")
    await holds("it is closed", () => socket.closed !== undefined)
    assert.deepStrictEqual(socket.closed, { code: 4009, reason: "superseded" })
    assert.deepStrictEqual(socket.frames, ["echo last words"])
    assert.strictEqual(served.closed, 4009)
    assert.isTrue(served.sink.send("to nobody"))
    assert.strictEqual(served.sink.bufferedBytes, 0)
  })

  it("drop a client whose frame broke its session, and only it", async () => {
    const one = await attach(first, second)
    const other = await attach(first, second)
    one.listener.received("throw")
    await holds("it is closed", () => one.socket.closed?.code === 1011)
    other.listener.received("still here")
    await holds("the other is served", () => other.socket.frames.includes("echo still here"))
    assert.isUndefined(other.served.closed)
  })

  it("end a session at its home, as its owner asked elsewhere", async () => {
    const sessionId = second.newSession()
    await Effect.runPromise(first.homes.endThere(sessionId))
    assert.include(second.ended, sessionId)
    assert.notInclude(first.ended, sessionId)
  })

  it("keep their sessions while Postgres has closed the connections of their locks", async () => {
    const mine = first.newSession()
    await Effect.runPromise(cutLocks(databaseUrl))
    await holds("it is noticed", () => !first.homes.isHere(mine))
    await holds("it comes back", () => first.homes.isHere(mine))
    await settled(first, second)
    // The other one may still be told of what was its own before the shards were divided.
    assert.isFalse(first.left.some((isGone) => isGone(mine)))
  })

  it("hand sessions to a third when it comes, and take them back as soon as it leaves", async () => {
    first.left.length = second.left.length = 0
    const third = await startMachine(databaseUrl)
    await settled(first, second, third)
    const moved = third.newSession()
    const told = await attach(first, third)
    const cut = await attach(first, third)
    const far = await attach(third, first)
    await holderOf(moved, first, second)
    await Effect.runPromise(third.homes.depart)
    assert.isFalse(third.homes.isHere(moved))
    await settled(first, second)
    told.served.sink.close(1012, "restart")
    await holds("its last words still arrive", () => told.socket.closed?.reason === "restart")
    assert.isUndefined(cut.socket.closed)
    await third.stop()
    await holds("clients of its sessions are told that it is gone", () => cut.socket.closed?.code === 1012)
    await holds("sessions of its clients are told", () => far.served.closed === 1006)
  })

  it("find no home any more when they have left", async () => {
    const sessionId = second.newSession()
    await Effect.runPromise(first.homes.depart)
    const error = await Effect.runPromise(
      Effect.flip(first.homes.serveThere(sessionId, key, new ClientSocket()))
    )
    assert.instanceOf(error, HomeAway)
  })
})

/** The one of two that told its gateway that the session is gone. */
const holderOf = async (sessionId: string, one: Machine, other: Machine): Promise<Machine> => {
  const has = (machine: Machine) => machine.left.some((isGone) => isGone(sessionId))
  await holds("its home of before was left", () => has(one) || has(other))
  return has(one) ? one : other
}

/** Ends the connections that hold advisory locks. */
const cutLocks = (databaseUrl: string) =>
  Effect.flatMap(
    SqlClient,
    (sql) => sql`
      SELECT pg_terminate_backend(pid)
      FROM (
        SELECT DISTINCT pid FROM pg_locks
        WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      ) held`
  ).pipe(
    Effect.provide(
      Postgres.layer.pipe(Layer.provide(AppConfig.layerOf({ databaseUrl: Redacted.make(databaseUrl) })))
    )
  )
