import { createServer as createHttpsServer } from "node:https"
import type { AddressInfo, Socket } from "node:net"
import { gzipSync } from "node:zlib"
import { setTimeout as sleep } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Egress } from "#src/infra/egress/Egress.ts"
import type { EgressRequest } from "#src/infra/egress/Fetch.ts"
import { certificateFor } from "#test/harness/Certificate.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { rawServer, receiving, type StageOptions, test, TestNames, withEgress } from "./EgressStage.ts"

const open: StageOptions = { allow: "127.0.0.1" }

/** How a request fails. */
const failing = (egress: Egress["Service"], request: EgressRequest) =>
  Effect.map(Effect.flip(egress.fetch(request)), (error) => {
    const [kind, words] =
      error._tag === "EgressFailed" ? [error.kind, error.problem] : ["refused", error.message]
    return `${kind}: ${words}`
  })

describe("a request", () => {
  test(
    "is sent as it was given, and its answer comes back whole",
    Effect.gen(function* () {
      const receiver = yield* receiving
      receiver.next({ status: 418, headers: { "x-tea": "green" }, body: "short" })
      yield* withEgress(open, ({ fetch }) =>
        Effect.gen(function* () {
          const headers = { "content-type": "text/plain", "webhook-id": "msg_1" }
          const url = `${receiver.origin}/hook?a=1#fragment`
          const answer = yield* fetch({ url, method: "POST", headers, body: "hello" })
          assert.deepStrictEqual(
            [answer.status, answer.isCut, Buffer.from(answer.body).toString()],
            [418, false, "short"]
          )
          assert.deepStrictEqual([answer.header("x-tea"), answer.header("x-none")], ["green", undefined])
          const [received] = receiver.received
          assert.deepInclude(received, { method: "POST", path: "/hook?a=1", body: Buffer.from("hello") })
          assert.deepInclude(received?.headers, {
            "webhook-id": "msg_1",
            "user-agent": "signalbox",
            "accept-encoding": "identity"
          })
          const hosts = [
            { host: "elsewhere.test" },
            { "transfer-encoding": "chunked" },
            { "x-a": "b\r\nc: d" }
          ]
          for (const bad of hosts)
            assert.match(yield* failing({ fetch } as Egress["Service"], { url, headers: bad }), /^request: /)
        })
      )
      assert.lengthOf(receiver.received, 1)
    })
  )

  test(
    "heeds no proxy of the environment",
    Effect.gen(function* () {
      const receiver = yield* receiving
      const proxy = yield* receiving
      const names = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "NODE_USE_ENV_PROXY"]
      const before = names.map((name) => process.env[name])
      for (const name of names) process.env[name] = name === "NODE_USE_ENV_PROXY" ? "1" : proxy.origin
      yield* Effect.addFinalizer(() =>
        Effect.sync(() =>
          names.forEach((name, index) => {
            if (before[index] === undefined) delete process.env[name]
            else process.env[name] = before[index]
          })
        )
      )
      yield* withEgress(open, ({ fetch }) => fetch({ url: receiver.origin }))
      assert.deepStrictEqual([receiver.received.length, proxy.received.length], [1, 0])
    })
  )

  test(
    "goes to no URL with credentials, of another scheme, or that is none",
    withEgress({ allow: "0.0.0.0/0" }, (egress) =>
      Effect.gen(function* () {
        const refused = [
          ["https://user:secret@127.0.0.1/path", "Access to 127.0.0.1 is blocked: credentials in the URL"],
          ["https://user@127.0.0.1/", "Access to 127.0.0.1 is blocked: credentials in the URL"],
          ["ftp://127.0.0.1/path", "Access to 127.0.0.1 is blocked: not https (EGRESS_ALLOW can open it)"],
          ["file:///etc/passwd", "Access to this address is blocked: not https (EGRESS_ALLOW can open it)"],
          ["data:,x", "Access to this address is blocked: not https (EGRESS_ALLOW can open it)"],
          ["/path?secret", "Access to this address is blocked: not a URL"],
          ["https://[fe80::1%25eth0]/secret", "Access to this address is blocked: not a URL"],
          ["https://a..b/secret", 'Access to "a..b" is blocked: not a host name']
        ] as const
        for (const [url, words] of refused)
          assert.strictEqual(yield* failing(egress, { url }), `refused: ${words}`)
      })
    )
  )

  test(
    "shares a kept connection with its origin, whose connections are bounded",
    Effect.gen(function* () {
      const receiver = yield* receiving
      const sockets = new Set<unknown>()
      let [now, most] = [0, 0]
      receiver.otherwise = async (_, response) => {
        most = Math.max(most, ++now)
        sockets.add(response.socket)
        await sleep(10)
        now--
        response.end()
      }
      const names = new TestNames({ "kept.test": [["127.0.0.1"]] })
      const limits = { egressConnectionsPerOrigin: 2 }
      const url = receiver.origin.replace("127.0.0.1", "kept.test")
      yield* withEgress({ ...open, names, limits }, ({ fetch }) =>
        Effect.all(
          Array.from({ length: 8 }, () => fetch({ url })),
          { concurrency: 8 }
        )
      )
      assert.deepStrictEqual([most, sockets.size], [2, 2])
      assert.lengthOf(names.asked, 4)
    })
  )
})

