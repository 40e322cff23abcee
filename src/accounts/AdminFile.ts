import { open, readFile, rename, rm, stat } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Effect, Predicate, Schema } from "effect"

/** DATA_DIR/admin.json cannot be read or written. */
export class AdminFileFailed extends Schema.TaggedError<AdminFileFailed>()("AdminFileFailed", {
  file: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `${this.file}: ${this.problem}`
  }
}

const shape = Schema.Struct({ url: Schema.String, adminKey: Schema.optionalKey(Schema.String) })

/**
 * `{"url","adminKey"}`, mode 0600: the server's address, and a key for it. Without `adminKey` once that key no longer
 * works. Source: contract/start#first-boot.
 */
export type AdminFile = typeof shape.Type

const json = Schema.fromJsonString(shape)

export const adminFileIn = (dataDir: string): string => join(dataDir, "admin.json")

const failed = (file: string) => (cause: unknown) =>
  new AdminFileFailed({ file, problem: cause instanceof Error ? cause.message : String(cause) })

/** undefined: there is none */
export const read = (file: string): Effect.Effect<AdminFile | undefined, AdminFileFailed> =>
  Effect.tryPromise({
    try: () =>
      readFile(file, "utf8").catch((error: unknown) => {
        if (Predicate.hasProperty(error, "code") && error.code === "ENOENT") return undefined
        throw error
      }),
    catch: failed(file)
  }).pipe(
    Effect.flatMap((text) =>
      text === undefined
        ? Effect.succeed(undefined)
        : Effect.mapError(Schema.decodeEffect(json)(text), failed(file))
    )
  )

/** Whole or not at all, and never readable by others, not even for an instant. It belongs to the owner of its directory. */
export const write = (file: string, content: AdminFile): Effect.Effect<void, AdminFileFailed> =>
  Effect.tryPromise({
    try: async () => {
      const temporary = `${file}.${process.pid}.tmp`
      await rm(temporary, { force: true })
      const handle = await open(temporary, "wx", 0o600)
      try {
        await handle.writeFile(`${JSON.stringify(content, null, 2)}\n`)
        // An operator who is root must not leave a file that the server's account cannot read.
        const { gid, uid } = await stat(dirname(file))
        if (process.getuid?.() === 0 && uid !== 0) await handle.chown(uid, gid)
        await handle.chmod(0o600)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await rename(temporary, file)
    },
    catch: failed(file)
  })
