import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, beforeAll, it } from "@effect/vitest"
import { root } from "#test/harness/ServerProcess.ts"
import { describeWith, requirement } from "#test/harness/Requirement.ts"
import { type SandboxServer, startSandboxServer } from "./SandboxServer.ts"

const run = promisify(execFile)

/** The server's address in the README. */
const address = "http://127.0.0.1:8080"

/** The first example in a language, under the heading about calling models. */
const exampleIn = (language: string): string => {
  const [, section = ""] = readFileSync(join(root, "README.md"), "utf8").split("## Calling models")
  const [, example] = new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(section) ?? []
  return example ?? assert.fail(`README.md has no example in ${language}`)
}

const curl = requirement("curl", () => (process.platform === "win32" ? "there is no POSIX shell" : undefined))

describeWith(curl, "the README's example of a model call runs as written", () => {
  let running: SandboxServer
  beforeAll(async () => {
    running = await startSandboxServer()
  })

  const written = async (program: string, args: ReadonlyArray<string>): Promise<string> => {
    const env = { ...process.env, KEY: running.caller.key }
    return (await run(program, args, { cwd: root, env })).stdout
  }
  const here = (example: string): string => {
    assert.include(example, address)
    return example.replaceAll(address, running.server.url)
  }

  it("with the OpenAI SDK, in five lines", async () => {
    const example = here(exampleIn("js"))
    assert.strictEqual(example.trim().split("\n").length, 5)
    const said = await written(process.execPath, ["--input-type=module", "--eval", example])
    assert.strictEqual(said, answer)
  })

  it("with curl", async () => {
    const said = JSON.parse(await written("sh", ["-c", here(exampleIn("sh"))]))
    assert.deepStrictEqual(
      [said.object, said.choices[0].message.content, said.router.resolved],
      ["chat.completion", answer, "sandbox/free"]
    )
  })
})

const answer = `You said: "Say hello". This is sandbox/free, a program that stands in for a language model.`
