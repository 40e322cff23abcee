import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { selfRunningFiles } from "#src/clients/agent/boundary/SelfRunningFiles.ts"
import { findBubblewrap } from "#src/clients/agent/exec/Bubblewrap.ts"
import { describeWith, requirement } from "#test/harness/Requirement.ts"
import { AttackStage, attacksOn, type Attack, type AttackCall } from "./Attack.ts"
import { codeOf, withWorkspace } from "./TestWorkspace.ts"

const found = await findBubblewrap("/nonexistent")
const bubblewrap = requirement("bubblewrap", () => ("reason" in found ? found.reason : undefined))

/** A file that a pattern of the list means. */
const example = (path: string): string => path.replaceAll("*", "x")

describe("the list of what runs by itself", () => {
  const stage = new AttackStage("mkdir -p node_modules/p src; echo a > src/a")
  beforeAll(() => stage.open())
  afterAll(() => stage.close())

  for (const { by, paths } of selfRunningFiles)
    it(`asks before a file tool writes for ${by}`, async () => {
      for (const path of paths)
        for (const place of [
          example(path),
          `src/deep/${example(path).toUpperCase()}`,
          `${example(path)}/x`
        ]) {
          stage.stage.asked.length = 0
          assert.strictEqual(codeOf(await stage.call({ write: place, content: "x" })), "denied", place)
          assert.deepStrictEqual(
            stage.stage.asked.map(({ kinds, detail }) => [kinds, detail.includes(by)]),
            [[["self_running"], true]],
            place
          )
          assert.isFalse(existsSync(join(stage.stage.root, place.split("/")[0] ?? "", "deep")))
        }
    })

  it("leaves what is ordinary alone, and what packages ship", async () => {
    stage.reset()
    const ordinary =
      "package.json Makefile build.rs build.gradle eslint.config.js vite.config.ts Dockerfile .env .nvmrc .editorconfig .gitignore .gitattributes .github/workflows/x.yml AGENTS.md CLAUDE.md .cursorrules src/profile src/vscode/tasks.json mise/x.ts husky/x.ts node_modules/p/.npmrc vendor/q/.vscode/settings.json"
    for (const path of ordinary.split(" "))
      assert.strictEqual(codeOf(await stage.call({ write: path, content: "x" })), "ok", path)
    assert.deepStrictEqual(
      stage.stage.asked.map(({ title }) => title),
      []
    )
  })

  it("writes once it was allowed, and edits only then", async () => {
    stage.reset()
    stage.stage.answer = "once"
    assert.strictEqual(codeOf(await stage.call({ write: ".envrc", content: "a\n" })), "ok")
    stage.stage.answer = "no"
    const hooks = {
      signal: new AbortController().signal,
      onOutput: () => undefined,
      approve: () => Promise.resolve("no" as const)
    }
    const edit = { path: ".envrc", edits: [{ oldText: "a", newText: "b" }] }
    const call = { callId: "e", method: "fs.edit", params: edit, timeoutMs: 0 } as const
    assert.strictEqual(codeOf(await stage.stage.runner.run(call, hooks)), "denied")
    assert.strictEqual(readFileSync(join(stage.stage.root, ".envrc"), "utf8"), "a\n")
    const yes = { ...hooks, approve: () => Promise.resolve("once" as const) }
    assert.strictEqual(codeOf(await stage.stage.runner.run(call, yes)), "ok")
  })
})

