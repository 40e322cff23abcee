import { createSocket } from "node:dgram"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeMxLookup, mxHostsOf } from "#src/mail/transports/MxHosts.ts"

const nameOf = (name: string): Buffer =>
  Buffer.concat([
    ...name
      .split(".")
      .filter((label) => label !== "")
      .map((label) => Buffer.from([label.length, ...Buffer.from(label)])),
    Buffer.from([0])
  ])

/** An answer (RFC 1035 4.1) to the question of a query, with MX records or an error. */
const answerTo = (query: Buffer, code: number, records: ReadonlyArray<readonly [number, string]>): Buffer => {
  const head = Buffer.from(query.subarray(0, 12))
  head.writeUInt16BE(0x8180 | code, 2)
  head.writeUInt16BE(records.length, 6)
  head.writeUInt32BE(0, 8)
  const questionEnd = query.indexOf(0, 12) + 5
  const answers = records.map(([priority, exchange]) => {
    const name = nameOf(exchange)
    const fixed = Buffer.from("c00c000f00010000003c00000000", "hex")
    fixed.writeUInt16BE(2 + name.length, 10)
    fixed.writeUInt16BE(priority, 12)
    return Buffer.concat([fixed, name])
  })
  return Buffer.concat([head, query.subarray(12, questionEnd), ...answers])
}

/** A name server that answers by the first label of the name; "mute" it does not answer. */
const nameServer = Effect.acquireRelease(
  Effect.callback<{ readonly port: number; readonly close: () => void }>((resume) => {
    const socket = createSocket("udp4", (query, { address, port }) => {
      const label = query.subarray(13, 13 + (query[12] ?? 0)).toString()
      const many = Array.from({ length: 9 }, (_, n) => [n, `mx${n}.test`] as const)
      const [code, records] =
        label === "none"
          ? [3, []]
          : label === "broken"
            ? [2, []]
            : [0, label === "null" ? [[0, "."] as const] : label === "many" ? many.toReversed() : []]
      if (label !== "mute") socket.send(answerTo(query, code, records), port, address)
    })
    socket.bind(0, "127.0.0.1", () =>
      resume(Effect.succeed({ port: socket.address().port, close: () => socket.close() }))
    )
  }),
  ({ close }) => Effect.sync(close)
)

describe("the servers of a domain", () => {
  it.live("are those of its MX records in their order, itself without any, or none", () =>
    Effect.gen(function* () {
      const { port } = yield* nameServer
      const lookUp = makeMxLookup({ servers: [`127.0.0.1:${port}`], tryMillis: 300, tries: 1 })
      const hostsOf = (domain: string) => mxHostsOf(lookUp, domain, { own: "client.test", most: 5 })
      assert.deepStrictEqual(yield* hostsOf("many.test"), {
        _tag: "Hosts",
        hosts: ["mx0.test", "mx1.test", "mx2.test", "mx3.test", "mx4.test"]
      })
      assert.deepStrictEqual(yield* hostsOf("plain.test"), { _tag: "Hosts", hosts: ["plain.test"] })
      for (const [domain, tag, reason] of [
        ["null.test", "None", /null MX/],
        ["none.test", "None", /no such domain/],
        ["broken.test", "Failed", /ESERVFAIL/],
        ["mute.test", "Failed", /ETIMEOUT/]
      ] as const) {
        const found = yield* hostsOf(domain)
        assert.strictEqual(found._tag, tag, domain)
        assert.match("reason" in found ? found.reason : "", reason)
      }
    })
  )
})
