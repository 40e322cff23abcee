import { Effect } from "effect"
import { FileFailed, LogLocked } from "#streams/kernel/LogFailure.ts"
import type { LogFile, LogFileSystem } from "#streams/kernel/LogFiles.ts"
import type { SeededRandom } from "#test/simulation/Seed.ts"

type Change =
  | { readonly kind: "write"; readonly position: number; readonly bytes: Uint8Array }
  | { readonly kind: "truncate"; readonly length: number }

/** A file as the process sees it, as a power cut would leave it, and the writes between the two. */
interface Inode {
  live: Uint8Array
  durable: Uint8Array
  unsynced: Array<Change>
}

type NameChange =
  | { readonly kind: "link"; readonly path: string; readonly inode: Inode }
  | { readonly kind: "unlink"; readonly path: string }

export interface Faults {
  readonly shortWrite: number
  readonly writeError: number
  readonly syncError: number
  readonly readError: number
  readonly directoryError: number
  /** how likely an operation finds that the disk has become full, and that it has room again */
  readonly becomesFull: number
  readonly becomesFree: number
}

export const noFaults: Faults = {
  shortWrite: 0,
  writeError: 0,
  syncError: 0,
  readError: 0,
  directoryError: 0,
  becomesFull: 0,
  becomesFree: 1
}

const apply = (content: Uint8Array, change: Change): Uint8Array => {
  const length =
    change.kind === "truncate"
      ? change.length
      : Math.max(content.length, change.position + change.bytes.length)
  const next = new Uint8Array(length)
  next.set(content.subarray(0, length))
  if (change.kind === "write") next.set(change.bytes, change.position)
  return next
}

/**
 * A disk that does what disks do: writes in part, fills up, fails, forgets what was not synced, keeps any part of
 * it instead, and stops in the middle of any operation. After a failed fdatasync part of the data is durable, the
 * rest is dropped, and a later fdatasync succeeds without it (as Linux does).
 */
export class SimulatedDisk {
  faults: Faults = noFaults
  operations = 0
  private readonly random: SeededRandom
  private names = new Map<string, Inode>()
  private durableNames = new Map<string, Inode>()
  private nameChanges: Array<NameChange> = []
  private isFull = false
  private isLocked = false
  private crashIn = Infinity
  private onCrash: () => void = () => undefined
  /** operations of a crashed process never end and never touch the disk again */
  private generation = 0

  constructor(random: SeededRandom) {
    this.random = random
  }

  /** Stops the disk in the middle of the n-th operation from now. */
  crashAfter(operations: number, onCrash: () => void): void {
    this.crashIn = operations
    this.onCrash = onCrash
  }

  /** Acts as `kill -9`: everything written so far stays, synced or not. */
  restartProcess(): void {
    this.generation++
    this.crashIn = Infinity
    this.isLocked = false
  }

  /** Acts as a power cut: synced bytes stay, and any part of the rest, torn anywhere. */
  restartMachine(): void {
    this.restartProcess()
    for (const change of this.nameChanges)
      if (this.random.chance(0.5)) this.applyName(this.durableNames, change)
    this.nameChanges = []
    this.names = new Map(this.durableNames)
    for (const inode of new Set(this.names.values())) this.cutPower(inode)
  }

  /** Deletes or damages a file while no process runs. */
  damage(path: string): void {
    const inode = this.names.get(path)
    if (inode === undefined) return
    if (this.random.chance(0.5)) inode.live = inode.live.slice(0, this.random.below(inode.live.length))
    else this.names.delete(path)
    inode.durable = inode.live
    inode.unsynced = []
    this.durableNames = new Map(this.names)
    this.nameChanges = []
  }

  private cutPower(inode: Inode): void {
    let content = inode.durable
    for (const change of inode.unsynced) {
      if (this.random.chance(0.4)) continue
      content = apply(content, this.torn(change))
    }
    if (inode.unsynced.length > 0 && this.random.chance(0.2)) {
      const garbage = Uint8Array.from({ length: this.random.below(80) }, () => this.random.below(256))
      content = apply(content, { kind: "write", position: content.length, bytes: garbage })
    }
    inode.unsynced = []
    inode.durable = content
    inode.live = content
  }

