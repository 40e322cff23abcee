import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { AppendFile } from "./AppendFile.ts"
import { lineOf, readJournalText, type JournalEntry, type StoredOutcome } from "./JournalEntry.ts"

/** A call that may not be made twice, as the journal knows it. */
type JournalCall =
  /** nothing was done: the user had not answered when the client ended */
  | { readonly state: "asked"; readonly promptId: string }
  | { readonly state: "started"; readonly promptId: string }
  | { readonly state: "finished"; readonly promptId: string; readonly outcome: StoredOutcome }
  /** the server has its outcome; `seq` of the frame that said so */
  | { readonly state: "closed"; readonly seq: number }

/** A file that has grown by so much since it was last written anew is written anew. */
const growthBytesMax = 1024 * 1024

const syncDirectory = (path: string): void => {
  const directory = openSync(path, "r")
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}

const readIfThere = (path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return ""
    throw error
  }
}

/**
 * This machine's record of one session's calls, in a file that survives the client. A call is noted as started before
 * it begins and as finished when its outcome is known; the outcome is kept until the server has it. A call is forgotten
 * only together with the knowledge that the frames about it were seen. Only `never` calls are in it.
 */
export class SessionJournal {
  private readonly path: string
  private readonly session: JournalEntry & { readonly kind: "session" }
  private readonly calls = new Map<string, JournalCall>()
  private file: AppendFile
  private seenSeq = 0
  private isDamaged = false
  private grownBytes = 0
  private rewriting: Promise<void> | undefined
  private problem: unknown

  /** Reads the file, or begins it. Throws what the file system says. */
  constructor(path: string, session: { readonly url: string; readonly root: string }) {
    this.path = path
    this.session = { kind: "session", ...session }
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const { damaged, entries } = readJournalText(readIfThere(path))
    for (const entry of entries) this.take(entry)
    this.isDamaged ||= damaged
    this.writeAnew()
    this.file = new AppendFile(path)
  }

  /** the last frame that is known to have been worked off; perhaps more were */
  get lastSeq(): number {
    return this.seenSeq
  }

  /** lines were lost: a call that is not here may have begun nevertheless */
  get damaged(): boolean {
    return this.isDamaged
  }

  call(callId: string): JournalCall | undefined {
    return this.calls.get(callId)
  }

  /** The calls of a prompt of which the server is not known to have the outcome. */
  openCalls(promptId: string): ReadonlyArray<string> {
    return [...this.calls].flatMap(([callId, call]) =>
      call.state !== "closed" && call.promptId === promptId ? [callId] : []
    )
  }

  /** Done when it is durable. Fails where it cannot be: then the call must not begin. */
  async started(callId: string, promptId: string): Promise<void> {
    if (this.problem !== undefined) throw this.problem
    return this.note({ kind: "started", callId, promptId }, true)
  }

  asked(callId: string): void {
    this.noteLater({ kind: "asked", callId })
  }

  /** Done when it is durable. */
  finished(callId: string, outcome: StoredOutcome): Promise<void> {
    return this.note({ kind: "finished", callId, outcome }, true)
  }

  closed(callId: string, seq: number): void {
    this.noteLater({ kind: "closed", callId, seq })
  }

  seen(seq: number): void {
    if (seq > this.seenSeq) this.noteLater({ kind: "seen", seq })
  }

  async close(): Promise<void> {
    try {
      if (this.rewriting !== undefined) await this.rewriting
      await this.file.close()
    } catch (error) {
      this.problem = error
    }
  }

  private async note(entry: JournalEntry, durable: boolean): Promise<void> {
    this.take(entry)
    const line = lineOf(entry)
    this.grownBytes += line.length
    if (this.grownBytes > growthBytesMax) this.rewriting ??= this.rewrite()
    if (this.rewriting !== undefined) await this.rewriting
    await this.file.append(line, durable)
  }

  /** Nothing relies on the line: without it more is replayed, or a call counts as begun that was not. */
  private noteLater(entry: JournalEntry): void {
    this.note(entry, false).catch((error: unknown) => {
      this.problem = error
    })
  }

  private async rewrite(): Promise<void> {
    await this.file.close()
    this.writeAnew()
    this.file = new AppendFile(this.path)
    this.rewriting = undefined
  }

  private take(entry: JournalEntry): void {
    if (entry.kind === "damaged") this.isDamaged = true
    else if (entry.kind === "seen") this.forget(entry.seq)
    else if (entry.kind !== "session") this.takeCall(entry)
  }

  private takeCall(entry: JournalEntry & { readonly callId: string }): void {
    const known = this.calls.get(entry.callId)
    if (entry.kind === "started" && known?.state !== "closed") {
      this.calls.set(entry.callId, { state: "started", promptId: entry.promptId })
    } else if (entry.kind === "closed") {
      this.calls.set(entry.callId, { state: "closed", seq: entry.seq })
    } else if (entry.kind === "asked" && known?.state === "started") {
      this.calls.set(entry.callId, { ...known, state: "asked" })
    } else if (entry.kind === "finished" && known?.state !== "closed") {
      const promptId = known?.promptId ?? ""
      this.calls.set(entry.callId, { state: "finished", promptId, outcome: entry.outcome })
    }
  }

  /** Calls closed by a frame up to `seq` are not asked for again: the server knows that it was seen. */
  private forget(seq: number): void {
    this.seenSeq = Math.max(this.seenSeq, seq)
    for (const [callId, call] of this.calls) {
      if (call.state === "closed" && call.seq <= this.seenSeq) this.calls.delete(callId)
    }
  }

  /** The file with nothing in it that is not needed, put in the old one's place in one step. */
  private writeAnew(): void {
    const draft = `${this.path}.new`
    const file = openSync(draft, "w", 0o600)
    try {
      const text = [...this.entries()].map(lineOf).join("")
      writeFileSync(file, text)
      fsyncSync(file)
      this.grownBytes = 0
    } finally {
      closeSync(file)
    }
    renameSync(draft, this.path)
    syncDirectory(dirname(this.path))
  }

  private *entries(): Generator<JournalEntry> {
    yield this.session
    if (this.isDamaged) yield { kind: "damaged" }
    yield { kind: "seen", seq: this.seenSeq }
    for (const [callId, call] of this.calls) {
      if (call.state === "closed") {
        yield { kind: "closed", callId, seq: call.seq }
        continue
      }
      yield { kind: "started", callId, promptId: call.promptId }
      if (call.state === "asked") yield { kind: "asked", callId }
      if (call.state === "finished") yield { kind: "finished", callId, outcome: call.outcome }
    }
  }
}
