import { assert, it } from "@effect/vitest"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import { closeCodes } from "#schemas/agents/ServerFrame.ts"
import { ClientSocket } from "#src/agents/gateway/ClientSocket.ts"
import { Heartbeat } from "#src/agents/gateway/Heartbeat.ts"
import { key } from "./SimulatedServer.ts"

it("A socket that is silent is closed when it counts as dead, whenever it is asked for signs of life", () => {
  const pulse = new Heartbeat(
    () => true,
    () => undefined
  )
  const closed = new Map<number, readonly [atMillis: number, code: number]>()
  let now = 0
  for (let index = 0; index < 30; index++) {
    const sink = {
      bufferedBytes: 0,
      send: () => true,
      close: (code: number) => {
        closed.set(index, [now, code])
        socket.closed(code)
      }
    }
    const keeper = {
      framesPerSecond: 100,
      bytesPerSecond: 1_000_000,
      second: () => 0,
      nowMillis: () => now,
      greet: () => undefined,
      end: () => undefined,
      left: (gone: ClientSocket) => pulse.remove(gone)
    }
    const socket = new ClientSocket(keeper, key, sink)
    pulse.add(socket)
    pulse.greeted(socket)
  }
  for (; now < 2 * agentLimits.deadMillis; now += 1_000) pulse.tick(now, 0)
  assert.strictEqual(closed.size, 30)
  for (const end of closed.values()) assert.deepStrictEqual(end, [agentLimits.deadMillis, closeCodes.idle])
})

/** The number of frames of a length that a client can send, within a second or one a second, until it is refused. */
const takenOf = (length: number, isSpread: boolean): number => {
  let second = 0
  let isRefused = false
  const sink = { bufferedBytes: 0, send: () => true, close: () => (isRefused = true) }
  const keeper = {
    framesPerSecond: 100,
    bytesPerSecond: 1_000_000,
    second: () => second,
    nowMillis: () => 0,
    greet: () => undefined,
    end: () => undefined,
    left: () => undefined
  }
  const socket = new ClientSocket(keeper, key, sink)
  const hello = { type: "hello", protocol: 1, client: { version: "1", platform: "t" } }
  socket.received(JSON.stringify({ ...hello, workspace: { root: "/w", name: "w" } }))
  let taken = 0
  while (taken < 200) {
    if (isSpread) second++
    socket.received(JSON.stringify({ type: "pong", ts: 1, ack: 0, text: "x".repeat(length) }))
    if (isRefused) break
    taken++
  }
  return taken
}

it("A client may send so many frames, and so many bytes, in a second", () => {
  assert.strictEqual(takenOf(0, false), 99, "the hello is a frame too")
  assert.strictEqual(takenOf(300_000, false), 3)
  assert.isAbove(takenOf(0, true), 100)
})

it("A client may send no more than some MiB before it was answered", () => {
  assert.strictEqual(takenOf(900_000, true), 4)
})
