import { assert, it } from "@effect/vitest"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import { closeCodes } from "#schemas/agents/ServerFrame.ts"
import { ClientSocket } from "#src/agents/gateway/ClientSocket.ts"
import { Pulse } from "#src/agents/gateway/Pulse.ts"
import { key } from "./SimulatedServer.ts"

it("A socket that is silent is closed when it counts as dead, whenever it is asked for signs of life", () => {
  const pulse = new Pulse(
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
