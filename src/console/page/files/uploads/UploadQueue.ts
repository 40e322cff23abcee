import { Refused } from "../../api/Refused.ts"
import type { Chosen } from "./Chosen.ts"
import { askToRead, fileOf, type HandledFile, mayRead } from "./Handles.ts"
import { sendFile } from "./SendFile.ts"
import { endUpload, readOffsets } from "./TusRequests.ts"
import { isAgain, isMoving, keyOf, type Upload, type UploadPlace } from "./Upload.ts"
import { forget, heldElsewhere, hold, keep, type Kept, recall } from "./UploadMemory.ts"

/** Files sent at the same time. A browser has six connections to a server, and the page needs some. */
const together = 3

/** The page is told of progress so often at most. */
const tellMillis = 150

const longestPauseMillis = 30_000

interface Entry {
  upload: Upload
  file: File | undefined
  readonly handled: HandledFile | undefined
  readonly addedAt: number
  /** ends the request under way, or the pause before the next */
  stop: AbortController | undefined
  /** bytes that the server had when it was last heard of */
  kept: number
  /** attempts in a row that brought no byte */
  misses: number
}

/** Sends files of one user, some at a time, while the tab is open, and knows after a reload which were on their way. */
export class UploadQueue {
  readonly userId: string
  readonly #entries = new Map<string, Entry>()
  readonly #listeners = new Set<() => void>()
  readonly #held = new Map<string, () => void>()
  #told: ReadonlyArray<Upload> = []
  #timer: ReturnType<typeof setTimeout> | undefined
  #onSignedOut: () => void = () => undefined
  #isDisposed = false

  constructor(userId: string) {
    this.userId = userId
  }

  /** The uploads in their order; the same array until something changes. */
  get uploads(): ReadonlyArray<Upload> {
    return this.#told
  }

