import { stat } from "node:fs/promises"
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { CommandFailed } from "#src/cli/CommandFailed.ts"
import { type Connection, RequestRefused } from "#src/cli/Connection.ts"
import { json, show } from "#src/cli/Output.ts"
import { makeProgressBar } from "#src/cli/ProgressBar.ts"
import { atOnce, ByteClient, type BytesFailure, bytesWork } from "./bytes/ByteClient.ts"
import { sendForm, type UnsentFile } from "./bytes/FormUpload.ts"
import { findFiles, hashOf, type LocalFile } from "./bytes/LocalFiles.ts"
import { codeOf } from "./bytes/PartFile.ts"
import { ResumableUpload } from "./bytes/ResumableUpload.ts"
import { megabytes, shownBytes } from "./bytes/ShownBytes.ts"
import type { Look, SentFile, UploadTarget } from "./bytes/UploadTarget.ts"
import { earlierUpload, filesThere, openUploads, pathOf, targetOf } from "./PutTarget.ts"

/** Longer files go one by one, and go on where they were cut off. */
const shortBytes = 4 * 1024 * 1024
/** of one form */
const formBytes = 16 * 1024 * 1024
const formFiles = 250
const usualBucket = "uploads"

/** The last of several words is the directory on the server; a file of this machine there is a mistake. */
const splitWords = async (words: ReadonlyArray<string>) => {
  const last = words.at(-1)
  if (words.length < 2 || last === undefined) return { paths: words, directory: usualBucket }
  const isFile = await stat(last).then(
    (kind) => kind.isFile(),
    (error: unknown) => {
      if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return false
      throw error
    }
  )
  if (isFile)
    throw new CommandFailed({
      problem: `${last} is a file here, and the last word is the directory on the server: add it, such as ${usualBucket}`
    })
  return { paths: words.slice(0, -1), directory: last }
}

/** Short files in groups for forms. */
const groupsOf = (files: ReadonlyArray<LocalFile>): ReadonlyArray<ReadonlyArray<LocalFile>> => {
  const groups: Array<Array<LocalFile>> = []
  let bytes = 0
  for (const file of files) {
    const last = groups.at(-1)
    if (last === undefined || last.length === formFiles || bytes + file.sizeBytes > formBytes) {
      groups.push([file])
      bytes = file.sizeBytes
    } else {
      last.push(file)
      bytes += file.sizeBytes
    }
  }
  return groups
}

interface Result {
  readonly sent: ReadonlyArray<SentFile>
  readonly unsent: ReadonlyArray<UnsentFile>
}

/** A refusal of one file is told of at the end; that of the key, or a server that is away, ends all. */
const orUnsent = (
  file: LocalFile,
  work: Effect.Effect<Result, BytesFailure>
): Effect.Effect<Result, BytesFailure> =>
  Effect.catch(work, (error): Effect.Effect<Result, BytesFailure> => {
    const isOfFile = error instanceof CommandFailed || error instanceof RequestRefused
    if (!isOfFile) return Effect.fail(error)
    const problem = error instanceof CommandFailed ? error.problem : error.text
    return Effect.succeed({ sent: [], unsent: [{ file, problem }] })
  })

/** Those that the server has not, or has with another hash. */
const changedOf = Effect.fnUntraced(function* (target: UploadTarget, files: ReadonlyArray<LocalFile>) {
  const there = yield* filesThere(target, files)
  const isSame = (file: LocalFile): Effect.Effect<boolean, BytesFailure> => {
    const known = there?.get(file)
    return known === undefined
      ? Effect.succeed(false)
      : Effect.map(
          bytesWork(() => hashOf(file)),
          (hash) => hash === known.sha256
        )
  }
  const same = yield* Effect.forEach(files, isSame, { concurrency: atOnce })
  return {
    unchanged: files.filter((_, index) => same[index]),
    changed: files.filter((_, index) => !same[index])
  }
})

