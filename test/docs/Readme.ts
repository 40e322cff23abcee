import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { join, normalize } from "node:path"
import { promisify } from "node:util"

const root = normalize(join(import.meta.dirname, "../.."))

/** The shell commands of a section of README.md, block by block, as they stand there. */
export const commandsOf = (title: string): ReadonlyArray<string> => {
  const readme = readFileSync(join(root, "README.md"), "utf8")
  const [, after = ""] = readme.split(`\n## ${title}\n`)
  const section = after.split("\n## ")[0] ?? ""
  return [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, commands]) => commands ?? "")
}

/** Runs README's commands with a server in place of its own; answers their output. The first that fails ends them. */
export const runCommands = async (
  commands: string,
  { key, url }: { readonly url: string; readonly key: string }
): Promise<string> => {
  const script = commands.replaceAll("http://127.0.0.1:8080", url)
  const env = {
    PATH: `${join(process.execPath, "..")}:${process.env["PATH"] ?? ""}`,
    KEY: key,
    SIGNALBOX_URL: url,
    SIGNALBOX_KEY: key
  }
  const options = { cwd: root, env, maxBuffer: 16 * 1024 * 1024 }
  const { stdout } = await promisify(execFile)("bash", ["-e", "-o", "pipefail", "-c", script], options)
  return stdout
}
