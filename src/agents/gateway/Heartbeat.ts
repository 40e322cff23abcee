import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import { closeCodes } from "#schemas/agents/ServerFrame.ts"
import type { ClientSocket } from "./ClientSocket.ts"
import { refuse, dismiss } from "./CloseFrames.ts"

/** Pings are spread: every second one of so many parts of the sockets gets them. */
const parts = Math.round(agentLimits.pingMillis / 1_000)

/** Checks all sockets with one timer: missing hellos, signs of life, revoked keys. */
export class Heartbeat {
  readonly #parts = Array.from({ length: parts }, () => new Set<ClientSocket>())
  /** in the order in which they came */
  readonly #greeting = new Set<ClientSocket>()
  readonly #isKeyGood: (keyId: string) => boolean
  readonly #revoked: (socket: ClientSocket) => void
  #next = 0
  second = 0

  constructor(isKeyGood: (keyId: string) => boolean, revoked: (socket: ClientSocket) => void) {
    this.#isKeyGood = isKeyGood
    this.#revoked = revoked
  }

  add(socket: ClientSocket): void {
    this.#greeting.add(socket)
    this.#next = (this.#next + 1) % parts
    this.#parts[this.#next]?.add(socket)
  }

  remove(socket: ClientSocket): void {
    this.#greeting.delete(socket)
    for (const part of this.#parts) if (part.delete(socket)) return
  }

  greeted(socket: ClientSocket): void {
    this.#greeting.delete(socket)
  }

  *all(): IterableIterator<ClientSocket> {
    for (const part of this.#parts) yield* part
  }

  /** Runs once a second. `now`: monotonic milliseconds; `epochMillis`: the time in a ping. */
  tick(now: number, epochMillis: number): void {
    this.second++
    for (const socket of this.#greeting) {
      if (now - socket.heardAt < agentLimits.helloMillis) break
      refuse(socket.sink, "hello_required", `No hello within ${agentLimits.helloMillis / 1_000} s`)
    }
    const ping = JSON.stringify({ type: "ping", ts: epochMillis })
    for (const socket of this.#parts[this.second % parts] ?? []) {
      if (!socket.isRelayed) socket.sink.send(ping)
    }
    this.#look(now)
  }

  /** The server ends: sessions go on elsewhere, or here again. */
  sayGoodbye(): void {
    for (const socket of Array.from(this.all()))
      dismiss(socket.sink, "restart", closeCodes.restart, restartMillis)
  }

  /** Closes sockets whose key was revoked, and dead ones. */
  #look(now: number): void {
    const known = new Map<string, boolean>()
    for (const socket of Array.from(this.all())) {
      const { id } = socket.key
      const isGood = known.get(id) ?? this.#isKeyGood(id)
      known.set(id, isGood)
      if (!isGood) this.#revoked(socket)
      else if (!socket.isRelayed && now - socket.heardAt >= agentLimits.deadMillis) socket.expire()
    }
  }
}

/** A client's pause before it comes back to a server that restarts. */
const restartMillis = 1_000
