import { spawnSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, symlinkSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { homedir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { findBubblewrap } from "#src/clients/agent/exec/Bubblewrap.ts"
import { describeWith, requirement } from "#test/harness/Requirement.ts"
import { codeOf, git, put, withWorkspace, type TestWorkspace } from "./TestWorkspace.ts"

const found = await findBubblewrap("/nonexistent")
const bubblewrap = requirement("bubblewrap", () => ("reason" in found ? found.reason : undefined))

type Before = { readonly base: string; readonly root: string; readonly outside: string }

const repository = ({ root }: Before): void => {
  git(root, "init", "--quiet")
  put(join(root, "a"), "a\n")
  git(root, "add", ".")
  git(root, "commit", "--quiet", "-m", "first")
}

const sandboxed = (
  use: (workspace: TestWorkspace) => Promise<void>,
  before: (places: Before) => void = repository,
  options: { readonly network?: "ask" | "off" } = {}
): Promise<void> => withWorkspace(use, { sandbox: "auto", before, ...options })

/** All files of `.git` that run by themselves or say what does, with what is in them. */
const dangerous = (gitDir: string): ReadonlyArray<string> =>
  ["hooks", "config", "config.worktree", "commondir", "info/attributes", "modules", "worktrees"].map(
    (name) => {
      const path = join(gitDir, name)
      if (!existsSync(path)) return `${name} missing`
      return `${name} ${name.includes("config") ? readFileSync(path, "utf8") : readdirSync(path).join()}`
    }
  )

describeWith(bubblewrap, "commands in the sandbox", () => {
  it("symlink escape, model-chosen directory: write nowhere but in the workspace, from wherever they start", () =>
    sandboxed(async ({ base, root, outside, run, exec, asked }) => {
      symlinkSync(outside, join(root, "out"))
      const targets = [
        outside,
        "out",
        "/etc",
        "/usr/bin",
        "/var/tmp",
        "/opt",
        homedir(),
        "..",
        "/proc/sys/kernel",
        "/sys/kernel"
      ]
      await exec(
        targets.map((path) => `touch ${path}/made 2>&1; (cd ${path} && echo x > made) 2>&1`).join("\n")
      )
      await exec(`ln -s ${outside}/secret l; echo changed > l; rm -rf ${outside} / 2>&1`).catch(
        () => undefined
      )
      for (const path of targets)
        assert.isFalse(existsSync(join(path === "out" || path === ".." ? root : path, "made")), path)
      assert.deepStrictEqual(readdirSync(outside), ["secret"])
      assert.isFalse(existsSync(join(base, "made")))
      const params = { command: "pwd", cwd: "/", directory: outside }
      const outcome = await run("proc.exec", params)
      assert.isTrue(
        outcome.ok && JSON.stringify(outcome.result).includes(`"${root}\\n"`),
        JSON.stringify(outcome)
      )
      assert.deepStrictEqual(asked, [])
    }))

  it("git hooks: change nothing in .git that runs by itself, nor put another .git in its place", () =>
    sandboxed(async ({ root, exec }) => {
      const before = dangerous(join(root, ".git"))
      const { output } = await exec(
        [
          "for f in hooks/pre-commit config config.worktree info/attributes commondir; do echo x >> .git/$f; done",
          "mv .git away; rm -rf .git; mkdir .git/modules; ln -sfn /tmp .git; mv .git/hooks .git/h; cp -r .git other && mv other .git",
          "$(printf git) config core.fsmonitor 'touch pwned'; mount --bind /tmp .git; unshare -Urm umount .git; umount -l .git"
        ].join("\n")
      )
      assert.match(output, /Read-only file system/)
      assert.deepStrictEqual(dangerous(join(root, ".git")), before)
      assert.strictEqual(git(root, "log", "--format=%s"), "first\n")
    }))

  it("git hooks: neither while a commit is allowed, and a commit works then, without hooks", () =>
    sandboxed(
      async (workspace) => {
        const { root, exec } = workspace
        const before = dangerous(join(root, ".git"))
        put(join(root, "b"), "b\n")
        workspace.answer = "once"
        const { output } = await exec(
          [
            "for f in hooks/pre-commit config config.worktree info/attributes; do echo x >> .git/$f; done",
            "for d in hooks info . modules worktrees; do mv .git/$d .git/away; rm -rf .git/$d; mkdir -p .git/$d; echo x > .git/$d/x; done",
            "rm -f .git/x; mkdir evil; cp -r .git/config evil; echo ../evil > .git/commondir; rm .git/commondir; echo ../evil > .git/commondir_; mv .git/commondir_ .git/commondir",
            "rm .git/commondir; git add b && SIGNALBOX_ASK=commit git -c user.name=A -c user.email=a@b commit -m second",
            "echo ../evil > .git/commondir"
          ].join("\n")
        )
        assert.deepStrictEqual(
          dangerous(join(root, ".git")).map((line) => line.replace(/attributes .*/, "attributes missing")),
          before
        )
        assert.include(output, "commondir was removed")
        assert.strictEqual(git(root, "log", "--format=%s"), "second\nfirst\n")
        assert.isFalse(existsSync(join(root, "hooked")))
      },
      (places) => {
        repository(places)
        put(join(places.root, ".git/hooks/pre-commit"), "#!/bin/sh\ntouch hooked\nexit 1\n")
        chmodSync(join(places.root, ".git/hooks/pre-commit"), 0o755)
      }
    ))

  it("git hooks: make no repository where there is none, and leave nothing behind", () =>
    sandboxed(
      async ({ root, exec, run, asked }) => {
        await exec("mkdir -p .git/hooks; echo x > .git/config; mv .git g; rmdir .git; ls -la .git")
        await exec("echo done > file")
        assert.deepStrictEqual(readdirSync(root), ["file"])
        assert.strictEqual(codeOf(await run("proc.exec", { command: "git init" })), "denied")
        assert.deepStrictEqual(
          asked.map(({ kinds }) => kinds),
          [["repository"]]
        )
      },
      () => undefined
    ))

  it("git hooks: leave repositories below the workspace, and the directory of core.hooksPath, as they are", () =>
    sandboxed(
      async ({ root, exec, run }) => {
        await exec(
          "echo x > lib/.git/hooks/x; echo x >> lib/.git/config; mv lib away; mv lib/.git g; echo x > hooks/own/pre-commit; mv hooks away"
        )
        assert.isTrue(existsSync(join(root, "lib/.git/config")))
        assert.isFalse(existsSync(join(root, "lib/.git/hooks/x")))
        assert.deepStrictEqual(readdirSync(join(root, "hooks/own")), [])
        assert.strictEqual(
          codeOf(await run("fs.write", { path: "hooks/own/pre-commit", content: "" })),
          "denied"
        )
      },
      (places) => {
        repository(places)
        mkdirSync(join(places.root, "lib"))
        git(join(places.root, "lib"), "init", "--quiet")
        mkdirSync(join(places.root, "hooks", "own"), { recursive: true })
        git(places.root, "config", "core.hooksPath", "hooks/own")
      }
    ))

  it("a .git that is a link cannot be held: then every command asks, and says so", () =>
    sandboxed(
      async ({ run, asked, base }) => {
        assert.strictEqual(codeOf(await run("proc.exec", { command: "ls" })), "denied")
        assert.deepStrictEqual(
          asked.map(({ kinds }) => kinds),
          [["repository"]]
        )
        assert.include(asked[0]?.detail ?? "", `links are in the way: ${base}/workspace/.git`)
      },
      (places) => {
        repository(places)
        renameSync(join(places.root, ".git"), join(places.root, "real"))
        symlinkSync("real", join(places.root, ".git"))
      }
    ))

  it("a planted .git file has nothing mounted: no home directory through commondir, no repository of someone else", () =>
    sandboxed(
      async (workspace) => {
        const { base, root, exec } = workspace
        workspace.answer = "once"
        // The repository beside the workspace is out of sight, as /tmp is, and stays so.
        for (const [index, text] of ["planted/git", "../../keys/.git", `${base}/keys/.git`].entries()) {
          await exec(
            `mkdir -p sub planted/git/objects; echo x > planted/git/HEAD; echo ${root}/sub/.git > planted/git/gitdir; echo ${base}/keys > planted/git/commondir`
          )
          put(join(root, "sub/.git"), `gitdir: ${index === 0 ? join(root, text) : text}`)
          const { output } = await exec(
            `SIGNALBOX_ASK=commit ls -laR ${base}; cat ${base}/keys/key; echo x > ${base}/keys/made`
          )
          assert.notInclude(output, "private key")
        }
        assert.deepStrictEqual(readdirSync(join(base, "keys")), [".git", "key"])
      },
      (places) => {
        repository(places)
        const keys = { ...places, root: join(places.base, "keys") }
        mkdirSync(keys.root)
        repository(keys)
        git(keys.root, "rm", "--quiet", "a")
        put(join(keys.root, "key"), "private key")
      }
    ))

  it("a command that runs cannot exchange what is mounted for the next one", () =>
    sandboxed(
      async (workspace) => {
        const { root, exec, run, streamed } = workspace
        const stop = new AbortController()
        // It makes a repository and, once the next command may have looked, puts a link in its place, again and again.
        const loop =
          "mkdir -p sub; echo on; while :; do mkdir sub/.git; touch sub/.git/HEAD; rm -rf sub/.git; ln -s ../../keys sub/.git; rm -f sub/.git; done"
        const attacker = run("proc.exec", { command: loop }, stop.signal)
        while (streamed.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
        for (let round = 0; round < 6; round++)
          assert.notInclude((await exec(`cat ../keys/key; ls -R ../keys`)).output, "private")
        stop.abort()
        assert.strictEqual(codeOf(await attacker), "cancelled")
        assert.isTrue(existsSync(join(root, "a")))
      },
      (places) => {
        repository(places)
        put(join(places.base, "keys/private"), "private key")
      }
    ))

  it("git: a linked worktree outside of its repository can be committed to, and only after the user allowed that place", () =>
    sandboxed(
      async (workspace) => {
        const { base, root, exec, asked } = workspace
        const main = join(base, "main", ".git")
        assert.include((await exec("git status")).output, "On branch side")
        const before = dangerous(main)
        workspace.answer = "once"
        await exec(
          `touch ${main}/hooks/x; echo x >> ${main}/config; git add c; git commit -m side -- c || git -c user.name=A -c user.email=a@b commit -m side`
        )
        assert.include(asked[0]?.detail ?? "", `It may write to ${main}`)
        assert.strictEqual(git(root, "log", "--format=%s"), "side\nfirst\n")
        assert.deepStrictEqual(dangerous(main), before)
      },
      (places) => {
        const main = { ...places, root: join(places.base, "main") }
        mkdirSync(main.root)
        repository(main)
        git(main.root, "worktree", "add", "--quiet", "-b", "side", places.root)
        put(join(places.root, "c"), "c")
      }
    ))

  it("repository configuration runs nothing at the start, and in the sandbox only: fsmonitor, hooks, a planted bwrap", async () => {
    const path = process.env["PATH"]
    try {
      await sandboxed(
        async ({ root, exec }) => {
          assert.isFalse(existsSync(join(root, "ran")))
          await exec("/usr/bin/git status; /usr/bin/git diff")
          assert.isFalse(existsSync(join(root, "ran")))
          assert.strictEqual(
            (await exec("cat /proc/self/status | grep NoNewPrivs")).output,
            "NoNewPrivs:\t1\n"
          )
        },
        (places) => {
          repository(places)
          put(join(places.root, "evil"), `#!/bin/sh\ntouch ${places.root}/ran\n`)
          chmodSync(join(places.root, "evil"), 0o755)
          for (const name of ["bwrap", "git", "setpriv"]) symlinkSync("evil", join(places.root, name))
          git(places.root, "config", "core.fsmonitor", join(places.root, "evil"))
          git(places.root, "config", "core.hooksPath", ".")
          process.env["PATH"] = `${places.root}:${path}`
        }
      )
    } finally {
      process.env["PATH"] = path
    }
  })

  it("its own configuration: is neither seen nor made by a command, though it is missing", () =>
    withWorkspace(
      async ({ root, exec }) => {
        await exec(
          "mkdir -p client/config; echo '{}' > client/config/approvals.json; mv client away; rm -rf client; ls -R client; ln -s /tmp client"
        )
        assert.isFalse(existsSync(join(root, "client/config/approvals.json")))
        assert.deepStrictEqual(readdirSync(root), ["client"])
      },
      { sandbox: "auto", inside: true }
    ))

  it("its own configuration: is out of sight wherever it lies", () =>
    withWorkspace(
      async ({ exec }) => assert.deepInclude(await exec("ls -A /usr/share"), { exitCode: 0, output: "" }),
      { sandbox: "auto", configDir: "/usr/share" }
    ))

  it("secrets: get no keys from the environment, nor from homes or sockets of the system", async () => {
    process.env["SIGNALBOX_TEST_TOKEN"] = "s3cr3t"
    process.env["AWS_SECRET_ACCESS_KEY"] = "s3cr3t"
    try {
      await sandboxed(async ({ exec }) => {
        const { output } = await exec("env; cat /proc/*/environ | tr '\\0' '\\n'; set")
        assert.notInclude(output, "s3cr3t")
        assert.notMatch(output, /SSH_AUTH_SOCK|_TOKEN=|_KEY=/)
        const homes = await exec(
          "ls -A ~ /home /run /var/run /tmp; cat /etc/shadow; ls /proc | grep -c '^[0-9]'"
        )
        assert.notMatch(homes.output, /\.ssh|\.bash_history|\.npmrc|\.aws|sock|^root:/m)
      })
    } finally {
      delete process.env["SIGNALBOX_TEST_TOKEN"]
      delete process.env["AWS_SECRET_ACCESS_KEY"]
    }
  })

  it("network: is off, this machine's own services included, until the user allows it for that command", () =>
    sandboxed(async (workspace) => {
      const { exec, run, asked } = workspace
      const server = createServer((_, response) => response.end("served")).listen(0, "127.0.0.1")
      await new Promise((resolve) => server.once("listening", resolve))
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const fetching = `node -e 'fetch("${url}").then((r) => r.text()).then(console.log)'`
      try {
        assert.notStrictEqual((await exec(fetching)).exitCode, 0)
        assert.deepStrictEqual(asked, [])
        assert.strictEqual(
          codeOf(await run("proc.exec", { command: `SIGNALBOX_ASK=network ${fetching}` })),
          "denied"
        )
        workspace.answer = "once"
        assert.include((await exec(`SIGNALBOX_ASK=network ${fetching}`)).output, "served")
        assert.notStrictEqual((await exec(fetching)).exitCode, 0)
      } finally {
        server.close()
      }
    }))

  it("network: a client that has it switched off asks nobody", () =>
    sandboxed(
      async ({ run, asked }) => {
        assert.strictEqual(codeOf(await run("proc.exec", { command: "curl http://127.0.0.1" })), "denied")
        assert.deepStrictEqual(asked, [])
      },
      repository,
      { network: "off" }
    ))

  it("open files: inherit none that whoever started the client left open", () =>
    sandboxed(({ root, outside }) => {
      const script = `
        import { ToolRunner } from "#src/clients/agent/tools/ToolRunner.ts"
        const state = { configDir: "${outside}/c", stateDir: "${outside}/s" }
        const runner = await ToolRunner.open({ root: "${root}", ...state, sandbox: "auto", network: "off" })
        const hooks = { signal: new AbortController().signal, onOutput: () => {}, approve: () => Promise.resolve("no") }
        const params = { command: "ls /proc/self/fd/7/; ls -l /proc/self/fd" }
        console.log(JSON.stringify(await runner.run({ callId: "1", method: "proc.exec", params, timeoutMs: 0 }, hooks)))`
      const shell = `exec node --input-type=module-typescript -e "$SCRIPT" 7<${outside}`
      const env = { ...process.env, SCRIPT: script, NODE_NO_WARNINGS: "1" }
      const { stdout, stderr } = spawnSync("/bin/sh", ["-c", shell], { env, encoding: "utf8" })
      assert.include(stdout, '"ok":true', stderr)
      assert.notMatch(stdout, /secret|outside/)
      return Promise.resolve()
    }))

  it("a small project: its tests run, and it is committed after approval", () =>
    sandboxed(
      async (workspace) => {
        const { root, exec, asked } = workspace
        const tests = await exec("npm test && node --test && git status --short && git diff")
        assert.match(tests.output, /pass 1/)
        assert.match(tests.output, /\+changed/)
        assert.deepStrictEqual(asked, [])
        workspace.answer = "session"
        await exec("git add . && git -c user.name=A -c user.email=a@b commit -m x")
        git(root, "config", "user.name", "A")
        git(root, "config", "user.email", "a@b")
        put(join(root, "a"), "more\n")
        for (const message of ["second", "third"]) {
          assert.strictEqual(
            (await exec(`git add -A && git commit --allow-empty -m "${message}"`)).exitCode,
            0
          )
        }
        // A plain commit was allowed for the session; one with settings of its own was another question.
        assert.strictEqual(asked.length, 2)
        assert.strictEqual(git(root, "log", "-2", "--format=%s"), "third\nsecond\n")
      },
      (places) => {
        repository(places)
        put(join(places.root, "package.json"), '{"scripts":{"test":"node --test"}}')
        put(join(places.root, "x.test.js"), 'require("node:test")("x", () => {})')
        put(join(places.root, "a"), "changed\n")
      }
    ))
})