describe("redirects", () => {
  test(
    "are answers, unless they are to be followed",
    Effect.gen(function* () {
      const receiver = yield* receiving
      receiver.otherwise = { redirectTo: "http://10.0.0.5/secret" }
      yield* withEgress(open, (egress) =>
        Effect.gen(function* () {
          const answer = yield* egress.fetch({ url: receiver.origin })
          assert.deepStrictEqual([answer.status, answer.header("location")], [302, "http://10.0.0.5/secret"])
          const followed = yield* failing(egress, { url: receiver.origin, redirects: 1 })
          assert.strictEqual(
            followed,
            "refused: Access to 10.0.0.5 is blocked: private address (EGRESS_ALLOW can open it)"
          )
        })
      )
    })
  )

  /** status, method, the method that follows, whether the body goes along */
  const kinds = [
    [301, "POST", "GET", false],
    [302, "POST", "GET", false],
    [303, "POST", "GET", false],
    [303, "PUT", "GET", false],
    [303, "HEAD", "HEAD", false],
    [301, "PUT", "PUT", true],
    [302, "GET", "GET", false],
    [307, "POST", "POST", true],
    [308, "PUT", "PUT", true]
  ] as const

  test(
    "change method, body and credentials as the Fetch standard has it",
    Effect.gen(function* () {
      const [receiver, elsewhere] = [yield* receiving, yield* receiving]
      yield* withEgress(open, ({ fetch }) =>
        Effect.gen(function* () {
          for (const [status, method, next, hasBody] of kinds) {
            for (const target of [receiver, elsewhere]) {
              receiver.next({ redirectTo: `${target.origin}/there`, status })
              const body = method === "GET" || method === "HEAD" ? {} : { body: "hello" }
              const headers = {
                Authorization: "Bearer secret",
                Cookie: "a=b",
                "content-type": "text/plain",
                "x-kept": "1"
              }
              const answer = yield* fetch({ url: receiver.origin, method, headers, redirects: 3, ...body })
              const received = target.received.at(-1)
              const label = `${status} ${method} ${target === receiver ? "same" : "cross"}`
              assert.deepStrictEqual([answer.url, answer.status], [`${target.origin}/there`, 204], label)
              assert.deepStrictEqual([received?.method, received?.path], [next, "/there"], label)
              assert.strictEqual(String(received?.body), hasBody ? "hello" : "", label)
              const kept = received?.headers ?? {}
              assert.strictEqual(kept["content-type"] !== undefined, hasBody || next === method, label)
              assert.strictEqual(kept.authorization !== undefined, target === receiver, label)
              assert.strictEqual(kept.cookie !== undefined, target === receiver, label)
              assert.strictEqual(kept["x-kept"], "1", label)
            }
          }
        })
      )
    })
  )

  test(
    "are followed so many times, and each is checked anew",
    Effect.gen(function* () {
      const receiver = yield* receiving
      const { port } = new URL(receiver.origin)
      const names = new TestNames({
        "turn.test": [["127.0.0.1"], ["127.0.0.3"]],
        "good.test": [["127.0.0.1"]]
      })
      yield* withEgress({ ...open, names }, (egress) =>
        Effect.gen(function* () {
          const url = `http://good.test:${port}/`
          const to = (redirectTo: string) =>
            Effect.suspend(() => {
              receiver.next({ redirectTo })
              return failing(egress, { url, redirects: 3 })
            })
          const refusals = [
            [`http://[::1]:${port}/`, "::1 is blocked: loopback address"],
            [`//2130706434:${port}/x`, "127.0.0.2 is blocked: loopback address"],
            ["https://localhost/", "localhost is blocked: loopback address"],
            ["https://169.254.169.254/latest", "169.254.169.254 is blocked: link-local address"],
            ["http://8.8.8.8/", "8.8.8.8 is blocked: not https"],
            ["file:///etc/passwd", "this address is blocked: not https"],
            ["javascript:alert(1)", "this address is blocked: not https"]
          ] as const
          for (const [target, words] of refusals)
            assert.strictEqual(yield* to(target), `refused: Access to ${words} (EGRESS_ALLOW can open it)`)
          assert.strictEqual(
            yield* to("http://a:b@good.test/"),
            "refused: Access to good.test is blocked: credentials in the URL"
          )
          assert.strictEqual(yield* to("http://["), "redirect: it redirects to no URL")
          assert.lengthOf(receiver.received, refusals.length + 2)

          receiver.next({ redirectTo: "/back" })
          const turned = yield* failing(egress, { url: `http://turn.test:${port}/`, redirects: 1 })
          assert.strictEqual(
            turned,
            "refused: Access to turn.test is blocked: loopback address (EGRESS_ALLOW can open it)"
          )

          receiver.received.length = 0
          receiver.otherwise = { redirectTo: "/again" }
          const tooFar = yield* failing(egress, { url, redirects: 3 })
          assert.strictEqual(tooFar, "redirect: it redirects more than 3 times")
          assert.lengthOf(receiver.received, 4)
          receiver.otherwise = { status: 302 }
          assert.strictEqual((yield* egress.fetch({ url, redirects: 3 })).status, 302)
        })
      )
    })
  )
})

