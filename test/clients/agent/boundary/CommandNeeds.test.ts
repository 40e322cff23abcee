import { assert, describe, it } from "@effect/vitest"
import { needsOf } from "#src/clients/agent/exec/CommandNeeds.ts"
import { everydayCommands } from "./EverydayCommands.ts"

const kindsOf = (command: string): string => needsOf(command).kinds.join(" ")

/** Commands, with what they ask for. Nothing but asking depends on it: the sandbox gives only what was allowed. */
const table: Readonly<Record<string, ReadonlyArray<string>>> = {
  "": [
    "ls -la",
    "git status && git diff HEAD~1",
    "git log --grep commit",
    "git branch",
    "git tag -l",
    "git remote -v",
    "git stash list",
    "npm test",
    "npm run build",
    "npx tsc -p .",
    "node --test",
    "cargo test",
    "grep -rn 'npm install' .",
    "echo git push",
    "cat curl",
    "mkdir install",
    "git config --get user.name",
    "cat > a <<'E'\ncurl x && sudo x\nE\necho b",
    "cat <<-E >a\ngit push\n\tE",
    // to bash a carriage return is a letter
    "x\rcurl y"
  ],
  network: [
    "curl https://x",
    "FOO=1 wget x",
    "ssh host",
    "/usr/bin/curl x",
    "time curl x",
    "a; curl x",
    "(curl x)",
    "true |curl x",
    "echo `curl x`",
    "echo $(curl x)",
    "bash -c 'curl x'",
    "gh pr list",
    "SIGNALBOX_ASK=network make",
    "cu\\rl x",
    "c''url x",
    "git ls-remote",
    "bash <<E\ncurl x\nE"
  ],
  commit: [
    "git add .",
    "git commit -m x",
    "git -C sub commit",
    "git tag v1",
    "git rebase main",
    "git checkout -b x",
    "hg commit",
    "env git commit",
    "xargs git commit",
    "git stash",
    "SIGNALBOX_ASK=commit make release"
  ],
  "network commit": ["git fetch", "git push", "git pull --rebase", "git commit -am x && git push"],
  repository: ["git init", "git config core.hooksPath x", "git remote add o x"],
  "network install": [
    "npm install",
    "npm i left-pad",
    "yarn",
    "pip install x",
    "python3 -m pip install x",
    "apt-get -y install x",
    "pnpm add x",
    "go get x",
    "uv sync",
    "cargo add x"
  ],
  "network commit repository": ["git push -u origin main"],
  "network repository": ["git submodule update --init"]
}

describe("what a command asks for", () => {
  it("is read from its words, through quotes, operators and programs that run others", () => {
    for (const [kinds, commands] of Object.entries(table))
      for (const command of commands) assert.strictEqual(kindsOf(command), kinds, command)
  })

  it("is what it needs, for commands of every day: none too much, none missed", () => {
    const told = Object.values(everydayCommands).flat()
    assert.isAtLeast(new Set(told).size, 120)
    assert.strictEqual(new Set(told).size, told.length)
    const wrong = Object.entries(everydayCommands).flatMap(([kinds, commands]) =>
      commands.flatMap((command) => {
        const { privileged } = needsOf(command)
        const asked = privileged ?? kindsOf(command)
        return asked === kinds ? [] : [`${command}: ${asked || "nothing"} instead of ${kinds || "nothing"}`]
      })
    )
    assert.deepStrictEqual(wrong, [])
  })

  it("is privileged however such a program is reached", () => {
    for (const command of [
      "sudo x",
      "\\sudo x",
      "'sudo' x",
      "a && sudo x",
      "a\nsudo x",
      "nice -n 5 sudo x",
      "eval 'sudo x'",
      "sh -c \"sh -c 'sudo x'\"",
      "timeout 5 su",
      "if true; then sudo x; fi",
      "${X:-`sudo x`}"
    ])
      assert.isDefined(needsOf(command).privileged, command)
    for (const command of ["man sudo", "grep sudo x", "git commit -m 'no su here'", "echo sudo", "ls su"])
      assert.isUndefined(needsOf(command).privileged, command)
  })

  it("is a plain commit only where nothing else is in it", () => {
    for (const command of ["git add . && git commit -m 'a; b & c'", "git status; git commit --amend"])
      assert.isTrue(needsOf(command).isPlainCommit, command)
    for (const command of [
      "git commit -m x; rm x",
      "git commit -m $(x)",
      'git commit -m "`x`"',
      "git commit | x",
      "git commit > x",
      "git -c a=b commit",
      "git commit & x",
      "git add . || x",
      "git commit -m $X",
      "git push",
      "A=b git commit",
      "git log --exec-path=x",
      ""
    ])
      assert.isFalse(needsOf(command).isPlainCommit, command)
  })

  it("is found among any number of commands, and any text is read in time", () => {
    assert.strictEqual(kindsOf(`${"true; ".repeat(5_000)}curl x`), "network")
    for (const text of [
      "$(".repeat(20_000),
      "`".repeat(60_001),
      "'\"".repeat(30_000),
      "(".repeat(60_000),
      "bash -c ".repeat(8_000),
      "\\".repeat(60_001)
    ])
      needsOf(text)
  })
})