  private torn(change: Change): Change {
    if (change.kind === "truncate" || this.random.chance(0.4)) return change
    const from = this.random.chance(0.7) ? 0 : this.random.below(change.bytes.length + 1)
    const to = from + this.random.below(change.bytes.length + 1 - from)
    return { kind: "write", position: change.position + from, bytes: change.bytes.subarray(from, to) }
  }

  private applyName(names: Map<string, Inode>, change: NameChange): void {
    if (change.kind === "link") names.set(change.path, change.inode)
    else names.delete(change.path)
  }

  private rename(change: NameChange): void {
    this.applyName(this.names, change)
    this.nameChanges.push(change)
  }

  private change(inode: Inode, change: Change): void {
    inode.live = apply(inode.live, change)
    inode.unsynced.push(change)
  }

  /** One operation: takes some turns of the scheduler, may fail, may be the one the crash falls into. */
  private operation<A>(
    generation: number,
    name: string,
    path: string,
    errors: { readonly code: string; readonly chance: number },
    act: () => A,
    inPart: (code: string) => void = () => undefined
  ): Effect.Effect<A, FileFailed> {
    const turns = this.random.below(3)
    return Effect.gen({ self: this }, function* () {
      for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
      const code = this.meet(generation, name, errors, act, inPart)
      if (code === "CRASHED") return yield* Effect.never
      if (code !== undefined)
        return yield* new FileFailed({ operation: name, path, code, cause: new Error(code) })
      return act()
    })
  }

  /** The fate of an operation: nothing (it is then to be done), an error, or that the process is gone. */
  private meet(
    generation: number,
    name: string,
    errors: { readonly code: string; readonly chance: number },
    act: () => unknown,
    inPart: (code: string) => void
  ): string | undefined {
    if (generation !== this.generation || this.crashIn <= 0) return "CRASHED"
    this.operations++
    this.crashIn--
    if (this.crashIn <= 0) {
      if (this.random.chance(0.5)) act()
      else inPart("CRASH")
      this.onCrash()
      return "CRASHED"
    }
    if (this.random.chance(this.faults.becomesFull)) this.isFull = true
    if (this.random.chance(this.faults.becomesFree)) this.isFull = false
    const code =
      this.isFull && name === "write" ? "ENOSPC" : this.random.chance(errors.chance) ? errors.code : undefined
    if (code !== undefined) inPart(code)
    return code
  }

  private file(generation: number, path: string, inode: Inode): LogFile {
    const write = (bytes: Uint8Array, position: number, length: number): number => {
      if (length > 0) this.change(inode, { kind: "write", position, bytes: bytes.slice(0, length) })
      return length
    }
    return {
      write: (bytes, position) =>
        Effect.suspend(() => {
          const length = this.random.chance(this.faults.shortWrite)
            ? this.random.below(bytes.length) + 1
            : bytes.length
          return this.operation(
            generation,
            "write",
            path,
            { code: "EIO", chance: this.faults.writeError },
            () => write(bytes, position, length),
            () => write(bytes, position, this.random.below(bytes.length + 1))
          )
        }),
      writeNow: (bytes, position) => {
        const length = this.random.chance(this.faults.shortWrite)
          ? this.random.below(bytes.length) + 1
          : bytes.length
        const all = () => write(bytes, position, length)
        const errors = { code: "EIO", chance: this.faults.writeError }
        const code = this.meet(generation, "write", errors, all, () =>
          write(bytes, position, this.random.below(bytes.length + 1))
        )
        // A process that is gone learns nothing: no answer reaches it.
        if (code === "CRASHED") return bytes.length
        if (code === undefined) return all()
        return new FileFailed({ operation: "write", path, code, cause: new Error(code) })
      },
      sync: Effect.suspend(() =>
        this.operation(
          generation,
          "fdatasync",
          path,
          { code: "EIO", chance: this.faults.syncError },
          () => {
            inode.durable = inode.live
            inode.unsynced = []
          },
          (code) => {
            if (code === "CRASH") return
            for (const change of inode.unsynced) {
              if (this.random.chance(0.5)) inode.durable = apply(inode.durable, this.torn(change))
            }
            inode.unsynced = []
          }
        )
      ),
      read: (into, position) =>
        Effect.suspend(() =>
          this.operation(generation, "read", path, { code: "EIO", chance: this.faults.readError }, () => {
            const found = inode.live.subarray(position, position + into.length)
            into.set(found)
            return found.length
          })
        ),
      truncate: (length) =>
        Effect.suspend(() =>
          this.operation(generation, "truncate", path, { code: "EIO", chance: this.faults.writeError }, () =>
            this.change(inode, { kind: "truncate", length })
          )
        ),
      size: Effect.suspend(() =>
        this.operation(
          generation,
          "stat",
          path,
          { code: "EIO", chance: this.faults.readError },
          () => inode.live.length
        )
      ),
      close: Effect.void
    }
  }

