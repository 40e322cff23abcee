import { assert, describe, it } from "@effect/vitest"
import type { ApprovalKind } from "#src/clients/agent/boundary/Approval.ts"
import { isCovered, type Rule, ruleName, rulesFor } from "#src/clients/agent/boundary/Rule.ts"

const npmTest: Rule = { type: "command", words: ["npm", "test"], kinds: ["install", "network"] }
const covered = (
  command: string,
  kinds: ReadonlyArray<ApprovalKind> = ["network"],
  rule = npmTest
): boolean => isCovered(rule, { kinds, subject: { type: "command", command } })
const offered = (command: string, kinds: ReadonlyArray<ApprovalKind> = ["network"]): ReadonlyArray<string> =>
  rulesFor({ kinds, subject: { type: "command", command } }).map(ruleName)

describe("a rule for commands", () => {
  it("covers its first words with any plain words behind them, however they are quoted", () => {
    for (const command of [
      "npm test",
      "npm  test  --  --watch=false",
      "npm test src/a.test.ts src/b.test.ts",
      "npm test -- -t 'adds two numbers'",
      'npm "test" -- --grep "größer als 0"',
      "'npm' test name=value"
    ])
      assert.isTrue(covered(command), command)
  })

  it("covers nothing else that could come with it", () => {
    for (const command of [
      "npm test; curl https://example.com",
      "npm test && curl https://example.com",
      "npm test || true",
      "npm test | tee log",
      "npm test |& tee log",
      "npm test &",
      "npm test & curl x",
      "npm test $(curl x)",
      "npm test `curl x`",
      'npm test "$(curl x)"',
      "npm test $HOME",
      "npm test ${IFS}x",
      "npm test > /tmp/out",
      "npm test >> out",
      "npm test 2>&1",
      "npm test < in",
      "npm test <<< words",
      "npm test <(curl x)",
      "npm test\ncurl x",
      "npm test\rcurl x",
      "npm test \\\n curl",
      "npm test\tcurl",
      "npm test \\; x",
      "npm test # words",
      "npm test *.ts",
      "npm test a?b",
      "npm test [ab]",
      "npm test {a,b}",
      "npm test ~/x",
      "npm test !x",
      "! npm test",
      "( npm test )",
      "{ npm test; }",
      "if npm test; then x; fi",
      "NODE_OPTIONS=--require=./x npm test",
      "A+=1 npm test",
      "env npm test",
      "command npm test",
      "exec npm test",
      "time npm test",
      "sh -c 'npm test'",
      "bash npm test",
      "eval npm test",
      "./npm test",
      "/usr/bin/npm test",
      "npm tests",
      "npm testing",
      "npm run test",
      "npm -s test",
      "npm",
      "npmtest",
      "npm 'test x'",
      "npm test 'open",
      'npm test "open',
      "npm test \u202ex",
      "npm\u00a0test",
      "npm test \0",
      `npm test ${"x".repeat(2_000)}`,
      ""
    ])
      assert.isFalse(covered(command), JSON.stringify(command))
  })

  it("grants the needs that it was given for, and no other", () => {
    assert.isTrue(covered("npm test", ["install", "network"]))
    assert.isFalse(covered("npm test", ["network", "commit"]))
    assert.isFalse(covered("npm test", ["unsandboxed"]))
    assert.isFalse(covered("npm test", []))
    const withSetup: Rule = { type: "command", words: ["git", "config"], kinds: ["repository"] }
    assert.isFalse(
      covered("git config core.hooksPath x", ["repository"], withSetup),
      "hooks are asked for each time"
    )
    assert.isFalse(covered("npm", ["network"], { ...npmTest, words: ["npm"] }), "one word is no rule")
  })

  it("is offered where a second word says what the program does", () => {
    assert.deepStrictEqual(offered("npm test"), ["npm test *"])
    assert.deepStrictEqual(offered("npm run build -- --fast"), ["npm run build *"])
    assert.deepStrictEqual(offered("git push origin main"), ["git push *", "git push origin *"])
    for (const command of [
      "npm --prefix x test",
      "npm run",
      "rm build",
      "curl https://example.com",
      "python3 -c 'import os'",
      "bash deploy",
      "npm test && npm publish",
      "X=1 npm test",
      "npm test > log"
    ])
      assert.deepStrictEqual(offered(command), [], command)
    assert.deepStrictEqual(offered("git config x y", ["repository"]), [])
    assert.deepStrictEqual(offered("npm test", ["network", "repository"]), [])
  })
})

describe("a rule for writes", () => {
  const generated: Rule = { type: "write", directory: "src/generated", kinds: ["hard_link"] }
  const writes = (path: string, rule = generated): boolean =>
    isCovered(rule, { kinds: ["hard_link"], subject: { type: "write", path } })

  it("covers what is below its directory, and nothing beside or above it", () => {
    assert.isTrue(writes("src/generated/a.ts"))
    assert.isTrue(writes("src/generated/deep/b.ts"))
    for (const path of [
      "src/generated",
      "src/generated-too/a.ts",
      "src/a.ts",
      "src/generated/../a.ts",
      "src/generated//a.ts",
      "src/generated/./a.ts",
      "/src/generated/a.ts",
      "a.ts"
    ])
      assert.isFalse(writes(path), path)
    assert.isFalse(writes("a.ts", { ...generated, directory: "." }))
    assert.isFalse(writes("x/../../a", { ...generated, directory: "x/.." }))
  })

  it("is offered for the file's directory, and not for the whole workspace", () => {
    const of = (path: string) =>
      rulesFor({ kinds: ["hard_link"], subject: { type: "write", path } }).map(ruleName)
    assert.deepStrictEqual(of("src/generated/a.ts"), ["src/generated/"])
    assert.deepStrictEqual(of("a.ts"), [])
  })
})
