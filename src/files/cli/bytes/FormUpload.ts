import { createHash } from "node:crypto"
import { readFile } from "node:fs/promises"
import { FormData } from "undici"
import { CommandFailed } from "#src/cli/CommandFailed.ts"
import { rootOf } from "#src/cli/Connection.ts"
import { type Answer, type ByteClient, ConnectionCut, Patience, refusalText, refused } from "./ByteClient.ts"
import type { LocalFile } from "./LocalFiles.ts"
import type { Look, SentFile, Told, UploadTarget } from "./UploadTarget.ts"

/** Refusals of one of the files: the server and the key are well. */
const ofOneFile = new Set([400, 409, 413, 422])

const conflict = 409

interface ReadFile {
  readonly file: LocalFile
  readonly bytes: Buffer
  readonly sha256: string
  /** the version that has to be current: an earlier form may have been taken, and come behind this one */
  readonly ifVersion?: string
}

/** The way to the server. */
export interface FormWay {
  readonly client: ByteClient
  readonly target: UploadTarget
  readonly told: Told
  readonly look: Look
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
  for (const { bytes, file, ifVersion = "", sha256 } of files) {
    form.append("path", target.below + file.relative)
    form.append("modifiedAt", file.modifiedAt.toISOString())
    form.append("sha256", sha256)
    form.append("ifVersion", ifVersion)
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
export const sendForm = async (way: FormWay, files: ReadonlyArray<LocalFile>): Promise<Batch> => {
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
  const { sent, unsent: refused } = await sendRead(way, ready)
  return { sent, unsent: [...unsent, ...refused] }
}

const told = (way: FormWay, files: ReadonlyArray<ReadFile>): void =>
  way.told.onBytes(files.reduce((sum, { bytes }) => sum + bytes.length, 0))

/** The files that a form has become, or the answer that refuses it. Throws `ConnectionCut`: that is not known. */
const askOnce = async (
  { client, target, told: { signal } }: FormWay,
  files: ReadonlyArray<ReadFile>
): Promise<Answer | ReadonlyArray<SentFile>> => {
  const { headers, url } = target
  const body = formOf(target, files)
  const answer = await client.ask({ method: "POST", url: `${url}/api/upload`, headers, body }, signal)
  if (answer.status >= 300) return answer
  const { files: items } = await uploadedOf(answer)
  return files.map(({ file, sha256 }, index) => ({ file, sha256, fileId: items[index]?.fileId ?? "" }))
}

/** Where an answer does not say whether the files were taken, the server is asked which of them it has. */
const sendRead = async (way: FormWay, files: ReadonlyArray<ReadFile>): Promise<Batch> => {
  const patience = new Patience(way.target.url, way.told)
  const sent: Array<SentFile> = []
  for (let left = files; left.length > 0;) {
    const outcome = await askOnce(way, left).catch((error: unknown) => {
      if (error instanceof ConnectionCut) return error
      throw error
    })
    if (outcome instanceof ConnectionCut) await patience.wait(outcome.message)
    else if (!("status" in outcome)) {
      told(way, left)
      return { sent: [...sent, ...outcome], unsent: [] }
    } else if (ofOneFile.has(outcome.status)) {
      const problem = await refusalText(outcome)
      const [only] = left
      const isGuarded = left.length === 1 && only?.ifVersion !== undefined && outcome.status === conflict
      if (!isGuarded) {
        const parted = await sendParted(way, left, problem)
        return { sent: [...sent, ...parted.sent], unsent: parted.unsent }
      }
      await patience.wait(problem)
    } else await refused(outcome, patience)
    const after = await lookAfter(way, left)
    told(way, after.there)
    sent.push(...after.sent)
    left = after.left
  }
  return { sent, unsent: [] }
}

/** Each half of a form that was refused, until a file is alone that is. */
const sendParted = async (way: FormWay, files: ReadonlyArray<ReadFile>, problem: string): Promise<Batch> => {
  const [only] = files
  if (files.length === 1 && only !== undefined) return { sent: [], unsent: [{ file: only.file, problem }] }
  const middle = Math.ceil(files.length / 2)
  const first = await sendRead(way, files.slice(0, middle))
  const second = await sendRead(way, files.slice(middle))
  return { sent: [...first.sent, ...second.sent], unsent: [...first.unsent, ...second.unsent] }
}

/** Those that the server has by now, and those that are to go again. */
const lookAfter = async (way: FormWay, files: ReadonlyArray<ReadFile>) => {
  const found = await way.look(files.map(({ file }) => file))
  const isThere = ({ file, sha256 }: ReadFile): boolean => found?.get(file)?.sha256 === sha256
  const there = files.filter(isThere)
  const left = files.filter((file) => !isThere(file))
  return {
    there,
    sent: there.map(({ file, sha256 }) => ({ file, sha256, fileId: found?.get(file)?.fileId ?? "" })),
    left:
      found === undefined
        ? left
        : left.map((file) => ({ ...file, ifVersion: found.get(file.file)?.fileId ?? "none" }))
  }
}

const uploadedOf = async ({ body }: Answer): Promise<Uploaded> => {
  const pieces: Array<Buffer> = []
  try {
    for await (const piece of body as AsyncIterable<Buffer>) pieces.push(piece)
  } catch (error) {
    throw new ConnectionCut(rootOf(error), { cause: error })
  }
  return JSON.parse(Buffer.concat(pieces).toString()) as Uploaded
}
