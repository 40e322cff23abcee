import { randomBytes } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import { assert } from "@effect/vitest"
import type { Directory } from "#schemas/files/Directory.ts"
import type { StoredFile } from "#schemas/files/StoredFile.ts"
import type { UploadedFile } from "#schemas/files/UploadedFile.ts"
import type { FileServer } from "#test/accounts/FileServer.ts"
import { formOf, sha256Of } from "#test/files/transfers/TransferSteps.ts"
import { metadataOf } from "#test/files/uploads/TusClient.ts"
import type { SeededRandom } from "#test/simulation/Seed.ts"

interface KnownVersion {
  readonly sha256: string
  readonly groupId: string
  readonly bucket: string
}

/** The knowledge of all clients: answers that they got, and requests that may have had none. */
export class Answers {
  /** hashes of versions, by their ids */
  readonly versions = new Map<string, KnownVersion>()
  /** how many files a request to the bucket `kept` had, by the time in seconds that they all have */
  readonly requests = new Map<number, { readonly files: number; isAnswered: boolean }>()
  /** of each resumable upload that was seen to be finished */
  readonly resumed: Array<{ readonly fileId: string; readonly sha256: string }> = []
  /** paths of links, by the versions that they lead to */
  readonly links = new Map<string, string>()
  /** files whose purge was asked for, and those whose purge was answered */
  readonly doomed = new Set<string>()
  readonly purged = new Set<string>()
  /** old versions whose deletion was asked for */
  readonly deletedVersions = new Set<string>()
  /** hashes of account files, by their ids; those whose deletion was asked for are not among them */
  readonly accountFiles = new Map<string, string>()
  readonly deletedAccountFiles: Array<string> = []
  /** how often something was done, by its name */
  readonly counts = new Map<string, number>()
  nextSecond = 1
  cuts = 0
  refusals = 0
}

export interface Clients {
  readonly sides: ReadonlyArray<FileServer>
  readonly key: string
  readonly random: SeededRandom
  /** refusals that may come at any time, beside 503 */
  readonly refusals: ReadonlyArray<number>
  readonly message: string
}

interface Asked {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | FormData | Uint8Array<ArrayBuffer>
}

interface Told {
  readonly status: number
  readonly headers: Headers
  readonly json: unknown
}

const pathsOf = (bucket: string, items: ReadonlyArray<unknown>, random: SeededRandom) =>
  items.map(() => (bucket === "kept" ? `d${random.below(3)}/f${random.below(6)}` : `f${random.below(9)}`))

/** A client of both servers, which goes on wherever it can, and checks what it is told. */
export class KilledClient {
  private readonly clients: Clients
  private readonly answers: Answers
  private readonly random: SeededRandom

  constructor(clients: Clients, answers: Answers) {
    this.clients = clients
    this.answers = answers
    this.random = clients.random
  }

  /** One thing after the other until it is stopped; names and contents are few, so that the same bytes come and go all the time. */
  async work(signal: AbortSignal): Promise<void> {
    const steps = {
      form: () => this.form("/api/upload"),
      "form of the command line": () => this.form("/api/cli/upload"),
      "raw upload": () => this.put(),
      "account file": () => this.accountFile(),
      "deletion of an account file": () => this.deleteAccountFile(),
      trash: () => this.trashFile(),
      "trash of a directory": () => this.trashDirectory(),
      purge: () => this.purge(),
      "restored version": () => this.restoreVersion(),
      "deleted version": () => this.deleteVersion()
    }
    const names = Object.keys(steps) as ReadonlyArray<keyof typeof steps>
    for (const name of names) this.count(name, 0)
    while (!signal.aborted) {
      const name = names[this.random.below(names.length)] ?? "form"
      if (await steps[name]()) this.count(name)
    }
  }

  /** Resumable uploads until it is stopped, each to its end. */
  async workOn(signal: AbortSignal, mostBytes: number): Promise<void> {
    while (!signal.aborted) {
      await this.resumable(randomBytes(50_000 + this.random.below(mostBytes)))
      this.count("resumable upload")
    }
  }

  private count(name: string, more = 1): void {
    this.answers.counts.set(name, (this.answers.counts.get(name) ?? 0) + more)
  }

