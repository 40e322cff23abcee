import { hash } from "node:crypto"
import * as fs from "node:fs"
import { join } from "node:path"
import { idMemoryMillis, SiteIds } from "./SiteIds.ts"

/** The 64-bit hash of a caller's event id; never 0, which stands for "no id". */
export const hashOfId = (id: string): bigint => BigInt(`0x${hash("sha256", id, "hex").slice(0, 16)}`) || 1n

/**
 * The ids of all sites under one directory, each site's in a directory of its own. Of the sites that were used last,
 * `openSitesMax` are kept open. Failed writes are kept in memory and retried by `sync`.
 */
export class IdIndex {
  readonly #directory: string
  readonly #idsMax: number
  readonly #openSitesMax: number
  /** paths of files that were damaged, and removed */
  readonly #damaged: Array<string> = []
  /** in the order in which they were last used */
  readonly #open = new Map<string, SiteIds>()
  /** by `<site> <hash>`: came, and could not be written */
  readonly #unwritten = new Map<
    string,
    { readonly site: string; readonly hash: bigint; readonly millis: number }
  >()

  constructor(directory: string, limits: { readonly idsMax: number; readonly openSitesMax: number }) {
    this.#directory = directory
    this.#idsMax = limits.idsMax
    this.#openSitesMax = limits.openSitesMax
    fs.mkdirSync(directory, { recursive: true, mode: 0o700 })
  }

  /** Damaged and removed files since the last call: their ids have to be put again. */
  takeDamaged(): ReadonlyArray<string> {
    return this.#damaged.splice(0)
  }

  /** Whether the site has had the id within the last 24 hours. */
  has(site: string, hash: bigint, nowMillis: number): boolean {
    return this.#unwritten.has(`${site} ${hash}`) || this.#siteOf(site).has(hash, nowMillis)
  }

  put(site: string, hash: bigint, millis: number): void {
    try {
      this.#siteOf(site).put(hash, millis)
    } catch {
      // A full disk, most likely. `sync` tries again and says what is wrong.
      this.#unwritten.set(`${site} ${hash}`, { site, hash, millis })
    }
  }

  /** Puts everything on disk, or fails with what the file system says; then nothing may be forgotten elsewhere. */
  async sync(): Promise<void> {
    for (const [key, { site, hash, millis }] of this.#unwritten) {
      this.#siteOf(site).put(hash, millis)
      this.#unwritten.delete(key)
    }
    await Promise.all(Array.from(this.#open.values(), (ids) => ids.sync()))
  }

  /** Removes what belongs to sites that have had no id for so long that all of theirs are forgotten. */
  sweep(nowMillis: number): void {
    for (const site of fs.readdirSync(this.#directory)) {
      const directory = join(this.#directory, site)
      const touchedMillis = Math.max(
        ...fs.readdirSync(directory).map((name) => fs.statSync(join(directory, name)).mtimeMs),
        fs.statSync(directory).mtimeMs
      )
      if (nowMillis - touchedMillis <= idMemoryMillis) continue
      this.#open.get(site)?.close()
      this.#open.delete(site)
      fs.rmSync(directory, { recursive: true })
    }
  }

  close(): void {
    for (const ids of this.#open.values()) ids.close()
    this.#open.clear()
  }

  #siteOf(site: string): SiteIds {
    const open = this.#open.get(site)
    if (open !== undefined) {
      this.#open.delete(site)
      this.#open.set(site, open)
      return open
    }
    const opened = new SiteIds(join(this.#directory, site), this.#idsMax, (path) => this.#damaged.push(path))
    this.#open.set(site, opened)
    if (this.#open.size > this.#openSitesMax) this.#closeOldest()
    return opened
  }

  #closeOldest(): void {
    const [site, ids] = this.#open.entries().next().value ?? []
    if (site === undefined || ids === undefined) return
    ids.close()
    this.#open.delete(site)
  }
}
