import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { open } from "node:fs/promises"
import { createInterface } from "node:readline"
import { Effect, Runtime, Schema, Stream } from "effect"
import { CliError } from "effect/cli"
import { type AccessLogEntry, notAPage, parseLine } from "./AccessLog.ts"

/** The file could not be read, holds no page view, or goes on otherwise than what was imported of it. */
export class LogFileUnusable extends Schema.TaggedError<LogFileUnusable>()("LogFileUnusable", {
  problem: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = 1
  override get [CliError.userMessage](): string {
    return this.problem
  }
}

/** A log as of its first reading: lines written later are left for the next import. */
export interface LogFile {
  readonly path: string
  readonly bytes: number
  /** whether its last line has its newline */
  readonly endsWhole: boolean
}

const unreadable = (path: string) => (error: unknown) =>
  new LogFileUnusable({ problem: `${path} cannot be read: ${String(error)}` })

export const openLogFile = (path: string): Effect.Effect<LogFile, LogFileUnusable> =>
  Effect.tryPromise({
    try: async () => {
      const file = await open(path, "r")
      try {
        const { size } = await file.stat()
        const { buffer } = await file.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1))
        return { path, bytes: size, endsWhole: buffer[0] === 0x0a }
      } finally {
        await file.close()
      }
    },
    catch: unreadable(path)
  })

/** Its lines that are not empty. */
export const linesOf = ({ bytes, path }: LogFile): Stream.Stream<string, LogFileUnusable> =>
  bytes === 0
    ? Stream.empty
    : Stream.fromAsyncIterable(
        createInterface({ input: createReadStream(path, { end: bytes - 1 }), crlfDelay: Infinity }),
        unreadable(path)
      ).pipe(Stream.filter((line) => line !== ""))

/** The entry of a line that is a page view. */
export const pageViewOf = (line: string): AccessLogEntry | undefined => {
  const entry = parseLine(line)
  return entry === undefined || notAPage(entry) !== undefined ? undefined : entry
}

/** An import of the site, as the server lists them. */
export interface EarlierImport {
  readonly name: string
  /** page views taken so far */
  readonly lines: number
}

/** The earlier import whose lines the file begins with. */
export interface Beginning {
  readonly name: string
  /** page views that the server has of it, and of what it has grown to */
  readonly taken: number
  /** page views of this file in its lines */
  readonly covered: number
}

export interface Contents {
  /** of its import: how many lines it has and their digest, so that the file is known again when it has grown */
  readonly name: string
  readonly lines: number
  readonly pages: number
  readonly malformed: number
  readonly ignored: { readonly method: number; readonly status: number; readonly asset: number }
  /** a last line that was being written, and is left for the next time */
  readonly incomplete: boolean
  readonly newestMillis: number
  readonly beginning: Beginning | undefined
}

/** Lines, whether a further one without its newline was imported (`+1`), and the digest of the lines. */
const nameFormat = /^access-log-(\d{1,10})(\+1)?-([0-9a-f]{40})$/

const digestChars = 40

interface Candidate extends EarlierImport {
  readonly digest: string
  readonly hasTail: boolean
}

const candidatesOf = (
  earlier: ReadonlyArray<EarlierImport>
): ReadonlyMap<number, ReadonlyArray<Candidate>> => {
  const byLines = new Map<number, Array<Candidate>>()
  for (const { lines: taken, name } of earlier) {
    const [, lines, tail, digest] = nameFormat.exec(name) ?? []
    if (lines === undefined || digest === undefined) continue
    const candidate = { name, lines: taken, digest, hasTail: tail !== undefined }
    byLines.set(Number(lines), [...(byLines.get(Number(lines)) ?? []), candidate])
  }
  return byLines
}

/** The lines of a file, and the earlier import that it begins with: the longest. */
class Survey {
  readonly #candidates: ReadonlyMap<number, ReadonlyArray<Candidate>>
  readonly #digest = createHash("sha256")
  readonly #ignored = { method: 0, status: 0, asset: 0 }
  #whole = 0
  #hasTail = false
  #incomplete = false
  #pages = 0
  #malformed = 0
  #newestMillis = 0
  #beginning: Beginning | undefined
  /** the line after the beginning was imported with it, before it had its newline */
  #awaitsTail = false

  constructor(earlier: ReadonlyArray<EarlierImport>) {
    this.#candidates = candidatesOf(earlier)
  }

  /** `isTail`: it is the last, without a newline. */
  take(line: string, isTail: boolean): void {
    const entry = parseLine(line)
    if (isTail && entry === undefined) return void (this.#incomplete = true)
    // A file of that line alone is known by it.
    if (isTail && this.#whole > 0) this.#hasTail = true
    else {
      this.#whole++
      this.#digest.update(line).update("\n")
    }
    this.#count(entry)
    if (this.#awaitsTail && this.#beginning !== undefined)
      this.#beginning = { ...this.#beginning, covered: this.#pages }
    this.#awaitsTail = false
    if (!this.#hasTail) this.#recognise()
  }

  #count(entry: AccessLogEntry | undefined): void {
    if (entry === undefined) return void this.#malformed++
    const reason = notAPage(entry)
    if (reason !== undefined) return void this.#ignored[reason]++
    this.#pages++
    this.#newestMillis = Math.max(this.#newestMillis, entry.timeMillis)
  }

  #recognise(): void {
    const candidates = this.#candidates.get(this.#whole)
    if (candidates === undefined) return
    const digest = this.#digestNow()
    const found = candidates.filter((candidate) => candidate.digest === digest)
    const latest = found.toSorted((left, right) => left.lines - right.lines).at(-1)
    if (latest === undefined) return
    this.#beginning = { name: latest.name, taken: latest.lines, covered: this.#pages }
    this.#awaitsTail = latest.hasTail
  }

  #digestNow(): string {
    return this.#digest.copy().digest("hex").slice(0, digestChars)
  }

  contents(): Contents {
    return {
      name: `access-log-${this.#whole}${this.#hasTail ? "+1" : ""}-${this.#digestNow()}`,
      lines: this.#whole + (this.#hasTail ? 1 : 0),
      pages: this.#pages,
      malformed: this.#malformed,
      ignored: this.#ignored,
      incomplete: this.#incomplete,
      newestMillis: this.#newestMillis,
      beginning: this.#beginning
    }
  }
}

/** A first pass over the file. */
export const survey = Effect.fnUntraced(function* (file: LogFile, earlier: ReadonlyArray<EarlierImport>) {
  const found = new Survey(earlier)
  let last: string | undefined
  yield* Stream.runForEach(linesOf(file), (line) =>
    Effect.sync(() => {
      if (last !== undefined) found.take(last, false)
      last = line
    })
  )
  if (last !== undefined) found.take(last, !file.endsWhole)
  const contents = found.contents()
  const { beginning, lines, malformed, pages } = contents
  if (pages === 0)
    return yield* new LogFileUnusable({
      problem: `${file.path} has no page view in Combined Log Format (${lines} lines, ${malformed} of another format)`
    })
  if (beginning !== undefined && beginning.taken > beginning.covered && pages > beginning.covered)
    return yield* new LogFileUnusable({
      problem:
        `${file.path} begins like a file that was imported before and goes on otherwise: its first ` +
        `${beginning.covered} page views are counted already. Import a file of the lines behind them`
    })
  return contents
})
