import { dirname, join } from "node:path"
import { Effect } from "effect"
import { crc32c } from "./Crc32c.ts"
import { unavailable, type LogUnavailable } from "./LogFailure.ts"
import type { LogFileSystem } from "./LogFiles.ts"
import type { LogRecord } from "./LogRecord.ts"
import { readWhole, replaceWhole } from "./WholeFile.ts"

/** A record that the sink takes in no company. */
export interface SetAside {
  readonly offset: number
  /** wall clock of the commit that made it durable, and of when it was set aside */
  readonly appendedAtMillis: number
  readonly setAsideAtMillis: number
  /** the sink's error */
  readonly problem: string
  /** of its payload */
  readonly bytes: number
}

export interface QuarantineLimits {
  readonly maxRecords: number
  /** of payloads */
  readonly maxBytes: number
}

export const defaultQuarantine: QuarantineLimits = { maxRecords: 1000, maxBytes: 64 * 1024 * 1024 }

/**
 * The records that a consumer has set aside, one file each beside the log: the log itself forgets them. A record is in
 * here before the consumer commits past it, so that a crash in between leaves it known, and not lost.
 */
export interface Quarantine {
  readonly has: (offset: number) => boolean
  /** in the order of the log */
  readonly list: () => ReadonlyArray<SetAside>
  readonly stats: () => QuarantineStats
  /** Lasts once it returns. Where the limits are reached the oldest records go, each with a line in the log. */
  readonly add: (
    record: LogRecord,
    about: Pick<SetAside, "problem" | "setAsideAtMillis">
  ) => Effect.Effect<void, LogUnavailable>
  /** Undefined: there is no such record. */
  readonly read: (offset: number) => Effect.Effect<LogRecord | undefined, LogUnavailable>
  /** false: there was no such record */
  readonly remove: (offset: number) => Effect.Effect<boolean, LogUnavailable>
}

export interface QuarantineStats {
  readonly records: number
  readonly bytes: number
  /** records that went because the limits were reached, since the start */
  readonly dropped: number
}

/** The longest error message of the sink that is stored. */
const problemChars = 1000

/** 0 u32 CRC-32C of the rest, 4 u32 length of the head, the head as JSON, the payload; little-endian. */
const headAt = 8

const encode = (about: SetAside, payload: Uint8Array): Uint8Array => {
  const head = Buffer.from(JSON.stringify(about))
  const bytes = Buffer.concat([new Uint8Array(headAt), head, payload])
  bytes.writeUInt32LE(head.length, 4)
  bytes.writeUInt32LE(crc32c(bytes, 4, bytes.length), 0)
  return bytes
}

/** Undefined for a file that is not what `encode` wrote. */
const decode = (
  bytes: Uint8Array
): { readonly about: SetAside; readonly payload: Uint8Array } | undefined => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (buffer.length < headAt || buffer.readUInt32LE(0) !== crc32c(buffer, 4, buffer.length)) return undefined
  const payloadAt = headAt + buffer.readUInt32LE(4)
  const about: SetAside = JSON.parse(buffer.toString("utf8", headAt, payloadAt))
  return { about, payload: buffer.subarray(payloadAt) }
}

const fileName = (offset: number): string => `${String(offset).padStart(16, "0")}.record`

const isRecordFile = (name: string): boolean => /^\d{16}\.record$/.test(name)

/** Opens the quarantine in `<log>/<consumer>.quarantine`; its directory is made with the first record. */
export const open = Effect.fnUntraced(function* (
  files: LogFileSystem,
  logDirectory: string,
  consumer: string,
  limits: QuarantineLimits
) {
  const directory = join(logDirectory, `${consumer}.quarantine`)
  const found = new Map<number, SetAside>()
  const names = yield* files.list(directory).pipe(
    Effect.catchIf(
      (error) => error.code === "ENOENT",
      () => Effect.succeed<ReadonlyArray<string>>([])
    )
  )
  for (const name of names.filter(isRecordFile).toSorted()) {
    const path = join(directory, name)
    const content = decode((yield* readWhole(files, path)) ?? new Uint8Array())
    if (content !== undefined) found.set(content.about.offset, content.about)
    else yield* Effect.logWarning(`${path} is damaged: the record that was set aside in it cannot be read`)
  }
  const quarantine: Quarantine = new DirectoryQuarantine(files, directory, consumer, limits, found)
  return quarantine
})

