import { setTimeout as pause } from "node:timers/promises"
import { generateKeyPairSync } from "node:crypto"
import { createTransport } from "nodemailer"
import { move, serverCore } from "#bench/harness/Cores.ts"
import { load } from "#bench/harness/HttpLoad.ts"
import { metered } from "#bench/harness/Meter.ts"
import { type BenchCase, type CaseContext, sized } from "#bench/harness/Suite.ts"
import { arrivedAt, resetSink } from "./Sink.ts"
import {
  type Given,
  mail,
  portOf,
  postgresMillis,
  sendRequest,
  signedDomain,
  withSentCount,
  withServer
} from "./Stage.ts"

/** Signed mails, one after the other into the hands of a relay, over 10 connections. */
type Run = BenchCase<Given>["run"]

const countOf = (context: CaseContext): number => sized(context, { tiny: 20, quick: 2_000, full: 10_000 })

/** The limit: nodemailer's own pool, which keeps nothing. */
export const pooled: Run = async (context) => {
  const { given } = context
  move(process.pid, serverCore)
  const { privateKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" }
  })
  const pool = createTransport({
    host: "127.0.0.1",
    port: given.sinkPort,
    ignoreTLS: true,
    pool: true,
    maxConnections: 10,
    maxMessages: 100,
    dkim: { domainName: signedDomain, keySelector: "sb1", privateKey }
  })
  const send = (count: number) => Promise.all(Array.from({ length: count }, () => pool.sendMail(mail)))
  await send(sized(context, { tiny: 1, quick: 1_000, full: 4_000 }))
  await resetSink(given.sinkPort)
  const count = countOf(context)
  const [before, startedAt] = [process.cpuUsage(), performance.now()]
  await send(count)
  const elapsedMillis = performance.now() - startedAt
  const { system, user } = process.cpuUsage(before)
  pool.close()
  return {
    work: count,
    elapsedMillis,
    cpuMillis: (user + system) / 1_000,
    result: String((await arrivedAt(given.sinkPort)).count)
  }
}

interface Sender {
  readonly given: Given
  readonly port: number
  readonly sentCount: () => Promise<number>
}

const sendAll = async ({ given, port, sentCount }: Sender, count: number): Promise<void> => {
  const before = await sentCount()
  const { errors, statuses } = await load({
    port,
    connections: 16,
    requests: [sendRequest(given)],
    durationMillis: 120_000,
    count
  })
  if (errors > 0 || statuses["200"] !== count)
    throw new Error(`${errors} errors, ${JSON.stringify(statuses)}`)
  const deadline = performance.now() + 300_000
  for (let sent = 0; sent < count; sent = (await sentCount()) - before) {
    if (performance.now() > deadline) throw new Error(`${sent} of ${count} mails are sent after 300 s`)
    await pause(50)
  }
}

/** The whole server: from the first POST until the row of every recipient says that the relay has the mail. */
export const throughServer: Run = (context) =>
  withServer(context.given, (server) =>
    withSentCount(context.given, async (sentCount) => {
      const { given } = context
      const sender = { given, port: portOf(server), sentCount }
      await sendAll(sender, sized(context, { tiny: 1, quick: 1_000, full: 4_000 }))
      await resetSink(given.sinkPort)
      const count = countOf(context)
      const [before, startedAt] = [postgresMillis(given.stagePid, server.pid()), performance.now()]
      const { use } = await metered(server.pid(), () => sendAll(sender, count))
      const elapsedMillis = performance.now() - startedAt
      return {
        work: count,
        elapsedMillis,
        use,
        figures: {
          "Postgres µs/mail": ((postgresMillis(given.stagePid, server.pid()) - before) * 1_000) / count
        },
        result: String((await arrivedAt(given.sinkPort)).count)
      }
    })
  )
