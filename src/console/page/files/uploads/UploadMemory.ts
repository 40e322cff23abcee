import type { HandledFile } from "./Handles.ts"
import type { FileLook, UploadPlace } from "./Upload.ts"

/**
 * The uploads of this browser that are not over, for a page that is loaded anew. No bytes are kept: the server has what was
 * sent, and the person has the files. The database is there while an upload is.
 */

/** An upload as it is kept. */
export interface Kept extends UploadPlace, FileLook {
  readonly id: string
  readonly batch: string
  readonly userId: string
  readonly url: string | undefined
  /** kept while others of its batch are on their way: chosen again, it is not sent again */
  readonly isDone: boolean
  readonly handled: HandledFile | undefined
  /** milliseconds since 1970 */
  readonly addedAt: number
}

const name = "signalbox-uploads"
const store = "uploads"

/** The server drops an upload that nobody went on with for a day. */
const keptMillis = 24 * 60 * 60 * 1000

const settled = <A>(request: IDBRequest<A>): Promise<A> =>
  new Promise((resolve, reject) => {
    request.addEventListener("success", () => resolve(request.result))
    request.addEventListener("error", () => reject(request.error))
  })

const opened = async (): Promise<IDBDatabase> => {
  const request = indexedDB.open(name, 1)
  request.addEventListener("upgradeneeded", () => request.result.createObjectStore(store, { keyPath: "id" }))
  return settled(request)
}

let last: Promise<unknown> = Promise.resolve()

/**
 * Runs one change after the other, each with a connection of its own, so that the database can be dropped. A browser may
 * refuse to keep anything, in a private window for example: then uploads end with the page.
 */
const inTurn = <A>(body: () => Promise<A>, otherwise: A): Promise<A> => {
  const turn = last.then(body, body).catch((error: unknown) => {
    if (error instanceof DOMException) return otherwise
    throw error
  })
  last = turn
  return turn
}

const withStore = async <A>(
  mode: IDBTransactionMode,
  body: (kept: IDBObjectStore) => IDBRequest<A> | undefined
): Promise<A | undefined> => {
  const database = await opened()
  try {
    const transaction = database.transaction(store, mode)
    const request = body(transaction.objectStore(store))
    await new Promise<void>((resolve, reject) => {
      transaction.addEventListener("complete", () => resolve())
      transaction.addEventListener("abort", () => reject(transaction.error))
    })
    return request?.result
  } finally {
    database.close()
  }
}

/** Writes down uploads, new and changed ones. */
export const keep = (changed: ReadonlyArray<Kept>): Promise<void> =>
  inTurn(async () => {
    if (changed.length === 0) return
    await withStore("readwrite", (kept) => {
      for (const one of changed) kept.put(one)
      return undefined
    })
  }, undefined)

/** Forgets uploads, and the database with the last. */
export const forget = (ids: ReadonlyArray<string>): Promise<void> =>
  inTurn(async () => {
    if (ids.length === 0) return
    const left = await withStore("readwrite", (kept) => {
      for (const id of ids) kept.delete(id)
      return kept.count()
    })
    if (left === 0) await settled(indexedDB.deleteDatabase(name))
  }, undefined)

/** The user's uploads. Those of others who used this browser, and old ones, are forgotten. */
export const recall = async (userId: string, nowMillis: number): Promise<ReadonlyArray<Kept>> => {
  const all = await inTurn(async (): Promise<ReadonlyArray<Kept>> => {
    const databases = await indexedDB.databases()
    if (!databases.some((one) => one.name === name)) return []
    return (await withStore<Array<Kept>>("readonly", (kept) => kept.getAll())) ?? []
  }, [])
  const isPresent = (one: Kept) => one.userId === userId && nowMillis - one.addedAt < keptMillis
  const old = all.filter((one) => !isPresent(one))
  if (old.length > 0) await forget(old.map(({ id }) => id))
  return all.filter(isPresent)
}

const lockOf = (batch: string): string => `signalbox-upload-${batch}`

/** Says to the other tabs that these uploads are this one's, until the function that it answers is called. */
export const hold = (batch: string): (() => void) => {
  let release = (): void => undefined
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  // No locks without https: two tabs then show the same.
  void navigator.locks?.request(lockOf(batch), () => held)
  return release
}

/** The batches that another tab has. */
export const heldElsewhere = async (batches: ReadonlySet<string>): Promise<ReadonlySet<string>> => {
  const { held = [] } = (await navigator.locks?.query()) ?? {}
  const names = new Set(held.map((lock) => lock.name))
  return new Set([...batches].filter((batch) => names.has(lockOf(batch))))
}