  /** The file system of one process: it dies with the process. */
  mount(): LogFileSystem {
    const generation = this.generation
    return {
      makeDirectory: () => Effect.void,
      list: (directory) =>
        Effect.suspend(() =>
          this.operation(
            generation,
            "readdir",
            directory,
            { code: "EIO", chance: this.faults.readError },
            () =>
              Array.from(this.names.keys())
                .filter((path) => path.slice(0, path.lastIndexOf("/")) === directory)
                .map((path) => path.slice(directory.length + 1))
          )
        ),
      open: (path, mode) =>
        Effect.suspend(() => {
          const chance = mode === "create" ? this.faults.directoryError : this.faults.readError
          return this.operation(generation, "open", path, { code: "EIO", chance }, () =>
            this.opened(generation, path, mode)
          ).pipe(
            Effect.filterOrFail(
              (file) => file !== undefined,
              () => new FileFailed({ operation: "open", path, code: "ENOENT", cause: new Error("ENOENT") })
            )
          )
        }),
      rename: (from, to) =>
        Effect.suspend(() =>
          this.operation(
            generation,
            "rename",
            from,
            { code: "EIO", chance: this.faults.directoryError },
            () => {
              const inode = this.names.get(from)
              if (inode === undefined) throw new Error(`rename of ${from}, which does not exist`)
              this.rename({ kind: "link", path: to, inode })
              this.rename({ kind: "unlink", path: from })
            }
          )
        ),
      remove: (path) =>
        Effect.suspend(() =>
          this.operation(
            generation,
            "unlink",
            path,
            { code: "EIO", chance: this.faults.directoryError },
            () => {
              if (!this.names.has(path)) throw new Error(`unlink of ${path}, which does not exist`)
              this.rename({ kind: "unlink", path })
            }
          )
        ),
      syncDirectory: (directory) =>
        Effect.suspend(() =>
          this.operation(
            generation,
            "fsync",
            directory,
            { code: "EIO", chance: this.faults.directoryError },
            () => {
              this.durableNames = new Map(this.names)
              this.nameChanges = []
            }
          )
        ),
      lock: (directory) =>
        Effect.asVoid(
          Effect.acquireRelease(
            Effect.suspend(() => {
              if (this.isLocked) return Effect.fail(new LogLocked({ directory, holder: "1" }))
              this.isLocked = true
              return Effect.void
            }),
            () =>
              Effect.sync(() => {
                if (generation === this.generation) this.isLocked = false
              })
          )
        )
    }
  }

  private opened(generation: number, path: string, mode: "create" | "write" | "read"): LogFile | undefined {
    const found = this.names.get(path)
    if (found === undefined && mode !== "create") return undefined
    const inode = found ?? { live: new Uint8Array(), durable: new Uint8Array(), unsynced: [] }
    if (found === undefined) this.rename({ kind: "link", path, inode })
    else if (mode === "create") this.change(inode, { kind: "truncate", length: 0 })
    return this.file(generation, path, inode)
  }
}