  /** Some of the files that the page was left with can be found again, given leave. */
  get canAsk(): boolean {
    return [...this.#entries.values()].some(
      ({ handled, upload }) => handled !== undefined && upload.state === "missing"
    )
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** The page is there, and its user is signed in. */
  wake(onSignedOut: () => void): void {
    this.#onSignedOut = onSignedOut
    for (const { upload, stop } of this.#entries.values()) if (upload.state === "held") stop?.abort()
  }

  /** Uploads of this browser that a page before this one did not finish, unless another tab has them. */
  async recall(): Promise<void> {
    const kept = await recall(this.userId, Date.now())
    if (kept.length === 0) return
    const elsewhere = await heldElsewhere(new Set(kept.map(({ batch }) => batch)))
    const offsets = await readOffsets()
    // Another user has signed in meanwhile: these files would go to theirs.
    if (this.#isDisposed) return
    for (const one of kept) {
      if (elsewhere.has(one.batch) || this.#entries.has(one.id)) continue
      const { addedAt, handled, isDone, userId: _user, ...rest } = one
      const state = isDone ? "done" : "missing"
      const sent = isDone ? one.size : (offsets.get(one.url ?? "") ?? 0)
      const upload: Upload = { ...rest, state, sent, isUnsure: true, problem: undefined }
      this.#entries.set(one.id, {
        upload,
        file: undefined,
        handled,
        addedAt,
        stop: undefined,
        kept: sent,
        misses: 0
      })
      this.#hold(one.batch)
    }
    await this.#find(mayRead)
    this.#tell()
  }

  /** Goes on with files that the browser can find again, once the person gives leave. To be called on a press. */
  goOn(): Promise<void> {
    return this.#find(askToRead)
  }

  /** Takes files, each for its place. One that is, or was, on its way to the same place goes on: it is not sent twice. */
  add(chosen: ReadonlyArray<readonly [Chosen, UploadPlace]>): void {
    const batch = crypto.getRandomValues(new Uint32Array(4)).join("-")
    const added: Array<Entry> = []
    const known = new Map(this.#known().map((entry) => [keyOf(entry.upload), entry]))
    for (const [{ file, handled }, place] of chosen) {
      const { lastModified, size, type } = file
      const same = known.get(keyOf({ ...place, lastModified, size, type }))
      if (same !== undefined) {
        this.#give(same, file)
        continue
      }
      const upload: Upload = {
        ...place,
        id: `${batch}-${added.length}`,
        batch,
        size,
        lastModified,
        type,
        state: "waiting",
        sent: 0,
        url: undefined,
        isUnsure: false,
        problem: undefined
      }
      added.push({ upload, file, handled, addedAt: Date.now(), stop: undefined, kept: 0, misses: 0 })
    }
    for (const entry of added) this.#entries.set(entry.upload.id, entry)
    if (added.length > 0) this.#hold(batch)
    void keep(added.map((entry) => this.#kept(entry)))
    this.#turn()
  }

  /** Takes the files that were on their way out of those chosen again. Answers how many. */
  addAgain(chosen: ReadonlyArray<Chosen>): number {
    let found = 0
    const missing = [...this.#entries.values()].filter(({ upload }) => upload.state === "missing")
    for (const { file, path } of chosen) {
      const entry = missing.find(({ upload }) => upload.state === "missing" && isAgain(upload, path, file))
      if (entry === undefined) continue
      this.#give(entry, file)
      found += 1
    }
    this.#turn()
    return found
  }

  pause({ id }: Upload): void {
    const entry = this.#entries.get(id)
    if (entry === undefined || entry.upload.state === "done") return
    this.#set(entry, { state: "paused", problem: undefined })
    entry.stop?.abort()
    this.#turn()
  }

  resume({ id }: Upload): void {
    const entry = this.#entries.get(id)
    if (entry === undefined) return
    entry.misses = 0
    this.#set(entry, { state: entry.file === undefined ? "missing" : "waiting", problem: undefined })
    this.#turn()
  }

  /** Drops an upload, here and on the server. */
  cancel(upload: Upload): void {
    const { url } = this.#entries.get(upload.id)?.upload ?? upload
    this.pause(upload)
    this.#entries.delete(upload.id)
    void forget([upload.id])
    if (url !== undefined) void endUpload(url)
    this.#settle(upload.batch)
    this.#turn()
  }

  /** Takes those that are over off the list. */
  clear(): void {
    for (const [id, { upload }] of this.#entries)
      if (upload.state === "done" && !this.#isOpen(upload.batch)) this.#entries.delete(id)
    this.#tell()
  }

  /** Ends all requests, for another user. */
  dispose(): void {
    this.#isDisposed = true
    for (const { stop } of this.#entries.values()) stop?.abort()
    for (const release of this.#held.values()) release()
    this.#entries.clear()
    this.#listeners.clear()
    clearTimeout(this.#timer)
  }

  /** Those that are not over, and what is done of the batches of those that wait for their files. */
  #known(): ReadonlyArray<Entry> {
    const all = [...this.#entries.values()]
    const batches = new Set(all.flatMap(({ upload }) => (upload.state === "missing" ? [upload.batch] : [])))
    return all.filter(({ upload }) => upload.state !== "done" || batches.has(upload.batch))
  }

  #give(entry: Entry, file: File): void {
    if (entry.upload.state === "done" || isMoving(entry.upload)) return
    entry.file = file
    this.#set(entry, { state: "waiting", problem: undefined })
  }

  async #find(mayUse: (root: FileSystemHandle) => Promise<boolean>): Promise<void> {
    const leaves = new Map<FileSystemHandle, boolean>()
    for (const entry of this.#entries.values()) {
      const { handled, upload } = entry
      if (handled === undefined || upload.state !== "missing") continue
      const leave = leaves.get(handled.root) ?? (await mayUse(handled.root))
      leaves.set(handled.root, leave)
      const file = leave ? await fileOf(handled) : undefined
      const isUnchanged = file?.size === upload.size && file.lastModified === upload.lastModified
      if (file !== undefined && isUnchanged) this.#give(entry, file)
    }
    this.#turn()
  }

  #hold(batch: string): void {
    if (!this.#held.has(batch)) this.#held.set(batch, hold(batch))
  }

  #isOpen(batch: string): boolean {
    for (const { upload } of this.#entries.values())
      if (upload.batch === batch && upload.state !== "done") return true
    return false
  }

  /** Forgets a batch with its last upload. */
  #settle(batch: string): void {
    if (this.#isOpen(batch)) return
    const ids = [...this.#entries.values()].flatMap(({ upload }) =>
      upload.batch === batch ? [upload.id] : []
    )
    void forget(ids)
    this.#held.get(batch)?.()
    this.#held.delete(batch)
  }

  #kept({ addedAt, handled, upload }: Entry): Kept {
    const { isUnsure: _unsure, problem: _problem, sent: _sent, state, ...rest } = upload
    return { ...rest, userId: this.userId, isDone: state === "done", handled, addedAt }
  }

  #set(entry: Entry, change: Partial<Upload>): void {
    entry.upload = { ...entry.upload, ...change }
    this.#timer ??= setTimeout(() => this.#tell(), tellMillis)
  }

  #tell(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#told = Array.from(this.#entries.values(), ({ upload }) => upload)
    for (const listener of this.#listeners) listener()
  }

  /** Begins as many as there is room for. */
  #turn(): void {
    const all = [...this.#entries.values()]
    let room = together - all.filter(({ stop }) => stop !== undefined).length
    for (const entry of all) {
      if (room <= 0) break
      if (entry.upload.state !== "waiting" || entry.stop !== undefined) continue
      room -= 1
      void this.#send(entry)
    }
    this.#tell()
  }

  async #send(entry: Entry): Promise<void> {
    const { file, upload } = entry
    if (file === undefined) return
    const stop = new AbortController()
    entry.stop = stop
    this.#set(entry, { state: "sending", isUnsure: true, problem: undefined })
    try {
      await sendFile(upload, file, this.#courseOf(entry), stop.signal)
      entry.file = undefined
      this.#set(entry, { state: "done", sent: file.size })
      void keep([this.#kept(entry)])
      this.#settle(entry.upload.batch)
    } catch (error) {
      if (!stop.signal.aborted) await this.#miss(entry, error)
    } finally {
      if (entry.stop === stop) entry.stop = undefined
      this.#turn()
    }
  }

  #courseOf(entry: Entry) {
    return {
      onUrl: (url: string | undefined) => {
        this.#set(entry, { url, ...(url === undefined && { sent: 0 }) })
        void keep([this.#kept(entry)])
      },
      onSent: (sent: number) => this.#set(entry, { sent }),
      onKept: (sent: number) => {
        // Bytes on the wire are no success: a server that takes none of them is asked less and less often.
        if (sent > entry.kept) entry.misses = 0
        entry.kept = sent
        this.#set(entry, { sent })
      }
    }
  }

  /** Tries again what passes by itself, after a pause that grows, and ends at once when the page is woken. */
  async #miss(entry: Entry, error: unknown): Promise<void> {
    if (!(error instanceof Refused)) {
      this.#set(entry, { state: "failed", problem: "The file could not be read" })
      if (error instanceof DOMException) return
      throw error
    }
    const { message, retryMillis, status } = error
    if (status !== 401 && retryMillis === undefined)
      return this.#set(entry, { state: "failed", problem: message })
    const pause = new AbortController()
    entry.stop = pause
    this.#set(entry, { state: "held", problem: status === 401 ? "Your session has ended" : message })
    if (status === 401) this.#onSignedOut()
    const millis = Math.max(
      retryMillis ?? longestPauseMillis,
      Math.min(longestPauseMillis, 1000 * 2 ** entry.misses++)
    )
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, millis)
      addEventListener("online", () => pause.abort(), { once: true, signal: pause.signal })
      pause.signal.addEventListener("abort", () => {
        clearTimeout(timer)
        resolve()
      })
    })
    if (!pause.signal.aborted) pause.abort()
    entry.stop = undefined
    if (entry.upload.state === "held") this.#set(entry, { state: "waiting" })
  }
}
