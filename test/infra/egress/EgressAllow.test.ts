import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { receiving, test, TestNames, withEgress } from "./EgressStage.ts"

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
})
