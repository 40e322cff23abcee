import { Readable } from "node:stream"
import { CommandFailed } from "#src/cli/CommandFailed.ts"
import { RequestRefused, ServerUnreachable } from "#src/cli/Connection.ts"
import {
  accepted,
  type Answer,
  type Asked,
  type ByteClient,
  ConnectionCut,
  discard,
  Patience,
  refusalText,
  refused
} from "./ByteClient.ts"
import { bytesOf, type LocalFile } from "./LocalFiles.ts"
import type { SentFile, Told, UploadTarget } from "./UploadTarget.ts"

const metadataOf = ({ below, bucket }: UploadTarget, file: LocalFile, sha256: string): string =>
  Object.entries({
    filename: file.relative.split("/").at(-1) ?? "",
    dir: bucket,
    path: below + file.relative,
    modifiedAt: file.modifiedAt.toISOString(),
    sha256
  })
    .map(([key, value]) => `${key} ${Buffer.from(value).toString("base64")}`)
    .join(",")

/** How far the server is with an upload. */
interface Progress {
  readonly offset: number
  /** of the version that it has become; "": it goes on */
  readonly fileId: string
}

const progressOf = (answer: Answer): Progress => {
  discard(answer)
  return { offset: Number(answer.header("upload-offset")), fileId: answer.header("upload-file-id") }
}

const conflict = 409
const isGone = (status: number): boolean => status === 404 || status === 410

/** times that an upload is begun anew, because the server has lost it */
const begunMost = 3

const tus = { "tus-resumable": "1.0.0" }

/** A long file, in as many requests as it takes; each goes on where the one before was cut. */
export class ResumableUpload {
  readonly #client: Pick<ByteClient, "ask">
  readonly #target: UploadTarget
  readonly #file: LocalFile
  readonly #sha256: string
  readonly #told: Told
  readonly #patience: Patience
  #begun = 0
  /** bytes that were told of */
  #shown = 0

  constructor(
    client: Pick<ByteClient, "ask">,
    target: UploadTarget,
    file: LocalFile,
    sha256: string,
    told: Told
  ) {
    this.#client = client
    this.#target = target
    this.#file = file
    this.#sha256 = sha256
    this.#told = told
    this.#patience = new Patience(target.url, told)
  }

  /** @param path of an upload that an earlier run began */
  async send(path: string | undefined): Promise<SentFile> {
    let url = path === undefined ? await this.#begin() : this.#target.url + path
    let now = await this.#look(url)
    for (;;) {
      if (now === undefined) {
        url = await this.#begin()
        now = await this.#look(url)
        continue
      }
      if (now.fileId !== "") {
        this.#show(this.#file.sizeBytes)
        return { file: this.#file, fileId: now.fileId, sha256: this.#sha256 }
      }
      now = await this.#append(url, now.offset)
    }
  }

  /** The address of a new upload. */
  async #begin(): Promise<string> {
    this.#begun++
    if (this.#begun > begunMost)
      throw new RequestRefused({ text: `${this.#file.path}: the server loses what came of it` })
    const { headers, url } = this.#target
    const answer = await this.#accepted({
      method: "POST",
      url: `${url}/api/uploads`,
      headers: {
        ...headers,
        ...tus,
        "content-length": "0",
        "upload-length": String(this.#file.sizeBytes),
        "upload-metadata": metadataOf(this.#target, this.#file, this.#sha256)
      }
    })
    discard(answer)
    return new URL(answer.header("location"), url).href
  }

  /** undefined: it is not there any more */
  async #look(url: string): Promise<Progress | undefined> {
    const asked = { method: "HEAD" as const, url, headers: { ...this.#target.headers, ...tus } }
    const answer = await this.#accepted(asked, new Set([404, 410]))
    const now = progressOf(answer)
    if (isGone(answer.status)) return undefined
    this.#show(now.offset)
    return now
  }

  async #append(url: string, offset: number): Promise<Progress | undefined> {
    const { sizeBytes } = this.#file
    let fault: unknown
    const source = bytesOf(this.#file, offset, sizeBytes, (bytes) => this.#show(this.#shown + bytes))
    const body = Readable.from(source, { objectMode: false }).on("error", (error) => (fault = error))
    const headers = {
      ...this.#target.headers,
      ...tus,
      "content-type": "application/offset+octet-stream",
      "content-length": String(sizeBytes - offset),
      "upload-offset": String(offset)
    }
    let isTaken = false
    try {
      const answer = await this.#client.ask({ method: "PATCH", url, headers, body }, this.#told.signal)
      const { status } = answer
      if (status < 300) return progressOf(answer)
      isTaken = status === conflict
      if (isTaken) await this.#giveWay(answer)
      else if (isGone(status)) discard(answer)
      else await refused(answer, this.#patience)
    } catch (error) {
      if (fault instanceof CommandFailed) throw fault
      if (!(error instanceof ConnectionCut)) throw error
      await this.#patience.wait(error.message)
    } finally {
      body.destroy()
    }
    const now = await this.#look(url)
    // Of two runs of one file the other one may have brought it.
    if (now !== undefined && now.offset > offset && !isTaken) this.#patience.progressed()
    return now
  }

  /** Another run goes on with the upload: longer and longer each time, and not for ever, so that one of them comes to the end. */
  async #giveWay(answer: Answer): Promise<void> {
    const problem = await refusalText(answer)
    await this.#patience.wait(problem).catch((error: unknown) => {
      if (!(error instanceof ServerUnreachable)) throw error
      throw new RequestRefused({ text: `${this.#file.path}: ${problem}` })
    })
  }

  #accepted(asked: Asked, taken?: ReadonlySet<number>): Promise<Answer> {
    return accepted(() => this.#client.ask(asked, this.#told.signal), this.#patience, taken)
  }

  /** Tells of the bytes that are new, or that have to go again. */
  #show(bytes: number): void {
    this.#told.onBytes(bytes - this.#shown)
    this.#shown = bytes
  }
}