  /** Undefined: the connection went with the server, there is none at the moment, or it refuses for a reason of its own. */
  private async ask(
    method: string,
    path: string,
    statuses: ReadonlyArray<number>,
    { body, headers = {} }: Asked = {}
  ): Promise<Told | undefined> {
    const { key, message, refusals, sides } = this.clients
    const side = sides[this.random.below(sides.length)]
    try {
      if (side?.url === undefined) throw new TypeError("killed")
      const all = { authorization: `Bearer ${key}`, ...headers }
      const answer = await fetch(side.url + path, { method, headers: all, body: body ?? null })
      const text = await answer.text()
      const { status } = answer
      if (![...statuses, ...refusals, 503].includes(status))
        assert.fail(`${method} ${path} ${status} ${text} ${message}\n${side.errors}`)
      side.answers++
      const isJson = text !== "" && answer.headers.get("content-type")?.includes("json") === true
      if (statuses.includes(status))
        return { status, headers: answer.headers, json: isJson ? JSON.parse(text) : undefined }
      this.answers.refusals++
    } catch (error) {
      // The connection went with the process; anything else is a finding.
      if (!(error instanceof TypeError)) throw error
      this.answers.cuts++
    }
    await sleep(20)
    return undefined
  }

  private one<A>(all: Iterable<A>): A | undefined {
    const list = [...all]
    return list[this.random.below(list.length || 1)]
  }

  private text(): string {
    return `content ${this.random.below(12)} `.repeat(1 + this.random.below(3) * 2_000)
  }

  private keep(item: UploadedFile, text: string, bucket: string): void {
    const { directUrl, fileHash, fileId, versionGroupId } = item
    const { links, versions } = this.answers
    assert.strictEqual(fileHash, sha256Of(text), this.clients.message)
    versions.set(fileId, { sha256: fileHash, groupId: versionGroupId, bucket })
    if (directUrl !== null) links.set(fileId, new URL(directUrl).pathname)
  }

  /** A new request: where to, when its files were changed, and how to note that it was answered. */
  private request(files: number) {
    const bucket = this.random.below(3) === 0 ? "purged" : "kept"
    const { requests } = this.answers
    const second = this.answers.nextSecond++
    const request = { files, isAnswered: false }
    if (bucket === "kept") requests.set(second, request)
    return { bucket, modifiedAt: new Date(second * 1_000).toISOString(), request }
  }

  private async form(to: string): Promise<boolean> {
    const texts = Array.from({ length: 1 + this.random.below(3) }, () => this.text())
    const { bucket, modifiedAt, request } = this.request(texts.length)
    const path = pathsOf(bucket, texts, this.random)
    const files = texts.map((text) => ["a", text] as const)
    const body = formOf(files, { path, dir: bucket, modifiedAt: texts.map(() => modifiedAt) })
    // Its directory may go to the trash meanwhile.
    const answer = await this.ask("POST", to, [200, 409], { body })
    if (answer?.status !== 200) return false
    const made = (answer.json as { readonly files: ReadonlyArray<UploadedFile> }).files
    assert.strictEqual(made.length, texts.length, this.clients.message)
    for (const [index, item] of made.entries()) this.keep(item, texts[index] ?? "", bucket)
    request.isAnswered = true
    return true
  }

  private async put(): Promise<boolean> {
    const text = this.text()
    const { bucket, modifiedAt, request } = this.request(1)
    const [path = ""] = pathsOf(bucket, [text], this.random)
    const query = new URLSearchParams({ modifiedAt })
    const answer = await this.ask("PUT", `/api/upload/${bucket}/${path}?${query}`, [200, 201, 409], {
      body: text
    })
    if (answer === undefined || answer.status === 409) return false
    this.keep(answer.json as UploadedFile, text, bucket)
    request.isAnswered = true
    return true
  }

  /** Uploads a file in pieces, and asks for its offset whenever an answer was lost. */
  private async resumable(content: Buffer): Promise<void> {
    const tus = { "tus-resumable": "1.0.0" }
    const metadata = metadataOf({ filename: `${this.random.below(6)}`, dir: "resumed" })
    const created = { ...tus, "upload-length": String(content.length), "upload-metadata": metadata }
    let path: string | undefined
    while (path === undefined)
      path =
        (await this.ask("POST", "/api/uploads", [201], { headers: created }))?.headers.get("location") ??
        undefined
    let acknowledged = 0
    let fileId: string | null = null
    for (let offset: number | undefined = 0; fileId === null;) {
      if (offset === undefined) {
        const head = await this.ask("HEAD", path, [200], { headers: tus })
        if (head === undefined) continue
        offset = Number(head.headers.get("upload-offset"))
        fileId = head.headers.get("upload-file-id")
        assert.isAtLeast(offset, acknowledged, `${path} ${this.clients.message}`)
        continue
      }
      const body = new Uint8Array(content.subarray(offset, offset + 1 + this.random.below(150_000)))
      const type = "application/offset+octet-stream"
      const headers = { ...tus, "upload-offset": String(offset), "content-type": type }
      const answer = await this.ask("PATCH", path, [204], { headers, body })
      offset = answer === undefined ? undefined : Number(answer.headers.get("upload-offset"))
      acknowledged = Math.max(acknowledged, offset ?? 0)
      fileId = answer?.headers.get("upload-file-id") ?? null
    }
    this.answers.resumed.push({ fileId, sha256: sha256Of(content) })
  }

