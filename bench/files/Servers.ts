import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { clientCore, move, serverCore } from "#bench/harness/Cores.ts"
import { type ForkedServer, forkServer } from "#bench/harness/ForkedServer.ts"
import { requestBytes, type RequestModule } from "#bench/harness/HttpLoad.ts"
import { probed } from "#bench/harness/Meter.ts"
import { descendants } from "#bench/harness/ProcessUse.ts"
import { ask, textAt } from "#test/harness/ApiClient.ts"
import { freePort, startServer } from "#test/harness/ServerProcess.ts"
import { mark, type SmallUploads } from "./SmallUploads.ts"
import { type Upload, upload } from "./Transfers.ts"

/** A server that has a large and a small file, and takes uploads. */
export interface FileServer extends Pick<ForkedServer, "pid" | "port"> {
  /** requests for the two */
  readonly large: Uint8Array
  readonly small: Uint8Array
  readonly upload: (bytes: number) => Upload
  /** requests that store small files, each another one */
  readonly smallUploads: RequestModule
  /** stores so many files in a directory of their own, and answers the request for its archive */
  readonly archive: (files: number, bytesEach: number) => Promise<Uint8Array>
}

type Started = FileServer & Pick<ForkedServer, "stop">

export type ServerName = "nginx" | "raw uWebSockets.js" | "ours"

/** A server of ours with both files, as plain data: a process of its own can ask it. */
export interface Ours {
  readonly url: string
  readonly pid: number
  readonly key: string
  /** their ids */
  readonly large: string
  readonly small: string
}

export const smallBytes = 4 * 1024

export interface Files {
  readonly directory: string
  readonly largeBytes: number
}

export const unavailableNginx = (): string | undefined => {
  try {
    execFileSync("nginx", ["-v"], { stdio: "ignore" })
    return undefined
  } catch (error) {
    return `nginx does not start here: ${String(error)}`
  }
}

const writeFiles = ({ directory, largeBytes }: Files): void => {
  const block = Buffer.alloc(1024 * 1024, 98)
  writeFileSync(join(directory, "large"), "")
  for (let at = 0; at < largeBytes; at += block.length)
    writeFileSync(join(directory, "large"), block.subarray(0, largeBytes - at), { flag: "a" })
  writeFileSync(join(directory, "small"), Buffer.alloc(smallBytes, 97))
}

const smallBody = mark.padEnd(smallBytes, "a")

const smallUploads = (request: Uint8Array): RequestModule => ({
  file: join(import.meta.dirname, "SmallUploads.ts"),
  options: { request: Buffer.from(request).toString("latin1") } satisfies SmallUploads
})

const plainWith = (method: "POST" | "PUT") => ({
  large: requestBytes("GET", "/large", {}),
  small: requestBytes("GET", "/small", {}),
  upload: (bytes: number): Upload => ({
    before: `${method} /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${bytes}\r\n\r\n`,
    after: "",
    bytes
  }),
  smallUploads: smallUploads(requestBytes(method, "/small-upload", {}, smallBody)),
  archive: () => Promise.reject(new Error("This server makes no archives"))
})

const raw = async (files: Files): Promise<Started> => {
  writeFiles(files)
  const server = await forkServer(join(import.meta.dirname, "RawFiles.ts"), serverCore, [files.directory])
  return { ...server, ...plainWith("POST") }
}

const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]

const nginx = async (files: Files): Promise<Started> => {
  writeFiles(files)
  const { directory } = files
  const port = await freePort()
  mkdirSync(join(directory, "tmp"))
  const conf = `daemon off; master_process off; pid ${directory}/pid; error_log ${directory}/error.log;
events { worker_connections 4096; }
http { access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; default_type application/octet-stream;
${temporary.map((name) => `${name}_temp_path ${directory}/tmp/${name};`).join("\n")}
server { listen 127.0.0.1:${port}; root ${directory}; dav_methods PUT; client_max_body_size 0; } }`
  writeFileSync(join(directory, "nginx.conf"), conf)
  const child = spawn("nginx", ["-c", join(directory, "nginx.conf"), "-p", directory], { stdio: "ignore" })
  const exited = once(child, "exit")
  const pid = child.pid ?? 0
  move(pid, serverCore)
  for (let tries = 0; tries < 100; tries++) {
    const isThere = await fetch(`http://127.0.0.1:${port}/small`).then(
      ({ ok }) => ok,
      () => false
    )
    if (isThere) break
    await sleep(50)
  }
  return {
    ...plainWith("PUT"),
    port,
    pid,
    stop: async () => {
      child.kill()
      await exited
    }
  }
}