/** A raw server, which writes when it has the request's first bytes. */
const answering = (write: (socket: Socket) => void) =>
  Effect.map(
    rawServer((socket) => void socket.once("data", () => write(socket))),
    ({ port, sockets }) => ({ url: `http://127.0.0.1:${port}/`, sockets })
  )

/** Writes the piece again and again, as fast as the other side takes it. */
const endlessly = (head: string, piece: string) => (socket: Socket) => {
  socket.write(head)
  const more = (): void => {
    while (socket.writable && socket.write(piece));
    if (socket.writable) socket.once("drain", more)
  }
  more()
}

const ok = "HTTP/1.1 200 OK\r\n"
const early = "HTTP/1.1 103 Early Hints\r\n\r\n"
const drip = (head: string, piece: string) => (socket: Socket) => {
  socket.write(head)
  const timer = setInterval(() => socket.write(piece), 10)
  socket.once("close", () => clearInterval(timer))
}

describe("an answer", () => {
  /** name, server, failure */
  const broken = [
    [
      "headers without end",
      endlessly(ok, "x-more: and more\r\n".repeat(500)),
      /^size: UND_ERR_HEADERS_OVERFLOW/
    ],
    [
      "one header without end",
      endlessly(`${ok}x-more: `, "a".repeat(1_000)),
      /^size: UND_ERR_HEADERS_OVERFLOW/
    ],
    ["headers drop by drop", drip(ok, "x: y\r\n"), /^time: /],
    ["early hints drop by drop", drip("HTTP/1.1 103 Early Hints\r\n", "x: y\r\n"), /^time: /],
    [
      "a flood of early hints",
      endlessly("", early.repeat(100)),
      /^size: an answer of more than 16 early ones/
    ],
    [
      "a body without end",
      endlessly(`${ok}\r\n`, "b".repeat(10_000)),
      /^size: an answer of more than 65536 bytes/
    ],
    [
      "chunks without end",
      endlessly(`${ok}transfer-encoding: chunked\r\n\r\n`, `400\r\n${"c".repeat(0x400)}\r\n`),
      /^size: an answer of more than 65536 bytes/
    ],
    [
      "a body drop by drop",
      drip(`${ok}content-length: 1000000\r\n\r\n`, "d"),
      /^time: no whole answer in 150 ms/
    ],
    ["a body that stops", (socket: Socket) => socket.write(`${ok}content-length: 10\r\n\r\nd`), /^time: /],
    [
      "a body that breaks off",
      (socket: Socket) => socket.end(`${ok}content-length: 10\r\n\r\nd`),
      /^answer: /
    ],
    ["nothing", () => undefined, /^time: /],
    ["an end at once", (socket: Socket) => socket.end(), /^answer: /],
    ["a reset", (socket: Socket) => socket.resetAndDestroy(), /^answer: /],
    ["another protocol", (socket: Socket) => socket.write("220 mail.test ESMTP\r\n"), /^answer: /]
  ] as const

  it.live.each(broken)("that is %s fails, and its connection is closed", ([, write, problem]) =>
    Effect.scoped(
      Effect.gen(function* () {
        const { sockets, url } = yield* answering(write)
        const isLate = problem.source.startsWith("^time")
        const limits = isLate ? { egressTotalMillis: 150, egressHeadersMillis: 100 } : {}
        yield* withEgress({ ...open, limits }, (egress) =>
          Effect.gen(function* () {
            assert.match(yield* failing(egress, { url }), problem)
            yield* eventually(
              "it is closed",
              Effect.sync(() => sockets.size === 0)
            )
          })
        )
      })
    )
  )

  test(
    "may be cut where its beginning is enough, and may be allowed to be longer",
    Effect.gen(function* () {
      const { url } = yield* answering(endlessly(`${ok}\r\n`, "b".repeat(10_000)))
      const receiver = yield* receiving
      receiver.otherwise = { status: 200, body: "e".repeat(100_000) }
      yield* withEgress(open, (egress) =>
        Effect.gen(function* () {
          const { body, isCut } = yield* egress.fetch({ url, isCutAllowed: true, maxBodyBytes: 512 })
          assert.deepStrictEqual([body.length, isCut], [512, true])
          const whole = yield* egress.fetch({ url: receiver.origin, maxBodyBytes: 100_000 })
          assert.deepStrictEqual([whole.body.length, whole.isCut], [100_000, false])
          assert.match(yield* failing(egress, { url: receiver.origin, maxBodyBytes: 99_999 }), /^size: /)
        })
      )
    })
  )

  test(
    "that is compressed stays so: a bomb is as large as it was sent",
    Effect.gen(function* () {
      const bomb = gzipSync(Buffer.alloc(20_000_000))
      const receiver = yield* receiving
      receiver.otherwise = { status: 200, headers: { "content-encoding": "gzip" }, body: bomb }
      yield* withEgress(open, ({ fetch }) =>
        Effect.gen(function* () {
          const answer = yield* fetch({ url: receiver.origin })
          assert.deepStrictEqual(Buffer.from(answer.body), bomb)
          assert.strictEqual(answer.header("content-encoding"), "gzip")
        })
      )
    })
  )
})

