import { cpSync, rmSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { findBubblewrap } from "#src/clients/agent/exec/Bubblewrap.ts"
import { needsOf } from "#src/clients/agent/exec/CommandNeeds.ts"
import { failureIn, missedNeeds, type Given } from "#src/clients/agent/exec/MissedNeeds.ts"
import { describeWith, requirement } from "#test/harness/Requirement.ts"
import { git, put, withWorkspace, type TestWorkspace } from "./TestWorkspace.ts"

const found = await findBubblewrap("/nonexistent")
const bubblewrap = requirement("bubblewrap", () => ("reason" in found ? found.reason : undefined))

/** A repository with two commits, a branch, a tag, a remote on this disk, something staged, changed and new. */
const repository = ({ base, root }: { readonly base: string; readonly root: string }): void => {
  const other = join(base, "workspace", "other")
  put(join(other, "a"), "a\n")
  git(other, "init", "--quiet")
  git(other, "add", ".")
  git(other, "commit", "--quiet", "-m", "first")
  git(root, "clone", "--quiet", other, "repo")
  const repo = join(root, "repo")
  git(repo, "config", "user.name", "Ada")
  git(repo, "config", "user.email", "ada@example.org")
  put(join(repo, "a"), "b\n")
  git(repo, "commit", "--quiet", "-am", "second")
  git(repo, "branch", "side", "HEAD~1")
  git(repo, "branch", "spare", "HEAD~1")
  git(repo, "tag", "v1")
  put(join(repo, "staged"), "s\n")
  git(repo, "add", "staged")
  put(join(repo, "new"), "n\n")
  put(join(repo, "a.patch"), "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-b\n+c\n")
}

/** Each in a repository of its own, as it ends in the sandbox with what it needs. */
const looks = [
  "git status --short && git diff --cached --stat && git log --oneline && git show HEAD:a",
  "git branch -a && git branch --show-current && git branch --merged main && git tag --list && git describe --tags",
  "git remote -v && git remote get-url origin && git config user.name && git config --list && git config --get user.email",
  "git stash list; git reflog && git worktree list && git submodule status && git symbolic-ref HEAD && git blame a",
  "git apply a.patch && cat a && git clean -fd && git archive -o /tmp/a.tar HEAD && git format-patch -1 -o /tmp",
  "git clone --quiet ../other copy && git -C copy log --oneline && git merge-base main side && git grep -n b"
]
const commits = [
  "git add -A",
  "git commit -m x",
  "git rm --cached a",
  "git mv a c",
  "git restore --staged staged",
  "git reset --hard HEAD~1",
  "git stash",
  "git tag v2",
  "git branch work",
  "git branch -D spare",
  "git apply --index a.patch",
  "git notes add -m x",
  "git fetch ../other",
  "git checkout -b work",
  "git merge -m x side",
  "git gc --quiet"
]
const setups = [
  "git config core.abbrev 9",
  "git config --unset user.name",
  "git remote add o ../other",
  "git branch -m spare other",
  "git branch --set-upstream-to=origin/main",
  "git checkout -b work origin/main",
  "git worktree add ../tree side"
]

const inRepository = (use: (workspace: TestWorkspace) => Promise<void>): Promise<void> =>
  withWorkspace(
    (workspace) => {
      workspace.answer = "once"
      return use(workspace)
    },
    { sandbox: "auto", before: repository }
  )

/** The same command, hidden from the reader of needs. */
const hidden = (command: string): string => command.replace(/^git/, "$(printf git)")

describeWith(bubblewrap, "what a command of git needs", () => {
  it("is enough for it, and nothing where it only looks", () =>
    inRepository(async ({ asked, exec, root }) => {
      for (const command of looks) {
        const { exitCode, output } = await exec(`cd repo; ${command}`)
        assert.strictEqual(exitCode, 0, `${command}: ${output}`)
        git(join(root, "repo"), "checkout", "--quiet", "--", "a")
        put(join(root, "repo", "a.patch"), "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-b\n+c\n")
      }
      assert.deepStrictEqual(asked, [])
    }))

  it("is not less than what it asks for: without it the model is told to ask for it", () =>
    inRepository(async ({ asked, exec }) => {
      for (const [kind, commands] of [
        ["commit", commits],
        ["repository", setups]
      ] as const) {
        for (const command of commands) {
          assert.include(needsOf(command).kinds, kind, command)
          assert.deepStrictEqual(needsOf(hidden(command)).kinds, [])
          const given = kind === "repository" ? "SIGNALBOX_ASK=commit " : ""
          const { output } = await exec(`cd repo && ${given}${hidden(command)}`)
          assert.match(output, new RegExp(`SIGNALBOX_ASK=${kind}`), command)
        }
      }
      assert.strictEqual(asked.length, setups.length)
    }))

  it("is enough for it where the user allows it", () =>
    inRepository(async ({ exec, root }) => {
      for (const command of [...setups, ...commits]) {
        cpSync(join(root, "repo"), join(root, "again"), { recursive: true })
        git(join(root, "again"), "status")
        const { exitCode, output } = await exec(`cd again && ${command}`)
        assert.strictEqual(exitCode, 0, `${command}: ${output}`)
        for (const made of ["again", "tree"]) rmSync(join(root, made), { recursive: true, force: true })
      }
    }))
})

const nothing: Given = { network: false, sockets: false, access: "look" }

/** Messages of programs without a network or a socket, word for word. */
const printed: Readonly<Record<string, ReadonlyArray<string>>> = {
  network: [
    "curl: (6) Could not resolve host: example.org",
    "wget: unable to resolve host address 'example.org'",
    "npm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org",
    "Error: connect ENETUNREACH 1.1.1.1:443",
    "socket.gaierror: [Errno -3] Temporary failure in name resolution",
    "urllib3.exceptions.NameResolutionError: Failed to resolve 'pypi.org'",
    "ssh: Could not resolve hostname github.com: Name or service not known",
    "fatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com",
    'go: example.org/a@v1: Get "https://proxy.golang.org": dial tcp: lookup proxy.golang.org on [::1]:53',
    "error: failed to lookup address information: Temporary failure in name resolution",
    "java.net.UnknownHostException: repo.maven.apache.org",
    "Temporary failure resolving 'deb.debian.org'",
    "Error: connect ECONNREFUSED 127.0.0.1:5432",
    "curl: (7) Failed to connect to localhost port 3000 after 0 ms: Couldn't connect to server"
  ],
  sockets: [
    "Error: listen EAFNOSUPPORT: address family not supported /tmp/tsx-0/2.pipe",
    "OSError: [Errno 97] Address family not supported by protocol",
    "dial unix /w/a.sock: socket: address family not supported by protocol"
  ],
  commit: ["fatal: Unable to create '/w/.git/index.lock': Read-only file system"],
  repository: [
    "error: could not lock config file .git/config: Read-only file system",
    "error: could not write config file .git/config: Device or resource busy",
    "bash: .git/hooks/pre-commit: Read-only file system"
  ]
}

/** The report on a program that printed this. */
const lacked = (text: string, given: Given = nothing): string => missedNeeds("make", text, given)

describe("what a command lacked", () => {
  it("is told by what programs print, and once for each", () => {
    for (const [kind, texts] of Object.entries(printed)) {
      for (const text of texts)
        assert.match(lacked(text), new RegExp(`without ${kind},.*SIGNALBOX_ASK=${kind} `), text)
    }
    assert.match(lacked(Object.values(printed).flat().join("\n")), /=network,sockets,repository /)
  })

  it("is not told of what it had, nor of other failures", () => {
    const all: Given = { network: true, sockets: true, access: "all" }
    for (const text of Object.values(printed).flat()) assert.strictEqual(lacked(text, all), "")
    for (const text of ["a.test.ts: expected 1 to be 2", "make: *** [all] Error 2", "rm: cannot remove 'a'"])
      assert.strictEqual(lacked(text), "")
  })

  it("is a commit where git failed without a word, as git stash does", () => {
    assert.include(missedNeeds("git stash", "", nothing), "SIGNALBOX_ASK=commit")
    assert.strictEqual(missedNeeds("git stash", "", { ...nothing, access: "commit" }), "")
    assert.strictEqual(missedNeeds("grep -q git a", "", { ...nothing, access: "commit" }), "")
  })

  it("is looked for where a command failed, also in a part of it whose exit code is lost", () => {
    assert.strictEqual(failureIn("npm ci", "out", 1), "out")
    assert.isUndefined(failureIn("npm ci && npm test", "getaddrinfo ENOTFOUND", 0))
    assert.strictEqual(failureIn("npm ci | tail -5", "getaddrinfo ENOTFOUND\n", 0), "getaddrinfo ENOTFOUND")
    assert.strictEqual(failureIn("seq 99; true", "seq\n".repeat(99), 0), "seq\n".repeat(20).trimEnd())
    assert.isUndefined(failureIn("true | true", "", 0))
  })

  it("says that no approval brings Docker's socket", () => {
    const text = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?"
    assert.match(lacked(text), /no approval/)
  })
})
