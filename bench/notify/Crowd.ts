import { createECDH, randomBytes } from "node:crypto"
import { Agent } from "undici"
import { move, serverCore } from "#bench/harness/Cores.ts"
import { metered } from "#bench/harness/Meter.ts"
import { type BenchCase, type Measurement, sized } from "#bench/harness/Suite.ts"
import type { PushTarget } from "#streams/notify/channels/Channel.ts"
import { curveName, encryptPush } from "#streams/notify/channels/PushEncryption.ts"
import { pushPayload } from "#streams/notify/channels/PushRequest.ts"
import { Vapid } from "#streams/notify/channels/Vapid.ts"
import { arrivalsAt, resetSink } from "./PushSink.ts"
import { nowMillis, noticeOf, subject } from "./Push.ts"
import { type Given, newKey, postgresMillis, send, untilQuiet } from "./Stage.ts"

/** One message to each of a crowd of browsers. */
type Run = BenchCase<Given>["run"]

const payloadBytes = 400

/** The limit: encrypt and POST in a loop without a store, over 64 connections. */
export const loop: Run = async ({ given }) => {
  move(process.pid, serverCore)
  const { crowdSize, sinkPort } = given
  const vapid = new Vapid({ secret: randomBytes(32), subject })
  const origin = `http://127.0.0.1:${sinkPort}`
  const curve = createECDH(curveName)
  const targets = Array.from({ length: crowdSize }, (_, n): PushTarget => ({
    endpoint: `${origin}/push/loop-${n}`,
    p256dh: curve.generateKeys("base64url", "uncompressed"),
    auth: randomBytes(16).toString("base64url")
  }))
  const payload = pushPayload(noticeOf(payloadBytes))
  const agent = new Agent({ connections: 64, pipelining: 1 })
  const post = async (target: PushTarget): Promise<void> => {
    const { pathname } = new URL(target.endpoint)
    const answer = await agent.request({
      origin,
      path: pathname,
      method: "POST",
      headers: {
        authorization: vapid.authorization(origin, nowMillis),
        "content-encoding": "aes128gcm",
        "content-type": "application/octet-stream",
        ttl: "259200",
        urgency: "high"
      },
      body: encryptPush(payload, target)
    })
    await answer.body.dump()
    if (answer.statusCode !== 201) throw new Error(`the sink answered ${answer.statusCode}`)
  }
  const each = async (some: ReadonlyArray<PushTarget>): Promise<void> => {
    let next = 0
    const one = async (): Promise<void> => {
      for (let target = some[next++]; target !== undefined; target = some[next++]) await post(target)
    }
    await Promise.all(Array.from({ length: 64 }, one))
  }
  // Compiled by then.
  await each(targets.slice(0, Math.min(2_000, crowdSize)))
  await resetSink(sinkPort)
  const [before, startedAt] = [process.cpuUsage(), performance.now()]
  await each(targets)
  const elapsedMillis = performance.now() - startedAt
  const { system, user } = process.cpuUsage(before)
  await agent.close()
  return { work: crowdSize, elapsedMillis, cpuMillis: (user + system) / 1_000, result: String(crowdSize) }
}

const once = async (given: Given, key: string): Promise<number> => {
  const { crowdSize, sinkPort } = given
  await untilQuiet(given)
  await resetSink(sinkPort)
  const startedAt = performance.now()
  const [{ names }] = await Promise.all([arrivalsAt(sinkPort, crowdSize), send(given, key)])
  const elapsedMillis = performance.now() - startedAt
  const different = new Set(names).size
  if (different !== crowdSize) throw new Error(`${different} of ${crowdSize} channels got the message`)
  return elapsedMillis
}

/** The whole server: from the POST of the message to the last push, and the CPU of all until nothing is left to do. */
export const server: Run = async (context) => {
  const { given } = context
  const { crowd, crowdSize, pid } = given
  const key = await newKey(given, crowd)
  const times = sized(context, { tiny: 1, quick: 1, full: 10 })
  // Plans, code, connections.
  await once(given, key)
  const storeBefore = postgresMillis(given)
  const { result: millis, use } = await metered(pid, async () => {
    const each: Array<number> = []
    for (let n = 0; n < times; n++) each.push(await once(given, key))
    await untilQuiet(given)
    return each
  })
  const work = times * crowdSize
  const storeMillis = postgresMillis(given) - storeBefore
  const measurement: Measurement = {
    work,
    elapsedMillis: millis.reduce((sum, one) => sum + one, 0),
    use,
    figures: {
      "Postgres µs/push": (storeMillis * 1_000) / work,
      "last to first": (millis.at(-1) ?? 0) / (millis[0] ?? 1)
    },
    result: String(crowdSize)
  }
  return measurement
}