describeWith(bubblewrap, "the list of what runs by itself, and commands", () => {
  const stage = new AttackStage("git init -q; mkdir src; echo a > src/a")
  beforeAll(() => stage.open())
  afterAll(() => stage.close())
  const all = selfRunningFiles.flatMap(({ paths }) => paths.map(example))
  const making = (places: ReadonlyArray<string>): string =>
    places.map((path) => `mkdir -p "$(dirname ${path})"; echo x > ${path}`).join("\n")

  it("gives new ones another name, wherever they are, and tells which", async () => {
    stage.reset()
    const places = all.flatMap((path) => [path, `src/new/${path}`])
    const outcome = await stage.call(making(places))
    assert.strictEqual(codeOf(outcome), "ok")
    for (const path of places) assert.isFalse(existsSync(join(stage.stage.root, path)), path)
    assert.include(JSON.stringify(outcome), "is taken up by itself by ")
    assert.include(JSON.stringify(outcome), "more like these")
    assert.deepStrictEqual(stage.stage.asked, [])
  })

  it("keeps those that are there as they are, against all that a command can do to them", async () => {
    stage.reset()
    stage.user(making(all))
    const ways = [
      "echo evil > $p",
      "rm -f $p; echo evil > $p",
      "echo evil > e; mv -f e $p",
      "rm -rf $p; ln -s /tmp $p",
      "chmod 777 $p; echo evil | tee $p",
      "d=$(dirname $p); [ $d = . ] || { mv $d away && mkdir -p $d && echo evil > $p; }",
      "echo evil > e; mount --bind e $p; umount $p"
    ]
    await stage.call(`try() {\np=$1\n${ways.join("\n")}\n}\n${all.map((path) => `try ${path}`).join("\n")}`)
    for (const path of all)
      assert.strictEqual(readFileSync(join(stage.stage.root, path), "utf8"), "x\n", path)
  })

  it("lets a command write them that the user allowed it, and leaves them", async () => {
    stage.reset()
    stage.stage.answer = "once"
    assert.strictEqual(
      codeOf(await stage.call("SIGNALBOX_ASK=self_running true; echo x > .envrc; mkdir .vscode")),
      "ok"
    )
    assert.deepStrictEqual(
      stage.stage.asked.map(({ kinds }) => kinds),
      [["self_running"]]
    )
    assert.isTrue(existsSync(join(stage.stage.root, ".envrc")))
    assert.isTrue(existsSync(join(stage.stage.root, ".vscode")))
  })

  it("says how to ask where one was in the way", async () => {
    stage.reset()
    stage.user("echo x > .npmrc")
    assert.include(JSON.stringify(await stage.call("echo y > .npmrc")), "SIGNALBOX_ASK=self_running")
  })
})

const evil = (path: string): AttackCall => ({ write: path, content: "@PWN\n" })
const both = (
  name: string,
  path: string,
  content: string,
  attack: Omit<Attack, "name" | "calls">
): ReadonlyArray<Attack> => {
  const file: AttackCall = { write: path, content }
  const lines = content.replaceAll("'", "'\\''")
  const command = `mkdir -p "$(dirname ${path})"; printf '%s' '${lines}' > ${path}`
  return [
    { name: `${name}, by a file tool`, calls: [file], asked: ["self_running"], ...attack },
    { name: `${name}, by a command`, calls: [command], ...attack },
    {
      name: `${name}, over one that is there`,
      calls: [`rm -f ${path}; ${command}; chmod +x ${path}`],
      ...attack,
      before: `${attack.before ?? "true"}; cd @ROOT; mkdir -p "$(dirname ${path})"; [ -e ${path} ] || echo > ${path}`
    }
  ]
}

/** An editor that opens the folder, as far as tasks go: those that run then. */
const openFolder = `node -e '
  const { existsSync, readFileSync } = require("node:fs")
  const file = ".vscode/tasks.json"
  const tasks = existsSync(file) ? JSON.parse(readFileSync(file, "utf8") || "{}").tasks ?? [] : []
  for (const task of tasks) if (task.runOptions?.runOn === "folderOpen") require("node:child_process").execSync(task.command)'`
const task = '{"tasks":[{"label":"x","type":"shell","command":"@PWN","runOptions":{"runOn":"folderOpen"}}]}'
/** An agent that starts: the servers of a project's configuration, and the hooks of a session. */
const startAgent = (file: string): string => `node -e '
  const { existsSync, readFileSync } = require("node:fs")
  const settings = existsSync("${file}") ? JSON.parse(readFileSync("${file}", "utf8") || "{}") : {}
  const commands = [...Object.values(settings.mcpServers ?? {}), ...(settings.hooks?.SessionStart ?? []).flatMap((one) => one.hooks)]
  for (const { command } of commands) require("node:child_process").execSync(command)'`
const server = '{"mcpServers":{"x":{"command":"@PWN"}}}'
const started = '{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"@PWN"}]}]}}'
const install = "npm install --offline --ignore-scripts=false --no-audit --no-fund"
const packageJson = `echo '{"name":"x","version":"1.0.0","scripts":{"postinstall":"true"}}' > package.json`

const husky = [
  "mkdir -p .husky/_ && git config core.hooksPath .husky/_",
  `printf '#!/bin/sh\\n[ -f "$(dirname "$0")/../$(basename "$0")" ] && sh -e "$(dirname "$0")/../$(basename "$0")"\\n' > .husky/_/pre-commit`,
  "cp .husky/_/pre-commit .husky/_/post-commit; chmod +x .husky/_/*; echo true > .husky/pre-commit"
].join("; ")
/** As lefthook and pre-commit install theirs: a hook that obeys a file of the working tree. */
const obeying = (file: string): string =>
  `printf '#!/bin/sh\\n[ ! -f ${file} ] || sed -n "s/^[ -]*\\\\(run\\\\|entry\\\\): //p" ${file} | sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`
