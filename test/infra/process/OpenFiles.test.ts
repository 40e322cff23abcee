import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { openFilesMax } from "#src/infra/process/OpenFiles.ts"

const source = join(import.meta.dirname, "../../../src/infra/process/OpenFiles.ts")

describe.runIf(process.platform === "linux")("openFilesMax", () => {
  it("is what the system allows this process", () => {
    const script = `import(${JSON.stringify(source)}).then(({ openFilesMax }) => console.log(openFilesMax()))`
    const printed = execFileSync("sh", ["-c", `ulimit -n 321; exec "$0" -e '${script}'`, process.execPath])
    assert.strictEqual(String(printed).trim(), "321")
    assert.isAbove(openFilesMax() ?? 0, 0)
  })
})
