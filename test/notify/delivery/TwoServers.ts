import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { setTimeout as sleep } from "node:timers/promises"
import { assert } from "@effect/vitest"
import { ask } from "#test/harness/ApiClient.ts"
import type { Reaction } from "#test/harness/HttpReceiver.ts"
import type { SeededRandom } from "#test/simulation/Seed.ts"
import type { DeliveryServerOptions } from "./DeliveryServerProcess.ts"

/** One of two servers on a Postgres, which is ended and started again. */
export class Side {
  url = ""
  private readonly options: DeliveryServerOptions
  private child: ReturnType<typeof spawn> | undefined
  private errors = ""

  constructor(options: DeliveryServerOptions) {
    this.options = options
    mkdirSync(options.dataDir, { recursive: true })
  }

  async start(): Promise<void> {
    const child = spawn(
      process.execPath,
      [join(import.meta.dirname, "DeliveryServerProcess.ts"), JSON.stringify(this.options)],
      { stdio: ["ignore", "pipe", "pipe"] }
    )
    this.child = child
    child.stderr?.on("data", (chunk) => (this.errors += String(chunk)))
    const port = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stdout }).on("line", (line) => {
        if (/^\d+$/.test(line)) resolve(line)
      })
      child.once("close", () => reject(new Error(`it ended by itself: ${this.errors}`)))
    })
    this.url = `http://127.0.0.1:${port}`
  }

  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const { child } = this
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const closed = once(child, "close")
    child.kill(signal)
    await closed
    if (signal === "SIGTERM") assert.strictEqual(child.exitCode, 0, this.errors)
  }
}

/** A push or a call that the service took. */
export interface Arrived {
  readonly path: string
  /** the topic of a push, the `webhook-id` of a call */
  readonly id: string
}

/** Takes most of what comes, some milliseconds later. */
export const taking =
  (arrived: Array<Arrived>, random: SeededRandom): Reaction =>
  async ({ headers, path }, response) => {
    await sleep(random.below(15))
    if (random.chance(0.05)) return void response.writeHead(503).end()
    arrived.push({ path, id: String(headers["topic"] ?? headers["webhook-id"]) })
    response.writeHead(204).end()
  }

/** Sends to both servers at once under one key, again and again until one has accepted; answers the accepted ids. */
export const sendTwins = async (
  sides: ReadonlyArray<Side>,
  key: string,
  name: string,
  note: string
): Promise<ReadonlyArray<string>> => {
  for (;;) {
    const tried = await Promise.allSettled(
      sides.map(({ url }) =>
        ask({ url, adminKey: () => key }, "POST", "/api/v1/messages", {
          json: { app: "load", message: name },
          headers: { "idempotency-key": name }
        })
      )
    )
    const answers = tried.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []))
    for (const { body, status } of answers)
      assert.include([201, 503], status, `${JSON.stringify(body)} ${note}`)
    const ids = answers
      .filter(({ status }) => status === 201)
      .map(({ body }) =>
        (body as { readonly messages: ReadonlyArray<{ readonly id: string }> }).messages.map(({ id }) => id)
      )
    for (const other of ids) assert.deepStrictEqual(other, ids[0], `twins made two messages ${note}`)
    if (ids[0] !== undefined) return ids[0]
    await sleep(20)
  }
}
