import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Requirement, requirement } from "#test/harness/Requirement.ts"
import { freePort, root } from "#test/harness/ServerProcess.ts"
import { until } from "#test/harness/Eventually.ts"

/** A proxy that runs with what README tells its users to write, in front of servers of this test. */
export interface Proxy {
  readonly url: string
  readonly close: () => Promise<void>
}

export interface KnownProxy {
  readonly name: "nginx" | "Caddy"
  readonly present: Requirement
  /** `servers`: as many as README's example has, each `host:port` */
  readonly start: (servers: readonly [string, string]) => Promise<Proxy>
}

/** The addresses of the servers in README's examples. */
const written = ["10.0.0.5:8080", "10.0.0.6:8080"] as const

/** The whole example in a language, under the heading about proxies, with the servers of a test. */
const exampleIn = (language: string, servers: readonly [string, string]): string => {
  const [, section = ""] = readFileSync(join(root, "README.md"), "utf8").split("## Behind a proxy\n")
  const [, example] = new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(section) ?? []
  if (example === undefined) throw new Error(`README.md has no example in ${language}`)
  return written.reduce((text, from, index) => replaced(text, from, servers[index] ?? ""), example)
}

/** A test that changes nothing would try another thing than README says. */
const replaced = (text: string, from: string | RegExp, to: string): string => {
  const changed = text.replaceAll(from, () => to)
  if (changed === text) throw new Error(`README's example lacks ${String(from)}`)
  return changed
}

const programPresent = (name: string, program: string, debian: string): Requirement =>
  requirement(name, () => {
    const { error } = spawnSync(program, [program === "nginx" ? "-v" : "version"])
    return error === undefined ? undefined : `it is not in PATH (Debian: apt-get install ${debian})`
  })

const isHealthy = async (url: string): Promise<boolean> => {
  try {
    return (await fetch(`${url}/healthz`)).status === 200
  } catch {
    // Not listening yet: it is asked again until the deadline.
    return false
  }
}

/** Runs a program until it is closed; `port` is where it will answer. */
const run = async (
  program: string,
  args: ReadonlyArray<string>,
  options: { readonly port: number; readonly directory: string }
): Promise<Proxy> => {
  const url = `http://127.0.0.1:${options.port}`
  const env = { PATH: process.env["PATH"] ?? "", HOME: options.directory, XDG_DATA_HOME: options.directory }
  const child: ChildProcess = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"] })
  let said = ""
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk: Buffer) => (said = (said + chunk.toString()).slice(-20_000)))
  }
  const gone = new Promise<void>((resolve) => child.once("close", () => resolve()))
  const close = async (): Promise<void> => {
    child.kill("SIGTERM")
    await gone
    await rm(options.directory, { recursive: true, force: true })
  }
  try {
    await until(`${program} answers`, async () => {
      if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}: ${said}`)
      return (await isHealthy(url)) ? undefined : said
    })
  } catch (error) {
    await close()
    throw error
  }
  return { url, close }
}

const startNginx = async (servers: readonly [string, string]): Promise<Proxy> => {
  const port = await freePort()
  const directory = await mkdtemp(join(tmpdir(), "signalbox-nginx-"))
  // Its workers are another account's where this one is root.
  await chmod(directory, 0o755)
  const example = replaced(
    replaced(exampleIn("nginx", servers), /listen 443 ssl;/g, `listen 127.0.0.1:${port};`),
    /^ *ssl_certificate.*$/gm,
    ""
  )
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
  const http = [
    "access_log off;",
    ...paths.map((name) => `${name}_temp_path ${join(directory, name)};`),
    example
  ]
  const file = join(directory, "nginx.conf")
  await writeFile(
    file,
    `daemon off; pid ${join(directory, "pid")}; error_log stderr;\nevents {}\nhttp {\n${http.join("\n")}\n}\n`
  )
  return run("nginx", ["-p", directory, "-e", "stderr", "-c", file], { port, directory })
}

const startCaddy = async (servers: readonly [string, string]): Promise<Proxy> => {
  const port = await freePort()
  const directory = await mkdtemp(join(tmpdir(), "signalbox-caddy-"))
  const example = replaced(
    exampleIn("caddyfile", servers),
    "signalbox.example.com {",
    `http://127.0.0.1:${port} {`
  )
  const file = join(directory, "Caddyfile")
  await writeFile(file, `{\n  admin off\n}\n${example}`)
  return run("caddy", ["run", "--adapter", "caddyfile", "--config", file], { port, directory })
}

export const proxies: ReadonlyArray<KnownProxy> = [
  { name: "nginx", present: programPresent("nginx", "nginx", "nginx-light"), start: startNginx },
  { name: "Caddy", present: programPresent("Caddy", "caddy", "caddy"), start: startCaddy }
]
