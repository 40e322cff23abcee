import { randomUUID } from "node:crypto"
import * as fs from "node:fs/promises"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { codeOf, ifThere, linkOrCopy, syncDirectory } from "./Disk.ts"

/** The directory of blobs cannot be used, or is another one than at the start. */
export class BlobsUnusable extends Schema.TaggedError<BlobsUnusable>()("BlobsUnusable", {
  directory: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `${this.directory}: ${this.problem}`
  }
}

/**
 * A directory of blobs and its id, which stands in the file `store` in it. Two processes that find the same id share the
 * directory; one whose disk is not mounted has none, and nothing is taken for lost.
 */
export class BlobDirectory {
  readonly path: string

  constructor(path: string) {
    this.path = path
  }

  /** uploads under way */
  get temporary(): string {
    return join(this.path, "tmp")
  }

  private get identity(): string {
    return join(this.path, "store")
  }

  /** The id of the directory, which it gets when it is first used. Processes that share it find the same one. */
  readonly identify: Effect.Effect<string, BlobsUnusable> = Effect.suspend(() =>
    this.usable(async () => {
      await fs.mkdir(this.temporary, { recursive: true, mode: 0o700 })
      const found = await this.readIdentity()
      if (found !== undefined) return found
      const strays = (await fs.readdir(this.path)).filter((name) => /^[0-9a-f]{2}$/.test(name))
      if (strays.length > 0)
        throw new Error(
          "has blobs and no file named store: put that one back, with the id from the table blob_stores"
        )
      const path = join(this.temporary, randomUUID())
      await fs.writeFile(path, `${randomUUID().replaceAll("-", "")}\n`, {
        flag: "wx",
        mode: 0o600,
        flush: true
      })
      // Unlike a rename it leaves what another process has put there.
      await linkOrCopy(path, this.identity).catch((error: unknown) => {
        if (codeOf(error) !== "EEXIST") throw error
      })
      await fs.rm(path)
      await syncDirectory(this.path)
      return (await this.readIdentity()) ?? "unreadable"
    })
  )

  /** Fails where the directory is not the one of this id: its disk is not mounted, say. */
  recognise(id: string): Effect.Effect<void, BlobsUnusable> {
    return Effect.flatMap(
      this.usable(() => this.readIdentity()),
      (found) =>
        found === id
          ? Effect.void
          : Effect.fail(
              new BlobsUnusable({
                directory: this.path,
                problem: `is not the directory with the id ${id} any more; is its disk mounted?`
              })
            )
    )
  }

  private async readIdentity(): Promise<string | undefined> {
    const text = await ifThere(fs.readFile(this.identity, "utf8"))
    if (text === undefined) return undefined
    const id = text.trim()
    if (!/^[0-9a-f]{32}$/.test(id)) throw new Error("its file named store is damaged")
    return id
  }

  private usable<A>(run: () => Promise<A>): Effect.Effect<A, BlobsUnusable> {
    return Effect.mapError(
      Effect.tryPromise({ try: run, catch: (cause) => cause }),
      (cause) =>
        new BlobsUnusable({
          directory: this.path,
          problem: cause instanceof Error ? cause.message : String(cause)
        })
    )
  }
}