class DirectoryQuarantine implements Quarantine {
  readonly #files: LogFileSystem
  readonly #directory: string
  readonly #consumer: string
  readonly #limits: QuarantineLimits
  readonly #found: Map<number, SetAside>
  #bytes: number
  #dropped = 0
  #isMade = false

  constructor(
    files: LogFileSystem,
    directory: string,
    consumer: string,
    limits: QuarantineLimits,
    found: Map<number, SetAside>
  ) {
    this.#files = files
    this.#directory = directory
    this.#consumer = consumer
    this.#limits = limits
    this.#found = found
    this.#bytes = Array.from(found.values()).reduce((sum, { bytes }) => sum + bytes, 0)
  }

  readonly has = (offset: number): boolean => this.#found.has(offset)

  readonly list = (): ReadonlyArray<SetAside> =>
    Array.from(this.#found.values()).toSorted((left, right) => left.offset - right.offset)

  readonly stats = (): QuarantineStats => ({
    records: this.#found.size,
    bytes: this.#bytes,
    dropped: this.#dropped
  })

  readonly add: Quarantine["add"] = (record, { problem, setAsideAtMillis }) =>
    Effect.gen({ self: this }, function* () {
      const about: SetAside = {
        offset: record.offset,
        appendedAtMillis: record.appendedAtMillis,
        setAsideAtMillis,
        problem: problem.slice(0, problemChars).toWellFormed(),
        bytes: record.payload.length
      }
      yield* this.#makeRoom(about.bytes)
      yield* this.#makeDirectory()
      yield* replaceWhole(this.#files, this.#path(about.offset), encode(about, record.payload))
      this.#bytes += about.bytes - (this.#found.get(about.offset)?.bytes ?? 0)
      this.#found.set(about.offset, about)
    }).pipe(Effect.mapError(unavailable), Effect.uninterruptible)

  readonly read: Quarantine["read"] = (offset) =>
    Effect.gen({ self: this }, function* () {
      if (!this.#found.has(offset)) return undefined
      const content = decode((yield* readWhole(this.#files, this.#path(offset))) ?? new Uint8Array())
      if (content === undefined) return undefined
      const { about, payload } = content
      return { offset, appendedAtMillis: about.appendedAtMillis, payload }
    }).pipe(Effect.mapError(unavailable))

  readonly remove: Quarantine["remove"] = (offset) =>
    Effect.suspend(() =>
      this.#found.has(offset) ? Effect.as(this.#delete(offset), true) : Effect.succeed(false)
    ).pipe(Effect.mapError(unavailable), Effect.uninterruptible)

  #makeDirectory() {
    return Effect.gen({ self: this }, function* () {
      if (this.#isMade) return
      yield* this.#files.makeDirectory(this.#directory)
      yield* this.#files.syncDirectory(dirname(this.#directory))
      this.#isMade = true
    })
  }

  #path(offset: number): string {
    return join(this.#directory, fileName(offset))
  }

  #delete(offset: number) {
    return Effect.gen({ self: this }, function* () {
      yield* Effect.catchIf(
        this.#files.remove(this.#path(offset)),
        (error) => error.code === "ENOENT",
        () => Effect.void
      )
      this.#bytes -= this.#found.get(offset)?.bytes ?? 0
      this.#found.delete(offset)
      yield* this.#files.syncDirectory(this.#directory)
    })
  }

  #makeRoom(bytes: number) {
    return Effect.gen({ self: this }, function* () {
      for (const { offset, problem } of this.list()) {
        const { maxBytes, maxRecords } = this.#limits
        if (this.#found.size < maxRecords && this.#bytes + bytes <= maxBytes) return
        yield* this.#delete(offset)
        this.#dropped++
        const full = `the quarantine of "${this.#consumer}" is full, and its oldest record is lost`
        yield* Effect.logError(full, { offset, problem })
      }
    })
  }
}