const commit = "git commit --allow-empty -m x"

describeWith(bubblewrap, "attacks: hooks of commits", () => {
  attacksOn(new AttackStage("git init -q; mkdir src; echo a > src/a; git add .; git commit -qm first"), [
    ...both("a script of husky", ".husky/pre-commit", "@PWN", { before: husky, then: commit }),
    ...both("a script of husky for later", ".husky/post-commit", "@PWN", { before: husky, then: commit }),
    ...both("husky in a directory of its own", "tools/husky/pre-commit", "@PWN", {
      before: `${husky}; mkdir tools; mv .husky tools/husky; git config core.hooksPath tools/husky/_`,
      then: commit
    }).slice(1),
    ...both("the steps of lefthook", "lefthook.yml", "pre-commit:\n  commands:\n    x:\n      run: @PWN\n", {
      before: obeying("lefthook.yml"),
      then: commit
    }),
    ...both("the steps of pre-commit", ".pre-commit-config.yaml", "repos:\n- hooks:\n  - entry: @PWN\n", {
      before: obeying(".pre-commit-config.yaml"),
      then: commit
    }),
    ...both("an included configuration", ".gitconfig", '[core]\n\tfsmonitor = "@PWN; false"\n', {
      before: "git config include.path ../.gitconfig",
      then: "git status"
    }),
    ...both(
      "an included configuration of another name",
      "conf/shared",
      '[core]\n\tfsmonitor = "@PWN; false"\n',
      { before: "mkdir conf; touch conf/shared; git config include.path ../conf/shared", then: "git status" }
    ).slice(1),
    ...both("a script of a filter", "tools/clean.sh", "@PWN; cat", {
      before:
        "mkdir tools; echo cat > tools/clean.sh; git config filter.f.clean 'sh tools/clean.sh'; echo '* filter=f' > .gitattributes",
      then: "echo b > src/b; git add src/b"
    }).slice(1),
    ...both("the script of fsmonitor", "tools/fsm", "#!/bin/sh\n@PWN\nfalse\n", {
      before:
        "mkdir tools; printf '#!/bin/sh\\nfalse\\n' > tools/fsm; chmod +x tools/fsm; git config core.fsmonitor ./tools/fsm",
      then: "chmod +x tools/fsm; git status"
    }).slice(1),
    ...both("a script of an alias", "tools/st.sh", "@PWN", {
      before: "mkdir tools; echo true > tools/st.sh; git config alias.st '!sh tools/st.sh'",
      then: "git st"
    }).slice(1),
    ...both("a directory of hooks that is committed", ".githooks/pre-commit", "#!/bin/sh\n@PWN\n", {
      before: "git config core.hooksPath .githooks",
      then: `chmod +x .githooks/pre-commit 2>/dev/null; ${commit}`
    }).slice(1)
  ])
})

describeWith(bubblewrap, "attacks: what shells, editors, agents and package managers take up", () => {
  attacksOn(
    new AttackStage(
      `git init -q; mkdir src; echo a > src/a; ${packageJson}; git add .; git commit -qm first`
    ),
    [
      ...both("a shell's start", ".bashrc", "@PWN", { then: 'HOME="$PWD" bash -i -c true' }),
      ...both("a login", ".profile", "@PWN", { then: 'HOME="$PWD" sh -l -c true' }),
      ...both("a login of bash", ".bash_profile", "@PWN", { then: 'HOME="$PWD" bash -l -c true' }),
      ...both("an editor's task", ".vscode/tasks.json", task, { then: openFolder }),
      ...both("an editor's task of a part", "src/.vscode/tasks.json", task, {
        then: `cd src; ${openFolder}`
      }),
      ...both("an agent's servers", ".mcp.json", server, { then: startAgent(".mcp.json") }),
      ...both("another agent's servers", ".cursor/mcp.json", server, {
        then: startAgent(".cursor/mcp.json")
      }),
      ...both("an agent's hooks", ".claude/settings.json", started, {
        then: startAgent(".claude/settings.json")
      }),
      ...both("npm's shell for scripts", ".npmrc", "script-shell=@ROOT/src/p\n", {
        before: "printf '#!/bin/sh\\n@PWN\\n' > src/p; chmod +x src/p",
        then: install
      }),
      {
        name: "a task in a directory that is moved there",
        calls: [`mkdir t; printf '%s' '${task}' > t/tasks.json; mv t .vscode`],
        then: openFolder
      },
      {
        name: "a task behind a link",
        calls: [`mkdir t; printf '%s' '${task}' > t/tasks.json; ln -s t .vscode`],
        then: openFolder
      },
      {
        name: "a task where the user's directory is a link",
        before: "mkdir conf; echo '{}' > conf/tasks.json; ln -s conf .vscode",
        calls: [
          `printf '%s' '${task}' > conf/tasks.json; rm .vscode; mkdir t; printf '%s' '${task}' > t/tasks.json; ln -s t .vscode`
        ],
        then: openFolder
      },
      {
        name: "a task by a command that takes too long",
        calls: [`mkdir .vscode; printf '%s' '${task}' > .vscode/tasks.json\nsleep 1000`],
        timeout: 1,
        then: openFolder
      },
      {
        name: "a task that a checkout brings, while commits are allowed",
        answer: "once",
        asked: ["commit"],
        calls: [
          `mkdir .vscode; printf '%s' '${task}' > .vscode/tasks.json; git add -f .vscode && git -c user.name=A -c user.email=a@b commit -qm evil && git rm -rq --cached .vscode && git -c user.name=A -c user.email=a@b commit -qm clean && rm -rf .vscode && git checkout -q HEAD~1`
        ],
        then: openFolder
      }
    ]
  )
})