describe("https", () => {
  test(
    "checks the certificate against the name, whatever the environment says",
    Effect.gen(function* () {
      const certificate = certificateFor(["good.test"])
      const server = createHttpsServer(certificate, (_, response) => void response.end("secure"))
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () => Effect.sync(() => server.close())
      )
      const { port } = server.address() as AddressInfo
      const names = new TestNames({ "good.test": [["127.0.0.1"]], "wrong.test": [["127.0.0.1"]] })
      yield* withEgress({ ...open, names, certificates: certificate.cert }, (egress) =>
        Effect.gen(function* () {
          const answer = yield* egress.fetch({ url: `https://GOOD.test.:${port}/` })
          assert.strictEqual(Buffer.from(answer.body).toString(), "secure")
          const { NODE_TLS_REJECT_UNAUTHORIZED: before = "1" } = process.env
          process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0"
          yield* Effect.addFinalizer(() =>
            Effect.sync(() => void (process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = before))
          )
          assert.match(
            yield* failing(egress, { url: `https://wrong.test:${port}/` }),
            /^tls: ERR_TLS_CERT_ALTNAME/
          )
          assert.match(
            yield* failing(egress, { url: `https://127.0.0.1:${port}/` }),
            /^tls: ERR_TLS_CERT_ALTNAME/
          )
          assert.match(yield* failing(egress, { url: `http://good.test:${port}/` }), /^answer: /)
        })
      )
    })
  )
})
