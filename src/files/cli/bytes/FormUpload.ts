import { createHash } from "node:crypto"
import { readFile } from "node:fs/promises"
import { FormData } from "undici"
import { CommandFailed } from "#src/cli/CommandFailed.ts"
import { rootOf } from "#src/cli/Connection.ts"
import { accepted, type Answer, type ByteClient, Patience, refusalText } from "./ByteClient.ts"
import type { LocalFile } from "./LocalFiles.ts"
import type { SentFile, Told, UploadTarget } from "./UploadTarget.ts"

/** Refusals of one of the files: the server and the key are well. */
const ofOneFile = new Set([400, 409, 413, 422])

interface ReadFile {
  readonly file: LocalFile
  readonly bytes: Buffer
  readonly sha256: string
}

const read = async (file: LocalFile): Promise<ReadFile> => {
  try {
    const bytes = await readFile(file.path)
    return { file, bytes, sha256: createHash("sha256").update(bytes).digest("hex") }
  } catch (error) {
    throw new CommandFailed({ problem: `${file.path} cannot be read: ${rootOf(error)}` })
  }
}

const formOf = (target: UploadTarget, files: ReadonlyArray<ReadFile>): FormData => {
  const form = new FormData()
  form.append("dir", target.bucket)
  for (const { bytes, file, sha256 } of files) {
    form.append("path", target.below + file.relative)
    form.append("modifiedAt", file.modifiedAt.toISOString())
    form.append("sha256", sha256)
    form.append("files", new Blob([new Uint8Array(bytes)]), "file")
  }
  return form
}

/** Of a file that did not go, and why. */
export interface UnsentFile {
  readonly file: LocalFile
  readonly problem: string
}

export interface Batch {
  readonly sent: ReadonlyArray<SentFile>
  readonly unsent: ReadonlyArray<UnsentFile>
}

interface Uploaded {
  readonly files: ReadonlyArray<{ readonly fileId: string }>
}

/** Sends short files by one form: all of them become versions at once. Where one is refused, the others go without it. */
export const sendForm = async (
  client: ByteClient,
  target: UploadTarget,
  files: ReadonlyArray<LocalFile>,
  told: Told
): Promise<Batch> => {
  const unsent: Array<UnsentFile> = []
  const ready: Array<ReadFile> = []
  for (const file of files) {
    try {
      ready.push(await read(file))
    } catch (error) {
      if (!(error instanceof CommandFailed)) throw error
      unsent.push({ file, problem: error.problem })
    }
  }
  const { sent, unsent: refused } = await sendRead(client, target, ready, told)
  return { sent, unsent: [...unsent, ...refused] }
}

const sendRead = async (
  client: ByteClient,
  target: UploadTarget,
  files: ReadonlyArray<ReadFile>,
  told: Told
): Promise<Batch> => {
  if (files.length === 0) return { sent: [], unsent: [] }
  const url = `${target.url}/api/upload`
  const ask = (): Promise<Answer> =>
    client.ask({ method: "POST", url, headers: target.headers, body: formOf(target, files) }, told.signal)
  const answer = await accepted(ask, new Patience(url, told.signal), ofOneFile)
  if (answer.status < 400) {
    const { files: items } = (await bodyOf(answer)) as Uploaded
    told.onBytes(files.reduce((sum, { bytes }) => sum + bytes.length, 0))
    return {
      sent: files.map(({ file, sha256 }, index) => ({ file, sha256, fileId: items[index]?.fileId ?? "" })),
      unsent: []
    }
  }
  const problem = await refusalText(answer)
  const [only] = files
  if (files.length === 1 && only !== undefined) return { sent: [], unsent: [{ file: only.file, problem }] }
  const middle = Math.ceil(files.length / 2)
  const first = await sendRead(client, target, files.slice(0, middle), told)
  const second = await sendRead(client, target, files.slice(middle), told)
  return { sent: [...first.sent, ...second.sent], unsent: [...first.unsent, ...second.unsent] }
}

const bodyOf = async ({ body }: Answer): Promise<unknown> => {
  const pieces: Array<Buffer> = []
  for await (const piece of body as AsyncIterable<Buffer>) pieces.push(piece)
  return JSON.parse(Buffer.concat(pieces).toString())
}
