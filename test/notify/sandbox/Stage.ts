import { connect } from "node:net"
import { it } from "@effect/vitest"
import { Effect } from "effect"
import type { ChannelsSandboxOptions } from "#src/notify/sandbox/ChannelsSandbox.ts"
import { type SandboxClient, startSandbox } from "./SandboxClient.ts"
import { Sender } from "./Sender.ts"

interface SandboxStage {
  readonly sandbox: SandboxClient
  readonly sender: Sender
}

/** A test with a sandbox of its own and a sender. */
export const test = (
  name: string,
  body: (stage: SandboxStage) => Promise<void>,
  options: ChannelsSandboxOptions = {}
) =>
  it.live(name, () =>
    Effect.scoped(
      Effect.flatMap(startSandbox(options), (sandbox) =>
        Effect.promise(() => body({ sandbox, sender: new Sender() }))
      )
    )
  )

/** A clock for the sandbox that goes on when it is told to. */
export const manualClock = () => {
  let millis = Date.now()
  return { nowMillis: () => millis, pass: (more: number) => void (millis += more) }
}

export const bytesOfText = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text))

/** How a promise ended: its value, or the message of its failure. */
export const endOf = <A>(promise: Promise<A>): Promise<A | string> =>
  promise.then(
    (value) => value,
    (error: Error) => error.message
  )

/** All that comes back to raw bytes, until the connection ends or is silent for a while. */
export const raw = (origin: string, bytes: string | Uint8Array, isEnded = false): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect(Number(new URL(origin).port), "127.0.0.1")
    let text = ""
    socket.on("data", (chunk) => {
      text += String(chunk)
      socket.end()
    })
    socket.on("error", () => resolve(text))
    socket.on("close", () => resolve(text))
    socket.write(bytes, () => {
      if (isEnded) socket.end()
    })
  })
