import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { reasonOf, receiving, test, TestNames, withEgress } from "./EgressStage.ts"

describe("EGRESS_ALLOW", () => {
  /** entry, host, port, whether it opens it */
  const entries = [
    ["127.0.0.1", "127.0.0.1", 80, true],
    ["127.0.0.1", "0x7f.1", 80, true],
    ["127.0.0.1", "127.0.0.2", 80, false],
    ["127.0.0.1", "::ffff:127.0.0.1", 80, false],
    ["127.0.0.0/8", "127.9.9.9", 80, true],
    ["127.0.0.0/8", "128.0.0.1", 80, undefined],
    ["127.5.5.5/8", "127.9.9.9", 80, true],
    ["127.0.0.1:8080", "127.0.0.1", 8080, true],
    ["127.0.0.1:8080", "127.0.0.1", 80, false],
    ["127.0.0.0/8:8080", "127.0.0.9", 8080, true],
    ["127.0.0.0/8:8080", "127.0.0.9", 8081, false],
    ["::1", "[0::1]", 80, true],
    ["[::1]", "::1", 80, true],
    ["[::1]:8080", "::1", 8080, true],
    ["[::1]:8080", "::1", 80, false],
    ["fd00::/8", "fdab::1", 80, true],
    ["fd00::/8", "fe80::1", 80, false],
    ["[fd00::/8]:25", "fdab::1", 25, true],
    ["[fd00::/8]:25", "fdab::1", 80, false],
    ["hooks.corp.test", "hooks.corp.test", 80, true],
    ["Hooks.Corp.Test.", "HOOKS.corp.test.", 80, true],
    ["hooks.corp.test:8080", "hooks.corp.test", 8080, true],
    ["hooks.corp.test:8080", "hooks.corp.test", 80, false],
    ["*.corp.test", "hooks.corp.test", 80, true],
    ["*.corp.test", "a.b.corp.test", 80, true],
    ["*.corp.test:25", "hooks.corp.test", 80, false],
    ["*.corp.test", "corp.test", 80, false],
    ["corp.test", "hooks.corp.test", 80, false],
    ["*.bücher.test", "www.xn--bcher-kva.test", 80, true],
    ["10.0.0.0/8, 127.0.0.1", "both.test", 80, true],
    ["10.0.0.0/8", "both.test", 80, false],
    ["64:ff9b::/96", "64:ff9b::8.8.8.8", 80, true],
    ["64:ff9b::/96", "64:ff9b::10.0.0.1", 80, false],
    ["64:ff9b::/96,10.0.0.0/8", "64:ff9b::10.0.0.1", 80, true],
    ["2002::/16", "2002:7f00:1::1", 80, false],
    ["::/0", "::ffff:127.0.0.1", 80, false],
    ["8.8.8.8", "9.9.9.9", 80, undefined],
    ["8.8.8.8", "8.8.8.8", 80, true]
  ] as const
  const private10 = [["10.0.0.1"]]
  const names = () =>
    new TestNames({
      "hooks.corp.test": private10,
      "a.b.corp.test": private10,
      "corp.test": private10,
      "www.xn--bcher-kva.test": private10,
      "both.test": [["10.0.0.1", "127.0.0.1"]]
    })

  it.live.each(entries)("%s, for %s port %s: %s", ([allow, host, port, isOpen]) =>
    withEgress({ allow, names: names() }, (egress) =>
      Effect.gen(function* () {
        const result = yield* Effect.result(egress.resolve(host, port))
        if (isOpen === false) assert.isTrue(Result.isFailure(result))
        else assert.strictEqual(Result.getOrThrow(result).isAllowed, isOpen === true)
      })
    )
  )

  test(
    "opens http for what it names, and leaves it closed for all else",
    withEgress({ allow: "127.0.0.1" }, (egress) =>
      Effect.gen(function* () {
        const receiver = yield* receiving
        assert.strictEqual((yield* egress.fetch({ url: receiver.origin })).status, 204)
        const refused = yield* Effect.flip(egress.fetch({ url: "http://8.8.8.8/path?secret=1" }))
        assert.strictEqual(
          refused.message,
          "Access to 8.8.8.8 is blocked: not https (EGRESS_ALLOW can open it)"
        )
      })
    )
  )

  test(
    "tells without a look-up where http can be good enough: a name may have an address that is opened",
    Effect.gen(function* () {
      const cases = [
        [
          "hooks.corp.test:8080",
          ["hooks.corp.test:8080"],
          ["hooks.corp.test", "a.hooks.corp.test:8080", "127.0.0.1:8080"]
        ],
        ["*.corp.test", ["a.corp.test", "a.corp.test:8080"], ["corp.test", "10.0.0.1"]],
        ["10.0.0.0/8", ["10.1.2.3", "10.1.2.3:81", "0xa.1", "any.test"], ["127.0.0.1", "[::1]", "8.8.8.8"]],
        ["[fd00::/8]:25", ["[fd00::1]:25", "any.test:25"], ["[fd00::1]", "any.test"]],
        ["localhost", ["localhost", "LOCALHOST."], ["127.0.0.1", "any.test"]]
      ] as const
      for (const [allow, open, closed] of cases)
        yield* withEgress({ allow, names: names() }, (egress) =>
          Effect.sync(() => {
            const isAllowed = (host: string) => egress.isHttpAllowed(new URL(`http://${host}/x`))
            for (const host of open) assert.isTrue(isAllowed(host), `${allow}: ${host}`)
            for (const host of closed) assert.isFalse(isAllowed(host), `${allow}: ${host}`)
          })
        )
    })
  )

  test(
    "is asked about names once more where they are looked up: http is refused without an opened address",
    withEgress(
      { allow: "10.0.0.0/8", names: new TestNames({ "a.test": [["10.0.0.1"]], "b.test": [["8.8.8.8"]] }) },
      (egress) =>
        Effect.gen(function* () {
          const outcome = (url: string) => Effect.map(Effect.result(egress.check(url)), reasonOf)
          assert.strictEqual(yield* outcome("http://a.test/"), "reached")
          assert.strictEqual(yield* outcome("http://b.test/"), "not https")
          assert.strictEqual(yield* outcome("https://b.test/"), "reached")
          assert.strictEqual(yield* outcome("https://me@b.test/"), "credentials in the URL")
          assert.strictEqual(yield* outcome("ftp://b.test/"), "not https")
          assert.strictEqual(yield* outcome("b.test"), "not a URL")
          assert.strictEqual(yield* outcome("https://unknown.test/"), "name")
        })
    )
  )
})