  private async accountFile(): Promise<boolean> {
    const text = this.text()
    const body = new FormData()
    body.set("file", new Blob([text]), "a.txt")
    const answer = await this.ask("POST", "/api/v1/files", [200], { body })
    if (answer === undefined) return false
    this.answers.accountFiles.set((answer.json as { readonly id: string }).id, sha256Of(text))
    return true
  }

  private async deleteAccountFile(): Promise<boolean> {
    const { accountFiles, deletedAccountFiles } = this.answers
    const id = this.one(accountFiles.keys())
    if (id === undefined) return false
    // From now on either is right, until the answer.
    accountFiles.delete(id)
    const answer = await this.ask("DELETE", `/api/v1/files/${id}`, [200])
    if (answer === undefined) return false
    deletedAccountFiles.push(id)
    return true
  }

  private async trashFile(): Promise<boolean> {
    const id = this.one(this.answers.versions.keys())
    if (id === undefined) return false
    if ((await this.ask("DELETE", `/api/files/${id}`, [200, 404])) === undefined) return false
    // An old version of a file that another client has restored becomes a new one.
    const { groupId = "" } = this.answers.versions.get(id) ?? {}
    const path = `/api/files/${groupId}/restore?onConflict=rename`
    return (await this.ask("POST", path, [200, 404, 409])) !== undefined
  }

  private async trashDirectory(): Promise<boolean> {
    const found = await this.ask("GET", `/api/directories?path=kept/d${this.random.below(3)}`, [200, 404])
    if (found?.status !== 200) return false
    const { directories } = found.json as { readonly directories: ReadonlyArray<Directory> }
    const id = directories.find(({ parentId }) => parentId !== null)?.id
    if (id === undefined) return false
    if ((await this.ask("DELETE", `/api/directories/${id}`, [200, 404])) === undefined) return false
    const path = `/api/directories/${id}/restore?onConflict=rename`
    return (await this.ask("POST", path, [200, 404, 409])) !== undefined
  }

  /** The id of a version in the bucket whose files are deleted for good, and that of its file. */
  private purgeable() {
    const all = [...this.answers.versions].filter(([, { bucket }]) => bucket === "purged")
    const [id, version] = this.one(all) ?? []
    return id === undefined || version === undefined ? undefined : { id, ...version }
  }

  private async purge(): Promise<boolean> {
    const version = this.purgeable()
    if (version === undefined) return false
    const { groupId, id } = version
    const trashed = await this.ask("DELETE", `/api/files/${id}`, [200, 404])
    if (trashed?.status !== 200) return false
    this.answers.doomed.add(groupId)
    const { trashId } = trashed.json as { readonly trashId: string }
    // Another client may have restored it.
    const purged = await this.ask("DELETE", `/api/trash/${trashId}`, [200, 404])
    if (purged?.status !== 200) return false
    this.answers.purged.add(groupId)
    return true
  }

  private async restoreVersion(): Promise<boolean> {
    const version = this.purgeable()
    if (version === undefined) return false
    const path = `/api/files/${version.id}/restore?onConflict=rename`
    const answer = await this.ask("POST", path, [200, 404, 409])
    if (answer?.status !== 200) return false
    // A file that is moved to the trash meanwhile has its name taken by a new one.
    const { fileHash, id, versionGroupId: groupId } = answer.json as StoredFile
    this.answers.versions.set(id, { sha256: fileHash, groupId, bucket: version.bucket })
    return true
  }

  private async deleteVersion(): Promise<boolean> {
    const version = this.purgeable()
    if (version === undefined) return false
    const { groupId, id } = version
    this.answers.deletedVersions.add(id)
    const path = `/api/files/${groupId}/versions/${id}`
    return (await this.ask("DELETE", path, [200, 404, 409]))?.status === 200
  }
}