describe("attacks without a sandbox", () => {
  attacksOn(new AttackStage("git init -q; mkdir src; echo a > src/a", "off"), [
    {
      name: "a repository in a directory",
      calls: [
        "cd src; mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; printf '[alias]\\nst=\"!@PWN\"\\n' > config"
      ],
      asked: ["unsandboxed"],
      then: "cd src && git st"
    },
    {
      name: "a hook",
      calls: ["printf '#!/bin/sh\\n@PWN\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"],
      asked: ["unsandboxed"],
      then: commit
    },
    {
      name: "a shell's start by a command",
      calls: ["echo '@PWN' > .bashrc"],
      asked: ["unsandboxed"],
      then: 'HOME="$PWD" bash -i -c true'
    },
    {
      name: "a shell's start by a file tool",
      calls: [evil(".bashrc")],
      asked: ["self_running"],
      then: 'HOME="$PWD" bash -i -c true'
    },
    {
      name: "an editor's task by a file tool",
      calls: [{ write: ".vscode/tasks.json", content: task }],
      asked: ["self_running"],
      then: openFolder
    },
    {
      name: "an editor's task in other letters",
      calls: [{ write: ".VSCode/tasks.json", content: task }],
      asked: ["self_running"],
      then: `[ ! -d .VSCode ] || mv .VSCode .vscode; ${openFolder}`
    }
  ])

  it("a command that was allowed everything: what it has made is told, and left", async () => {
    const stage = new AttackStage("mkdir src", "off")
    await stage.open()
    try {
      stage.stage.answer = "once"
      const outcome = JSON.stringify(
        await stage.call("echo x > .envrc; mkdir -p src/objects src/refs; touch src/HEAD")
      )
      assert.include(outcome, ".envrc is taken up by itself by direnv, at cd: look at it")
      assert.include(outcome, "src/HEAD makes a repository of src/")
      assert.isTrue(existsSync(join(stage.stage.root, ".envrc")))
      assert.isTrue(existsSync(join(stage.stage.root, "src", "HEAD")))
    } finally {
      await stage.close()
    }
  })
})

describe("a race", () => {
  it("for a directory that is exchanged between a question that is not needed and the write", () =>
    withWorkspace(async ({ root, run, asked }) => {
      mkdirSync(join(root, ".vscode"))
      mkdirSync(join(root, "plain"))
      // The link is exchanged before each step of the client's that gives way to others.
      let target = "plain"
      const swap = (): void => {
        target = target === "plain" ? ".vscode" : "plain"
        rmSync(join(root, "d"), { force: true })
        symlinkSync(target, join(root, "e"))
        renameSync(join(root, "e"), join(root, "d"))
      }
      for (let round = 0; round < 60; round++) {
        swap()
        const outcome = run("fs.write", { path: "d/tasks.json", content: "x" })
        for (let step = 0; step <= round % 6; step++) {
          swap()
          await Promise.resolve()
        }
        await outcome
      }
      assert.isFalse(existsSync(join(root, ".vscode", "tasks.json")))
      assert.isAbove(asked.length, 0)
    }))
})