const boundary = "----bench"
const partOf = (name: string): string =>
  `--${boundary}\r\nContent-Disposition: form-data; name="files"; filename="${name}"\r\n\r\n`
const part = partOf("a.bin")
const end = `\r\n--${boundary}--\r\n`

/** Files of one request, at most as many as it may have and 64 MiB. */
const filesAtOnce = (bytesEach: number): number => Math.min(1_000, Math.ceil((64 * 1024 ** 2) / bytesEach))

const formOf = ({ key }: Pick<Ours, "key">, bytes: number): Upload => ({
  before:
    `POST /api/cli/upload HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n` +
    `Content-Type: multipart/form-data; boundary=${boundary}\r\n` +
    `Content-Length: ${part.length + bytes + end.length}\r\n\r\n${part}`,
  after: end,
  bytes
})

const idOf = (text: string, name: "directoryId" | "fileId"): string => JSON.parse(text).files[0][name]

/** As it is by default, but for the largest file and the rate, which are not measured. */
export const startOurs = async (largeBytes: number) => {
  const settings = { FILES_MAX_SIZE: "4GB", FILES_RATE_PER_HOUR: "1000000000", ROOMS: "files" }
  const server = await startServer({ env: { ...settings, ...probed() } })
  try {
    for (const pid of descendants(server.pid())) move(pid, clientCore)
    move(server.pid(), serverCore)
    const reachable = { url: server.url, adminKey: server.adminKey }
    const json = { name: "bench", kind: "account" }
    const key = textAt(await ask(reachable, "POST", "/api/v1/keys", { json }), "key")
    const port = Number(new URL(server.url).port)
    const stored = async (bytes: number) => idOf((await upload(port, formOf({ key }, bytes))).text, "fileId")
    const ours: Ours = {
      url: server.url,
      pid: server.pid(),
      key,
      large: await stored(largeBytes),
      small: await stored(smallBytes)
    }
    return { ours, stop: server.dispose }
  } catch (error) {
    await server.dispose()
    throw error
  }
}

/** A server of ours that is there. */
export const reach = (ours: Ours): FileServer => {
  const { key, large, pid, small, url } = ours
  const headers = { Authorization: `Bearer ${key}` }
  const formHeaders = { ...headers, "Content-Type": `multipart/form-data; boundary=${boundary}` }
  return {
    port: Number(new URL(url).port),
    pid,
    large: requestBytes("GET", `/api/files/${large}`, headers),
    small: requestBytes("GET", `/api/files/${small}`, headers),
    upload: (bytes) => formOf(ours, bytes),
    smallUploads: smallUploads(
      requestBytes("POST", "/api/cli/upload", formHeaders, `${partOf(`${mark}.bin`)}${smallBody}${end}`)
    ),
    archive: async (files, bytesEach) => {
      const dir = `archive-${files}`
      let directoryId = ""
      for (let at = 0; at < files; at += filesAtOnce(bytesEach)) {
        const body = new FormData()
        body.set("dir", dir)
        for (let file = at; file < Math.min(at + filesAtOnce(bytesEach), files); file++)
          body.append("files", new Blob([Buffer.alloc(bytesEach, `${file} `)]), `file-${file}.bin`)
        const answer = await fetch(`${url}/api/cli/upload`, { method: "POST", headers, body })
        const text = await answer.text()
        if (!answer.ok) throw new Error(`${answer.status} ${text}`)
        directoryId = idOf(text, "directoryId")
      }
      return requestBytes("GET", `/api/download/${directoryId}`, headers)
    }
  }
}

const starts = {
  nginx,
  "raw uWebSockets.js": raw,
  ours: async ({ largeBytes }: Files): Promise<Started> => {
    const { ours, stop } = await startOurs(largeBytes)
    return { ...reach(ours), stop }
  }
}

export const startFiles = (name: ServerName, files: Files): Promise<Started> => starts[name](files)