const sendAll = Effect.fnUntraced(function* (
  target: UploadTarget,
  files: ReadonlyArray<LocalFile>,
  onBytes: (bytes: number) => void
) {
  const client = yield* ByteClient.make
  const long = files.filter(({ sizeBytes }) => sizeBytes > shortBytes)
  const open = long.length === 0 ? new Map<string, string>() : yield* openUploads(target)
  const sendLong = (file: LocalFile): Effect.Effect<Result, BytesFailure> =>
    orUnsent(
      file,
      bytesWork(async (signal) => {
        const upload = new ResumableUpload(client, target, file, await hashOf(file), { onBytes, signal })
        return { sent: [await upload.send(earlierUpload(open, target, file))], unsent: [] }
      })
    )
  const run = Effect.runPromiseWith(yield* Effect.context<Connection>())
  const sendShort = (group: ReadonlyArray<LocalFile>): Effect.Effect<Result, BytesFailure> =>
    bytesWork((signal) => {
      const look: Look = (some) => run(filesThere(target, some), { signal })
      return sendForm({ client, target, told: { onBytes, signal }, look }, group)
    })
  const forms = groupsOf(files.filter(({ sizeBytes }) => sizeBytes <= shortBytes))
  const work = [...forms.map(sendShort), ...long.map(sendLong)]
  const results = yield* Effect.forEach(work, (one) => one, { concurrency: atOnce })
  return { sent: results.flatMap(({ sent }) => sent), unsent: results.flatMap(({ unsent }) => unsent) }
})

const put = Effect.fnUntraced(function* (words: ReadonlyArray<string>) {
  const { directory, paths } = yield* bytesWork(() => splitWords(words))
  const { files, skipped } = yield* bytesWork(() => findFiles(paths))
  const target = yield* targetOf(directory)
  const { changed, unchanged } = yield* changedOf(target, files)
  const bytes = changed.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  const bar = makeProgressBar(`to ${directory}`, megabytes(bytes), "MB")
  let done = 0
  const onBytes = (more: number): void => {
    done += more
    bar.update(megabytes(done))
  }
  const results = yield* Effect.ensuring(
    sendAll(target, changed, onBytes),
    Effect.sync(() => bar.finish())
  )
  return { ...results, directory, unchanged, skipped, target }
})

const counted = (count: number): string => `${count} ${count === 1 ? "file" : "files"}`

/** `signalbox files put`. */
export const putFiles = Command.make(
  "put",
  {
    json,
    words: Argument.String("file").pipe(
      Argument.withDescription(
        `Files and directories, then the directory on the server that they go into, such as docs/2027; of one alone: ${usualBucket}`
      ),
      Argument.variadic({ min: 1 })
    )
  },
  Effect.fnUntraced(function* (input) {
    const { directory, target, sent, skipped, unchanged, unsent } = yield* put(input.words)
    const bytes = sent.reduce((sum, { file }) => sum + file.sizeBytes, 0)
    const answer = {
      sent: sent.map(({ file, fileId, sha256 }) => ({
        path: pathOf(target, file),
        fileId,
        size: file.sizeBytes,
        sha256
      })),
      unchanged: unchanged.map((file) => pathOf(target, file)),
      failed: unsent.map(({ file, problem }) => ({ file: file.path, problem })),
      skipped
    }
    yield* show(input.json, answer, () =>
      [
        ...unsent.map(({ file, problem }) => `${file.path}: ${problem}`),
        ...skipped.map((path) => `${path}: not sent: a link, a special file, or an empty directory`),
        `${counted(sent.length)} (${shownBytes(bytes)}) sent to ${directory}` +
          (unchanged.length === 0 ? "" : `, ${unchanged.length} unchanged`)
      ].join("\n")
    )
    if (unsent.length > 0)
      return yield* new CommandFailed({ problem: `${counted(unsent.length)} could not be sent` })
  }, Effect.scoped)
).pipe(
  Command.withDescription(
    "Upload files and whole directories; what the server has already is not sent, and long files go on where an earlier run ended"
  )
)
